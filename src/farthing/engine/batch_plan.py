"""What several questions cost together, before any row is looked at: all of them run or none."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from farthing.canonical import digest
from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Answer, Answers
from farthing.engine.context import Context
from farthing.engine.execute import execute
from farthing.engine.kinds.base import Query
from farthing.engine.loss_measurement import of_question
from farthing.engine.plan import ONLY, Before, looked_for
from farthing.engine.plan_of_steps import (
    PlanOfSteps,
    earlier_answer,
    price_of,
    purchases_in,
    steps_of,
)
from farthing.engine.show.plans import Line
from farthing.engine.show.sheet import amount
from farthing.engine.spending import paid_before
from farthing.engine.translate import Step
from farthing.errors import InvalidInput
from farthing.ledger import Terms
from farthing.wording import many


@dataclass(frozen=True, slots=True, repr=False)
class BatchPlan(PlanOfSteps[Mapping[str, Answer]]):
    """Several questions that are paid for and run together: all of them or none.

    `told` are answers that this analyst has already, which are not paid for again; what is asked
    under two names is asked once (`same_as`).
    """

    told: Mapping[str, Answer] = field(compare=False)
    same_as: Mapping[str, str] = field(compare=False)
    before: Mapping[str, Before] = field(compare=False)
    at_largest: frozenset[str] = field(compare=False)
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
            paid, found = Price(0), dict[str, Answer]()
            for name, one in {one.name: one for one in self.before.values()}.items():
                with paid_before(paid):
                    found[name] = one.found()
                paid += Price(0) if found[name].cached else found[name].price
            with paid_before(paid):
                return self._with_limits(found).run(again=again)
        if registered is not None:
            return Answers(execute(self._context, self._steps, self.terms, registered=registered))
        names = tuple(self.asked) if again else self._due
        answers = execute(self._context, self._steps_of(names), self.terms)
        if len(names) == 1:
            answers = {names[0]: answers[ONLY]}
        return self._by_name(answers)

    @property
    def _due(self) -> tuple[str, ...]:
        """What is paid for: each question once that was not answered before."""
        return tuple(key for key in self.asked if key not in self.told and key not in self.same_as)

    def _steps_of(self, names: Sequence[str]) -> Mapping[str, Step]:
        """What runs for these questions. One alone is the same as if it were asked by itself."""
        if len(names) == 1:
            own = of_question(names[0], self._steps)
            return {key.removeprefix(names[0]): step for key, step in own.items()}
        return {key: one for name in names for key, one in of_question(name, self._steps).items()}

    def _by_name(self, paid: Mapping[str, Answer]) -> Answers:
        """Every answer, of which some were given before, or under another name."""
        left = next(iter(paid.values())).remaining
        told = {key: one.left_with(left) for key, one in self.told.items()}
        found = {**told, **paid}
        for key, other in self.same_as.items():
            found.setdefault(key, replace(found[other], price=Price(0), cached=True))
        return Answers(_marked({key: found[key] for key in self.asked}, self.at_largest))

    def _with_limits(self, answers: Mapping[str, Answer]) -> BatchPlan:
        """The same with the limits that were found."""
        found = {key: one.at(answers[one.name]) for key, one in self.before.items()}
        largest = {
            key
            for key, one in self.before.items()
            if one.looked_for.may_lose_more(int(answers[one.name].value))
        }
        limited = _planned(self._context, {**self.asked, **found}, self.terms)
        told = None if limited.known is None else _marked(limited.known, largest)
        return replace(limited, at_largest=limited.at_largest | largest, known=told)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        unit, declared = self._context.about.unit, self._context.schema.declared
        return {
            "queries": {
                key: {
                    "query": one.query.to_json(),
                    "caption": one.query.caption(unit, declared),
                    "price": asdict(one.price),
                    "known": key in self.told,
                }
                for key, one in purchases_in(self._steps).items()
            },
            **self._cost_json(),
        }

    def lines(self) -> Iterator[Line]:
        yield from self._cost_lines()
        for name, one in purchases_in(self._steps).items():
            asked = one.query.caption(self._context.about.unit, self._context.schema.declared)
            known = name in self.told or name in self.same_as
            price = "asked before" if known else amount(one.price)
            yield name, f"{asked}: {price}", ""
        yield from self._known_lines()


def plan_many(context: Context, queries: Mapping[str, Query]) -> BatchPlan:
    """The plan for several questions."""
    context = context.at_this_moment()
    terms = context.snapshot.terms
    return _planned(context, {key: context.checked(one) for key, one in queries.items()}, terms)


def _planned(context: Context, queries: Mapping[str, Query], terms: Terms) -> BatchPlan:
    wanted, before, at_largest = {}, {}, set()
    for key, query in queries.items():
        wanted[key], first_ask, largest = looked_for(context, query, terms)
        if first_ask is not None:
            before[key] = first_ask
        if largest:
            at_largest.add(key)
    steps = steps_of(context, wanted, terms)
    earlier = {key: earlier_answer(context, key, steps) for key in wanted if key not in before}
    known = {key: one for key, one in earlier.items() if one is not None}
    told = _marked(known, at_largest)
    first: dict[str, str] = {}
    asked = {
        key: digest([context.asked(steps[key].purchase), before[key].name if key in before else ""])
        for key in wanted
    }
    for key, one in asked.items():
        first.setdefault(one, key)
    same_as = {key: first[one] for key, one in asked.items() if first[one] != key}
    due = [key for key in wanted if key not in told and key not in same_as]
    more = _more({key: one for key, one in before.items() if key in due})
    return BatchPlan(
        _context=context,
        terms=terms,
        _steps=steps,
        price=sum((price_of(of_question(key, steps)) for key in due), more),
        remaining=context.snapshot.remaining,
        known=MappingProxyType(told) if len(told) == len(wanted) else None,
        told=MappingProxyType(told),
        same_as=MappingProxyType(same_as),
        before=MappingProxyType(before),
        asked=MappingProxyType(dict(queries)),
        at_largest=frozenset(at_largest),
    )


def _marked(answers: Mapping[str, Answer], at_largest: Collection[str]) -> dict[str, Answer]:
    """The answers, each of which says if its limit is the largest that was tried."""
    return {key: one.at_largest_limit if key in at_largest else one for key, one in answers.items()}


def _more(before: Mapping[str, Before]) -> Price:
    """For what is looked for first: each limit once, and the dearest question that may follow."""
    firsts = {one.name: one.plan.price for one in before.values()}
    dearer = (
        one.looked_for.largest_price - one.looked_for.largest.price for one in before.values()
    )
    return sum((*firsts.values(), *dearer), Price(0))
