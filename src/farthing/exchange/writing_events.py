"""Trees of dp-accounting's `DpEvent`, written."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from farthing.composition.items import items_from
from farthing.errors import Unsupported
from farthing.guarantees.kinds import (
    BoundedRange,
    ConcentratedDP,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    PermuteAndFlip,
    PureDP,
    Subsampled,
    ZeroConcentratedDP,
)
from farthing.guarantees.losses.registry import loss_of
from farthing.numerics.ball import in_balls, up
from farthing.numerics.rounding import float_down
from farthing.optional import required

if TYPE_CHECKING:
    from dp_accounting import DpEvent


def to_event(items: Iterable[Guarantee | tuple[Guarantee, int]]) -> DpEvent:
    """A tree of events that promises no more than the list does.

    Pure DP becomes discrete Laplace noise of sensitivity 1, which is its worst case, and so does
    permute-and-flip, for which there is no event. Bounded range,
    discrete Gaussian noise and concentrated DP become zCDP, which only the Rényi accountant there
    understands; a block of them keeps its optimum as a distribution, by `to_dp_accounting`.
    """
    events = required("dp_accounting").dp_event
    found = [
        one if count == 1 else events.SelfComposedDpEvent(one, count)
        for one, count in ((_event(events, g), n) for g, n in items_from(items))
    ]
    return found[0] if len(found) == 1 else events.ComposedDpEvent(found)


def _event(events: Any, guarantee: Guarantee) -> Any:
    match guarantee:
        case Gaussian(noise):
            return events.GaussianDpEvent(noise)
        case Laplace(epsilon) if epsilon > 0:
            return events.LaplaceDpEvent(float_down(1 / Fraction(epsilon)))
        case PureDP(epsilon) | PermuteAndFlip(epsilon) if epsilon > 0:
            return events.DiscreteLaplaceDpEvent(epsilon, 1)
        case PureDP() | PermuteAndFlip() | Laplace() | BoundedRange(0.0):
            return events.NoOpDpEvent()
        case Subsampled(inner, rate):
            return events.PoissonSampledDpEvent(rate, _event(events, inner))
        case ZeroConcentratedDP(rho, xi, delta=0.0):
            return events.ZCDpEvent(rho, max(xi, 0.0))  # they take no other
        case BoundedRange() | DiscreteGaussian() | ConcentratedDP():
            return _concentrated_event(events, guarantee)
        case _:
            raise Unsupported(
                f"no event promises what {guarantee!r:.60} does; a distribution may, by "
                "to_dp_accounting"
            )


@in_balls
def _concentrated_event(events: Any, guarantee: Guarantee) -> Any:
    pair = loss_of(guarantee).zero_concentrated()
    assert pair is not None
    return events.ZCDpEvent(up(pair[1]), max(0.0, up(pair[0])))
