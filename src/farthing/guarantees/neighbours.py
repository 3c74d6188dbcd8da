"""The same mechanism for other neighbours: groups of units, replace-one, zero-out.

Guarantees are about add/remove of one unit. Datasets that differ in k units are k such steps apart,
and the losses of the steps add up. Replacing one unit is two steps: remove it, then add another.
The converse holds if an absent unit counts like one with some fixed record (zero-out), because then
adding a unit is replacing that record.
"""

from __future__ import annotations

from typing import Any

from farthing.errors import InvalidInput, Unsupported, require_count
from farthing.guarantees.kinds import (
    Guarantee,
    PureDP,
    SubsampledWithoutReplacement,
)
from farthing.guarantees.losses import loss_of


def group_privacy(guarantee: Guarantee, units: int) -> Guarantee:
    """The guarantee of a mechanism for a group of `units` units together.

    Pure losses and ranges add up; noise that is calibrated to one unit meets `units` times the
    sensitivity; (ε, δ) becomes (kε, δ(e^{kε} − 1)/(e^ε − 1)); (ξ, ρ)-zCDP becomes
    (ξk·Σ 1/i, k²ρ) [BS16, Prop. 27]. Rounded to the safe side.
    """
    k = require_count("units", units, at_least=1)
    if k == 1:
        return guarantee
    return loss_of(guarantee).for_group(k)


def for_replace_one(guarantee: Guarantee) -> SubsampledWithoutReplacement:
    """An add/remove guarantee as one for replace-one neighbours: a group of two.

    If a mechanism is known to change by no more when a unit is replaced, state its guarantee for
    that directly: SubsampledWithoutReplacement(guarantee, 1).
    """
    doubled: Any = group_privacy(guarantee, 2)
    if doubled.not_sampled is None:
        return SubsampledWithoutReplacement(doubled, 1.0)
    pure = loss_of(doubled).pure_epsilon
    if pure is None:
        raise Unsupported(
            f"{guarantee!r:.60} has no counterpart for replace-one neighbours; dp, br, adp, "
            "lap, gauss, dgauss and pf have"
        )
    return SubsampledWithoutReplacement(PureDP(pure), 1.0)


def from_replace_one(guarantee: SubsampledWithoutReplacement) -> Guarantee:
    """A replace-one guarantee as one for add/remove, where absence is one of the records.

    The caller asserts that the mechanism does the same for an absent unit as for one with some
    fixed record (zero-out, also called replace-special), and does not reveal the number of units.
    Otherwise a mechanism that prints the number of units is a counterexample. Samples are refused,
    because their rate is a share of a public size.
    """
    if not isinstance(guarantee, SubsampledWithoutReplacement) or guarantee.rate != 1:
        raise InvalidInput(
            f"a guarantee for replace-one neighbours with rate 1 is needed, got {guarantee!r:.60}"
        )
    return guarantee.guarantee
