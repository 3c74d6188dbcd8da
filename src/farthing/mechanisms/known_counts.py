"""Counts of a known domain: KnownLap and KnownGauss, with discrete noise."""

from __future__ import annotations

from dataclasses import dataclass

from farthing.mechanisms.accuracy import (
    DEFAULT_CONFIDENCE,
    Expectation,
    Interval,
    joint_level,
    noise_accuracy,
)
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.noise import Coordinate, Noise, coordinate_noise
from farthing.mechanisms.parameters import check
from farthing.mechanisms.protocol import Contribution, Mechanism, Uses
from farthing.mechanisms.randomness import system_bits
from farthing.mechanisms.release import Release, exact_means


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCounts(Mechanism[Histogram]):
    """Every count of the domain plus the noise that its guarantee asks for.

    A unit changes at most `contribution_limit` counts, each by at most per_key_limit whole
    steps: that many coordinates. One step changes a probability of discrete Laplace noise by a
    factor of at most e^(ε/per_key_limit); with per_key_limit 1 a coordinate is exactly
    randomized response, so nothing better than PureDP holds, in particular not what the
    continuous Laplace mechanism promises. Nor is the continuous Gaussian profile claimed: the
    discrete one exceeds it at some ε (Theorems 1 and 2 of docs/theory/mechanisms.md).
    """

    coordinate: Coordinate
    contribution_limit: int
    per_key_limit: int

    def __post_init__(self) -> None:
        check(self, "contribution_limit", "per_key_limit")
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def noise(self) -> Noise:
        """What is added to each count."""
        return coordinate_noise(self.coordinate, self.per_key_limit)

    @property
    def assumes(self) -> Contribution:
        """The two limits."""
        return Contribution(self.contribution_limit, self.per_key_limit)

    @property
    def guarantees(self) -> Uses:
        """One coordinate for each count that a unit can change."""
        return self.recount(None)

    def guarantees_for(self, release: Release) -> Uses:
        """No more coordinates than the domain has labels."""
        return self.recount(len(release.labels))

    def recount(self, labels: int | None) -> Uses:
        """The price of counting so many labels (None: any number) once more."""
        limit = self.contribution_limit
        return ((self.coordinate, limit if labels is None else min(limit, labels)),)

    def run(self, histogram: Histogram) -> Release:
        """Noisy counts in the order of the domain; they may be negative."""
        return self.mean(histogram, 1)

    def mean(self, histogram: Histogram, times: int) -> Release:
        """The mean of so many independent noisy counts for each label."""
        noise, source = self.noise, system_bits()
        draws = [histogram.counts + noise.draw(len(histogram), source) for _ in range(times)]
        return Release(tuple(histogram.labels.tolist()), exact_means(draws))

    def errors(
        self, release: Release, confidence: float, *, together: bool = False
    ) -> float | tuple[Interval, ...] | None:
        """Independent noise; if labels were chosen by their counts, all must hold anyway."""
        return self.errors_of_mean(release, confidence, 1, together=together)

    def errors_of_mean(
        self, release: Release, confidence: float, times: int, *, together: bool
    ) -> float:
        """The same for the mean of so many draws."""
        among = release.among or (len(release.labels) if together else 1)
        return self.noise.half_width(joint_level(confidence, among), times) + release.moved

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """The error of one count."""
        return Expectation(noise_accuracy(self.noise, confidence))
