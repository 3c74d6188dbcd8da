"""Mechanisms made from others: the largest counts, the mean of several draws, one run per label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from farthing.errors import InvalidInput, require_count
from farthing.mechanisms.accuracy import (
    DEFAULT_CONFIDENCE,
    Expectation,
    Interval,
    joint_level,
    noise_accuracy,
)
from farthing.mechanisms.counts.unknown_counts import ThresholdedCounts
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.noise.calibrated import Noise
from farthing.mechanisms.protocol import (
    Contribution,
    Data_contra,
    Mechanism,
    Release,
    Uses,
    summed_uses,
)

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


#: Sums of more draws than this are bounded one by one: the exact law of Laplace sums is long.
_MOST_DRAWS = 512


class Repeatable(Mechanism[Data_contra], Protocol[Data_contra]):
    """A mechanism that can draw its numbers again for the labels it has found."""

    @property
    def noise(self) -> Noise:
        """What is added to each number."""

    def recount(self, labels: int | None) -> Uses:
        """The price of drawing the numbers of so many labels (None: the most) once more."""

    def mean(self, data: Data_contra, times: int, /) -> Release:
        """Labels found once, with the mean of `times` draws of each number."""

    def errors_of_mean(
        self, release: Release, confidence: float, times: int, *, together: bool
    ) -> float:
        """The half-width of each of these means."""


@dataclass(frozen=True, slots=True)
class Repeated(Mechanism[Data], Generic[Data]):
    """The mean of `times` independent draws of each number, for labels that are found once.

    It costs `times` draws of the numbers and everything else once; taking the mean is free.
    """

    mechanism: Repeatable[Data]
    times: int

    def __post_init__(self) -> None:
        require_count("times", self.times, at_least=1)

    @property
    def assumes(self) -> Contribution:
        """As without repeating."""
        return self.mechanism.assumes

    @property
    def candidates(self) -> int | None:
        """As without repeating."""
        return self.mechanism.candidates

    @property
    def guarantees(self) -> Uses:
        """The first draw of everything, and the others of the numbers."""
        return self._with_recounts(self.mechanism.guarantees, None)

    def guarantees_for(self, release: Release) -> Uses:
        """The same for what was found."""
        return self._with_recounts(self.mechanism.guarantees_for(release), len(release.labels))

    def _with_recounts(self, first: Uses, labels: int | None) -> Uses:
        again = self.mechanism.recount(labels)
        return summed_uses(*first, *((guarantee, n * (self.times - 1)) for guarantee, n in again))

    def run(self, data: Data) -> Release:
        """Labels found once, with means."""
        return self.mechanism.mean(data, self.times)

    def errors(
        self, release: Release, confidence: float, *, together: bool = False
    ) -> float | tuple[Interval, ...] | None:
        """Those of the means."""
        if release.counts is None:
            return None
        found = self.mechanism
        return found.errors_of_mean(release, confidence, self.times, together=together)

    def total(self, release: Release, confidence: float) -> Interval | None:
        """Independent noise partly cancels: the sum is so many times a mean of all draws."""
        counts, draws = release.counts or (), self.times * len(release.labels)
        if not counts or draws > _MOST_DRAWS:
            return Mechanism.total(self, release, confidence)
        wide = len(counts) * (self.mechanism.noise.half_width(confidence, draws) + release.moved)
        return sum(counts) - wide, sum(counts) + wide

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """That of the mechanism, with the error of the means."""
        one = self.mechanism.expect(confidence, domain_size=domain_size)
        return replace(one, counts=noise_accuracy(self.mechanism.noise, confidence, self.times))


@dataclass(frozen=True, slots=True)
class Groups(Generic[Data]):
    """The data of each label that has any, what a label without any has, and how many units each
    label has where the labels are to be found."""

    of: Mapping[Any, Data]
    without: Data
    counts: Histogram | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PerLabel(Mechanism[Groups[Data]], Generic[Data]):
    """`measure` once for each label: of the `domain`, or of what `finding` releases.

    A unit has at most `contribution_limit` labels and nothing to do with the data of the others, so
    neighbours differ in the inputs of that many independent runs, whatever their number
    (docs/theory/mechanisms.md, Theorem 11). Finding is paid for on top: what it releases is known
    when the measuring begins.
    """

    measure: Mechanism[Data]
    contribution_limit: int
    domain: tuple[Any, ...] | None = None
    finding: ThresholdedCounts | None = None

    def __post_init__(self) -> None:
        require_count("contribution_limit", self.contribution_limit, at_least=1)
        if (self.domain is None) == (self.finding is None):
            raise InvalidInput("the labels are either known or found")
        if self.domain is not None and len(set(self.domain)) != len(self.domain):
            raise InvalidInput("the labels must be different: each is paid for once")
        if self.finding is not None:
            found = self.finding.assumes.contribution_limit
            if found is None or found < self.contribution_limit:
                raise InvalidInput("the labels of a unit must be limited as in what finds them")

    @property
    def assumes(self) -> Contribution:
        """What the measure assumes of a unit, in at most so many labels."""
        one = self.measure.assumes
        counted = () if self.finding is None else (self.finding.assumes.per_key_limit,)
        others = (*one.others, *counted)
        return replace(one, contribution_limit=self.contribution_limit, others=others, total=None)

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
        found = self.finding
        return summed_uses(
            *(found.guarantees if release is None else found.guarantees_for(release)), *measured
        )

    def run(self, groups: Groups[Data]) -> Release:
        """What was measured of each label, in the order of the domain or as found."""
        labels = self.domain
        if labels is None:
            assert self.finding is not None
            assert groups.counts is not None
            labels = self.finding.run(groups.counts).labels
        parts = tuple(self.measure.run(groups.of.get(label, groups.without)) for label in labels)
        return Release(labels, parts=parts)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """That of the measure, and from where on labels are found."""
        one = self.measure.expect(confidence)
        if self.finding is None:
            return one
        found = self.finding.expect(confidence)
        return replace(one, found_from=found.found_from, threshold=found.threshold)
