"""autodp's mechanisms: those whose worst case is known by name, the others by their curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from farthing.errors import InvalidInput, Unsupported, require_real
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from farthing.optional import required

if TYPE_CHECKING:
    from autodp.autodp_core import Mechanism


def from_autodp(mechanism: Mechanism, *, delta: float | None = None) -> Guarantee:
    """What a mechanism promises, as tightly as it says it.

    Gaussian, Laplace and exponential mechanisms, pure DP and zCDP are recognised; of others the
    Rényi curve is taken as it is, or with `delta` the one point (ε(δ), δ). Composed and sampled
    mechanisms are such curves: compose and sample them here instead, which is tighter. A mechanism
    for one direction of neighbours only is refused.
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
