"""Tables as an engine declares them: several that are read as one, and public ones to join.

A join adds columns of a public table to every private row. A row stays one row, whatever the public
table says: nothing is taken of a key that it has twice. So the join is a function of each private
row by itself, and every limit and every guarantee is as without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from farthing.errors import InvalidInput
from farthing.ledger.declared_data import location_of_several
from farthing.schema import TEXT, Column, Schema

#: The column that says which of several tables a row is from, unless one of them has its own.
TABLE_COLUMN = "table"


@dataclass(frozen=True, slots=True)
class Physical:
    """A column as the engine declares it; `sql` is the expression that reads it.

    `places` are the decimals of an exact number; None where the type does not say.
    """

    name: str
    type: str
    family: str
    sql: str
    places: int | None = None


@dataclass(frozen=True, slots=True)
class SourcePart:
    """Rows that have their columns in common; `relation` is where SQL finds them.

    `untyped` are the columns that nothing gives a type.
    """

    relation: str
    columns: tuple[Physical, ...]
    untyped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table in one place.

    `location` says where the rows live, so that two names for the same rows are seen to be one;
    None for tables in memory. `selection` is what of the location is read, as it was asked for: a
    pattern, a partition, a view; None for all of it.
    """

    name: str
    location: str | None
    parts: tuple[SourcePart, ...]
    selection: str | None = None

    @property
    def columns(self) -> set[str]:
        """The names of all columns."""
        return {column.name for part in self.parts for column in part.columns}


def in_order(tables: Iterable[SourceTable]) -> tuple[SourceTable, ...]:
    """One table as it is; several by where they are, so that it does not matter who named which
    first. Each row must be there once, and each table must have a place."""
    given = tuple(tables)
    if len(given) == 1:
        return given
    placed = [(table.location, table) for table in given if table.location is not None]
    if len(placed) != len(given):
        raise InvalidInput(
            "several tables must be in files or in a database, where a ledger can tell them from "
            "others; put tables in memory together first"
        )
    location_of_several(location for location, _ in placed)
    return tuple(table for _, table in sorted(placed, key=lambda pair: pair[0]))


def together(tables: Sequence[SourceTable], literal: Callable[[str], str]) -> SourceTable:
    """Tables in order as one: their rows below each other, columns that one lacks are missing."""
    if len(tables) == 1:
        return tables[0]
    parts = []
    named = {column.casefold() for table in tables for column in table.columns}
    for table, title in zip(tables, _titles(tables), strict=True):
        mark = Physical(TABLE_COLUMN, "text", TEXT, literal(title))
        more = () if TABLE_COLUMN in named else (mark,)
        parts += [replace(part, columns=(*part.columns, *more)) for part in table.parts]
    selected = any(table.selection is not None for table in tables)
    return SourceTable(
        "_".join(table.name for table in tables),
        location_of_several(table.location for table in tables if table.location is not None),
        tuple(parts),
        " and ".join(table.selection or table.name for table in tables) if selected else None,
    )


def _titles(tables: Sequence[SourceTable]) -> list[str]:
    """The tables' names; numbered where two have the same."""
    titles, seen = [], Counter[str]()
    for table in tables:
        seen[table.name] += 1
        number = seen[table.name]
        titles.append(table.name if number == 1 else f"{table.name} {number}")
    return titles


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A public table on the engine of the private rows.

    `place` says where it is, for the ledger; `location` which data that is.
    """

    place: str
    location: str | None
    parts: tuple[SourcePart, ...]


@dataclass(frozen=True, slots=True)
class PublicJoin:
    """What one public table adds by one key: `columns` of the schema, in its order."""

    table: str
    by: Column
    key: str
    columns: tuple[Column, ...]

    @property
    def read_as(self) -> Schema:
        """The public table's own columns: the key as the private column is declared, and others."""
        by = self.by
        key = Column(self.key, by.kind, places=by.places, time_zone=by.time_zone)
        return Schema((key, *(_of_table(column) for column in self.columns)))


def joins_of(schema: Schema) -> list[PublicJoin]:
    """The public tables that a schema joins, each once for every column that it is joined by."""
    columns: dict[tuple[str, str, str], list[Column]] = {}
    for column in schema.columns:
        if column.lookup is not None:
            same = (column.lookup.table, column.lookup.by, column.lookup.key)
            columns.setdefault(same, []).append(column)
    return [
        PublicJoin(table, schema[by], key, tuple(added))
        for (table, by, key), added in columns.items()
    ]


def with_places(schema: Schema, places: Sequence[str]) -> Schema:
    """The schema with the place of each of its joins spelled out."""
    spelled = {join.table: place for join, place in zip(joins_of(schema), places, strict=True)}
    return Schema(tuple(_placed(column, spelled) for column in schema.columns))


def _placed(column: Column, spelled: Mapping[str, str]) -> Column:
    lookup = column.lookup
    if lookup is None:
        return column
    return replace(column, lookup=replace(lookup, table=spelled[lookup.table]))


def _of_table(column: Column) -> Column:
    """The column as the public table has it."""
    assert column.lookup is not None
    return replace(column, name=column.lookup.column or column.name, lookup=None)
