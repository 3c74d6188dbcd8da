"""Questions about a numeric column: what sums and quantiles share."""

from __future__ import annotations

from typing import Any

from farthing.engine.kinds.base import Query, Rows
from farthing.engine.kinds.fields import NumberBound, scaled_bounds
from farthing.engine.sql.bounding import fixed_point
from farthing.engine.sql.conditions import require_kind
from farthing.schema import NUMBERS, Schema


class NumberQuery(Query):
    """A question about a column of numbers between two bounds, kept to some decimal places."""

    __slots__ = ()

    column: str
    lower: NumberBound
    upper: NumberBound
    places: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The bounds in units of the last decimal place."""
        return scaled_bounds(self.lower, self.upper, self.places)

    def check_fields(self) -> None:
        _ = self.bounds

    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def check_columns(self, schema: Schema) -> None:
        require_kind(self.column, schema.kinds[self.column], NUMBERS, "the column")

    def worth(self, rows: Rows) -> Any:
        """The column in whole units of the last decimal place."""
        return fixed_point(rows.table[self.column], rows.kinds[self.column], self.places)

    @property
    def title(self) -> str:
        return f"{self.kind} of {self.column}"

    @property
    def headings(self) -> tuple[str, ...]:
        return (self.column,)
