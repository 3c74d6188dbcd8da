"""The backend of `fa.open`: a table on this machine, and a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from farthing.composition.tariffs.tariff import Price
from farthing.engine.accuracy_target import Aim, cheapest
from farthing.engine.answer import Answers, PastRelease
from farthing.engine.context import Context, record_in_words
from farthing.engine.conversation import ConversationPlan
from farthing.engine.conversation_kinds.base import ConversationKind
from farthing.engine.converse import LocalConversation, open_conversation
from farthing.engine.kinds.base import Query
from farthing.engine.plan import ONLY, Plan, PlannedQuestion
from farthing.engine.planning import Prepared, prepare
from farthing.engine.spending import spending_of
from farthing.ledger import Dataset, OpenedConversation, Purse


class LocalBackend:
    """One table, what was declared about it, and an analyst's purse."""

    def __init__(
        self, context: Context, resources: ExitStack | None = None, place: str | None = None
    ) -> None:
        self._context = context
        self.place = place
        self._resources = resources or ExitStack()

    @property
    def about(self) -> Dataset:
        """The data, as its owner declared it when this was opened."""
        return self._context.about

    @property
    def analyst_name(self) -> str:
        """Whose purse pays."""
        return self._context.analyst.name

    def plan(self, queries: Mapping[str, Query], aim: Aim | None = None) -> Plan[Any]:
        """The plan for questions by name; with an aim the cheapest way of one to it."""
        context = self._context.at_this_moment()
        terms = context.snapshot.terms
        wanted = {name: context.checked(query) for name, query in queries.items()}
        if aim is not None:
            (query,) = wanted.values()
            wanted = {ONLY: cheapest(query, terms.tariff, aim, context.confidence)}
        return self._described(prepare(context, wanted, terms))

    def run(self, plan: Plan[Any], *, registered: str | None, again: bool) -> Answers:
        """Pay for a plan and run it: every answer, by name."""
        prepared: Prepared = plan._details
        return prepared.run(registered=registered, again=again)

    def plan_conversation(self, kind: ConversationKind, questions: int) -> ConversationPlan:
        """The plan for a conversation, with its accuracy for so many questions."""
        snapshot = self._context.at_this_moment().snapshot
        tariff = snapshot.terms.tariff
        items, mechanism = kind.items_for(tariff), kind.mechanism_for(tariff)
        return ConversationPlan(
            kind=kind,
            items=items,
            price=tariff.price_of(items),
            remaining=snapshot.remaining,
            questions=questions,
            accuracy=mechanism.accuracy(questions, self._context.confidence),
            backend=self,
            _details=snapshot.terms,
        )

    def open(self, plan: ConversationPlan) -> LocalConversation:
        """Pay for a conversation and open it."""
        return open_conversation(self._context, plan.kind, plan._details)

    def conversation(self, identity: str) -> LocalConversation:
        """A conversation that this analyst opened, where it was left."""
        return LocalConversation(self._context, self._context.analyst.conversation(identity))

    def conversations(self) -> list[OpenedConversation]:
        """Every conversation that this analyst opened about this data."""
        return self._context.analyst.conversations()

    def history(self) -> list[PastRelease]:
        """Everything that was released to this analyst about this data, the latest first."""
        return [
            PastRelease.of(
                kept.time,
                record_in_words(kept.question, self._context.about),
                kept.price,
                {name: asked["query"] for name, asked in kept.question.items()},
            )
            for kept in self._context.analyst.releases()
        ]

    def purse(self) -> Purse:
        """What was granted, and what is spent of it."""
        return self._context.analyst.purse()

    def remaining(self) -> Price:
        """Farthings and δ units that are left."""
        return self._context.analyst.remaining()

    def shut(self) -> None:
        """Give back what the engine holds, and the ledger if it was opened here."""
        self._context.shut.set()
        self._resources.close()

    def _described(self, prepared: Prepared) -> Plan[Any]:
        """What is prepared, as plain data."""
        snapshot, known = prepared.context.snapshot, prepared.known
        questions = {name: _question(prepared, name) for name in prepared.queries}
        single = ONLY in questions
        return Plan(
            questions=questions,
            price=prepared.price,
            price_again=prepared.price_again,
            remaining=snapshot.remaining,
            spending=spending_of(snapshot, prepared.price, paid=False),
            known=known[ONLY] if single and known is not None else known,
            backend=self,
            _details=prepared,
        )


def _question(prepared: Prepared, name: str) -> PlannedQuestion:
    context, query = prepared.context, prepared.query(name)
    expectation, search = prepared.expectation(name), prepared.searches.get(name)
    return PlannedQuestion(
        query=query,
        caption=context.caption(query),
        price=prepared.price_alone(name),
        items=prepared.items(name),
        expectation=expectation,
        confidence=context.confidence,
        known=name in prepared.told or name in prepared.same_as,
        limits=None if search is None else search.to_json(),
        width_times_rows=query.width_times_rows(expectation),
        offered=query.offered(context.schema_for(query).declared),
        loss=prepared.loss(name),
    )
