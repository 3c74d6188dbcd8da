"""What can be bought with a budget: offers that make sense, that floats can carry, that matter."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from farthing.composition.grid_choice import variance_of
from farthing.errors import NotCertified, Unsupported
from farthing.guarantees.conversions import pure_epsilon
from farthing.guarantees.directions import facing
from farthing.guarantees.kinds import (
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
    Subsampled,
)
from farthing.guarantees.losses import reach_of
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.curves import Grid

#: Beyond this ε floats end, and so does privacy.
FARTHEST = 500.0
#: Losses below this one are counted as this one; grids are not finer than a tenth of it.
NEGLIGIBLE = 1e-7
#: Noise with a wider spread than this has too many outcomes.
WIDEST_DISCRETE_NOISE = 1e5


@dataclass(frozen=True, slots=True)
class Offer:
    """What one purchase does, its δ taken out, and what it takes from the budget."""

    guarantee: Guarantee
    farthings: int
    delta_units: int

    @property
    def epsilon(self) -> float | None:
        return pure_epsilon(self.guarantee)


def replaces(one: Offer, other: Offer) -> bool:
    """Whoever may buy `one`, some number of times, gains nothing by `other` for the same price.

    n Gaussians of σ are one of σ/√n. Randomized response with ε is the bounded-range choice t = ε
    of 2ε. In both cases V stays the same supremum (docs/theory/tariffs.md). Neither relation goes
    round in a circle, so leaving out all that is replaced loses nothing.
    """
    if one.delta_units > 0:
        return False
    times = other.farthings // one.farthings
    match one.guarantee, other.guarantee:
        case Gaussian(fine), Gaussian(coarse):
            return Fraction(coarse) ** 2 * times >= Fraction(fine) ** 2
        case BoundedRange(wide), PureDP(epsilon):
            return times >= 1 and wide >= 2 * epsilon
    return False


def require_sane(guarantee: Guarantee) -> None:
    """Refuse at once what protects nobody, and noise that cannot be enumerated."""
    match guarantee:
        case Subsampled(inner):
            require_sane(inner)
            return
        case PureDP(epsilon) | BoundedRange(epsilon) | Laplace(epsilon):
            hopeless = epsilon > FARTHEST
        case Gaussian(sigma) | DiscreteGaussian(sigma):
            hopeless = sigma < math.sqrt(0.5 / FARTHEST)
        case _:
            raise Unsupported(f"{format_guarantee(guarantee)} has no known worst case")
    if hopeless:
        raise NotCertified(
            f"one {format_guarantee(guarantee)} lets an analyst reach an epsilon of {FARTHEST:g} "
            "and more, which protects nobody; sell something smaller"
        )
    if isinstance(guarantee, DiscreteGaussian):
        spread = Fraction(guarantee.noise_multiplier) * guarantee.sensitivity
        if spread > WIDEST_DISCRETE_NOISE:
            raise Unsupported(
                f"{format_guarantee(guarantee)} has too many outcomes to compose exactly; its "
                f"standard deviation must be at most {WIDEST_DISCRETE_NOISE:g}"
            )


def carried(guarantee: Guarantee) -> Guarantee:
    """The same, or if its loss is negligible one with a larger loss that floats can carry."""
    match guarantee:
        case PureDP(epsilon) | BoundedRange(epsilon) | Laplace(epsilon) if epsilon < NEGLIGIBLE:
            return type(guarantee)(NEGLIGIBLE)
        case Gaussian(sigma) if sigma > 1 / NEGLIGIBLE:
            return Gaussian(1 / NEGLIGIBLE)
        case Subsampled(inner, rate):
            kept = carried(inner)
            assert isinstance(kept, type(inner))
            same = kept == inner and rate >= NEGLIGIBLE
            return guarantee if same else replace(guarantee, guarantee=kept, rate=_rate(rate))
        case _:
            return guarantee


def _rate(rate: float) -> float:
    """A larger rate is a larger loss (docs/theory/tariffs.md, "Samples")."""
    return max(rate, NEGLIGIBLE)


def facing_one_way(guarantee: Guarantee) -> Guarantee:
    """What floats can carry, with the unit if it is a sample: for grids and costs."""
    return facing(carried(guarantee), with_unit=True)


def loss_variance(guarantee: Guarantee) -> float:
    """About the variance of the loss, for the choice of a grid."""
    sane = facing_one_way(guarantee)
    if isinstance(sane, PureDP):  # a large ε is an atom near ±ε, for which no grid need be fine
        return (sane.epsilon / math.cosh(min(sane.epsilon, 10.0) / 2)) ** 2
    return variance_of(sane)


def nanoseconds(guarantee: Guarantee, grid: Grid, delta: float) -> float:
    """About how many nanoseconds one application takes, on both sides."""
    sane = facing_one_way(guarantee)
    match sane:
        case BoundedRange(epsilon):
            return 2e5 + 6 * grid.size * epsilon / grid.step
        case PureDP():
            return 3e5 + 30 * grid.size
        case _:
            atoms = 2 * reach_of(sane, delta * 1e-7) / grid.step
            return 3e5 + atoms * (1e4 + 6 * grid.size)
