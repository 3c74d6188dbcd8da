"""Which guarantee pays for which: a step may promise more than the item it is bought with."""

from __future__ import annotations

from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    PureDP,
)


def covers(sold: Guarantee, used: Guarantee) -> bool:
    """An item with guarantee `sold` pays for a step with guarantee `used`."""
    match sold, used:
        case (PureDP(granted), PureDP(needed)) | (BoundedRange(granted), BoundedRange(needed)):
            return needed <= granted
        case ApproximateDP(granted, delta), ApproximateDP(needed, leaked):
            return needed <= granted and leaked <= delta
        case Gaussian(granted), Gaussian(needed):
            return needed >= granted
        case DiscreteGaussian(), DiscreteGaussian():
            return sold == used
    return False
