"""What was paid, as the parameters of a mechanism; and which items can pay for noisy counts."""

from __future__ import annotations

from farthing.engine.kinds.base import COUNT, LEAK, SELECT, Paid
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    PureDP,
)
from farthing.mechanisms import KnownCounts
from farthing.mechanisms.noise.calibrated import Coordinate


def counts_with(paid: Paid, contribution_limit: int, per_key_limit: int) -> KnownCounts:
    """Noisy counts of a known domain."""
    return KnownCounts(
        coordinate=coordinate_of(paid),
        contribution_limit=contribution_limit,
        per_key_limit=per_key_limit,
    )


def coordinate_of(paid: Paid) -> Coordinate:
    """What one noisy number is paid with."""
    guarantee = paid[COUNT]
    assert isinstance(guarantee, Coordinate)
    return guarantee


def epsilon_of_selection(paid: Paid) -> float:
    """ε of one selection."""
    guarantee = paid[SELECT]
    assert isinstance(guarantee, BoundedRange)
    return guarantee.epsilon


def delta_of_leak(paid: Paid) -> float:
    """δ of an unknown domain."""
    guarantee = paid[LEAK]
    assert isinstance(guarantee, ApproximateDP)
    return guarantee.delta


def suits_counts(guarantee: Guarantee, per_key_limit: int) -> bool:
    """Discrete Laplace or rounded Gaussian noise, or discrete Gaussian for the same limit."""
    match guarantee:
        case PureDP(epsilon):
            return epsilon > 0
        case Gaussian():
            return True
        case DiscreteGaussian(_, sensitivity):
            return sensitivity == per_key_limit
    return False


def suits_any_limit(guarantee: Guarantee) -> bool:
    """Noise that can be made as wide as any limit asks for, for the same guarantee."""
    return suits_counts(guarantee, 1) and suits_counts(guarantee, 2)
