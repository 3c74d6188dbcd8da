"""Bounds that are found first: `lower="auto"`, `upper="auto"`.

Each is found by a question of its own (kind `bound`), which is paid for like any other: a power of
two that a few rows lie beyond, of a sum a few units. Then the question is an ordinary one, with
numbers as its bounds. Its price does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.engine.contribution_limits import affordable
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.bound import BoundQuery
from farthing.engine.kinds.fields import LARGEST_BOUND, NumberBound, unscaled
from farthing.engine.kinds.measures import MeasureQuery, places_of
from farthing.engine.purchase import Purchase, buy
from farthing.errors import InvalidInput
from farthing.schema import REAL, Schema

#: Bounds of floats are below 2^40 in units of so many decimal places.
_ROUGH = 2


@dataclass(frozen=True, slots=True)
class AutomaticBounds:
    """A question with automatic bounds, the questions that find them, and the same question with
    the widest bounds that it can have."""

    query: MeasureQuery
    firsts: Mapping[str, Query]
    largest: Query
    largest_price: Price
    #: What the bounds lie within; what a bound of `per` does; and how far apart they are at least,
    #: unless that follows from their size.
    ends: tuple[NumberBound, NumberBound]
    widest: NumberBound
    apart: NumberBound | None
    checked: Callable[[Query], Query]

    dearer: ClassVar[Price] = Price(0)
    choices: ClassVar[Mapping[int, Any]] = {}

    def may_lose_more(self, _: Query) -> bool:
        """A few rows lie beyond every bound."""
        return False

    def chosen(self, found: Mapping[str, NumberBound]) -> Query:
        """The question with the bounds that were found: in order, apart, and within what they may
        be. Those of a sum have 0 between them: a sum is that of what units add to it."""
        (least, most), sums = self.ends, not self.query.weighs_rows
        sizes = [abs(bound) for bound in found.values()]
        apart = self.apart or max(*sizes, 1) / 1000
        bounds: dict[str, NumberBound] = {"lower": least, "upper": most}
        for name in bounds:
            stated = getattr(self.query, name)
            if isinstance(stated, int | float):
                bounds[name] = stated
            elif name in found:
                bounds[name] = min(max(found[name], least), most)
        lower, upper = bounds["lower"], bounds["upper"]
        if sums and "lower" in found:
            lower = min(lower, 0 if "upper" in found else -apart)
        if sums and "upper" in found:
            upper = max(upper, apart)
        if {"lower", "upper"} <= found.keys():
            lower, upper = sorted((lower, upper))
        if lower >= upper and "upper" in found:
            upper = lower + apart if lower + apart <= most else most
        if lower >= upper and "lower" in found:
            lower = upper - apart if upper - apart >= least else least
        bounds = {"lower": lower, "upper": upper, "per_upper": apart}
        if "per_upper" in found:
            bounds["per_upper"] = min(max(found["per_upper"], apart), self.widest)
        return self.checked(self.query.changed(**{name: bounds[name] for name in found}))


def automatic_bounds(
    query: Query,
    tariff: Tariff,
    schema_for: Callable[[Query], Schema],
    checked: Callable[[Query], Query],
) -> AutomaticBounds | None:
    """How the bounds of a question are found; None if it states them."""
    if not isinstance(query, MeasureQuery) or not query.automatic:
        return None
    names, sums, schema = query.automatic, not query.weighs_rows, schema_for(query)
    per: str = getattr(query, "per", query.column)
    columns = [schema[name] for name in (query.column, per)]
    exact = [0 if query.places is None else query.places]
    exact += [_ROUGH if one.kind == REAL else places_of(one, 0, 1) for one in columns]
    widest = LARGEST_BOUND // 10 ** max(exact)
    own = schema[query.column]
    least, most = (None, None) if sums else (own.lower, own.upper)
    while True:  # until noise for such bounds can be drawn
        ends = -widest if least is None else least, widest if most is None else most
        stand_in = {"lower": ends[0], "upper": ends[1], "per_upper": widest}
        largest = checked(query.changed(**{name: stand_in[name] for name in names}))
        bought = buy(largest, tariff)
        if widest <= 1 or _can_run(bought):
            break
        widest //= 2
    price = bought.price
    firsts = {}
    for name in names:
        first = BoundQuery(
            per if name == "per_upper" else query.column,
            by=query.key or None,
            categories=query.domain,
            places=query.places,
            contribution_limit=query.contribution_limit,
            per_key_limit=query.per_key_limit,
            least=name == "lower",
            sums=sums,
            where=query.filter,
        )
        firsts[name] = affordable(first, price, tariff)
    rough = query.places is None and any(one.kind == REAL for one in columns)
    apart = None if rough else unscaled(1, max(exact))
    return AutomaticBounds(query, firsts, largest, price, ends, widest, apart, checked)


def _can_run(purchase: Purchase) -> bool:
    """Whether there is noise as wide as the bounds ask for."""
    try:
        purchase.mechanism()
    except InvalidInput:
        return False
    return True
