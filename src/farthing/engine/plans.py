"""What a query will cost and how accurate it will be, before any row is looked at."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from farthing.composition.tariff import Price, Tariff
from farthing.engine.buying import Purchase, buy, items_for
from farthing.engine.procedures import Expectation, procedure_for
from farthing.engine.queries import AT_ONCE, LARGEST_REPEATS, Query, query_to_json
from farthing.errors import Unattainable, require_real
from farthing.mechanisms import Accuracy

if TYPE_CHECKING:
    from rich.console import RenderableType

    from farthing.engine.answers import Answer
    from farthing.engine.data import Question


@dataclass(frozen=True, slots=True)
class Plan:
    """Price, accuracy and what remains. `run()` runs exactly this plan.

    `query` has its items named. `known` is the earlier release, if the same was asked before.
    """

    query: Query
    items: Mapping[str, int]
    price: Price
    remaining: Price
    expectation: Expectation
    known: Answer | None = field(repr=False, compare=False)
    question: Question = field(repr=False, compare=False)

    @property
    def fits(self) -> bool:
        """Enough remains to run it."""
        if self.known is not None:
            return True
        return (
            self.price.farthings <= self.remaining.farthings
            and self.price.delta_units <= self.remaining.delta_units
        )

    def run(self) -> Answer:
        """Pay and run."""
        return self.question.run()

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        expectation = self.expectation
        return {
            "query": query_to_json(self.query),
            "items": dict(self.items),
            "price": _price(self.price),
            "remaining": _price(self.remaining),
            "fits": self.fits,
            "known": self.known is not None,
            "counts": _accuracy(expectation.counts),
            "selection": _accuracy(expectation.selection),
            "found_from": expectation.found_from,
            "threshold": expectation.threshold,
            "above_cutoff": expectation.above_cutoff,
        }

    def __rich__(self) -> RenderableType:
        from farthing.engine.shown import plan_table

        return plan_table(self)

    def __str__(self) -> str:
        from farthing.engine.shown import as_text

        return as_text(self)


def cheapest(query: Query, tariff: Tariff, *, half_width: float, confidence: float) -> Query:
    """The query with the item, and the number of repeats, that reach `half_width` for least.

    Every item that can pay for counts is tried, each bought as often as it takes; drawing n times
    and averaging narrows the interval by about √n for n times the price. Where nothing but a
    selection is released, its items are tried instead.
    """
    wanted = require_real("half_width", half_width, above=0)
    role = "count" if getattr(query, "counts", hasattr(query, "count")) else "select"
    found: list[tuple[tuple[int, int], Query]] = []
    best = float("inf")
    for name in items_for(tariff, query, role):

        def width(repeats: int, name: str = name) -> float:
            trial = _paid(query, role, name, repeats)
            return _width(procedure_for(buy(trial, tariff)).expect(confidence), query)

        most = _most_repeats(query) if role == "count" else 1
        narrowest = width(most)
        best = min(best, narrowest)
        if narrowest <= wanted:
            repeats = bisect_left(range(1, most), True, key=lambda n: width(n) <= wanted) + 1
            trial = _paid(query, role, name, repeats)
            price = tariff.price_of(buy(trial, tariff).items)
            found.append(((price.farthings, price.delta_units), trial))
    if not found:
        raise Unattainable(
            f"no item of the tariff reaches a half-width of {wanted:g}; the narrowest is {best:g}"
            if best < float("inf")
            else f"the tariff sells nothing that pays for this {query.kind}"
        )
    return min(found, key=lambda pair: pair[0])[1]


def _most_repeats(query: Query) -> int:
    once = getattr(query, "categories", 0) is None and query.kind == "histogram"
    at_once = getattr(query, "mechanism", None) in AT_ONCE or getattr(query, "use_order", False)
    return 1 if once or at_once or not hasattr(query, "repeats") else LARGEST_REPEATS


def _paid(query: Query, role: str, name: str, repeats: int) -> Query:
    more = {"repeats": repeats} if repeats > 1 else {}
    return replace(query, **{role: name}, **more)  # type: ignore[arg-type] # fields of the query


def _width(expectation: Expectation, query: Query) -> float:
    accuracy = expectation.counts or expectation.selection
    assert accuracy is not None
    return _in_units(query, accuracy.half_width) if expectation.counts else accuracy.half_width


def _in_units(query: Query, half_width: float) -> float:
    places: int = getattr(query, "places", 0)
    return half_width / float(10**places)


def expectation_of(purchase: Purchase, confidence: float) -> Expectation:
    """What to expect, in the units of the column for a sum."""
    expectation = procedure_for(purchase).expect(confidence)
    places = getattr(purchase.query, "places", 0)
    if purchase.query.kind != "sum" or places == 0 or expectation.counts is None:
        return expectation
    counts = expectation.counts
    scale = 10**places
    return replace(
        expectation,
        counts=replace(
            counts,
            expected_error=counts.expected_error / scale,
            half_width=counts.half_width / scale,
        ),
    )


def _price(price: Price) -> dict[str, int]:
    return {"farthings": price.farthings, "delta_units": price.delta_units}


def _accuracy(accuracy: Accuracy | None) -> dict[str, float] | None:
    if accuracy is None:
        return None
    return {
        "expected_error": accuracy.expected_error,
        "half_width": accuracy.half_width,
        "confidence": accuracy.confidence,
    }
