"""Truncated Gaussian noise, discrete or rounded, for TruncGauss in two sound versions.

Noise that never exceeds a bound T makes "no label that a neighbour lacks is ever released"
certain instead of likely. The price is δ for the ends of the support that only one of two
neighbours can reach; what is left is no worse than the whole Gaussian. Lemma C and
Theorems 6 and 7 of docs/theory/mechanisms.md. As printed in [CR22] the mechanism is not private.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import arb

from farthing.mechanisms.discrete_gaussian import DiscreteGaussianNoise
from farthing.mechanisms.inverse_transform import Integers
from farthing.mechanisms.randomness import BitSource
from farthing.mechanisms.rounded_gaussian import RoundedGaussianNoise
from farthing.mechanisms.tails import at_least_one, least_reaching
from farthing.numerics.ball import Ball, in_balls


@dataclass(frozen=True, slots=True)
class TruncatedGaussianNoise:
    """Discrete or rounded Gaussian noise conditioned on |Z| ≤ bound.

    The condition makes |Z| smaller, so what `whole` promises of errors and widths holds.
    """

    whole: DiscreteGaussianNoise | RoundedGaussianNoise
    bound: int

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent exact draws: draws of the whole noise, kept if within the bound."""
        kept = self.whole.draw(count, source)
        outside = np.flatnonzero(np.abs(kept) > self.bound)
        while outside.size:
            kept[outside] = self.whole.draw(outside.size, source)
            outside = outside[np.abs(kept[outside]) > self.bound]
        return kept

    def tail(self, least: int) -> Ball:
        """Pr[Z ≥ least]."""
        if least < 1:
            return 1 - self.tail(1 - least)
        if least > self.bound:
            return arb(0)
        beyond = self.whole.weight_from(self.bound + 1)
        inside = self.whole.total_weight() - 2 * beyond
        return (self.whole.weight_from(least) - beyond) / inside

    def difference_tail(self, least: int) -> Ball:
        """At most 2·Pr[Z ≥ least/2] for Pr[Z − Z' ≥ least]: one of the two must go half the way."""
        return 2 * self.tail((least + 1) // 2)

    def expected_absolute(self, times: int = 1) -> float:
        """At most that of the whole noise."""
        return self.whole.expected_absolute(times)

    def half_width(self, confidence: float, times: int = 1) -> float:
        """At most that of the whole noise, and never beyond the bound."""
        return min(self.whole.half_width(confidence, times), self.bound)


@lru_cache(maxsize=256)
@in_balls
def truncated_noise(
    whole: DiscreteGaussianNoise | RoundedGaussianNoise,
    *,
    per_key_limit: int,
    contribution_limit: int,
    delta: float,
) -> TruncatedGaussianNoise:
    """With the smallest bound T for which the supports overlap enough: 1 − (1 − η)^Δ ≤ δ.

    η = Pr[Z > T − per_key_limit] is the part of the support around one count that lies outside
    the support around a count that is per_key_limit lower. It replaces equation (10) of [CR22]
    for noise on whole numbers, with independent coordinates instead of a union bound.
    """

    def outside(bound: int) -> Ball:
        one = TruncatedGaussianNoise(whole, bound).tail(bound - per_key_limit + 1)
        return at_least_one(one, contribution_limit)

    return TruncatedGaussianNoise(whole, least_reaching(outside, arb(delta), start=per_key_limit))
