"""The noise that a guarantee asks for, and Gaussian noise that is cut off.

Noise that never exceeds a bound T makes "no label that a neighbour lacks is ever released"
certain instead of likely. The price is δ for the ends of the support that only one of two
neighbours can reach; what is left is no worse than the whole Gaussian. Lemma C and
Theorems 6 and 7 of docs/theory/mechanisms.md. As printed in [CR22] the mechanism is not private.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np
from flint import arb

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import DiscreteGaussian, Gaussian, PureDP
from farthing.mechanisms.noise.discrete import DiscreteGaussianNoise, DiscreteLaplaceNoise
from farthing.mechanisms.noise.exact_sampling import Integers
from farthing.mechanisms.noise.randomness import BitSource
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise
from farthing.numerics.ball import Ball, in_balls
from farthing.numerics.search import least_reaching

#: The guarantee of one noisy count, from which its noise follows.
Coordinate: TypeAlias = PureDP | Gaussian | DiscreteGaussian


class Noise(Hashable, Protocol):
    """A symmetric distribution on the whole numbers that is drawn from exactly."""

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent exact draws."""

    def tail(self, least: int) -> Ball:
        """Pr[Z ≥ least]."""

    def expected_absolute(self, times: int = 1) -> float:
        """E|Z|, or that of the mean of `times` draws."""

    def half_width(self, confidence: float, times: int = 1) -> float:
        """A w with Pr[|Z| ≤ w] ≥ confidence, or that of the mean; the smallest for one draw."""


def coordinate_noise(
    coordinate: Coordinate, per_key_limit: int
) -> DiscreteLaplaceNoise | DiscreteGaussianNoise | RoundedGaussianNoise:
    """The noise to add to a whole number that a unit changes by at most per_key_limit.

    PureDP(ε): discrete Laplace noise of scale per_key_limit/ε. Gaussian(σ): a rounded normal number
    of standard deviation σ·per_key_limit. DiscreteGaussian(σ, per_key_limit): discrete Gaussian
    noise with the same σ·per_key_limit. Floats are taken as exact fractions.
    """
    match coordinate:
        case PureDP(epsilon):
            if epsilon == 0:
                raise InvalidInput("the epsilon of the coordinate must be greater than 0, got 0")
            return DiscreteLaplaceNoise(per_key_limit / Fraction(epsilon))
        case Gaussian(noise_multiplier):
            return RoundedGaussianNoise(Fraction(noise_multiplier) * per_key_limit)
        case DiscreteGaussian(noise_multiplier, sensitivity):
            if sensitivity != per_key_limit:
                raise InvalidInput(
                    "the sensitivity of the coordinate must be per_key_limit, "
                    f"got {sensitivity} and {per_key_limit}"
                )
            return DiscreteGaussianNoise((Fraction(noise_multiplier) * sensitivity) ** 2)
    raise InvalidInput(
        "the coordinate must be PureDP, Gaussian or DiscreteGaussian, "
        f"got {type(coordinate).__name__}"
    )


@dataclass(frozen=True, slots=True)
class TruncatedGaussianNoise:
    """Discrete or rounded Gaussian noise conditioned on |Z| ≤ bound.

    The condition makes |Z| smaller, so the errors and widths of `whole` still hold.
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


def at_least_one(probability: Ball, count: int) -> Ball:
    """1 − (1 − p)^count: the probability that one of `count` independent events happens."""
    if probability >= 1:
        return arb(1)
    return -(count * (-probability).log1p()).expm1()
