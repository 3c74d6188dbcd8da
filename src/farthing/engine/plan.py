"""What a question will cost and how accurate it will be, before any row is looked at.

A plan carries everything that runs: the account, what is bought, the statement, the mechanism. It
runs as it is, or not at all (`TariffChanged`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from farthing.canonical import digest
from farthing.composition.tariff import Price
from farthing.engine.answer import Answer, Answers
from farthing.engine.automatic import Automatic, automatic
from farthing.engine.cheapest import Aim, cheapest
from farthing.engine.companions import with_companions
from farthing.engine.context import Context, record_of
from farthing.engine.execute import execute
from farthing.engine.kinds.base import Query
from farthing.engine.purchase import buy
from farthing.engine.show.plans import Line, ShownPlan
from farthing.engine.show.sheet import amount, number, percent, width
from farthing.engine.spending import Spending, spending_of
from farthing.engine.translate import Step, translate
from farthing.errors import InvalidInput
from farthing.ledger import Terms
from farthing.mechanisms import Accuracy, Expectation
from farthing.wording import many

#: The name of the only question of a plan for one.
ONLY = ""


@dataclass(frozen=True, slots=True)
class Before:
    """A limit that is looked for: the plan of the question that finds it, and what may come out."""

    plan: Plan
    looked_for: Automatic

    @property
    def price(self) -> Price:
        """The most that both parts cost."""
        first, then = self.plan.price, self.looked_for.largest_price
        return Price(first.farthings + then.farthings, first.delta_units + then.delta_units)

    @property
    def name(self) -> str:
        """One name for one question."""
        return digest(self.plan.query.to_json())

    def found(self) -> Answer:
        """The limit, found now or before: also by this plan itself."""
        return _anew(self.plan).run()

    def at(self, found: Answer) -> Query:
        """The question with this limit."""
        return self.looked_for.choices[int(found.value)].query

    def lines(self) -> Iterator[Line]:
        """Both parts, and how price, noise and limit go together."""
        yield "first", f"{self.plan.caption}: {amount(self.plan.price)}", ""
        for choice in self.looked_for.choices.values():
            noise = f"each number off by {number(choice.accuracy.expected_error)} on average"
            wide = f"± {width(choice.accuracy.half_width)}"
            bought = f"{amount(choice.price)} ({choice.query.count})"
            yield f"at limit {choice.limit}", f"{noise}, {wide}: {bought}", ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "first": self.plan.to_json(),
            "choices": [choice.to_json() for choice in self.looked_for.choices.values()],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Plan(ShownPlan):
    """Price, accuracy and what remains. `run()` runs exactly this plan.

    `query` has its items named. `known` is the earlier release, if the same was asked before.
    """

    _context: Context = field(compare=False)
    terms: Terms
    _steps: Mapping[str, Step] = field(compare=False)
    remaining: Price
    expectation: Expectation
    known: Answer | None = field(compare=False)
    before: Before | None = field(default=None, compare=False)

    @property
    def query(self) -> Query:
        """The question, with its items named; with a limit that is looked for, as it was asked."""
        if self.before is not None:
            return self.before.looked_for.query
        return self._steps[ONLY].purchase.query

    @property
    def caption(self) -> str:
        """What will be counted, of which rows, and how much of each unit."""
        return self.query.caption(self._context.about.unit)

    @property
    def items(self) -> Mapping[str, int]:
        """What is bought at most; of a limit that is looked for, if it is the largest."""
        first = {} if self.before is None else self.before.plan.items
        return dict(Counter(_items_of(self._steps)) + Counter(first))

    @property
    def price(self) -> Price:
        """What that costs; with a limit that is looked for, at most and with the looking."""
        return _price_of(self._steps) if self.before is None else self.before.price

    @property
    def fits(self) -> bool:
        """Enough remains to run it."""
        return self.known is not None or self.price.within(self.remaining)

    def run(self, *, again: bool = False) -> Answer:
        """Pay and run. What was asked before is given out again at no cost, unless `again`."""
        if self.known is not None and not again:
            return self.known
        if self.before is not None:
            limit = self.before.found()
            answer = _plan(self._context, self.before.at(limit), self.terms).run(again=again)
            return answer if limit.cached else self._with_limit(answer, limit)
        answer = execute(self._context, self._steps, self.terms)[ONLY]
        return answer.spent(spending_of(self._context.analyst, answer.price, paid=True))

    def _with_limit(self, answer: Answer, limit: Answer) -> Answer:
        """The answer with the price of both parts."""
        paid = _sum_of((answer.price, limit.price))
        whole = replace(answer, price=paid)
        return whole.spent(spending_of(self._context.analyst, paid, paid=True))

    @property
    def spending(self) -> Spending:
        """The price as a share of the budget, and what is proved before and after."""
        return spending_of(self._context.analyst, self.price, paid=False)

    @property
    def record(self) -> dict[str, Any]:
        """The question as the ledger keeps it: an earlier release is found by it."""
        return _record(self._context, self._steps)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        expectation = self.expectation
        return {
            "query": self.query.to_json(),
            "caption": self.caption,
            "items": dict(self.items),
            "price": asdict(self.price),
            "spending": self.spending.to_json(),
            "remaining": asdict(self.remaining),
            "fits": self.fits,
            "known": self.known is not None,
            "counts": _accuracy(expectation.counts),
            "selection": _accuracy(expectation.selection),
            "told_apart": expectation.told_apart,
            "found_from": expectation.found_from,
            "threshold": expectation.threshold,
            "above_cutoff": expectation.above_cutoff,
            "limits": None if self.before is None else self.before.to_json(),
            "width_times_rows": self.query.width_times_rows(expectation),
        }

    def lines(self) -> Iterator[Line]:
        bought = ", ".join(f"{times} × {name}" for name, times in self.items.items())
        spending = self.spending
        yield "price", f"{amount(self.price)}, {spending.of_budget}  ({bought})", ""
        yield "remaining", amount(self.remaining), ""
        if spending.before_and_after is not None:
            yield "so far", spending.before_and_after, ""
        yield ("fits", "yes", "green") if self.fits else ("fits", "no", "bold red")
        if self.before is not None:
            yield from self.before.lines()
            return
        expectation = self.expectation
        if expectation.counts is not None:
            counts = expectation.counts
            wide = f"± {width(counts.half_width)} at {percent(counts.confidence)}"
            error = f"on average off by {number(counts.expected_error)}"
            yield "each number", f"{wide}, {error}", ""
        times_rows = self.query.width_times_rows(expectation)
        if times_rows is not None:
            level = percent(self._context.confidence)
            text = f"at most about ± {width(times_rows)}/n at {level}, where n rows count"
            yield "each number", text, ""
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
        beside = [step for key, step in self._steps.items() if key != ONLY]
        for step in beside:
            measured = step.mechanism.expect(self._context.confidence).counts
            assert measured is not None
            yield "loss", f"{step.purchase.query.title}: ± {width(measured.half_width)}", ""
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
    before: Mapping[str, Before] = field(compare=False)
    asked: Mapping[str, Query] = field(compare=False)

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
        if self.before:
            if registered is not None:
                raise InvalidInput("a registered list has limits that are numbers, not auto")
            limits = {one.name: one for one in self.before.values()}
            answers = {name: one.found() for name, one in limits.items()}
            found = {key: one.at(answers[one.name]) for key, one in self.before.items()}
            ready = _plan_many(self._context, {**self.asked, **found}, self.terms)
            return ready.run(again=again)
        answers = execute(self._context, self._steps, self.terms, registered=registered)
        if registered is not None:
            return Answers(answers)
        paid = _sum_of(answer.price for answer in answers.values())  # what is left came back
        spending = spending_of(self._context.analyst, paid, paid=True)
        return Answers({key: answer.spent(spending) for key, answer in answers.items()})

    @property
    def spending(self) -> Spending:
        """The price as a share of the budget, and what is proved before and after."""
        return spending_of(self._context.analyst, self.price, paid=False)

    @property
    def record(self) -> dict[str, Any]:
        """The questions as the ledger keeps them: an earlier release is found by it."""
        return _record(self._context, self._steps)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        unit = self._context.about.unit
        purchases = {key: step.purchase for key, step in self._steps.items()}
        return {
            "queries": {
                key: {
                    "query": one.query.to_json(),
                    "caption": one.query.caption(unit),
                    "price": asdict(one.price),
                }
                for key, one in purchases.items()
            },
            "caption": self.caption,
            "price": asdict(self.price),
            "spending": self.spending.to_json(),
            "remaining": asdict(self.remaining),
            "fits": self.fits,
            "known": self.known is not None,
        }

    def lines(self) -> Iterator[Line]:
        spending = self.spending
        yield "price", f"{amount(self.price)}, {spending.of_budget}", ""
        yield "remaining", amount(self.remaining), ""
        if spending.before_and_after is not None:
            yield "so far", spending.before_and_after, ""
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
    return _plan(context, wanted, terms)


def _plan(context: Context, wanted: Query, terms: Terms) -> Plan:
    wanted, before = _looked_for(context, wanted, terms)
    steps = _steps_of(context, {ONLY: wanted}, terms)
    known = None if before else _known(context, steps)
    return Plan(
        _context=context,
        terms=terms,
        _steps=steps,
        remaining=context.analyst.remaining(),
        expectation=wanted.expect(steps[ONLY].mechanism, context.confidence),
        known=None if known is None else known[ONLY],
        before=before,
    )


def _anew(plan: Plan) -> Plan:
    """The same plan, with what is known by now."""
    return _plan(plan._context, plan.query, plan.terms)


def _looked_for(context: Context, query: Query, terms: Terms) -> tuple[Query, Before | None]:
    """The question with its limit, if that is a number or was found before.

    Otherwise with the largest that may be found, and what has to be run before it.
    """
    most = context.about.limits.contribution_limit
    wanted = automatic(query, terms.tariff, context.confidence, most)
    if wanted is None:
        return query, None
    first = _plan(context, context.checked(wanted.first), terms)
    if first.known is not None:
        return wanted.choices[first.known.value].query, None
    return wanted.largest.query, Before(first, wanted)


def plan_many(context: Context, queries: Mapping[str, Query]) -> BatchPlan:
    """The plan for several questions."""
    context = context.now()
    terms = context.analyst.terms()
    return _plan_many(context, {key: context.checked(one) for key, one in queries.items()}, terms)


def _plan_many(context: Context, queries: Mapping[str, Query], terms: Terms) -> BatchPlan:
    wanted, before = {}, {}
    for key, query in queries.items():
        wanted[key], first = _looked_for(context, query, terms)
        if first is not None:
            before[key] = first
    steps = _steps_of(context, wanted, terms)
    return BatchPlan(
        _context=context,
        terms=terms,
        _steps=steps,
        price=_together(_price_of(steps), before),
        remaining=context.analyst.remaining(),
        known=None if before else _known(context, steps),
        before=MappingProxyType(before),
        asked=MappingProxyType(dict(queries)),
    )


def _steps_of(context: Context, queries: Mapping[str, Query], terms: Terms) -> Mapping[str, Step]:
    """Everything that runs: the questions, and those that are asked beside them."""
    return MappingProxyType(
        {
            key: translate(context, buy(query, terms.tariff))
            for key, query in with_companions(queries).items()
        }
    )


def _known(context: Context, steps: Mapping[str, Step]) -> dict[str, Answer] | None:
    return context.earlier({key: step.purchase for key, step in steps.items()})


def _record(context: Context, steps: Mapping[str, Step]) -> dict[str, Any]:
    return record_of(context, {key: step.purchase for key, step in steps.items()})


def _items_of(steps: Mapping[str, Step]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for step in steps.values():
        total.update(step.purchase.items)
    return dict(total)


def _price_of(steps: Mapping[str, Step]) -> Price:
    return _sum_of(step.purchase.price for step in steps.values())


def _sum_of(several: Iterable[Price]) -> Price:
    prices = list(several)
    return Price(sum(p.farthings for p in prices), sum(p.delta_units for p in prices))


def _together(price: Price, before: Mapping[str, Before]) -> Price:
    """With what is looked for first: each limit once, and the dearest question that may follow."""
    firsts = {one.name: one.plan.price for one in before.values()}
    more = [*firsts.values()]
    for one in before.values():
        dearest, planned = one.looked_for.largest_price, one.looked_for.largest.price
        more.append(
            Price(dearest.farthings - planned.farthings, dearest.delta_units - planned.delta_units)
        )
    return Price(
        price.farthings + sum(p.farthings for p in more),
        price.delta_units + sum(p.delta_units for p in more),
    )


def _accuracy(accuracy: Accuracy | None) -> dict[str, float] | None:
    if accuracy is None:
        return None
    return {
        "expected_error": accuracy.expected_error,
        "half_width": accuracy.half_width,
        "confidence": accuracy.confidence,
    }
