"""The same mechanism for other neighbours: groups of units, replace-one, zero-out.

Guarantees are about add/remove of one unit. Datasets that differ in k units are k such steps apart,
and losses add up along the way. Replacing one unit is two steps: it leaves, another one comes. The
way back is sound where a unit that is absent counts like one with some fixed record (zero-out):
then adding a unit is replacing that record.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from farthing.errors import InvalidInput, Unsupported, require_count
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
    SubsampledWithoutReplacement,
    ZeroConcentratedDP,
)
from farthing.numerics.ball import in_balls, up
from farthing.numerics.rounding import float_down, float_up


@in_balls
def group_privacy(guarantee: Guarantee, units: int) -> Guarantee:
    """What a mechanism promises to a group of `units` units together.

    Pure losses and ranges add up; noise that is calibrated to one unit meets `units` times the
    sensitivity; (ε, δ) becomes (kε, δ(e^{kε} − 1)/(e^ε − 1)); (ξ, ρ)-zCDP becomes
    (ξk·Σ 1/i, k²ρ) [BS16, Prop. 27]. Rounded to the safe side.
    """
    k = require_count("units", units, at_least=1)
    if k == 1:
        return guarantee
    match guarantee:
        case PureDP(epsilon) | BoundedRange(epsilon) | Laplace(epsilon):
            return type(guarantee)(float_up(k * Fraction(epsilon)))
        case Gaussian(sigma):
            return Gaussian(float_down(Fraction(sigma) / k))
        case DiscreteGaussian(sigma, sensitivity):
            return DiscreteGaussian(float_down(Fraction(sigma) / k), k * sensitivity)
        case ApproximateDP(epsilon, delta):
            each = arb(epsilon)
            grown = arb(delta) * ((k * each).expm1() / each.expm1() if epsilon > 0 else k)
            if not grown < 1:
                raise Unsupported(f"delta grows to {up(grown):.3g} for a group of {k} units")
            return ApproximateDP(float_up(k * Fraction(epsilon)), up(grown))
        case ZeroConcentratedDP(rho, xi, delta=0.0):
            harmonic = sum((Fraction(1, i) for i in range(1, k + 1)), Fraction(0))
            offset = float_up(max(Fraction(xi), Fraction(0)) * k * harmonic)
            return ZeroConcentratedDP(float_up(k * k * Fraction(rho)), offset)
        case _:
            raise Unsupported(
                f"no theorem gives {guarantee!r:.60} for a group; take the guarantee of the "
                "mechanism itself with the sensitivity of the group"
            )


def for_replace_one(guarantee: Guarantee) -> SubsampledWithoutReplacement:
    """An add/remove guarantee as one for replace-one neighbours: a group of two.

    If a mechanism is known to change by no more when a unit is replaced, state its guarantee for
    that directly: SubsampledWithoutReplacement(guarantee, 1).
    """
    match group_privacy(guarantee, 2):
        case (PureDP() | ApproximateDP() | Laplace() | Gaussian() | DiscreteGaussian()) as doubled:
            return SubsampledWithoutReplacement(doubled, 1.0)
        case BoundedRange(epsilon):
            return SubsampledWithoutReplacement(PureDP(epsilon), 1.0)
        case _:
            raise Unsupported(
                f"{guarantee!r:.60} has no counterpart for replace-one neighbours; dp, br, adp, "
                "lap, gauss and dgauss have"
            )


def from_replace_one(guarantee: SubsampledWithoutReplacement) -> Guarantee:
    """A replace-one guarantee as one for add/remove, where absence is one of the records.

    The caller states that the mechanism does the same for a unit that is absent as for one with
    some fixed record (zero-out, also called replace-special), and does not tell how many units
    there are. Otherwise a mechanism that prints the number of units is a counterexample. What was
    sampled is refused, because the rate is a share of a public size.
    """
    if not isinstance(guarantee, SubsampledWithoutReplacement) or guarantee.rate != 1:
        raise InvalidInput(
            f"a guarantee for replace-one neighbours with rate 1 is needed, got {guarantee!r:.60}"
        )
    return guarantee.guarantee
