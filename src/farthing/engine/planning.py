"""From questions to everything that runs: what is bought, what was told before, what comes first.

Several questions run together: all of them or none. A question that this analyst has an answer to
is not paid for again, and one that is asked under two names is asked once. A contribution limit
or a bound that is chosen automatically is found by a question of its own, which runs first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

from farthing.canonical import digest
from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Answer
from farthing.engine.answers import Answers
from farthing.engine.automatic_bounds import automatic_bounds
from farthing.engine.context import Context, Step
from farthing.engine.contribution_limits import automatic, of_question, with_loss_questions
from farthing.engine.execute import execute, paid_before
from farthing.engine.kinds import BATCH
from farthing.engine.kinds.base import Query
from farthing.engine.plan import ONLY, PlannedQuestion
from farthing.engine.purchase import buy, items_together
from farthing.engine.show.sheet import width
from farthing.errors import InvalidInput
from farthing.ledger import Terms


class Automatic(Protocol):
    """A question with fields that are found first."""

    @property
    def query(self) -> Query:
        """As it was asked."""

    @property
    def firsts(self) -> Mapping[str, Query]:
        """The questions that find them, by field."""

    @property
    def largest(self) -> Query:
        """With the largest that may be found: what is planned until then."""

    @property
    def largest_price(self) -> Price:
        """The most that it may cost."""

    @property
    def dearer(self) -> Price:
        """How much more that is than what is planned."""

    @property
    def choices(self) -> Mapping[int, Any]:
        """What may be found, with prices, if that can be listed."""

    def chosen(self, found: Mapping[str, Any]) -> Query:
        """With what was found."""

    def may_lose_more(self, query: Query) -> bool:
        """Whether this is the largest that was tried, and more might be better."""


@dataclass(frozen=True, slots=True)
class Search:
    """Fields of a question that are found first: what finds them, and what may come out."""

    first: Prepared
    automatic: Automatic

    @property
    def name(self) -> str:
        """One name for one search, whichever questions need it."""
        return digest({name: query.to_json() for name, query in self.first.queries.items()})

    def run(self) -> Answers:
        """What is looked for, found now or before: also by this search itself."""
        anew = prepare(self.first.context, self.first.queries, self.first.terms)
        return anew.run(registered=None, again=False)

    def chosen(self, answers: Answers) -> Query:
        """The question with what was found."""
        names = self.automatic.firsts
        found = answers.values() if ONLY in answers else (answers[name] for name in names)
        return self.automatic.chosen(
            {name: answer.value for name, answer in zip(names, found, strict=True)}
        )

    def to_json(self) -> dict[str, Any]:
        """The price of the search, and what each limit would cost."""
        steps, level = self.first.steps, self.first.context.confidence
        asked = {name: step.purchase.query for name, step in steps.items()}
        errors = [asked[name].expect(step.mechanism, level) for name, step in steps.items()]
        widths = [error.selection.half_width for error in errors if error.selection is not None]
        plain = {name: query.to_json() for name, query in asked.items()}
        return {
            "first": {
                "query": plain.get(ONLY, {"kind": BATCH, "queries": plain}),
                "caption": "; ".join(map(self.first.context.caption, asked.values())),
                "price": asdict(self.first.price),
                "half_width": max(widths),
            },
            "choices": [choice.to_json() for choice in self.automatic.choices.values()],
            "may_lose_more": self.automatic.may_lose_more(self.automatic.largest),
        }


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that runs for questions by name, under which terms, and its price at most.

    `told` are answers that this analyst has already; `same_as` names the question that asks the
    same. `at_largest` are questions whose limit is the largest that was tried.
    """

    context: Context
    terms: Terms
    queries: Mapping[str, Query]
    steps: Mapping[str, Step]
    told: Mapping[str, Answer]
    same_as: Mapping[str, str]
    searches: Mapping[str, Search]
    at_largest: frozenset[str]

    @property
    def known(self) -> Answers | None:
        """Every answer, if all of them were told before."""
        whole = len(self.told) == len(self.queries)
        return Answers(_marked(self.told, self.at_largest)) if whole else None

    @property
    def price_again(self) -> Price:
        """The most that all of them cost if each is paid for anew, told before or not."""
        return sum(map(self.price_alone, self.queries), Price(0))

    @property
    def price(self) -> Price:
        """What is due, the searches, and the dearest question that may follow each of them.

        Of a question that is asked alone, what it costs anew, told before or not.
        """
        if ONLY in self.queries:
            return self.price_alone(ONLY)
        due = self._due
        searches = {name: one for name, one in self.searches.items() if name in due}
        firsts = {one.name: one.first.price for one in searches.values()}
        dearer = [one.automatic.dearer for one in searches.values()]
        bought = [price_of(of_question(name, self.steps)) for name in due]
        return sum((*firsts.values(), *dearer, *bought), Price(0))

    def price_alone(self, name: str) -> Price:
        """What a question costs at most if it is asked alone."""
        search = self.searches.get(name)
        if search is None:
            return price_of(of_question(name, self.steps))
        return search.first.price + search.automatic.largest_price

    def described(self, name: str) -> PlannedQuestion:
        """A question as plain data, with its items named.

        If its limit is to be chosen: as it was asked, with the items of the largest limit.
        """
        context, step, search = self.context, self.steps[name], self.searches.get(name)
        own = of_question(name, self.steps)
        steps = [*own.values(), *(() if search is None else search.first.steps.values())]
        query = step.purchase.query if search is None else search.automatic.query
        expectation = step.purchase.query.expect(step.mechanism, context.confidence)
        loss = None
        for measuring in (one for key, one in own.items() if key != name):
            measured = measuring.mechanism.expect(context.confidence).counts
            assert measured is not None
            loss = f"pairs above the limit: ± {width(measured.half_width)}"
        return PlannedQuestion(
            query=query,
            caption=context.caption(query),
            price=self.price_alone(name),
            items=items_together(one.purchase.items for one in steps),
            expectation=expectation,
            confidence=context.confidence,
            known=name in self.told or name in self.same_as,
            limits=None if search is None else search.to_json(),
            width_times_rows=step.purchase.query.width_times_rows(
                step.mechanism, context.confidence
            ),
            offered=query.offered(context.about.unit, context.schema_for(query).declared),
            loss=loss,
        )

    def run(self, *, registered: str | None, again: bool) -> Answers:
        """Every answer, by name: from the purse, or from the list `registered`."""
        if registered is not None and ONLY in self.queries:
            raise InvalidInput("a registered list pays for a batch")
        if self.known is not None and not again:
            return self.known
        if self.searches:
            if registered is not None:
                raise InvalidInput("a registered list has limits that are numbers, not auto")
            return self._searched(again)
        if registered is not None:
            return Answers(execute(self.context, self.steps, self.terms, registered=registered))
        names = tuple(self.queries) if again else self._due
        answers = execute(self.context, self._steps_of(names), self.terms)
        if len(names) == 1:
            answers = {names[0]: answers[ONLY]}
        return self._by_name(answers)

    def _searched(self, again: bool) -> Answers:
        """Every answer, once the limits are found. The first answer that needs a search pays."""
        found: dict[str, Answers] = {}
        paid = Price(0)
        for search in self.searches.values():
            if search.name not in found:
                with paid_before(paid):
                    answers = found[search.name] = search.run()
                paid += sum((a.price for a in answers.values() if not a.cached), Price(0))
        with paid_before(paid):
            answers = self._with_found(found).run(registered=None, again=again)
        for name, search in self.searches.items():
            for first in found.pop(search.name, Answers({})).values():
                if not first.cached:
                    answers[name] = _with_search(answers[name], first)
        return answers

    def _with_found(self, found: Mapping[str, Answers]) -> Prepared:
        """The same with what was found."""
        queries, largest = dict(self.queries), set()
        for name, search in self.searches.items():
            queries[name] = search.chosen(found[search.name])
            if search.automatic.may_lose_more(queries[name]):
                largest.add(name)
        limited = prepare(self.context, queries, self.terms)
        return replace(limited, at_largest=limited.at_largest | largest)

    @property
    def _due(self) -> tuple[str, ...]:
        """What is paid for: each question once that was not answered before."""
        return tuple(
            name for name in self.queries if name not in self.told and name not in self.same_as
        )

    def _steps_of(self, names: Sequence[str]) -> Mapping[str, Step]:
        """What runs for these questions. One alone is the same as if it were asked by itself."""
        if len(names) == 1:
            own = of_question(names[0], self.steps)
            return {key.removeprefix(names[0]): step for key, step in own.items()}
        return {key: one for name in names for key, one in of_question(name, self.steps).items()}

    def _by_name(self, paid: Mapping[str, Answer]) -> Answers:
        """Every answer, of which some were given before, or under another name."""
        left = next(iter(paid.values())).remaining
        answers = {name: replace(answer, remaining=left) for name, answer in self.told.items()}
        answers.update(paid)
        for name, other in self.same_as.items():
            answers.setdefault(name, replace(answers[other], price=Price(0), cached=True))
        return Answers(_marked({name: answers[name] for name in self.queries}, self.at_largest))


def prepare(context: Context, queries: Mapping[str, Query], terms: Terms) -> Prepared:
    """Everything that runs for questions that were checked, under these terms."""
    wanted, searches, at_largest = dict[str, Query](), dict[str, Search](), set()
    for name, query in queries.items():
        wanted[name], search, largest = _with_found(context, query, terms)
        if search is not None:
            searches[name] = search
        if largest:
            at_largest.add(name)
    everything = with_loss_questions(wanted)
    bought = {key: buy(query, terms.tariff) for key, query in everything.items()}
    steps = MappingProxyType(
        {key: Step(purchase, purchase.mechanism(), context) for key, purchase in bought.items()}
    )
    told = {}
    for name in (name for name in wanted if name not in searches):
        earlier = context.earlier(name, of_question(name, bought))
        if earlier is not None:
            told[name] = earlier
    return Prepared(
        context=context,
        terms=terms,
        queries=MappingProxyType(dict(queries)),
        steps=steps,
        told=MappingProxyType(told),
        same_as=_same_as(context, steps, searches, wanted),
        searches=MappingProxyType(searches),
        at_largest=frozenset(at_largest),
    )


def price_of(steps: Mapping[str, Step]) -> Price:
    """What all of them cost."""
    return sum((step.purchase.price for step in steps.values()), Price(0))


def _with_found(context: Context, query: Query, terms: Terms) -> tuple[Query, Search | None, bool]:
    """The question with its limit and bounds, if they are numbers or were found before.

    Otherwise with the largest that may be found, and the search for them. Last, whether the limit
    that was found is the largest that was tried, and more may be lost.
    """
    most = context.about.limits.contribution_limit
    choosing: Automatic | None = automatic(query, terms.tariff, context.confidence, most)
    if choosing is None and getattr(query, "automatic", None):
        choosing = automatic_bounds(query, terms.tariff, context.schema_for, context.checked)
    if choosing is None:
        return query, None, False
    firsts = {name: context.checked(first) for name, first in choosing.firsts.items()}
    if len(firsts) == 1:
        firsts = dict(zip([ONLY], firsts.values(), strict=True))
    search = Search(prepare(context, firsts, terms), choosing)
    known = search.first.known
    if known is not None:
        chosen = search.chosen(known)
        return chosen, None, choosing.may_lose_more(chosen)
    return choosing.largest, search, False


def _same_as(
    context: Context,
    steps: Mapping[str, Step],
    searches: Mapping[str, Search],
    names: Collection[str],
) -> Mapping[str, str]:
    """The earlier question that asks the same, for each that repeats one."""
    first: dict[str, str] = {}
    repeated = {}
    for name in names:
        search = searches[name].name if name in searches else ""
        asked = digest([context.asked(steps[name].purchase), search])
        if asked in first:
            repeated[name] = first[asked]
        first.setdefault(asked, name)
    return MappingProxyType(repeated)


def _with_search(answer: Answer, limit: Answer) -> Answer:
    """The answer with the price of finding its limit too."""
    spending = answer.spending
    if spending is not None and limit.spending is not None:
        spending = spending.following(limit.spending)
    return replace(answer, price=answer.price + limit.price, spending=spending)


def _marked(answers: Mapping[str, Answer], at_largest: Collection[str]) -> dict[str, Answer]:
    """The answers, each of which says if its limit is the largest that was tried."""
    return {
        name: replace(answer, largest_tried=True) if name in at_largest else answer
        for name, answer in answers.items()
    }
