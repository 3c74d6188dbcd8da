"""How many units have a row that passes the filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from farthing.engine.kinds.base import COUNT, Paid, Query, Result, Rows
from farthing.engine.kinds.counting import counts_with, suits_counts
from farthing.engine.kinds.fields import (
    LARGEST_REPEATS,
    CountItem,
    PerKeyLimit,
    QuestionEpsilon,
    Repeats,
    Where,
)
from farthing.engine.sql.bounding import Bounded, counted_rows, counts_of
from farthing.guarantees.kinds import Guarantee
from farthing.mechanisms import Expectation, Histogram, Mechanism, Release, Repeated

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class CountQuery(Query):
    """How many units have a row that passes the filter.

    With per_key_limit above 1: how many rows, of which each unit contributes at most that many.
    """

    where: Where = None
    per_key_limit: PerKeyLimit = 1
    count: CountItem = None
    epsilon: QuestionEpsilon = None
    repeats: Repeats = 1
    kind: ClassVar[str] = "count"
    single: ClassVar[bool] = True

    def columns(self) -> frozenset[str]:
        return frozenset()

    def roles(self) -> dict[str, int]:
        return {COUNT: self.repeats}

    def suits(self, role: str, guarantee: Guarantee) -> bool:
        return role == COUNT and suits_counts(guarantee, self.per_key_limit)

    @property
    def most_repeats(self) -> int:
        return LARGEST_REPEATS

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        return Repeated(counts_with(paid, 1, self.per_key_limit), self.repeats)

    def bounded(self, rows: Rows) -> Bounded:
        return counted_rows(rows.table, rows.owner, self.per_key_limit)

    def data(self, rows: pa.Table) -> Histogram:
        return Histogram(["count"], counts_of(rows))

    @property
    def monotone(self) -> bool:
        return True

    def result(self, release: Release, expectation: Expectation) -> Result:
        assert expectation.counts is not None
        return Result(release.labels, release.counts, expectation.counts.half_width)

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
