"""Concurrent composition: interactive mechanisms whose conversations are interleaved.

A conversation whose guarantee has a dominating pair is a post-processing of one draw made when it
is opened [VZ23], so it counts as a fixed loss and the set-wise adaptive optimum holds, with
one-shot bounded-range answers between the answers of conversations. Conversations of which only
moments are known add up in Rényi divergence [Lyu22, Thm 2, Cor. 1]. Proofs:
docs/theory/concurrency.md.
"""

from __future__ import annotations

from farthing.composition.items import Losses
from farthing.errors import Unsupported

ONE_DRAW = "conversations are one draw each [VZ23]"
MOMENTS = "moments of conversations add up [Lyu22, Thm 2, Cor. 1]"


def require_concurrent(items: Losses) -> None:
    """Unsupported for what no concurrent composition theorem covers.

    A bounded-range item is one answer, given while conversations are open; that a conversation
    is not sold as one is seen to where it is opened.
    """
    for loss, _ in items:
        if (why := loss.why_not_concurrent()) is not None:
            raise Unsupported(why)
