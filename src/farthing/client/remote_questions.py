"""Questions that a service answers. Nothing happens until `plan` or `run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from farthing.client.remote_data import RemoteData
from farthing.client.remote_plans import RemoteBatchPlan, RemotePlan
from farthing.engine.answer import Answer, Answers
from farthing.engine.kinds.base import Query
from farthing.engine.question import BATCH
from farthing.engine.sql_questions.writing import query_in_sql
from farthing.errors import InvalidInput
from farthing.wording import plain


@dataclass(frozen=True, slots=True)
class RemoteQuestion:
    """A query asked of a dataset of a service."""

    _data: RemoteData = field(repr=False)
    query: Query

    def __repr__(self) -> str:
        return plain(f"<Question: {self.query.caption(self._data.about.unit)}>")

    def is_asked_of(self, data: RemoteData) -> bool:
        """Whether this is the data it is asked of."""
        return self._data is data

    def plan(
        self,
        *,
        half_width: float | None = None,
        rows: int | None = None,
        tells_apart: float | None = None,
    ) -> RemotePlan:
        """Price, accuracy and what remains, as `Question.plan` says."""
        body = {
            "query": self.query.to_json(),
            "half_width": half_width,
            "rows": rows,
            "tells_apart": tells_apart,
        }
        return RemotePlan(self._data, self._data.post("plan", body))

    def run(self, *, again: bool = False) -> Answer:
        """The release. What was asked before is given out again at no cost, unless `again`."""
        return self.plan().run(again=again)

    def to_sql(self) -> str:
        """The SELECT that asks it; `data.sql` reads it back."""
        return query_in_sql(self.query, self._data.about)


@dataclass(frozen=True, slots=True)
class RemoteBatch:
    """Questions by name, fixed in advance. Either all of them run or none."""

    _data: RemoteData = field(repr=False)
    queries: Mapping[str, Query]

    def __repr__(self) -> str:
        return plain(f"<Batch: {', '.join(self.queries)}>")

    def __post_init__(self) -> None:
        if not self.queries:
            raise InvalidInput("a batch needs at least one question, got none")
        object.__setattr__(self, "queries", MappingProxyType(dict(self.queries)))

    def plan(self) -> RemoteBatchPlan:
        """Price of all of them and what remains."""
        batch = {name: query.to_json() for name, query in self.queries.items()}
        told = self._data.post("plan", {"batch": batch})
        return RemoteBatchPlan(self._data, told, self.queries)

    def run(self, *, registered: str | None = None, again: bool = False) -> Answers:
        """Every answer, by name, as `Batch.run` says."""
        return self.plan().run(registered=registered, again=again)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `ask` reads it back."""
        return {"kind": BATCH, "queries": {key: one.to_json() for key, one in self.queries.items()}}
