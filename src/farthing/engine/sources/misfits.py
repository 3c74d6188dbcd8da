"""Values that are not as declared, counted for an owner. No analyst may be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from farthing.engine.filters import AnyOf, Between
from farthing.engine.sources.base import Source, arrow_schema
from farthing.engine.sources.tables import SourcePart
from farthing.engine.sql.conditions import condition
from farthing.engine.sql.statement import Statement, Texts
from farthing.schema import INTEGER, Column, Schema
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
        counts = (
            (self.unparsed, "do not parse"),
            (self.undeclared, "are not declared: they are missing"),
            (self.outside, "lie outside the bounds: they are moved"),
        )
        of = f"of {self.values:,} values".replace(",", THIN)
        told = (f"{f'{n:,}'.replace(',', THIN)} {of} {what}" for n, what in counts if n)
        return f"{self.column.name}: {'; '.join(told)}"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "column": self.column.name}


def misfits_of(source: Source, schema: Schema) -> tuple[Misfits, ...]:
    """The stored columns of which some values are not as declared, in two passes over all rows."""
    own = tuple(column for column in schema.columns if column.is_stored)
    flags = " UNION ALL ".join(_flags(source, part, own) for part in source.parts)
    names = [f"{what}{i}" for i in range(len(own)) for what in ("stored", "parsed")]
    sums = ", ".join(f"CAST(COALESCE(SUM({name}), 0) AS BIGINT) AS {name}" for name in names)
    gives = arrow_schema(Column(name, INTEGER) for name in names)
    [stored] = source.run(Statement(f"SELECT {sums} FROM ({flags}) AS physical", gives)).to_pylist()
    table, texts, counts = source.declared(Schema(own)), Texts(), {}
    for i, column in enumerate(own):
        counts[f"kept{i}"] = table[column.name].count()
        sides = (("below", column.lower), ("above", column.upper))
        beyond = [Between(column.name, **{s: bound}) for s, bound in sides if bound is not None]
        if beyond:
            passing = condition(table, AnyOf(tuple(beyond)), schema.kinds, texts)
            counts[f"outside{i}"] = passing.ifelse(1, 0).sum()
    [kept] = source.run(source.statement(table.aggregate(**counts), texts)).to_pylist()
    misfits = []
    for i, column in enumerate(own):
        told = stored[f"stored{i}"], stored[f"parsed{i}"], kept[f"kept{i}"]
        values, read, fits = map(int, told)
        parsed = fits if column.categories is None else read  # a day of no year does not parse
        outside = int(kept.get(f"outside{i}") or 0)
        misfits.append(Misfits(column, values, values - parsed, parsed - fits, outside))
    return tuple(m for m in misfits if m.unparsed or m.undeclared or m.outside)


def _flags(source: Source, part: SourcePart, columns: Sequence[Column]) -> str:
    """Whether each column is stored in a row, and whether it can be read, as 1 or 0."""
    physical = {column.name: column for column in part.columns}
    flags = []
    for i, column in enumerate(columns):
        stored = physical.get(column.name)
        for what, x in (
            ("stored", "NULL" if stored is None else stored.sql),
            ("parsed", source.read_column(column, stored)),
        ):
            flags.append(f"CASE WHEN {x} IS NOT NULL THEN 1 ELSE 0 END AS {what}{i}")
    return f"SELECT {', '.join(flags)} FROM {part.relation}"
