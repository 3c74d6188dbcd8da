"""OpenDP's measurements: what their privacy maps say becomes a guarantee."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.composition.adaptive.profile_as_loss import loss_distribution_above
from farthing.errors import InvalidInput, Unsupported, require_real
from farthing.exchange.distributions import FARTHEST
from farthing.guarantees.kinds import (
    ApproximateDP,
    Guarantee,
    LossDistribution,
    PureDP,
    RenyiDP,
    SubsampledWithoutReplacement,
    ZeroConcentratedDP,
)
from farthing.numerics.curves import Chords, Grid
from farthing.optional import required

if TYPE_CHECKING:
    from opendp.mod import Measurement

#: Metrics in which neighbours replace a unit.
REPLACING = ("ChangeOneDistance", "HammingDistance")


def from_opendp(
    measurement: Measurement, d_in: Any, *, step: float = 1e-3, delta: float = 1e-12
) -> Guarantee:
    """What the measurement promises to datasets at distance `d_in` of its input metric.

    It promises what its map says, not what its noise is: Laplace noise is ε-DP there, and Gaussian
    noise zCDP. A privacy profile is read at multiples of `step` up to where it is `delta`. If the
    metric replaces units, the guarantee is for replace-one neighbours.
    """
    mod = required("opendp.mod")
    if not isinstance(measurement, mod.Measurement):
        raise InvalidInput(f"an OpenDP measurement is needed, got {measurement!r:.60}")
    measure, cost = str(measurement.output_measure), measurement.map(d_in)
    guarantee = _guarantee(measure, cost, step, delta)
    if not str(measurement.input_metric).startswith(REPLACING):
        return guarantee
    if not isinstance(guarantee, PureDP | ApproximateDP):
        raise Unsupported(
            f"{measure} for replace-one neighbours cannot be stated here; convert it there to "
            "(epsilon, delta) first"
        )
    return SubsampledWithoutReplacement(guarantee, 1.0)


def _guarantee(measure: str, cost: Any, step: float, delta: float) -> Guarantee:
    match measure:
        case "MaxDivergence":
            return PureDP(cost)
        case "ZeroConcentratedDivergence":
            return ZeroConcentratedDP(cost)
        case "Approximate(MaxDivergence)":
            return ApproximateDP(*cost)
        case "Approximate(ZeroConcentratedDivergence)":
            return ZeroConcentratedDP(cost[0], 0.0, cost[1])
        case "RenyiDivergence":
            return RenyiDP(lambda alpha: float(cost(alpha)))
        case "SmoothedMaxDivergence":
            return _from_profile(cost, step, delta)
        case _:
            raise Unsupported(f"no guarantee here says what the measure {measure:.60} says")


def _from_profile(profile: Any, step: float, delta: float) -> LossDistribution:
    """Chords of the profile; left of 0 its mirror image, as it holds in both directions."""
    step = require_real("step", step, above=0)
    reach = max(profile.epsilon(require_real("delta", delta, above=0, below=1)), 10 * step)
    if not reach <= FARTHEST:
        raise Unsupported(
            f"the profile has no epsilon up to {FARTHEST:g} at delta = {delta}; read it at a "
            "larger delta"
        )
    cells = math.ceil(reach / step) + 1
    grid = Grid(step, cells, cells)
    right = np.array([profile.delta(float(x)) for x in grid.points()[cells:]])
    right = np.maximum.accumulate(right[::-1])[::-1]
    shrink = np.exp(-grid.points()[cells + 1 :])
    left = (1 - shrink) * (1 + 1e-15) + shrink * right[1:]
    values = np.concatenate((left[::-1], right))
    return loss_distribution_above(Chords(grid, np.clip(values, 0.0, 1.0)))
