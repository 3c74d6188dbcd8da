"""What a request costs, what is left, and the largest request that would fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace

from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.errors import InvalidInput, require_count
from farthing.ledger.months import month_name, month_number
from farthing.ledger.records import Account, Purse


def largest_that_fits(tariff: Tariff, items: Mapping[str, int], left: Price) -> dict[str, int]:
    """The largest request in about the same proportions that fits; {} if there is none.

    10 selections and 10 counts shrink to 7 and 7; 100 selections and one threshold to 43 and
    one, because less than one of anything is nothing.
    """
    most = max(items.values())

    def part(size: int) -> dict[str, int]:
        return {name: -(-times * size // most) for name, times in items.items()}

    def too_much(size: int) -> bool:
        price = tariff.price_of(part(size))
        return price.farthings > left.farthings or price.delta_units > left.delta_units

    largest = min(most, left.farthings)  # nothing is cheaper than a farthing
    size = bisect_left(range(1, largest + 1), True, key=too_much)
    return part(size) if size > 0 else {}


def unused_of(reserved: Mapping[str, int], used: Mapping[str, int] | None) -> dict[str, int]:
    """What of a reservation was not used."""
    if used is None:
        return {}
    counts = {name: require_count(f"used {name}", times) for name, times in used.items()}
    if set(counts) != set(reserved):
        raise InvalidInput(
            f"used must say how often each of {', '.join(reserved)} was used, "
            f"got {', '.join(counts) or 'nothing'}"
        )
    over = [name for name, times in counts.items() if times > reserved[name]]
    if over:
        raise InvalidInput(
            f"at most {reserved[over[0]]} x {over[0]} was reserved, got {counts[over[0]]} used"
        )
    unused = {name: times - counts[name] for name, times in reserved.items()}
    return {name: times for name, times in unused.items() if times > 0}


def left_of(purse: Purse, cap: Purse | Account) -> Price:
    """What is left of a purse or, if less, of the cap; nothing of a purse that was revoked."""
    if not purse.open:
        return Price(0)
    gone = purse.farthings_spent + purse.farthings_revoked
    units_gone = purse.delta_units_spent + purse.delta_units_revoked
    return Price(
        min(purse.farthings - gone, cap.farthings - cap.farthings_spent),
        min(purse.delta_units - units_gone, cap.delta_units - cap.delta_units_spent),
    )


def as_of(purse: Purse, month: int) -> Purse:
    """A purse as the next request will find it: renewed, if a later month has come."""
    if purse.month is None or month_number(purse.month) >= month:
        return purse
    return replace(purse, farthings_spent=0, delta_units_spent=0, month=month_name(month))


def in_proportion(tariff: Tariff, farthings: int) -> int:
    """The units of δ that go with farthings of a tariff, as they are in the tariff itself."""
    return min(tariff.delta_units, tariff.delta_units * farthings // tariff.farthings)
