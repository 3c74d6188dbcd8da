"""Mechanisms made from others: the largest counts, and one run per label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

from farthing.errors import InvalidInput, require_count
from farthing.mechanisms.counts.unknown_counts import ThresholdedCounts
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.noise.discrete import Noise
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Around,
    Contribution,
    Data,
    Errors,
    Expectation,
    Mechanism,
    Release,
    Uses,
    joint_level,
    summed_uses,
)


@dataclass(frozen=True, slots=True)
class Largest(Around[Data], Generic[Data]):
    """The k largest counts of a release, highest first; ties stay in its order.

    This is post-processing, so the price is that of the mechanism. Counts that are left out were
    drawn too, and must be paid for although the release no longer shows them.
    """

    k: int

    def __post_init__(self) -> None:
        require_count("k", self.k, at_least=1)

    @property
    def guarantees(self) -> Uses:
        """That of the mechanism, before and after running."""
        return self.mechanism.guarantees

    def run(self, data: Data) -> Release:
        """Labels with the largest counts."""
        release = self.mechanism.run(data)
        counts = release.counts or ()
        order = sorted(range(len(counts)), key=counts.__getitem__, reverse=True)[: self.k]
        labels = tuple(release.labels[i] for i in order)
        kept = tuple(counts[i] for i in order)
        return replace(release, labels=labels, counts=kept, among=len(counts))

    def errors(self, release: Release, confidence: float, *, together: bool = False) -> Errors:
        """Labels are shown because of their noise, so the intervals of all labels must hold."""
        return self.mechanism.errors(release, confidence, together=together)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """That of the mechanism; for a known domain, intervals hold for all labels together."""
        level = joint_level(confidence, domain_size or 1)
        expected = self.mechanism.expect(level, domain_size=domain_size)
        assert expected.counts is not None
        return replace(expected, counts=replace(expected.counts, confidence=confidence))


@dataclass(frozen=True, slots=True)
class Groups(Generic[Data]):
    """The data of each label.

    `of` has the labels with data, `without` is the data of a label without rows, and `counts` is
    how many units each label has, where the labels must be found first.
    """

    of: Mapping[Any, Data]
    without: Data
    counts: Histogram | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PerLabel(Mechanism[Groups[Data]], Generic[Data]):
    """Runs `measure` once for each label: of the `domain`, or of those that `finding` releases.

    A unit has at most `contribution_limit` labels and does not affect the data of the others, so
    neighbours differ in the inputs of that many independent runs, however many runs there are
    (docs/theory/mechanisms.md, Theorem 11). Finding costs extra, because its release is known
    before measuring begins.
    """

    measure: Mechanism[Data]
    contribution_limit: int
    domain: tuple[Any, ...] | None = None
    finding: ThresholdedCounts | None = None

    def __post_init__(self) -> None:
        require_count("contribution_limit", self.contribution_limit, at_least=1)
        if (self.domain is None) == (self.finding is None):
            raise InvalidInput("exactly one of domain and finding must be given")
        if self.domain is not None and len(set(self.domain)) != len(self.domain):
            raise InvalidInput("the labels of the domain must be distinct")
        if self.finding is not None:
            limit = self.finding.assumes.contribution_limit
            if limit is None or limit < self.contribution_limit:
                raise InvalidInput("finding must allow a unit at least contribution_limit labels")

    @property
    def assumes(self) -> Contribution:
        """What the measure assumes of a unit, in at most `contribution_limit` labels."""
        each = self.measure.assumes
        counted = () if self.finding is None else (self.finding.assumes.per_key_limit,)
        others = (*each.others, *counted)
        return replace(each, contribution_limit=self.contribution_limit, others=others, total=None)

    @property
    def added(self) -> tuple[Noise, int] | None:
        """That of the measure, which is drawn after the labels are found."""
        return self.measure.added

    @property
    def guarantees(self) -> Uses:
        """The measure once for each label of a unit, and the finding."""
        return self._uses(self.contribution_limit, None)

    def guarantees_for(self, release: Release) -> Uses:
        """No more than there are labels."""
        return self._uses(min(self.contribution_limit, len(release.labels)), release)

    def _uses(self, labels: int, release: Release | None) -> Uses:
        measured = ((guarantee, times * labels) for guarantee, times in self.measure.guarantees)
        if self.finding is None:
            return summed_uses(*measured)
        finding = self.finding
        return summed_uses(
            *(finding.guarantees if release is None else finding.guarantees_for(release)), *measured
        )

    def run(self, groups: Groups[Data]) -> Release:
        """The measurement of each label, in the order of the domain or as found; what is found has
        the noisy number of its units too."""
        found = Release(self.domain or ())
        if self.finding is not None:
            assert groups.counts is not None
            found = self.finding.run(groups.counts)
        each = (groups.of.get(label, groups.without) for label in found.labels)
        return replace(found, parts=tuple(map(self.measure.run, each)))

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """That of the measure, and the count from which labels are found."""
        expected = self.measure.expect(confidence)
        if self.finding is None:
            return expected
        finding = self.finding.expect(confidence)
        return replace(expected, found_from=finding.found_from, threshold=finding.threshold)
