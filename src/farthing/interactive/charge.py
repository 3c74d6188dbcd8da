"""What a conversation may be charged as: only what a concurrent composition theorem covers."""

from __future__ import annotations

from farthing.errors import Unsupported
from farthing.guarantees.kinds import (
    BoundedRange,
    ConcentratedDP,
    Guarantee,
    ZeroConcentratedDP,
)
from farthing.guarantees.notation import format_guarantee
from farthing.mechanisms.protocol import Uses


def require_chargeable(guarantees: Uses) -> Uses:
    """The items, or Unsupported with the reason. Proofs: docs/theory/concurrency.md, section 6.

    A one-shot mechanism between the answers of a conversation may have any guarantee; this is
    about what is promised for a whole conversation.
    """
    for guarantee, _ in guarantees:
        reason = _refusal(guarantee)
        if reason is not None:
            raise Unsupported(
                f"a conversation cannot be sold as {format_guarantee(guarantee)}: {reason}"
            )
    return guarantees


def _refusal(guarantee: Guarantee) -> str | None:
    match guarantee:
        case BoundedRange(epsilon=epsilon):
            return (
                "bounded range is about one answer, whose interval of losses is chosen at one "
                "moment, and no theorem covers a choice that is spread over a conversation; "
                f"use dp:{epsilon!r}, which it implies"
            )
        case ZeroConcentratedDP(rho=rho, delta=delta) if delta > 0:
            return (
                "an event of probability delta that depends on the adversary has no decomposition; "
                f"if the leak is part of the mechanism, sell adp:0,{delta!r} and zcdp:{rho!r} apart"
            )
        case ConcentratedDP(mu=mu, tau=tau):
            return (
                "the theorems cover Renyi divergences; use zcdp with "
                f"rho = {tau**2 / 2:g} and xi = {mu - tau**2 / 2:g}, which it implies"
            )
        case _:
            return None
