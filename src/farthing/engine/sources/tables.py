"""Tables as an engine declares them, and how their columns are read.

Several tables are read as one. A join adds columns of a public table to every private row. A row
stays one row, whatever the public table says: nothing is taken of a key that it has twice. So the
join is a function of each private row by itself, and every limit and every guarantee is as without
it.

An engine's own types are sorted into families. For a kind of the schema and a family there is one
template of SQL that no value can make fail; a pair without a template is missing everywhere. Most
templates are the same on every engine and are written here; each engine adds its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from farthing.engine.computed.columns import lookup_key
from farthing.engine.sql.statement import filled
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import location_of_several
from farthing.schema import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DIGITS,
    INTEGER,
    REAL,
    TEXT,
    TIMESTAMP,
    Column,
    Schema,
)

#: The column that says which of several tables a row is from, unless one of them has its own.
TABLE_COLUMN = "table"


@dataclass(frozen=True, slots=True)
class Physical:
    """A column as the engine declares it; `sql` is the expression that reads it.

    `places` are the decimals of an exact number; None where the type does not say. `labels` are the
    only values that it has, where that does not depend on the rows.
    """

    name: str
    type: str
    family: str
    sql: str
    places: int | None = None
    labels: tuple[str, ...] | None = None


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
    titles = _titles(tables)
    for table, title in zip(tables, titles, strict=True):
        mark = Physical(TABLE_COLUMN, "text", TEXT, literal(title), labels=tuple(titles))
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
class PublicJoin:
    """What one public table adds by one key, which may be several columns: `columns` of the schema,
    in its order. `by` are the private columns, stored or computed."""

    table: str
    by: tuple[Column, ...]
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def read_as(self) -> Schema:
        """The public table's own columns: the key as the private column is declared, and others."""
        keys = (
            Column(name, by.kind, places=by.places, time_zone=by.time_zone)
            for name, by in zip(self.key, self.by, strict=True)
        )
        return Schema((*keys, *map(_in_its_table, self.columns)))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """What the key is called where it is read: c0, c1, …"""
        return tuple(f"c{i}" for i in range(len(self.key)))


def joins_of(schema: Schema) -> list[PublicJoin]:
    """The public tables that a schema joins, each once for every column that it is joined by."""
    columns: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Column]] = {}
    for column in schema.columns:
        if column.lookup is not None:
            same = (column.lookup.table, column.lookup.wanted, column.lookup.keys)
            columns.setdefault(same, []).append(column)
    return [
        PublicJoin(table, tuple(lookup_key(schema, by) for by in wanted), keys, tuple(added))
        for (table, wanted, keys), added in columns.items()
    ]


def with_places(schema: Schema, places: Sequence[str]) -> Schema:
    """The schema with the place of each of its joins spelled out."""
    spelled = {join.table: place for join, place in zip(joins_of(schema), places, strict=True)}
    columns = (
        replace(column, lookup=replace(column.lookup, table=spelled[column.lookup.table]))
        if column.lookup is not None
        else column
        for column in schema.columns
    )
    return Schema(tuple(columns))


def _in_its_table(column: Column) -> Column:
    """The column as the public table has it."""
    assert column.lookup is not None
    return replace(column, name=column.lookup.column or column.name, lookup=None)


#: Families of types besides those that have the name of a kind. `OBJECT`: texts that start with a
#: mark of the type that each of them has. `OTHER`: everything that nobody can ask about.
WIDE, BYTES, INSTANT, OBJECT, OTHER = "wide", "bytes", "instant", "object", "other"
#: Text of more bytes than this is missing, so that no engine fails on what it makes of it.
LONGEST_TEXT = 1 << 20

#: (kind of the schema, family of the engine's type) → template with {x} for the column, {places},
#: {zone} and {edge} (what a decimal is less than) for what the schema says.
Readers: TypeAlias = Mapping[tuple[str, str], str]

_NUMBER = "[ ]*[+-]?([0-9]{1,200}([.][0-9]{0,200})?|[.][0-9]{1,200})([eE][+-]?[0-9]{1,3})?[ ]*"
_UNIVERSAL = "(Z|[+]00(:?00)?)"
#: How a time of UTC ends.
UNIVERSAL = f"{_UNIVERSAL}$"
#: Which texts are read as which kind, the same on every engine; times are of no zone, or of UTC.
_PATTERNS = {
    INTEGER: "[ ]*[+-]?[0-9]{1,200}([.]0{0,200})?[ ]*",
    REAL: _NUMBER,
    DECIMAL: _NUMBER,
    DATE: "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.Z+-]*)?",
    TIMESTAMP: "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9]"
    f"(:[0-5][0-9]([.][0-9]{{1,6}})?)?{_UNIVERSAL}?)?",
}
#: The days that a date can be, and the times that a timestamp can be, as SQL.
DAYS = "DATE '0001-01-01' AND DATE '9999-12-31'"
TIMES = "{type} '0001-01-01 00:00:00' AND {type} '9999-12-31 23:59:59.999999'"
_TRUE, _FALSE = "('true', 't', 'yes', 'y', '1')", "('false', 'f', 'no', 'n', '0')"
_SIGN = "CASE WHEN {x} = 0 THEN false WHEN {x} = 1 THEN true END"


def shared_readers(
    own: Readers,
    *,
    matching: str,
    text: str,
    double: str,
    clock: str,
    near: str,
    local: str,
    utc: str,
) -> Readers:
    """An engine's own templates, and those that are the same everywhere.

    `matching` is true of a text {x} of which all matches {pattern}. `text`, `double` and `clock`
    are the engine's names of the types of text, 64-bit floats and times without a zone. `near` is
    true of instants for which every zone has a day; `local` is the time of an instant in {zone},
    and `utc` the instant of a time in UTC. `own` must read numbers, real numbers as text, and texts
    that match as numbers, days and times, whose zone it leaves out; what it says of other pairs
    goes before what is said here.
    """

    def read(kind: str, template: str, of: str) -> str:
        return f"CASE WHEN {filled(matching, x=of, pattern=_PATTERNS[kind])} THEN {template} END"

    moment, trimmed = own[TIMESTAMP, TEXT], "trim({x})"
    zoned = local.replace("{x}", utc.replace("{x}", moment))
    in_utc = filled(matching, x=trimmed, pattern=f".*{_UNIVERSAL}")
    types = {
        INTEGER: "BIGINT",
        REAL: double,
        DECIMAL: f"DECIMAL({DIGITS}, {{places}})",
        TEXT: text,
        BOOLEAN: "BOOLEAN",
        DATE: "DATE",
        TIMESTAMP: clock,
    }
    times = TIMES.replace("{type}", clock)
    return {
        **{(kind, OTHER): f"CAST(NULL AS {name})" for kind, name in types.items()},
        (INTEGER, INTEGER): "CAST({x} AS BIGINT)",
        (INTEGER, BOOLEAN): "CAST(CAST({x} AS INTEGER) AS BIGINT)",
        (REAL, INTEGER): f"CAST({{x}} AS {double})",
        (REAL, BOOLEAN): f"CAST(CAST({{x}} AS INTEGER) AS {double})",
        (DECIMAL, BOOLEAN): own[DECIMAL, INTEGER].replace("{x}", "CAST({x} AS INTEGER)"),
        (TEXT, INTEGER): f"CAST({{x}} AS {text})",
        (TEXT, BOOLEAN): "CASE WHEN {x} THEN 'true' WHEN NOT {x} THEN 'false' END",
        (TEXT, TEXT): "{x}",
        (TEXT, DATE): f"CASE WHEN {{x}} BETWEEN {DAYS} THEN CAST({{x}} AS {text}) END",
        (BOOLEAN, BOOLEAN): "{x}",
        **{(BOOLEAN, number): _SIGN for number in (INTEGER, WIDE, REAL)},
        (BOOLEAN, TEXT): f"CASE WHEN lower(trim({{x}})) IN {_TRUE} THEN true "
        f"WHEN lower(trim({{x}})) IN {_FALSE} THEN false END",
        (DATE, DATE): "{x}",
        (DATE, TIMESTAMP): f"CASE WHEN {{x}} BETWEEN {times} THEN CAST({{x}} AS DATE) END",
        (DATE, INSTANT): f"CASE WHEN {near} THEN CAST({local} AS DATE) END",
        (TIMESTAMP, TIMESTAMP): "{x}",
        (TIMESTAMP, INSTANT): f"CASE WHEN {near} THEN {local} END",
        (TIMESTAMP, DATE): f"CASE WHEN {{x}} BETWEEN {DAYS} THEN CAST({{x}} AS {clock}) END",
        **own,
        **{(kind, TEXT): read(kind, own[kind, TEXT], "{x}") for kind in (INTEGER, REAL, DECIMAL)},
        (DATE, TEXT): read(DATE, own[DATE, TEXT], trimmed),
        (TIMESTAMP, TEXT): read(
            TIMESTAMP, f"CASE WHEN {in_utc} THEN {zoned} ELSE {moment} END", trimmed
        ),
    }
