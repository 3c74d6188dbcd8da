"""What a question and a batch are, wherever they are asked: of a table, or of a service."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from farthing.engine.answer import Answer, Answers
from farthing.engine.kinds import BATCH
from farthing.engine.kinds.base import Query
from farthing.engine.sql_questions.writing import query_in_sql
from farthing.errors import InvalidInput
from farthing.ledger import Dataset
from farthing.schema import DeclaredValues
from farthing.wording import plain


class AboutData(Protocol):
    """What a question is asked in, of which only what was declared matters here."""

    @property
    def about(self) -> Dataset:
        """The data, as its owner declares it."""


class RunnablePlan(Protocol):
    """A plan for one question."""

    def run(self, *, again: bool = False) -> Answer:
        """Pay and run."""


class RunnableBatchPlan(Protocol):
    """A plan for several."""

    def run(self, *, registered: str | None = None, again: bool = False) -> Answers:
        """Pay and run."""


Place = TypeVar("Place", bound=AboutData)


@dataclass(frozen=True, slots=True, repr=False)
class AnyQuestion(ABC, Generic[Place]):
    """A query asked of some data."""

    _context: Place
    query: Query

    @abstractmethod
    def plan(
        self,
        *,
        half_width: float | None = None,
        rows: int | None = None,
        tells_apart: float | None = None,
    ) -> RunnablePlan:
        """Price, accuracy and what remains; looks at the schema, never at rows.

        With `half_width`: the cheapest way to intervals that narrow, of a mean or a variance if so
        many `rows` count. With `tells_apart`: the cheapest selections in which, of two labels whose
        counts differ by that much, the larger comes first with the confidence of the session.
        """

    def run(self, *, again: bool = False) -> Answer:
        """The release. What was asked before is given out again at no cost, unless `again`."""
        return self.plan().run(again=again)

    def to_sql(self) -> str:
        """The SELECT that asks it; `data.sql` reads it back."""
        return query_in_sql(self.query, self._context.about)

    def is_asked_of(self, context: AboutData) -> bool:
        """Whether this is the data it is asked of."""
        return self._context is context

    def __repr__(self) -> str:
        about = self._context.about
        declared = DeclaredValues() if about.schema is None else about.schema.declared
        return plain(f"<Question: {self.query.caption(about.unit, declared)}>")


@dataclass(frozen=True, slots=True, repr=False)
class AnyBatch(ABC, Generic[Place]):
    """Questions by name, fixed in advance. Either all of them run or none."""

    _context: Place
    queries: Mapping[str, Query]

    def __post_init__(self) -> None:
        if not self.queries:
            raise InvalidInput("a batch needs at least one question, got none")
        object.__setattr__(self, "queries", MappingProxyType(dict(self.queries)))

    @abstractmethod
    def plan(self) -> RunnableBatchPlan:
        """Price of all of them and what remains; looks at the schema, never at rows."""

    def run(self, *, registered: str | None = None, again: bool = False) -> Answers:
        """Every answer, by name: from the purse, or from the list that the owner registered.

        What was asked before is given out again at no cost, unless `again`.
        """
        return self.plan().run(registered=registered, again=again)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `ask` reads it back."""
        return {"kind": BATCH, "queries": {key: one.to_json() for key, one in self.queries.items()}}

    def __repr__(self) -> str:
        return plain(f"<Batch: {', '.join(self.queries)}>")
