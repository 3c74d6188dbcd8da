"""Concurrent composition: interactive mechanisms whose conversations are interleaved.

[Lyu22]: interleaving gains the adversary nothing for (ε, δ)-DP (Theorem 1), for Rényi DP of
one order (Theorem 2) and for zCDP and tCDP (Corollary 1). So the bounds of these notions apply
as they are, and the list only has to be read in them.
"""

from __future__ import annotations

from farthing.composition.items import Items
from farthing.errors import Unsupported
from farthing.guarantees.kinds import (
    BoundedRange,
    ConcentratedDP,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
    ZeroConcentratedDP,
)
from farthing.guarantees.notation import format_guarantee

THEOREM = "concurrent composition [Lyu22, Thms 1–2, Cor. 1]"


def concurrent_items(items: Items) -> Items:
    """The list in notions that compose concurrently; raises for those that do not.

    Laplace and Gaussian mechanisms are read as ε-DP and zCDP: what is proved for interactive
    mechanisms is about these notions, not about a fixed noise distribution.
    """
    return Items(tuple((_read(guarantee), count) for guarantee, count in items))


def _read(guarantee: Guarantee) -> Guarantee:
    match guarantee:
        case BoundedRange(epsilon=epsilon):
            raise Unsupported(
                "bounded range cannot be composed concurrently: it is a promise about a mechanism "
                "that answers once, and no concurrent composition theorem is known for it; use "
                f"dp:{epsilon!r} for {format_guarantee(guarantee)}, which it implies"
            )
        case ConcentratedDP():
            raise Unsupported(
                "concentrated DP (μ, τ) cannot be composed concurrently: the theorem covers "
                "(ε, δ)-DP, Rényi DP, zCDP and tCDP; use zcdp with ρ = τ²/2 and ξ = μ − τ²/2, "
                f"which {format_guarantee(guarantee)} implies"
            )
        case Laplace(epsilon=epsilon):
            return PureDP(epsilon)
        case Gaussian(noise_multiplier=sigma) | DiscreteGaussian(noise_multiplier=sigma):
            return ZeroConcentratedDP(0.5 / sigma**2 * (1 + 1e-15))
        case _:
            return guarantee
