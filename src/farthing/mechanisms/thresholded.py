"""Histograms of an unknown domain with a fixed threshold and the exact δ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb

from farthing.errors import require_count
from farthing.guarantees import kinds
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms.access import positive_counts
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Accuracy, noise_accuracy
from farthing.mechanisms.discrete_gaussian import DiscreteGaussian
from farthing.mechanisms.discrete_laplace import DiscreteLaplace
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.parameters import check, gaussian_variance, laplace_scale
from farthing.mechanisms.randomness import open_source
from farthing.mechanisms.release import Items, Release, leak, ranked
from farthing.mechanisms.tails import at_least_one, least_reaching
from farthing.numerics.ball import in_balls, middle

Noise = DiscreteLaplace | DiscreteGaussian


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdedLaplace:
    """Noisy counts of every label present, where they reach the threshold.

    Discrete Laplace noise of scale per_key_limit/ε. contribution_limit coordinates of ε-DP,
    plus δ: the chance that some label which only the added unit has is released. Theorem 5 of
    docs/theory/mechanisms.md.
    """

    epsilon: float
    delta: float
    contribution_limit: int
    per_key_limit: int
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self, "epsilon", "delta", "contribution_limit", "per_key_limit")
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def noise(self) -> DiscreteLaplace:
        """What is added to each count."""
        return DiscreteLaplace(laplace_scale(self.epsilon, self.per_key_limit))

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is released."""
        return _threshold(self.noise, self.per_key_limit, self.contribution_limit, self.delta)

    @property
    def guarantees(self) -> Items:
        """One coordinate per count that a unit can change, and δ once."""
        return (PureDP(self.epsilon), self.contribution_limit), leak(self.delta)

    def guarantees_for(self, release: Release) -> Items:  # noqa: ARG002 # the price is fixed
        """The same for every outcome."""
        return self.guarantees

    def run(self, histogram: Histogram) -> Release:
        """Labels with noisy counts, highest first."""
        return _run(histogram, self.noise, self.threshold)

    def accuracy(
        self, *, count: int | None = None, confidence: float = DEFAULT_CONFIDENCE
    ) -> Accuracy:
        """Of one count; `miss_probability` is for a label with this true count."""
        return _accuracy(self.noise, self.threshold, count, confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdedGaussian:
    """The same with discrete Gaussian noise: contribution_limit coordinates of zCDP, plus δ."""

    noise_multiplier: float
    delta: float
    contribution_limit: int
    per_key_limit: int
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self, "noise_multiplier", "delta", "contribution_limit", "per_key_limit")
        _ = self.noise  # the standard deviation is checked when the mechanism is made

    @property
    def noise(self) -> DiscreteGaussian:
        """What is added to each count."""
        return DiscreteGaussian(gaussian_variance(self.noise_multiplier, self.per_key_limit))

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is released."""
        return _threshold(self.noise, self.per_key_limit, self.contribution_limit, self.delta)

    @property
    def guarantees(self) -> Items:
        """One coordinate per count that a unit can change, and δ once."""
        coordinate = kinds.DiscreteGaussian(self.noise_multiplier, self.per_key_limit)
        return (coordinate, self.contribution_limit), leak(self.delta)

    def guarantees_for(self, release: Release) -> Items:  # noqa: ARG002 # the price is fixed
        """The same for every outcome."""
        return self.guarantees

    def run(self, histogram: Histogram) -> Release:
        """Labels with noisy counts, highest first."""
        return _run(histogram, self.noise, self.threshold)

    def accuracy(
        self, *, count: int | None = None, confidence: float = DEFAULT_CONFIDENCE
    ) -> Accuracy:
        """Of one count; `miss_probability` is for a label with this true count."""
        return _accuracy(self.noise, self.threshold, count, confidence)


@lru_cache(maxsize=256)
@in_balls
def _threshold(noise: Noise, per_key_limit: int, contribution_limit: int, delta: float) -> int:
    """per_key_limit + the smallest x with 1 − (1 − Pr[Z ≥ x])^contribution_limit ≤ δ."""
    return per_key_limit + least_reaching(
        lambda x: at_least_one(noise.tail(x), contribution_limit), arb(delta), start=1
    )


def _run(histogram: Histogram, noise: Noise, threshold: int) -> Release:
    top = positive_counts(histogram)
    noisy = top.counts + noise.draw(top.counts.size, open_source())
    released = np.flatnonzero(noisy >= threshold)
    return ranked(histogram, top.positions[released], noisy[released])


@in_balls
def _accuracy(noise: Noise, threshold: int, count: int | None, confidence: float) -> Accuracy:
    miss = None
    if count is not None:
        miss = middle(1 - noise.tail(threshold - require_count("count", count)))
    return noise_accuracy(noise, confidence, miss)
