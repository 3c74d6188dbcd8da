"""What a price certainly gives, by the simplest theorems: audits are held to this."""

from __future__ import annotations

import math

from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    PermuteAndFlip,
    PureDP,
)
from farthing.mechanisms import Uses

SLACK_DELTA = 1e-3


def claimed(uses: Uses) -> tuple[float, float]:
    """An (ε, δ) that the uses certainly give, by basic composition and the zCDP conversion."""
    epsilon, delta, rho = 0.0, 0.0, 0.0
    for guarantee, count in uses:
        match guarantee:
            case PureDP(value) | BoundedRange(value) | PermuteAndFlip(value):
                epsilon += count * value
            case ApproximateDP(value, leak):
                epsilon += count * value
                delta += count * leak
            case Gaussian(noise_multiplier=sigma) | DiscreteGaussian(noise_multiplier=sigma):
                rho += count * 0.5 / sigma**2
            case _:
                raise AssertionError(guarantee)
    if rho > 0:
        delta += SLACK_DELTA
        epsilon += rho + 2 * math.sqrt(rho * math.log(1 / SLACK_DELTA))
    return epsilon, delta
