"""A question, and several of them together. Nothing happens until `plan` or `run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from farthing.engine.answer import Answer
from farthing.engine.context import Context
from farthing.engine.kinds.base import Query
from farthing.engine.plan import BatchPlan, Plan, plan_many, plan_one
from farthing.errors import InvalidInput

BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Question:
    """A query asked of some data."""

    _context: Context = field(repr=False)
    query: Query

    def is_asked_of(self, context: Context) -> bool:
        """Whether this is the data it is asked of."""
        return self._context is context

    def plan(self, *, half_width: float | None = None, rows: int | None = None) -> Plan:
        """Price, accuracy and what remains; looks at the schema, never at rows.

        With `half_width`: the cheapest way to intervals that narrow, of a mean or a variance if so
        many `rows` count.
        """
        return plan_one(self._context, self.query, half_width=half_width, rows=rows)

    def run(self, *, again: bool = False) -> Answer:
        """The release. What was asked before is given out again at no cost, unless `again`."""
        return self.plan().run(again=again)


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions by name, fixed in advance. Either all of them run or none."""

    _context: Context = field(repr=False)
    queries: Mapping[str, Query]

    def __post_init__(self) -> None:
        if not self.queries:
            raise InvalidInput("a batch needs at least one question, got none")
        object.__setattr__(self, "queries", MappingProxyType(dict(self.queries)))

    def plan(self) -> BatchPlan:
        """Price of all of them and what remains; looks at the schema, never at rows."""
        return plan_many(self._context, self.queries)

    def run(self, *, registered: str | None = None, again: bool = False) -> dict[str, Answer]:
        """Every answer, by name: from the purse, or from the list that the owner registered.

        What was asked before is given out again at no cost, unless `again`.
        """
        return self.plan().run(registered=registered, again=again)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `ask` reads it back."""
        return {"kind": BATCH, "queries": {key: one.to_json() for key, one in self.queries.items()}}
