"""Concurrent composition: interactive mechanisms whose conversations are interleaved.

A conversation whose guarantee has a dominating pair is a post-processing of one draw made when it
is opened [VZ23], so it counts as a fixed loss and the set-wise adaptive optimum holds, with
one-shot bounded-range answers between the answers of conversations. Conversations of which only
moments are known add up in Rényi divergence [Lyu22, Thm 2, Cor. 1]. Proofs:
docs/theory/concurrency.md.
"""

from __future__ import annotations

from farthing.composition.items import Items
from farthing.errors import Unsupported
from farthing.guarantees.kinds import (
    ConcentratedDP,
    Guarantee,
    RenyiDP,
    TruncatedConcentratedDP,
    ZeroConcentratedDP,
)
from farthing.guarantees.notation import format_guarantee

ONE_DRAW = "conversations are one draw each [VZ23]"
MOMENTS = "moments of conversations add up [Lyu22, Thm 2, Cor. 1]"


def require_concurrent(items: Items) -> None:
    """Unsupported for what no concurrent composition theorem covers.

    A bounded-range item is one answer, given while conversations are open; that a conversation
    is not sold as one is seen to where it is opened.
    """
    for guarantee, _ in items:
        _require(guarantee)


def bounds_moments_only(items: Items) -> bool:
    """Whether some item has no dominating pair: then everything is read by its moments."""
    return any(
        isinstance(guarantee, (RenyiDP, ZeroConcentratedDP, TruncatedConcentratedDP))
        for guarantee, _ in items
    )


def _require(guarantee: Guarantee) -> None:
    match guarantee:
        case ConcentratedDP():
            raise Unsupported(
                "concentrated DP (μ, τ) cannot be composed concurrently: the theorem covers "
                "(ε, δ)-DP, Rényi DP, zCDP and tCDP; use zcdp with ρ = τ²/2 and ξ = μ − τ²/2, "
                f"which {format_guarantee(guarantee)} implies"
            )
        case ZeroConcentratedDP(rho=rho, delta=delta) if delta > 0:
            raise Unsupported(
                "δ-approximate zCDP cannot be composed concurrently: the event may depend on the "
                "adversary, and no decomposition is known; where the leak is part of the mechanism "
                f"list adp:0,{delta!r} and zcdp:{rho!r} apart"
            )
        case _:
            pass
