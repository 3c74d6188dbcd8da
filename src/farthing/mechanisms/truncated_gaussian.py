"""TruncGauss in two sound versions; the one that is printed in [CR22] is not private.

Noise that never exceeds a bound T makes "no label that a neighbour lacks is ever released"
certain instead of likely. The price is δ for the ends of the support that only one of two
neighbours can reach; what is left is no worse than the whole discrete Gaussian. Lemma C and
Theorems 6 and 7 of docs/theory/mechanisms.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb

from farthing.errors import require_count
from farthing.guarantees import kinds
from farthing.mechanisms.access import positive_counts, top_counts
from farthing.mechanisms.accuracy import DEFAULT_CONFIDENCE, Accuracy, require_confidence
from farthing.mechanisms.discrete_gaussian import DiscreteGaussian
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.inverse_transform import Integers
from farthing.mechanisms.parameters import check, gaussian_variance
from farthing.mechanisms.randomness import BitSource, open_source
from farthing.mechanisms.release import Items, Release, leak, ranked
from farthing.mechanisms.tails import at_least_one, least_reaching
from farthing.numerics.ball import Ball, in_balls, middle


@dataclass(frozen=True, slots=True)
class TruncatedDiscreteGaussian:
    """Discrete Gaussian noise conditioned on |Z| ≤ bound."""

    sigma_squared: Fraction
    bound: int

    @property
    def _whole(self) -> DiscreteGaussian:
        return DiscreteGaussian(self.sigma_squared)

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent exact draws: draws of the whole noise, kept if within the bound."""
        kept = self._whole.draw(count, source)
        outside = np.flatnonzero(np.abs(kept) > self.bound)
        while outside.size:
            kept[outside] = self._whole.draw(outside.size, source)
            outside = outside[np.abs(kept[outside]) > self.bound]
        return kept

    def tail(self, least: int) -> Ball:
        """Pr[Z ≥ least]."""
        if least < 1:
            return 1 - self.tail(1 - least)
        if least > self.bound:
            return arb(0)
        beyond = self._whole.weight_from(self.bound + 1)
        inside = self._whole.total_weight() - 2 * beyond
        return (self._whole.weight_from(least) - beyond) / inside


@lru_cache(maxsize=256)
@in_balls
def truncation_bound(
    sigma_squared: Fraction, *, per_key_limit: int, contribution_limit: int, delta: float
) -> int:
    """The smallest T for which the supports overlap enough: 1 − (1 − η)^Δ ≤ δ.

    η = Pr[Z > T − per_key_limit] is the part of the support around one count that lies outside
    the support around a count that is per_key_limit lower. It replaces equation (10) of [CR22]
    for noise on whole numbers, with independent coordinates instead of a union bound.
    """

    def outside(bound: int) -> Ball:
        one = TruncatedDiscreteGaussian(sigma_squared, bound).tail(bound - per_key_limit + 1)
        return at_least_one(one, contribution_limit)

    return least_reaching(outside, arb(delta), start=per_key_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGaussian:
    """Access to the whole histogram: noisy counts above per_key_limit + T, T the bound.

    contribution_limit coordinates of discrete Gaussian noise, plus δ. A label that only the
    added unit has starts at most at per_key_limit and can never be released.
    """

    noise_multiplier: float
    delta: float
    contribution_limit: int
    per_key_limit: int
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self, "noise_multiplier", "delta", "contribution_limit", "per_key_limit")
        _ = self.noise

    @property
    def noise(self) -> TruncatedDiscreteGaussian:
        """What is added to each count."""
        return _noise(
            self.noise_multiplier, self.delta, self.contribution_limit, self.per_key_limit
        )

    @property
    def threshold(self) -> int:
        """Noisy counts must exceed this."""
        return self.per_key_limit + self.noise.bound

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
        top = positive_counts(histogram)
        noise = self.noise
        noisy = top.counts + noise.draw(top.counts.size, open_source())
        released = np.flatnonzero(noisy > self.per_key_limit + noise.bound)
        return ranked(histogram, top.positions[released], noisy[released])

    @in_balls
    def accuracy(
        self, *, count: int | None = None, confidence: float = DEFAULT_CONFIDENCE
    ) -> Accuracy:
        """Of one count; `miss_probability` is for a label with this true count."""
        miss = None
        if count is not None:
            needed = self.threshold + 1 - require_count("count", count)
            miss = middle(1 - self.noise.tail(needed))
        return _accuracy(self.noise, confidence, miss)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGaussianLimited:
    """Limited access: counts of the top `candidates` above the noisy cutoff + per_key_limit + 2T.

    The cutoff, the largest count left out, gets noise of its own. contribution_limit
    coordinates of discrete Gaussian noise (the cutoff moves only if a label outside the common
    candidates did), plus δ.
    """

    noise_multiplier: float
    delta: float
    candidates: int
    contribution_limit: int
    per_key_limit: int
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(
            self,
            *("noise_multiplier", "delta", "candidates", "contribution_limit", "per_key_limit"),
        )
        _ = self.noise

    @property
    def noise(self) -> TruncatedDiscreteGaussian:
        """What is added to each count and to the cutoff."""
        return _noise(
            self.noise_multiplier, self.delta, self.contribution_limit, self.per_key_limit
        )

    @property
    def threshold(self) -> int:
        """Noisy counts must exceed the noisy cutoff by more than this."""
        return self.per_key_limit + 2 * self.noise.bound

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
        top = top_counts(histogram, self.candidates)
        noise = self.noise
        drawn = noise.draw(top.counts.size + 1, open_source())
        noisy = top.counts + drawn[1:]
        least = top.cutoff + drawn[0] + self.per_key_limit + 2 * noise.bound
        released = np.flatnonzero(noisy > least)
        return ranked(histogram, top.positions[released], noisy[released])

    @in_balls
    def accuracy(
        self, *, lead: int | None = None, confidence: float = DEFAULT_CONFIDENCE
    ) -> Accuracy:
        """Of one count; `miss_probability` bounds it for a label `lead` above the cutoff.

        The label is released if its own noise stays above −w and that of the cutoff below w
        with 2w = lead − threshold, so it is missed with probability at most 2·Pr[Z ≥ w].
        """
        miss = None
        if lead is not None:
            slack = (require_count("lead", lead) - self.threshold + 1) // 2
            miss = min(1.0, 2 * middle(self.noise.tail(slack)))
        return _accuracy(self.noise, confidence, miss)


def _noise(
    noise_multiplier: float, delta: float, contribution_limit: int, per_key_limit: int
) -> TruncatedDiscreteGaussian:
    sigma_squared = gaussian_variance(noise_multiplier, per_key_limit)
    bound = truncation_bound(
        sigma_squared,
        per_key_limit=per_key_limit,
        contribution_limit=contribution_limit,
        delta=delta,
    )
    return TruncatedDiscreteGaussian(sigma_squared, bound)


def _accuracy(
    noise: TruncatedDiscreteGaussian, confidence: float, miss_probability: float | None
) -> Accuracy:
    """As for the untruncated noise, whose error and width are no smaller."""
    level = require_confidence(confidence)
    whole = DiscreteGaussian(noise.sigma_squared)
    width = min(whole.half_width(level), noise.bound)
    return Accuracy(whole.expected_absolute, width, level, miss_probability)
