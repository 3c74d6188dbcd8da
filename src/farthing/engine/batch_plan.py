"""What several questions cost together, before any row is looked at: all of them run or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Answer, Answers
from farthing.engine.context import Context
from farthing.engine.execute import execute
from farthing.engine.kinds.base import Query
from farthing.engine.plan import Before, looked_for
from farthing.engine.plan_of_steps import (
    PlanOfSteps,
    earlier_answers,
    price_of,
    purchases_in,
    steps_of,
)
from farthing.engine.show.plans import Line
from farthing.engine.show.sheet import amount
from farthing.errors import InvalidInput
from farthing.ledger import Terms
from farthing.wording import many


@dataclass(frozen=True, slots=True, repr=False)
class BatchPlan(PlanOfSteps[Mapping[str, Answer]]):
    """Several questions that are paid for and run together: all of them or none."""

    before: Mapping[str, Before] = field(compare=False)
    asked: Mapping[str, Query] = field(compare=False)

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
            return self._with_limits().run(again=again)
        answers = execute(self._context, self._steps, self.terms, registered=registered)
        if registered is not None:
            return Answers(answers)
        whole = sum((answer.price for answer in answers.values()), Price(0))  # the rest came back
        spending = self._paid(whole)
        return Answers(
            {key: one.spent(spending.of_part(one.price, whole)) for key, one in answers.items()}
        )

    def _with_limits(self) -> BatchPlan:
        """The same with limits that were looked for, each of them once."""
        limits = {one.name: one for one in self.before.values()}
        answers = {name: one.found() for name, one in limits.items()}
        found = {key: one.at(answers[one.name]) for key, one in self.before.items()}
        return _planned(self._context, {**self.asked, **found}, self.terms)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        unit = self._context.about.unit
        return {
            "queries": {
                key: {
                    "query": one.query.to_json(),
                    "caption": one.query.caption(unit),
                    "price": asdict(one.price),
                }
                for key, one in purchases_in(self._steps).items()
            },
            **self._cost_json(),
        }

    def lines(self) -> Iterator[Line]:
        yield from self._cost_lines()
        for name, one in purchases_in(self._steps).items():
            asked = one.query.caption(self._context.about.unit)
            yield name, f"{asked}: {amount(one.price)}", ""
        yield from self._known_lines()


def plan_many(context: Context, queries: Mapping[str, Query]) -> BatchPlan:
    """The plan for several questions."""
    context = context.now()
    terms = context.analyst.terms()
    return _planned(context, {key: context.checked(one) for key, one in queries.items()}, terms)


def _planned(context: Context, queries: Mapping[str, Query], terms: Terms) -> BatchPlan:
    wanted, before = {}, {}
    for key, query in queries.items():
        wanted[key], first = looked_for(context, query, terms)
        if first is not None:
            before[key] = first
    steps = steps_of(context, wanted, terms)
    return BatchPlan(
        _context=context,
        terms=terms,
        _steps=steps,
        price=price_of(steps) + _more(before),
        remaining=context.analyst.remaining(),
        known=None if before else earlier_answers(context, steps),
        before=MappingProxyType(before),
        asked=MappingProxyType(dict(queries)),
    )


def _more(before: Mapping[str, Before]) -> Price:
    """For what is looked for first: each limit once, and the dearest question that may follow."""
    firsts = {one.name: one.plan.price for one in before.values()}
    dearer = (
        one.looked_for.largest_price - one.looked_for.largest.price for one in before.values()
    )
    return sum((*firsts.values(), *dearer), Price(0))
