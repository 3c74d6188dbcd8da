"""The privacy loss of each kind of guarantee, in one direction of neighbours.

One file per worst case; `base` is their interface; `loss_of` says which one a kind has.
"""

from __future__ import annotations

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    ConcentratedDP,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    PermuteAndFlip,
    PureDP,
    RenyiDP,
    Subsampled,
    SubsampledWithoutReplacement,
    TruncatedConcentratedDP,
    TwoWayLoss,
    ZeroConcentratedDP,
)
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.losses.bounded_range import RangeLoss
from farthing.guarantees.losses.discrete import DistributionLoss, OneWayLoss
from farthing.guarantees.losses.discrete_gaussian import DiscreteGaussianLoss
from farthing.guarantees.losses.gaussian import GaussianLoss
from farthing.guarantees.losses.laplace import LaplaceLoss
from farthing.guarantees.losses.moments import (
    ConcentratedLoss,
    RenyiLoss,
    TruncatedLoss,
    ZeroConcentratedLoss,
)
from farthing.guarantees.losses.permute_and_flip import PermuteAndFlipLoss
from farthing.guarantees.losses.randomized_response import LeakyLoss, PureLoss
from farthing.guarantees.losses.sampled import sampled_loss

LOSSES: dict[type, type[Loss]] = {
    PureDP: PureLoss,
    ApproximateDP: LeakyLoss,
    BoundedRange: RangeLoss,
    Laplace: LaplaceLoss,
    Gaussian: GaussianLoss,
    DiscreteGaussian: DiscreteGaussianLoss,
    PermuteAndFlip: PermuteAndFlipLoss,
    ConcentratedDP: ConcentratedLoss,
    ZeroConcentratedDP: ZeroConcentratedLoss,
    TruncatedConcentratedDP: TruncatedLoss,
    RenyiDP: RenyiLoss,
    LossDistribution: DistributionLoss,
    TwoWayLoss: OneWayLoss,
}


def loss_of(guarantee: Guarantee, *, with_unit: bool = True) -> Loss:
    """The loss of a guarantee in one direction of neighbours."""
    if isinstance(guarantee, Subsampled | SubsampledWithoutReplacement):
        return sampled_loss(guarantee, loss_of(guarantee.guarantee), with_unit=with_unit)
    made = LOSSES.get(type(guarantee))
    if made is None:
        raise InvalidInput(f"a guarantee is needed, got {guarantee!r:.60}")
    return made(guarantee, with_unit or not made.one_way)
