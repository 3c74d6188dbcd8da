"""What a conversation may be charged as: only what a concurrent composition theorem covers.

Each use of a guarantee takes one item of the tariff. Several small items do not pay for one large
one, because their composition is weaker than the large guarantee at every ε but the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from farthing.composition.tariffs.tariff import Tariff
from farthing.errors import InvalidInput, Unsupported
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    ConcentratedDP,
    Guarantee,
    PureDP,
    ZeroConcentratedDP,
)
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import format_guarantee
from farthing.mechanisms.protocol import Uses


def require_chargeable(guarantees: Uses) -> Uses:
    """The guarantees, or Unsupported with the reason (docs/theory/concurrency.md, section 6).

    This is about the guarantee of a whole conversation. A one-shot mechanism between its answers
    may have any guarantee.
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


def cheapest_items(tariff: Tariff, uses: Uses) -> dict[str, int]:
    """The cheapest items that pay for a conversation, one for each use of a guarantee."""
    bought: Counter[str] = Counter()
    for guarantee, times in require_chargeable(uses):
        fitting = [n for n, (sold, _) in tariff.items.items() if loss_of(sold).covers(guarantee)]
        if not fitting:
            raise InvalidInput(
                f"the conversation needs an item that covers {format_guarantee(guarantee)}, "
                "and the tariff sells none"
            )
        bought[min(fitting, key=lambda name: _cost(tariff, name))] += times
    return dict(bought)


def require_paid(tariff: Tariff, items: Mapping[str, int], uses: Uses) -> None:
    """InvalidInput unless the items are as many as the uses and cover one use each.

    The largest uses choose first. An item that covers a use also covers the smaller uses of its
    kind, so no choice prevents a later one.
    """
    left = dict(items)
    for guarantee, times in sorted(require_chargeable(uses), key=_size, reverse=True):
        wanted = times
        for name in left:
            if loss_of(tariff.items[name][0]).covers(guarantee):
                taken = min(wanted, left[name])
                left[name] -= taken
                wanted -= taken
        if wanted:
            raise InvalidInput(f"the items do not pay for {times} x {format_guarantee(guarantee)}")
    if any(left.values()):
        raise InvalidInput("more items are bought than the conversation uses")


def _cost(tariff: Tariff, name: str) -> tuple[int, int, str]:
    price = tariff.price(name)
    return price.farthings, price.delta_units, name


def _size(use: tuple[Guarantee, int]) -> float:
    return use[0].epsilon if isinstance(use[0], PureDP | ApproximateDP) else 0.0
