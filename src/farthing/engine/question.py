"""A question, and several of them together. Nothing happens until `plan` or `run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from farthing.engine.answer import Answer, Answers
from farthing.engine.cheapest import Aim
from farthing.engine.context import Context
from farthing.engine.kinds.base import Query
from farthing.engine.plan import BatchPlan, Plan, plan_many, plan_one
from farthing.engine.sql_questions.writing import query_in_sql
from farthing.errors import InvalidInput
from farthing.wording import plain

BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Question:
    """A query asked of some data."""

    _context: Context = field(repr=False)
    query: Query

    def __repr__(self) -> str:
        return plain(f"<Question: {self.query.caption(self._context.about.unit)}>")

    def is_asked_of(self, context: Context) -> bool:
        """Whether this is the data it is asked of."""
        return self._context is context

    def plan(
        self,
        *,
        half_width: float | None = None,
        rows: int | None = None,
        tells_apart: float | None = None,
    ) -> Plan:
        """Price, accuracy and what remains; looks at the schema, never at rows.

        With `half_width`: the cheapest way to intervals that narrow, of a mean or a variance if so
        many `rows` count. With `tells_apart`: the cheapest selections in which, of two labels whose
        counts differ by that much, the larger comes first with the confidence of the session.
        """
        return plan_one(self._context, self.query, Aim.of(half_width, tells_apart, rows))

    def run(self, *, again: bool = False) -> Answer:
        """The release. What was asked before is given out again at no cost, unless `again`."""
        return self.plan().run(again=again)

    def to_sql(self) -> str:
        """The SELECT that asks it; `data.sql` reads it back."""
        return query_in_sql(self.query, self._context.about)


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions by name, fixed in advance. Either all of them run or none."""

    _context: Context = field(repr=False)
    queries: Mapping[str, Query]

    def __repr__(self) -> str:
        return plain(f"<Batch: {', '.join(self.queries)}>")

    def __post_init__(self) -> None:
        if not self.queries:
            raise InvalidInput("a batch needs at least one question, got none")
        object.__setattr__(self, "queries", MappingProxyType(dict(self.queries)))

    def plan(self) -> BatchPlan:
        """Price of all of them and what remains; looks at the schema, never at rows."""
        return plan_many(self._context, self.queries)

    def run(self, *, registered: str | None = None, again: bool = False) -> Answers:
        """Every answer, by name: from the purse, or from the list that the owner registered.

        What was asked before is given out again at no cost, unless `again`.
        """
        return self.plan().run(registered=registered, again=again)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `ask` reads it back."""
        return {"kind": BATCH, "queries": {key: one.to_json() for key, one in self.queries.items()}}
