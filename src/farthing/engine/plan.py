"""What a question will cost and how accurate it will be, before any row is looked at.

A plan carries everything that runs: the account, what is bought, the statement, the mechanism. It
runs as it is, or not at all (`TariffChanged`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from rich.console import RenderableType

from farthing.composition.tariff import Price, Tariff
from farthing.engine.answer import Answer
from farthing.engine.context import Context
from farthing.engine.execute import execute
from farthing.engine.kinds.base import COUNT, Query
from farthing.engine.purchase import Purchase, buy, items_for
from farthing.engine.show import terminal
from farthing.engine.show.sheet import amount, number, percent, width
from farthing.engine.translate import Step, translate
from farthing.errors import Unattainable, require_real
from farthing.ledger import Terms
from farthing.mechanisms import Accuracy, Expectation

#: The name of the only question of a plan for one.
ONLY = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Price, accuracy and what remains. `run()` runs exactly this plan.

    `query` has its items named. `known` is the earlier release, if the same was asked before.
    """

    _context: Context = field(repr=False, compare=False)
    terms: Terms = field(repr=False)
    _step: Step = field(repr=False, compare=False)
    remaining: Price
    expectation: Expectation
    known: Answer | None = field(repr=False, compare=False)

    @property
    def query(self) -> Query:
        """The question, with its items named."""
        return self._step.purchase.query

    @property
    def caption(self) -> str:
        """What will be counted, of which rows, and how much of each unit."""
        return self.query.caption(self._context.about.unit)

    @property
    def items(self) -> Mapping[str, int]:
        """What is bought at most."""
        return self._step.purchase.items

    @property
    def price(self) -> Price:
        """What that costs."""
        return self._step.purchase.price

    @property
    def fits(self) -> bool:
        """Enough remains to run it."""
        return self.known is not None or self.price.within(self.remaining)

    def run(self, *, again: bool = False) -> Answer:
        """Pay and run. What was asked before is given out again at no cost, unless `again`."""
        if self.known is not None and not again:
            return self.known
        return execute(self._context, {ONLY: self._step}, self.terms)[ONLY]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        expectation = self.expectation
        return {
            "query": self.query.to_json(),
            "caption": self.caption,
            "items": dict(self.items),
            "price": asdict(self.price),
            "remaining": asdict(self.remaining),
            "fits": self.fits,
            "known": self.known is not None,
            "counts": _accuracy(expectation.counts),
            "selection": _accuracy(expectation.selection),
            "found_from": expectation.found_from,
            "threshold": expectation.threshold,
            "above_cutoff": expectation.above_cutoff,
        }

    def __rich__(self) -> RenderableType:
        return terminal.plan_table(self.caption, self._lines())

    def __str__(self) -> str:
        return terminal.as_text(self.__rich__())

    def _lines(self) -> Iterator[tuple[str, str, str]]:
        """What to expect, in words."""
        bought = ", ".join(f"{times} × {name}" for name, times in self.items.items())
        yield "price", f"{amount(self.price)}  ({bought})", ""
        yield "remaining", amount(self.remaining), ""
        yield ("fits", "yes", "green") if self.fits else ("fits", "no", "bold red")
        expectation = self.expectation
        if expectation.counts is not None:
            counts = expectation.counts
            wide = f"± {width(counts.half_width)} at {percent(counts.confidence)}"
            error = f"on average off by {number(counts.expected_error)}"
            yield "each number", f"{wide}, {error}", ""
        if expectation.selection is not None:
            chosen = expectation.selection
            unit = "ranks" if self.query.in_ranks else "below the best that was left"
            text = f"within {width(chosen.half_width)} {unit} at {percent(chosen.confidence)}"
            yield "each selection", text, ""
        if expectation.found_from is not None:
            lead = width(expectation.found_from)
            yield "found", f"labels {lead} above the largest count not looked at", ""
        if expectation.threshold is not None:
            yield "threshold", f"noisy counts below {expectation.threshold} are withheld", ""
        if expectation.above_cutoff is not None:
            lead = number(expectation.above_cutoff)
            yield "threshold", f"counts must be about {lead} above the largest not looked at", ""
        if self.known is not None:
            yield "known", "asked before: running costs nothing", "green"


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Several questions that are paid for and run together: all of them or none."""

    _context: Context = field(repr=False, compare=False)
    terms: Terms = field(repr=False)
    _steps: Mapping[str, Step] = field(repr=False, compare=False)
    price: Price
    remaining: Price
    known: Mapping[str, Answer] | None = field(repr=False, compare=False)

    @property
    def fits(self) -> bool:
        """Enough remains to run all of them."""
        return self.known is not None or self.price.within(self.remaining)

    def run(self, *, registered: str | None = None, again: bool = False) -> dict[str, Answer]:
        """Every answer, by name: from the purse, or from the list `registered`."""
        if self.known is not None and not again:
            return dict(self.known)
        return execute(self._context, self._steps, self.terms, registered=registered)


def plan_one(context: Context, query: Query, *, half_width: float | None = None) -> Plan:
    """The plan for one question. With `half_width`: the cheapest way to intervals that narrow."""
    context = context.now()
    terms, wanted = context.analyst.terms(), context.checked(query)
    if half_width is not None:
        wanted = cheapest(wanted, terms.tariff, half_width, context.confidence)
    purchase = buy(wanted, terms.tariff)
    step = translate(context, purchase)
    known = context.earlier({ONLY: purchase})
    return Plan(
        _context=context,
        terms=terms,
        _step=step,
        remaining=context.analyst.remaining(),
        expectation=purchase.query.expect(step.mechanism, context.confidence),
        known=None if known is None else known[ONLY],
    )


def plan_many(context: Context, queries: Mapping[str, Query]) -> BatchPlan:
    """The plan for several questions."""
    context = context.now()
    terms = context.analyst.terms()
    bought = {key: buy(context.checked(one), terms.tariff) for key, one in queries.items()}
    return BatchPlan(
        _context=context,
        terms=terms,
        _steps=MappingProxyType({key: translate(context, one) for key, one in bought.items()}),
        price=_sum_of(bought),
        remaining=context.analyst.remaining(),
        known=context.earlier(bought),
    )


def cheapest(query: Query, tariff: Tariff, half_width: float, confidence: float) -> Query:
    """The query with the item, and the number of repeats, that reach `half_width` for least.

    Every item that can pay for numbers is tried, each bought as often as it takes; drawing n
    times and averaging narrows the interval by about √n for n times the price. Where nothing but
    a selection is released, its items are tried instead.
    """
    wanted = require_real("half_width", half_width, above=0)
    roles = query.roles()
    role = COUNT if COUNT in roles else next(iter(roles))
    found: list[tuple[tuple[int, int], Query]] = []
    best = float("inf")
    for name in items_for(tariff, query, role):

        def trial(repeats: int, name: str = name) -> Query:
            more = {"repeats": repeats} if repeats > 1 else {}
            return replace(query, **{role: name}, **more)  # type: ignore[type-var] # a dataclass

        def wide(repeats: int, trial: Any = trial) -> float:
            return _width(buy(trial(repeats), tariff), confidence)

        most = query.most_repeats
        narrowest = wide(most)
        best = min(best, narrowest)
        if narrowest <= wanted:
            repeats = bisect_left(range(1, most), True, key=lambda n: wide(n) <= wanted) + 1
            price = buy(trial(repeats), tariff).price
            found.append(((price.farthings, price.delta_units), trial(repeats)))
    if not found:
        if best == float("inf"):
            raise Unattainable(f"the tariff sells nothing that pays for this {query.kind}")
        raise Unattainable(
            f"no item reaches a half-width of {wanted:g}; the narrowest is {width(best)}"
        )
    return min(found, key=lambda pair: pair[0])[1]


def _width(purchase: Purchase, confidence: float) -> float:
    query = purchase.query
    expectation = query.expect(query.mechanism_for(purchase.paid), confidence)
    accuracy = expectation.counts or expectation.selection
    assert accuracy is not None
    return accuracy.half_width


def _sum_of(bought: Mapping[str, Purchase]) -> Price:
    prices = [purchase.price for purchase in bought.values()]
    return Price(sum(p.farthings for p in prices), sum(p.delta_units for p in prices))


def _accuracy(accuracy: Accuracy | None) -> dict[str, float] | None:
    if accuracy is None:
        return None
    return {
        "expected_error": accuracy.expected_error,
        "half_width": accuracy.half_width,
        "confidence": accuracy.confidence,
    }
