"""Counts of a known domain: KnownLap and KnownGauss, with discrete noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from farthing.guarantees import kinds
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Accuracy, noise_accuracy
from farthing.mechanisms.discrete_gaussian import DiscreteGaussian
from farthing.mechanisms.discrete_laplace import DiscreteLaplace
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.parameters import check, gaussian_variance, laplace_scale
from farthing.mechanisms.randomness import open_source
from farthing.mechanisms.release import Items, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLaplace:
    """Every count of the domain plus discrete Laplace noise of scale per_key_limit/ε.

    A unit changes at most `contribution_limit` counts, each by at most per_key_limit whole
    steps, and one step changes a probability by a factor of at most e^(ε/per_key_limit): that
    many ε-DP coordinates. With per_key_limit 1 each is exactly randomized response, so nothing
    better than PureDP holds, in particular not what the continuous Laplace mechanism promises
    (docs/theory/mechanisms.md).
    """

    epsilon: float
    contribution_limit: int
    per_key_limit: int
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self, "epsilon", "contribution_limit", "per_key_limit")
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def noise(self) -> DiscreteLaplace:
        """What is added to each count."""
        return DiscreteLaplace(laplace_scale(self.epsilon, self.per_key_limit))

    @property
    def coordinate(self) -> PureDP:
        """What one noisy count costs."""
        return PureDP(self.epsilon)

    @property
    def guarantees(self) -> Items:
        """One coordinate for each count that a unit can change."""
        return ((self.coordinate, self.contribution_limit),)

    def guarantees_for(self, release: Release) -> Items:
        """No more coordinates than the domain has labels."""
        return ((self.coordinate, min(self.contribution_limit, len(release.labels))),)

    def run(self, histogram: Histogram) -> Release:
        """Noisy counts in the order of the domain; they may be negative."""
        noisy = histogram.counts + self.noise.draw(len(histogram), open_source())
        return Release(tuple(histogram.labels.tolist()), tuple(noisy.tolist()))

    def accuracy(self, *, confidence: float = DEFAULT_CONFIDENCE) -> Accuracy:
        """The error of one count."""
        return noise_accuracy(self.noise, confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGaussian:
    """Every count plus discrete Gaussian noise with σ = noise_multiplier·per_key_limit.

    One coordinate is what it is, discrete Gaussian noise. The continuous Gaussian profile is not
    claimed: the discrete one exceeds it at some ε.
    """

    noise_multiplier: float
    contribution_limit: int
    per_key_limit: int
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self, "noise_multiplier", "contribution_limit", "per_key_limit")
        _ = self.noise  # the standard deviation is checked when the mechanism is made

    @property
    def noise(self) -> DiscreteGaussian:
        """What is added to each count."""
        return DiscreteGaussian(gaussian_variance(self.noise_multiplier, self.per_key_limit))

    @property
    def coordinate(self) -> kinds.DiscreteGaussian:
        """What one noisy count costs."""
        return kinds.DiscreteGaussian(self.noise_multiplier, self.per_key_limit)

    @property
    def guarantees(self) -> Items:
        """One coordinate for each count that a unit can change."""
        return ((self.coordinate, self.contribution_limit),)

    def guarantees_for(self, release: Release) -> Items:
        """No more coordinates than the domain has labels."""
        return ((self.coordinate, min(self.contribution_limit, len(release.labels))),)

    def run(self, histogram: Histogram) -> Release:
        """Noisy counts in the order of the domain; they may be negative."""
        noisy = histogram.counts + self.noise.draw(len(histogram), open_source())
        return Release(tuple(histogram.labels.tolist()), tuple(noisy.tolist()))

    def accuracy(self, *, confidence: float = DEFAULT_CONFIDENCE) -> Accuracy:
        """The error of one count."""
        return noise_accuracy(self.noise, confidence)
