"""Draw the numbers of a release several times, each draw paid for, and give out their mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from farthing.errors import require_count
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Expectation, Interval, noise_accuracy
from farthing.mechanisms.noise import Noise
from farthing.mechanisms.protocol import Contribution, Data_contra, Mechanism, Uses, summed_uses
from farthing.mechanisms.release import Release

Data = TypeVar("Data")
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
