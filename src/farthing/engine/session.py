"""What an analyst holds: a session, and questions, batches and conversations asked in it.

There is one class of each. A session of `fa.open` has a table behind it, one of `fa.connect` a
service; the difference is in its `backend` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Answer
from farthing.engine.answers import Answers
from farthing.engine.computed.columns import ComputedColumns
from farthing.engine.conversation import Conversation
from farthing.engine.conversation_kinds import ConversationKind, ConversationKinds
from farthing.engine.kinds import BATCH, Kinds, query_from
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.completed import renamed_query
from farthing.engine.plan import ONLY, Backend, ConversationPlan, PastRelease, Plan
from farthing.engine.purchase import Aim
from farthing.engine.sql_questions.questions import select_in
from farthing.engine.sql_questions.writing import query_in_sql
from farthing.engine.view import View
from farthing.engine.where_text.conditions import expression_in
from farthing.engine.where_text.expressions import Expression
from farthing.engine.where_text.substitution import column_with, substituted
from farthing.errors import InvalidInput
from farthing.ledger import OpenedConversation, Purse
from farthing.schema import DeclaredValues, Schema
from farthing.wording import plain


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """A query asked of some data. Nothing happens until `plan` or `run`."""

    backend: Backend
    query: Query

    def plan(
        self,
        *,
        half_width: float | None = None,
        rows: int | None = None,
        tells_apart: float | None = None,
    ) -> Plan[Answer]:
        """Price, accuracy and what remains; looks at the schema, never at rows.

        With `half_width`: the cheapest way to intervals that narrow, of a mean or a variance if so
        many `rows` count. With `tells_apart`: the cheapest selections in which, of two labels whose
        counts differ by that much, the larger comes first with the confidence of the session.
        """
        return self.backend.plan({ONLY: self.query}, Aim.of(half_width, tells_apart, rows))

    def run(self, *, again: bool = False) -> Answer:
        """The release. What was asked before is given out again at no cost, unless `again`."""
        return self.plan().run(again=again)

    def to_sql(self) -> str:
        """The SELECT that asks it; `data.sql` reads it back."""
        return query_in_sql(self.query, self.backend.about)

    def __repr__(self) -> str:
        about = self.backend.about
        declared = DeclaredValues() if about.schema is None else about.schema.declared
        return plain(f"<Question: {self.query.caption(about.unit, declared)}>")


@dataclass(frozen=True, slots=True, repr=False)
class Batch:
    """Questions by name, fixed in advance. Either all of them run or none.

    `view`: what a SELECT computes from the answers, which is free.
    """

    backend: Backend
    queries: Mapping[str, Query]
    view: View | None = None

    def __post_init__(self) -> None:
        if not self.queries:
            raise InvalidInput("a batch needs at least one question, got none")
        object.__setattr__(self, "queries", MappingProxyType(dict(self.queries)))

    def plan(self) -> Plan[Answers]:
        """Price of all of them and what remains; looks at the schema, never at rows."""
        plan = self.backend.plan(self.queries)
        known = None if plan.known is None else Answers(plan.known, self.view)
        return replace(plan, known=known, view=self.view)

    def run(self, *, registered: str | None = None, again: bool = False) -> Answers:
        """Every answer, by name: from the purse, or from the list that the owner registered.

        What was asked before is given out again at no cost, unless `again`.
        """
        return self.plan().run(registered=registered, again=again)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `ask` reads it back."""
        queries = {name: query.to_json() for name, query in self.queries.items()}
        return {"kind": BATCH, "queries": queries}

    def __repr__(self) -> str:
        return plain(f"<Batch: {', '.join(self.queries)}>")


@dataclass(frozen=True, slots=True)
class Watch:
    """A conversation that is not open yet. Nothing happens until `plan` or `open`."""

    backend: Backend = field(repr=False)
    kind: ConversationKind

    def plan(self, *, questions: int = 100) -> ConversationPlan:
        """Price, what remains, and how far off the answers to so many questions can be."""
        return self.backend.plan_conversation(self.kind, questions)

    def open(self) -> Conversation:
        """Pay for all of it, and begin."""
        return self.plan().open()


class Session(Kinds[Question], ConversationKinds):
    """One dataset, one unit of privacy, one analyst's purse.

    It plans, runs and reads what belongs to the analyst. What an owner decides (data, tariffs,
    purses, registered lists) is done at a `Desk`.
    """

    def __init__(
        self, backend: Backend, named: Mapping[str, Expression] = MappingProxyType({})
    ) -> None:
        self.backend = backend
        self._named = named

    @property
    def name(self) -> str:
        """The dataset's name in the ledger."""
        return self.backend.about.name

    @property
    def schema(self) -> Schema:
        """The columns that were declared when this was opened; nothing else exists here."""
        return self.backend.about.declared_schema

    @property
    def ledger_path(self) -> str | None:
        """Where the budget is kept: a path, or the address of the service.

        None where a ledger was given that was open already.
        """
        return self.backend.place

    def with_columns(self, **expressions: str) -> Session:
        """The same session with names for columns that are computed: spent="price * quantity".

        The budget and everything else is the same; the names are known here alone.
        """
        named = dict(self._named)
        for name, text in expressions.items():
            if name in self.schema or name == self.backend.about.unit:
                raise InvalidInput(f"there is a column {name} already")
            expression = substituted(expression_in(text), named)
            ComputedColumns(self.schema).typed(expression)
            named[name] = expression
        return Session(self.backend, MappingProxyType(named))

    def per_unit(self, **expressions: str) -> Session:
        """The same session with names for columns that have one value for each unit, such as
        visits=fa.rows(), first=fa.min("day")."""
        session = self.with_columns(**expressions)
        for name in expressions:
            if not ComputedColumns(self.schema).is_per_unit(str(session._named[name])):
                raise InvalidInput(
                    f"{name} has a value for each row, not for each unit: use fa.rows(), "
                    "fa.min(…), fa.sum(…) and their like, or with_columns"
                )
        return session

    def question(self, query: Query) -> Question:
        """A query, asked of this data."""
        return Question(self.backend, self._with_named(query))

    def _with_named(self, query: Query) -> Query:
        """The query with expressions in the place of their names."""
        if not self._named:
            return query
        declared = self.schema
        return renamed_query(
            query, lambda name: name if name in declared else column_with(name, self._named)
        )

    def ask(self, query: Query | Mapping[str, Any]) -> Question | Batch:
        """A question from a query, or from its plain data; a batch from the data of one."""
        if isinstance(query, Mapping) and query.get("kind") == BATCH:
            queries = query.get("queries")
            return self.batch(queries if isinstance(queries, Mapping) else {})
        return self.question(query_from(query))

    def sql(self, text: str, **options: Any) -> Question | Batch:
        """What one SELECT asks: a question, or a batch if it has several functions or computes
        something from them: arithmetic, HAVING, ORDER BY, LIMIT. All of it is in `answers.table`.

        The text is read into the same questions as everything here and never passed on; a clause
        that none of them has is refused. `options` are fields that SQL has no words for, such as
        contribution_limit; OPTIONS (contribution_limit = 3) at the end of the text says the same.
        """
        queries, view = select_in(text, self.backend.about, options, self._named)
        if len(queries) > 1 or view is not None:
            return replace(self.batch(queries), view=view)
        return self.question(*queries.values())

    def batch(self, questions: Mapping[str, Any]) -> Batch:
        """Several questions, queries or plain data, fixed in advance and run together."""
        queries = {}
        for name, given in questions.items():
            if not name:
                raise InvalidInput("every question of a batch must have a name, got an empty one")
            if isinstance(given, Question) and given.backend is not self.backend:
                raise InvalidInput("every question of a batch must be asked of the same data")
            query = given.query if isinstance(given, Question) else query_from(given)
            queries[name] = self._with_named(query)
        return Batch(self.backend, queries)

    def watching(self, kind: ConversationKind) -> Watch:
        """A conversation of this kind about this data."""
        return Watch(self.backend, kind)

    def conversation(self, identity: str) -> Conversation:
        """A conversation that this analyst opened, where it was left."""
        return Conversation(self.backend, self.name, self.backend.conversation(identity))

    def conversations(self) -> list[OpenedConversation]:
        """Every conversation that this analyst opened about this data."""
        return self.backend.conversations()

    def history(self) -> list[PastRelease]:
        """Everything that was released to this analyst about this data, the latest first."""
        return self.backend.history()

    def remaining(self) -> Price:
        """Farthings and δ units that are left."""
        return self.backend.remaining()

    def purse(self) -> Purse:
        """What was granted, and what is spent of it."""
        return self.backend.purse()

    def shut(self) -> None:
        """Give back what is held open."""
        self.backend.shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    def __repr__(self) -> str:
        about, place = self.backend.about, self.backend.place
        columns = "" if about.schema is None else ", ".join(about.schema.kinds)
        kept = "" if place is None else f"; budget in {place}"
        return plain(f"<Session of {self.backend.analyst_name} on {about.name}: {columns}{kept}>")
