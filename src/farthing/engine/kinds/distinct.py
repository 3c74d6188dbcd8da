"""How many different values a column has."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar

from farthing.engine.kinds.fields import (
    CountItem,
    QuestionEpsilon,
    Repeats,
    Where,
    require_number,
)
from farthing.engine.kinds.rows import Rows
from farthing.engine.kinds.single_counts import SingleCountQuery
from farthing.engine.sql.bounding import COUNT as NUMBER
from farthing.engine.sql.bounding import Bounded, bounded_histogram
from farthing.engine.sql.conditions import require_kind
from farthing.schema import KEYS, Schema
from farthing.wording import many


@dataclass(frozen=True, slots=True)
class DistinctQuery(SingleCountQuery):
    """How many different values a column has; missing is none.

    Of each unit `contribution_limit` values count, so one unit adds at most that many to the
    number, and the noise is that much wider (docs/theory/mechanisms.md, section 10).
    """

    column: Annotated[str, "The column with the values."]
    _: KW_ONLY
    where: Where = None
    contribution_limit: Annotated[int | None, "Values of a unit that count."] = None
    count: CountItem = None
    epsilon: QuestionEpsilon = None
    repeats: Repeats = 1
    kind: ClassVar[str] = "distinct"
    label: ClassVar[str] = "distinct"

    def check_fields(self) -> None:
        require_number(self.contribution_limit, self.kind)

    @property
    def needed_limits(self) -> dict[str, str]:
        return {"contribution_limit": f"how many values of {self.column} count of a unit"}

    @property
    def sensitivity(self) -> int:
        """How many values of a unit count."""
        assert self.contribution_limit is not None
        return self.contribution_limit

    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def check_columns(self, schema: Schema) -> None:
        require_kind(self.column, schema.kinds[self.column], KEYS, "the column")

    def bounded(self, rows: Rows) -> Bounded:
        """The number of labels of a bounded histogram."""
        table = rows.table.filter(rows.table[self.column].notnull())
        labels = bounded_histogram(
            table,
            (table[rows.unit], rows.kinds[rows.unit]),
            [(table[self.column], rows.kinds[self.column])],
            secret=rows.secret,
            contribution_limit=self.sensitivity,
            per_key_limit=1,
        ).expression
        counted = labels.aggregate(**{NUMBER: labels.count().cast("decimal(38, 0)")})
        return Bounded(counted, contribution_limit=1, per_key_limit=self.sensitivity)

    @property
    def title(self) -> str:
        return f"different values of {self.column}"

    @property
    def counted(self) -> str | None:
        return self.contribution

    @property
    def contribution(self) -> str:
        return f"at most {many(self.sensitivity, 'value')}"
