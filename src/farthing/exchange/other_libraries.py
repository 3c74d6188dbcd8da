"""Guarantees from mechanisms of autodp, histories of Opacus and measurements of OpenDP."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.composition.adaptive.operators import loss_distribution_above
from farthing.errors import InvalidInput, Unsupported, require_count, require_real
from farthing.exchange.dp_accounting import falling, grid_to
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    PureDP,
    RenyiDP,
    Subsampled,
    SubsampledWithoutReplacement,
    ZeroConcentratedDP,
)
from farthing.numerics.curves import Chords
from farthing.optional import required

if TYPE_CHECKING:
    from autodp.autodp_core import Mechanism
    from opendp.mod import Measurement

#: Metrics in which neighbours replace a unit.
REPLACING = ("ChangeOneDistance", "HammingDistance")


def from_autodp(mechanism: Mechanism, *, delta: float | None = None) -> Guarantee:
    """The tightest guarantee that a mechanism of autodp states.

    Gaussian, Laplace and exponential mechanisms, pure DP and zCDP are recognised. For others the
    Rényi curve is taken as it is, or with `delta` the single point (ε(δ), δ). Composed and sampled
    mechanisms are such curves: compose and sample them here instead, which is tighter. A mechanism
    for only one direction of neighbours is refused.
    """
    core = required("autodp.autodp_core")
    zoo = required("autodp.mechanism_zoo")
    if not isinstance(mechanism, core.Mechanism):
        raise InvalidInput(f"an autodp mechanism is needed, got {mechanism!r:.60}")
    if mechanism.neighboring != "add_remove" or mechanism.group_size != 1:
        raise Unsupported(
            f"{mechanism.name} holds for {mechanism.neighboring} neighbours in groups of "
            f"{mechanism.group_size}; a guarantee here is about adding and removing one unit"
        )
    if delta is not None:
        delta = require_real("delta", delta, at_least=0, below=1)
        return ApproximateDP(float(mechanism.get_approxDP(delta)), delta)
    match mechanism:
        case zoo.ExactGaussianMechanism() | zoo.GaussianMechanism():
            return Gaussian(mechanism.params["sigma"])
        case zoo.LaplaceMechanism():
            return Laplace.from_scale(mechanism.params["b"])
        case zoo.ExponentialMechanism():
            return BoundedRange(mechanism.params["eps"])
        case zoo.zCDP_Mechanism():
            return ZeroConcentratedDP(mechanism.params["rho"], mechanism.params["xi"])
    if math.isfinite(mechanism.eps_pureDP):
        return PureDP(float(mechanism.eps_pureDP))
    if not math.isfinite(mechanism.get_RDP(2.0)):
        raise Unsupported(
            f"{mechanism.name} has no Rényi curve; pass the delta at which to read its epsilon"
        )
    return RenyiDP(lambda alpha: float(mechanism.get_RDP(alpha)))


def from_opacus(history: Iterable[tuple[float, float, int]]) -> list[tuple[Guarantee, int]]:
    """The list behind `accountant.history`: (noise_multiplier, sample_rate, steps), one each.

    For add/remove neighbours and Poisson sampling, which is what Opacus assumes. Training steps are
    chosen from earlier ones with parameters fixed in advance: `compose` with its usual adaptivity.
    """
    items: list[tuple[Guarantee, int]] = []
    for entry in history:
        if not isinstance(entry, tuple | list) or len(entry) != 3:
            raise InvalidInput(
                f"an entry must be (noise_multiplier, sample_rate, steps), got {entry!r:.60}"
            )
        noise, rate, steps = entry
        if require_count("steps", steps) > 0:
            items.append((Subsampled(Gaussian(noise), rate), steps))
    return items


def from_opendp(
    measurement: Measurement, d_in: Any, *, step: float = 1e-3, delta: float = 1e-12
) -> Guarantee:
    """The guarantee of a measurement for datasets at distance `d_in` in its input metric.

    It is what the privacy map says, not what the noise would allow: Laplace noise is ε-DP there,
    and Gaussian noise zCDP. A privacy profile is read at multiples of `step` up to where it is
    `delta`. If the metric replaces units, the guarantee is for replace-one neighbours.
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
            raise Unsupported(f"no guarantee here expresses the measure {measure:.60}")


def _from_profile(profile: Any, step: float, delta: float) -> LossDistribution:
    """Chords of the profile; left of 0 its mirror image, as it holds in both directions."""
    step = require_real("step", step, above=0)
    delta = require_real("delta", delta, above=0, below=1)
    grid = grid_to(profile.epsilon(delta), step, delta)
    points = grid.points()[grid.below :]
    right = falling(np.array([profile.delta(float(x)) for x in points]))
    shrink = np.exp(-points[1:])
    left = (1 - shrink) * (1 + 1e-15) + shrink * right[1:]
    values = np.concatenate((left[::-1], right))
    return loss_distribution_above(Chords(grid, np.clip(values, 0.0, 1.0)))
