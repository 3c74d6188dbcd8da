"""The largest of the counts that another mechanism releases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from farthing.errors import require_count
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Expectation, Interval, joint_level
from farthing.mechanisms.protocol import Contribution, Mechanism, Uses
from farthing.mechanisms.release import Release

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class Largest(Mechanism[Data], Generic[Data]):
    """The k largest counts of a release, highest first; ties stay in its order.

    Post-processing, so the price is that of the mechanism: what was left out was drawn too, and
    a release that no longer shows it must not be charged for less.
    """

    mechanism: Mechanism[Data]
    k: int

    def __post_init__(self) -> None:
        require_count("k", self.k, at_least=1)

    @property
    def assumes(self) -> Contribution:
        """As the mechanism."""
        return self.mechanism.assumes

    @property
    def candidates(self) -> int | None:
        """As the mechanism."""
        return self.mechanism.candidates

    @property
    def guarantees(self) -> Uses:
        """As the mechanism, before and after running."""
        return self.mechanism.guarantees

    def run(self, data: Data) -> Release:
        """Labels with the largest counts."""
        release = self.mechanism.run(data)
        counts = release.counts or ()
        order = sorted(range(len(counts)), key=counts.__getitem__, reverse=True)[: self.k]
        labels = tuple(release.labels[i] for i in order)
        kept = tuple(counts[i] for i in order)
        return replace(release, labels=labels, counts=kept, among=len(counts))

    def errors(
        self, release: Release, confidence: float, *, together: bool = False
    ) -> float | tuple[Interval, ...] | None:
        """What is shown was chosen by its noise: intervals of all that was drawn must hold."""
        return self.mechanism.errors(release, confidence, together=together)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """As the mechanism; of a known domain, with intervals that hold for all of it."""
        level = joint_level(confidence, domain_size or 1)
        found = self.mechanism.expect(level, domain_size=domain_size)
        assert found.counts is not None
        return replace(found, counts=replace(found.counts, confidence=confidence))
