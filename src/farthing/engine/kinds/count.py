"""How many units have a row that passes the filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from farthing.engine.kinds.fields import (
    CountItem,
    PerKeyLimit,
    QuestionEpsilon,
    Repeats,
    Where,
)
from farthing.engine.kinds.rows import Rows
from farthing.engine.kinds.single_counts import SingleCountQuery
from farthing.engine.sql.bounding import Bounded, counted_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CountQuery(SingleCountQuery):
    """How many units have a row that passes the filter.

    With per_key_limit above 1: how many rows, of which each unit contributes at most that many.
    """

    where: Where = None
    per_key_limit: PerKeyLimit = 1
    count: CountItem = None
    epsilon: QuestionEpsilon = None
    repeats: Repeats = 1
    kind: ClassVar[str] = "count"
    label: ClassVar[str] = "count"

    def columns(self) -> frozenset[str]:
        return frozenset()

    @property
    def sensitivity(self) -> int:
        return self.per_key_limit

    def bounded(self, rows: Rows) -> Bounded:
        return counted_rows(rows.table, rows.owner, self.per_key_limit)

    def subject(self, unit: str) -> str:
        return f"number of {unit if self.per_key_limit == 1 else 'rows'}"

    def limited(self, unit: str) -> str | None:
        rows = self.per_key_limit
        return None if rows == 1 else f"of each {unit} at most {rows}"

    @property
    def title(self) -> str:
        return "count"

    @property
    def contribution(self) -> str:
        rows = self.per_key_limit
        return "1 of the count" if rows == 1 else f"at most {rows} rows"
