"""Questions about a numeric column: its bounds and decimal places."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Self

from farthing.engine.kinds.base import Query
from farthing.engine.kinds.fields import LARGEST_PLACES, NumberBound, scaled_bounds
from farthing.engine.kinds.rows import Rows
from farthing.engine.sql.bounding import fixed_point
from farthing.engine.sql.conditions import require_kind
from farthing.errors import InvalidInput
from farthing.schema import DECIMAL, INTEGER, NUMBERS, Bounds, Column, DeclaredValues, Schema

#: Numbers without decimal places of their own are kept to about this part of their range.
_FINE = 6


class NumberQuery(Query):
    """A question about a column of numbers between two bounds, kept to some decimal places.

    What it does not say about them, the schema does (`completed`).
    """

    __slots__ = ()

    column: str
    lower: NumberBound | None
    upper: NumberBound | None
    places: int | None

    @property
    def decimals(self) -> int:
        """The decimal places that are kept."""
        assert self.places is not None, "a question is completed before it is asked"
        return self.places

    @property
    def bounds(self) -> tuple[int, int]:
        """The bounds in units of the last decimal place."""
        assert self.lower is not None, "a question is completed before it is asked"
        assert self.upper is not None, "a question is completed before it is asked"
        return scaled_bounds(self.lower, self.upper, self.decimals)

    def check_fields(self) -> None:
        if self.lower is None or self.upper is None:
            return
        if self.places is not None:
            _ = self.bounds
        else:
            scaled_bounds(math.floor(self.lower), math.ceil(self.upper), 0)

    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def check_columns(self, schema: Schema) -> None:
        require_kind(self.column, schema.kinds[self.column], NUMBERS, "the column")

    def completed(self, schema: Schema) -> Self:
        """With the bounds of the schema, and decimal places that suit them."""
        column = schema[self.column]
        lower, upper = self.bounds_in(column)
        places = _places(column, lower, upper) if self.places is None else self.places
        if self.places is None or lower != self.lower:
            lower = _rounded(lower, places, ROUND_FLOOR)
        if self.places is None or upper != self.upper:
            upper = _rounded(upper, places, ROUND_CEILING)
        return self.changed(lower=lower, upper=upper, places=places)

    def bounds_in(self, column: Column) -> tuple[NumberBound, NumberBound]:
        """What of the question's bounds lies within those that the owner declared.

        The declared ones move every value first, so nothing is there beyond them.
        """
        lowers = [bound for bound in (self.lower, column.lower) if bound is not None]
        uppers = [bound for bound in (self.upper, column.upper) if bound is not None]
        if not lowers or not uppers:
            raise InvalidInput(
                f"the {self.kind} of {self.column} needs lower and upper: the schema declares none"
            )
        lower, upper = max(lowers), min(uppers)
        if lower > upper:
            raise InvalidInput(
                f"lower and upper must overlap the declared bounds of {self.column}: no value lies "
                f"between {lower} and {upper}"
            )
        return lower, upper

    def moved(self, declared: DeclaredValues) -> dict[str, Bounds]:
        """Its own bounds, which lie within those that are declared."""
        own = {} if self.lower is None else {self.column: (self.lower, self.upper)}
        return Query.moved(self, declared) | own

    def worth(self, rows: Rows) -> Any:
        """The column in whole units of the last decimal place."""
        return fixed_point(rows.table[self.column], rows.kinds[self.column], self.decimals)

    @property
    def title(self) -> str:
        return f"{self.kind} of {self.column}"

    @property
    def headings(self) -> tuple[str, ...]:
        return (self.column,)


def _places(column: Column, lower: NumberBound, upper: NumberBound) -> int:
    """What the column has; for floats so many that the bounds have about a million steps."""
    if column.kind == INTEGER:
        return 0
    if column.kind == DECIMAL:
        assert column.places is not None
        return min(column.places, LARGEST_PLACES)
    size = math.log10(max(abs(lower), abs(upper), 1e-9))
    return min(max(_FINE - math.floor(size), 0), LARGEST_PLACES)


def _rounded(bound: NumberBound, places: int, towards: str) -> NumberBound:
    """A bound moved outwards to the next number with so many decimal places."""
    moved = Decimal(str(bound)).quantize(Decimal(1).scaleb(-places), rounding=towards)
    return int(moved) if moved == moved.to_integral_value() else float(moved)
