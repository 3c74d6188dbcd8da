"""What a question will cost and how accurate it will be, before any row is looked at.

A plan carries everything that runs: the account, what is bought, the statement, the mechanism. It
runs as it is, or not at all (`TariffChanged`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from farthing.composition.tariff import Price
from farthing.engine.answer import Answer, Answers
from farthing.engine.cheapest import Aim, cheapest
from farthing.engine.context import Context
from farthing.engine.execute import execute
from farthing.engine.kinds.base import Query
from farthing.engine.purchase import Purchase, buy
from farthing.engine.show.plans import Line, ShownPlan
from farthing.engine.show.sheet import amount, number, percent, width
from farthing.engine.translate import Step, translate
from farthing.ledger import Terms
from farthing.mechanisms import Accuracy, Expectation
from farthing.wording import many

#: The name of the only question of a plan for one.
ONLY = ""


@dataclass(frozen=True, slots=True, repr=False)
class Plan(ShownPlan):
    """Price, accuracy and what remains. `run()` runs exactly this plan.

    `query` has its items named. `known` is the earlier release, if the same was asked before.
    """

    _context: Context = field(compare=False)
    terms: Terms
    _step: Step = field(compare=False)
    remaining: Price
    expectation: Expectation
    known: Answer | None = field(compare=False)

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
            "told_apart": expectation.told_apart,
            "found_from": expectation.found_from,
            "threshold": expectation.threshold,
            "above_cutoff": expectation.above_cutoff,
        }

    def lines(self) -> Iterator[Line]:
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
        if expectation.told_apart is not None:
            gap, level = width(expectation.told_apart), percent(self._context.confidence)
            yield "order", f"of labels {gap} apart the larger comes first at {level}", ""
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


@dataclass(frozen=True, slots=True, repr=False)
class BatchPlan(ShownPlan):
    """Several questions that are paid for and run together: all of them or none."""

    _context: Context = field(compare=False)
    terms: Terms
    _steps: Mapping[str, Step] = field(compare=False)
    price: Price
    remaining: Price
    known: Mapping[str, Answer] | None = field(compare=False)

    @property
    def fits(self) -> bool:
        """Enough remains to run all of them."""
        return self.known is not None or self.price.within(self.remaining)

    @property
    def caption(self) -> str:
        """How many questions it is, under which names."""
        return f"{many(len(self._steps), 'question')} together: {', '.join(self._steps)}"

    def run(self, *, registered: str | None = None, again: bool = False) -> Answers:
        """Every answer, by name: from the purse, or from the list `registered`."""
        if self.known is not None and not again:
            return Answers(self.known)
        return Answers(execute(self._context, self._steps, self.terms, registered=registered))

    def lines(self) -> Iterator[Line]:
        yield "price", amount(self.price), ""
        yield "remaining", amount(self.remaining), ""
        yield ("fits", "yes", "green") if self.fits else ("fits", "no", "bold red")
        for name, step in self._steps.items():
            purchase = step.purchase
            asked = purchase.query.caption(self._context.about.unit)
            yield name, f"{asked}: {amount(purchase.price)}", ""
        if self.known is not None:
            yield "known", "asked before: running costs nothing", "green"


def plan_one(context: Context, query: Query, aim: Aim | None = None) -> Plan:
    """The plan for one question; with an aim the cheapest way to it."""
    context = context.now()
    terms, wanted = context.analyst.terms(), context.checked(query)
    if aim is not None:
        wanted = cheapest(wanted, terms.tariff, aim, context.confidence)
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
