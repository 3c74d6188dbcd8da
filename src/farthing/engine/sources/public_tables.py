"""Columns from public tables: every private row is looked up by one of its columns.

A row becomes one row again, whatever the public table says: of a key that it has twice nothing is
taken. So the join is a function of each private row by itself, a unit has the rows it had, and
every limit and every guarantee is as without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from farthing.engine.sources.tables import SourcePart
from farthing.schema import Column, Schema


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
    """The public tables of a schema, each once for every column that is looked up in it."""
    found: dict[tuple[str, str, str], list[Column]] = {}
    for column in schema.columns:
        if column.lookup is not None:
            same = (column.lookup.table, column.lookup.by, column.lookup.key)
            found.setdefault(same, []).append(column)
    return [
        PublicJoin(table, schema[by], key, tuple(columns))
        for (table, by, key), columns in found.items()
    ]


def with_places(schema: Schema, places: Sequence[str]) -> Schema:
    """The schema with the place of each of its joins spelled out."""
    spelled = {join.table: place for join, place in zip(joins_of(schema), places, strict=True)}
    return Schema(tuple(_placed(column, spelled) for column in schema.columns))


def _placed(column: Column, spelled: Mapping[str, str]) -> Column:
    found = column.lookup
    if found is None:
        return column
    return replace(column, lookup=replace(found, table=spelled[found.table]))


def _of_table(column: Column) -> Column:
    """The column as the public table has it."""
    assert column.lookup is not None
    return replace(column, name=column.lookup.column or column.name, lookup=None)
