"""Noise on the whole numbers, and the noise that a guarantee asks for."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Protocol, TypeAlias

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import DiscreteGaussian, Gaussian, PureDP
from farthing.mechanisms.discrete_gaussian import DiscreteGaussianNoise
from farthing.mechanisms.discrete_laplace import DiscreteLaplaceNoise
from farthing.mechanisms.inverse_transform import Integers
from farthing.mechanisms.randomness import BitSource
from farthing.mechanisms.rounded_gaussian import RoundedGaussianNoise
from farthing.numerics.ball import Ball

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
    """What must be added to a whole number that a unit changes by at most per_key_limit.

    PureDP(ε): discrete Laplace of scale per_key_limit/ε. Gaussian(σ): a rounded normal number of
    standard deviation σ·per_key_limit. DiscreteGaussian(σ, per_key_limit): what it says, of the
    same deviation. Floats are the exact fractions they are.
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
