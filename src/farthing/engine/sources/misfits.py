"""What of the rows is not as declared, for an owner."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from farthing.schema import Column
from farthing.wording import THIN


@dataclass(frozen=True, slots=True)
class Misfits:
    """How many stored values of a column are not as declared. It tells of rows: for owners alone.

    Of `values` that are there, `unparsed` do not fit the kind, `undeclared` are not among the
    categories, and `outside` lie beyond the bounds.
    """

    column: Column
    values: int
    unparsed: int
    undeclared: int
    outside: int

    @property
    def useless(self) -> bool:
        """Whether there are values and every one of them is missing."""
        return 0 < self.values == self.unparsed + self.undeclared

    def in_words(self) -> str:
        """Such as "date: 48 291 of 48 291 values do not parse"."""
        found = (
            (self.unparsed, "do not parse"),
            (self.undeclared, "are not declared: they are missing"),
            (self.outside, "lie outside the bounds: they are moved"),
        )
        of = f"of {self.values:,} values".replace(",", THIN)
        told = (f"{f'{n:,}'.replace(',', THIN)} {of} {what}" for n, what in found if n)
        return f"{self.column.name}: {'; '.join(told)}"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "column": self.column.name}
