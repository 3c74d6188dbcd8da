"""What a question will cost and how accurate it will be, before any row is looked at.

A plan carries everything that runs: the account, what is bought, the statement, the mechanism. It
runs as it is, or not at all (`TariffChanged`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from farthing.canonical import digest
from farthing.composition.tariffs.tariff import Price
from farthing.engine.accuracy_target import Aim, cheapest
from farthing.engine.answer import Answer
from farthing.engine.automatic_limits import Automatic, automatic
from farthing.engine.context import Context
from farthing.engine.execute import execute
from farthing.engine.kinds.base import Query
from farthing.engine.plan_of_steps import PlanOfSteps, earlier_answer, price_of, steps_of
from farthing.engine.purchase import items_together
from farthing.engine.show.plans import Line, expectation_lines
from farthing.engine.show.sheet import amount, number, width
from farthing.engine.spending import paid_before
from farthing.ledger import Terms
from farthing.mechanisms import Accuracy, Expectation

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
        return self.plan.price + self.looked_for.largest_price

    @property
    def name(self) -> str:
        """One name for one question."""
        return digest(self.plan.query.to_json())

    def found(self) -> Answer:
        """The limit, found now or before: also by this plan itself."""
        return self.plan._anew().run()

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
        if self.looked_for.may_lose_more(self.looked_for.largest.limit):
            yield "beyond", "nothing larger is tried; if it would be better, the answer says so", ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "first": self.plan.to_json(),
            "choices": [choice.to_json() for choice in self.looked_for.choices.values()],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Plan(PlanOfSteps[Answer]):
    """Price, accuracy and what remains. `run()` runs exactly this plan.

    `query` has its items named. `known` is the earlier release, if the same was asked before. With
    a limit that is looked for (`before`) `price` is the most that it costs, with the looking.
    """

    expectation: Expectation
    before: Before | None = field(compare=False)
    at_largest: bool = False

    @property
    def query(self) -> Query:
        """The question, with its items named; with a limit that is looked for, as it was asked."""
        if self.before is not None:
            return self.before.looked_for.query
        return self._steps[ONLY].purchase.query

    @property
    def caption(self) -> str:
        """What will be counted, of which rows, and every bound and limit that is applied."""
        return self.query.caption(self._context.about.unit, self._context.schema.declared)

    @property
    def items(self) -> Mapping[str, int]:
        """What is bought at most; of a limit that is looked for, if it is the largest."""
        first = {} if self.before is None else self.before.plan.items
        return items_together([*(step.purchase.items for step in self._steps.values()), first])

    def run(self, *, again: bool = False) -> Answer:
        """Pay and run. What was asked before is given out again at no cost, unless `again`."""
        if self.known is not None and not again:
            return self.known
        if self.before is not None:
            limit = self.before.found()
            with paid_before(Price(0) if limit.cached else limit.price):
                answer = planned(self._context, self.before.at(limit), self.terms).run(again=again)
            if self.before.looked_for.may_lose_more(int(limit.value)):
                answer = answer.at_largest_limit
            return answer if limit.cached else self._with_limit(answer, limit)
        answer = execute(self._context, self._steps, self.terms)[ONLY]
        return answer.at_largest_limit if self.at_largest else answer

    def _anew(self) -> Plan:
        """The same plan, with what is known by now."""
        return planned(self._context, self.query, self.terms)

    def _with_limit(self, answer: Answer, limit: Answer) -> Answer:
        """The answer with the price of both parts."""
        spending = answer.spending
        if spending is not None and limit.spending is not None:
            spending = spending.following(limit.spending)
        return replace(answer, price=answer.price + limit.price, spending=spending)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        expectation = self.expectation
        return {
            "query": self.query.to_json(),
            **self._cost_json(),
            "items": dict(self.items),
            "counts": _accuracy(expectation.counts),
            "selection": _accuracy(expectation.selection),
            "told_apart": expectation.told_apart,
            "found_from": expectation.found_from,
            "threshold": expectation.threshold,
            "above_cutoff": expectation.above_cutoff,
            "limits": None if self.before is None else self.before.to_json(),
            "width_times_rows": self.query.width_times_rows(expectation),
            "offered": list(self.query.offered(self._context.schema.declared)),
        }

    def lines(self) -> Iterator[Line]:
        bought = ", ".join(f"{times} × {name}" for name, times in self.items.items())
        yield from self._cost_lines(f"  ({bought})")
        if self.before is not None:
            yield from self.before.lines()
            return
        yield from expectation_lines(
            self.expectation,
            self._context.confidence,
            in_ranks=self.query.in_ranks,
            times_rows=self.query.width_times_rows(self.expectation),
        )
        beside = [step for key, step in self._steps.items() if key != ONLY]
        for step in beside:
            measured = step.mechanism.expect(self._context.confidence).counts
            assert measured is not None
            yield "loss", f"pairs above the limit: ± {width(measured.half_width)}", ""
        for words in self.query.offered(self._context.schema.declared):
            yield "how much", words, ""
        yield from self._known_lines()


def plan_one(context: Context, query: Query, aim: Aim | None) -> Plan:
    """The plan for one question; with an aim the cheapest way to it."""
    context = context.at_this_moment()
    terms, wanted = context.snapshot.terms, context.checked(query)
    if aim is not None:
        wanted = cheapest(wanted, terms.tariff, aim, context.confidence)
    return planned(context, wanted, terms)


def planned(context: Context, wanted: Query, terms: Terms) -> Plan:
    """The plan for a question that was checked, under these terms."""
    wanted, before, at_largest = looked_for(context, wanted, terms)
    steps = steps_of(context, {ONLY: wanted}, terms)
    known = None if before else earlier_answer(context, ONLY, steps)
    return Plan(
        _context=context,
        terms=terms,
        _steps=steps,
        price=price_of(steps) if before is None else before.price,
        remaining=context.snapshot.remaining,
        expectation=wanted.expect(steps[ONLY].mechanism, context.confidence),
        known=known.at_largest_limit if known is not None and at_largest else known,
        before=before,
        at_largest=at_largest,
    )


def looked_for(context: Context, query: Query, terms: Terms) -> tuple[Query, Before | None, bool]:
    """The question with its limit, if that is a number or was found before.

    Otherwise with the largest that may be found, and what has to be run before it. Last, whether
    the limit that was found is the largest that was tried, and more may be lost.
    """
    most = context.about.limits.contribution_limit
    wanted = automatic(query, terms.tariff, context.confidence, most)
    if wanted is None:
        return query, None, False
    first = planned(context, context.checked(wanted.first), terms)
    if first.known is not None:
        limit = int(first.known.value)
        return wanted.choices[limit].query, None, wanted.may_lose_more(limit)
    return wanted.largest.query, Before(first, wanted), False


def _accuracy(accuracy: Accuracy | None) -> dict[str, float] | None:
    return None if accuracy is None else asdict(accuracy)
