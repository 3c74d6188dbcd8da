"""A table on an engine: what it declares about itself, how its rows are read, how it runs.

Rows are only ever read through a schema that the owner declared. For every pair of a type that
an engine has and a kind that a schema has there is one total function, written down in a table
of templates per engine; a pair without one is missing everywhere. So no value can make a
statement fail, and nothing about the rows decides what a column is.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, ClassVar

from farthing.engine.errors import EngineFailure, EngineSilent
from farthing.engine.filters import AnyOf, Between
from farthing.engine.sources.misfits import Misfits
from farthing.engine.sources.public_tables import PublicJoin, PublicTable, joins_of, with_places
from farthing.engine.sources.tables import (
    Physical,
    SourcePart,
    SourceTable,
    in_order,
    together,
)
from farthing.engine.sql.conditions import condition
from farthing.engine.sql.keys import key_text
from farthing.engine.sql.statement import (
    ColumnReading,
    Dialect,
    Parameter,
    Statement,
    Texts,
    filled,
    written,
)
from farthing.errors import InvalidInput
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

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

#: What engines say when they fail may quote the data. It goes to handlers that an owner attached
#: to this logger on purpose, to no other and not to the terminal.
log = logging.getLogger("farthing.engine")
log.propagate = False
log.addHandler(logging.NullHandler())

#: Families of types. An engine's own types are sorted into these, and read by family.
WIDE, BYTES, INSTANT, OTHER = "wide", "bytes", "instant", "other"
#: Texts that start with the mark of the type that each of them has by itself.
OBJECT = "object"
#: Text of more bytes than this is missing, so that no engine fails on what it makes of it.
LONGEST_TEXT = 1 << 20

#: A table of total functions: (kind of the schema, family of the engine's type) → template with
#: {x} for the column, {places}, {zone} and {edge} (what a decimal is less than) for what the
#: schema says.
Readers = Mapping[tuple[str, str], str]

#: What texts are read as numbers, whole numbers and days: the same on every engine.
NUMBER = "[ ]*[+-]?([0-9]{1,200}([.][0-9]{0,200})?|[.][0-9]{1,200})([eE][+-]?[0-9]{1,3})?[ ]*"
WHOLE = "[ ]*[+-]?[0-9]{1,200}([.]0{0,200})?[ ]*"
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.Z+-]*)?"
#: Times of no zone, and of UTC, which ends in Z or +00.
MOMENT = (
    "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
    "(Z|[+]00(:?00)?)?)?"
)
UNIVERSAL = "(Z|[+]00(:?00)?)$"
#: What texts are read as truth values, in small letters.
TRUE, FALSE = "('true', 't', 'yes', 'y', '1')", "('false', 'f', 'no', 'n', '0')"
#: The days that a date can be, as SQL.
DAYS = "DATE '0001-01-01' AND DATE '9999-12-31'"
#: The times that a timestamp can be, as SQL.
TIMES = "{type} '0001-01-01 00:00:00' AND {type} '9999-12-31 23:59:59.999999'"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an engine's declared types suggest: columns, and (name, type) of what fits no kind."""

    columns: tuple[Column, ...]
    left_out: tuple[tuple[str, str], ...]


class Source(ABC):
    """One table on one engine."""

    dialect: ClassVar[str]
    _dialect: ClassVar[Dialect]
    _readers: ClassVar[Readers]
    #: A moment, as SQL.
    _moment: ClassVar[str] = "TIMESTAMPTZ '2000-01-01 00:00:00+00'"
    #: The type of times without a zone.
    _wall_clock: ClassVar[str] = "TIMESTAMP"

    def __init__(self, tables: Sequence[SourceTable]) -> None:
        self._tables = in_order(tables)
        whole = together(self._tables, self._literal)
        self.name = whole.name
        self.location = whole.location
        self.selection = whole.selection
        self._parts = whole.parts
        #: What is declared about a column is what the first part says that has it.
        named: dict[str, Physical] = {}
        for part in self._parts:
            for column in part.columns:
                named.setdefault(column.name, column)
        self.columns = tuple(named.values())
        self._zones = {"UTC"}
        self._readings: dict[str, ColumnReading] = {}
        self._schemas: list[Schema] = []

    def proposed_schema(self) -> Proposal:
        """What the declared types of the engine suggest; for an owner to look at and change."""
        kept, left = [], []
        for column in self.columns:
            found = self._proposed(column) if column.name else None
            if found is None:
                left.append((column.name, column.type))
            else:
                kept.append(found)
        return Proposal(tuple(kept), tuple(left))

    def _proposed(self, column: Physical) -> Column | None:
        if column.family == WIDE:
            if column.places is None or column.places > DIGITS:
                return Column(column.name, REAL)
            if column.places <= 0:
                return Column(column.name, INTEGER)
            return Column(column.name, DECIMAL, places=column.places)
        if column.family in (TIMESTAMP, INSTANT):
            zone = "UTC" if column.family == INSTANT else None
            return Column(column.name, DATE, time_zone=zone)
        if column.family == OBJECT:
            return Column(column.name, TEXT)
        if column.family in (INTEGER, REAL, TEXT, BOOLEAN, DATE):
            return Column(column.name, column.family)
        return None

    def declared(self, schema: Schema) -> ir.Table:
        """Every declared column under its own name, with the type of its kind; see `_TYPES`."""
        import ibis

        self._require_distinct(schema)
        self._require_zones(schema)
        if schema not in self._schemas:
            self._schemas.append(schema)
        name = f"declared{self._schemas.index(schema)}"
        stored = Schema(tuple(column for column in schema.columns if column.parts is None))
        if name not in self._readings:
            self._readings[name] = self._reading(name, stored)
        table = ibis.table(_types(stored.columns), name=name)
        made = {c.name: _joined(table, c.parts, schema) for c in schema.columns if c.parts}
        return table.mutate(**made) if made else table

    def misfits(self, schema: Schema) -> tuple[Misfits, ...]:
        """The columns of the rows themselves of which some values are not as declared.

        Two passes over all rows. For the owner: no analyst may be told, and nothing is kept.
        """
        own = tuple(c for c in schema.columns if c.parts is None and c.lookup is None)
        there = " UNION ALL ".join(self._there(part, own) for part in self._parts)
        names = [f"{what}{i}" for i in range(len(own)) for what in ("stored", "parsed")]
        sums = ", ".join(f"CAST(COALESCE(SUM({name}), 0) AS BIGINT) AS {name}" for name in names)
        sql, gives = (
            f"SELECT {sums} FROM ({there}) AS physical",
            _typed(Column(n, INTEGER) for n in names),
        )
        [stored] = self.run(Statement(sql, gives)).to_pylist()
        table, texts, counts = self.declared(Schema(own)), Texts(), {}
        for i, column in enumerate(own):
            counts[f"kept{i}"] = table[column.name].count()
            sides = (("below", column.lower), ("above", column.upper))
            beyond = [Between(column.name, **{s: bound}) for s, bound in sides if bound is not None]
            if beyond:
                passing = condition(table, AnyOf(tuple(beyond)), schema.kinds, texts)
                counts[f"outside{i}"] = passing.ifelse(1, 0).sum()
        [kept] = self.run(self.statement(table.aggregate(**counts), texts)).to_pylist()
        found = []
        for i, column in enumerate(own):
            told = stored[f"stored{i}"], stored[f"parsed{i}"], kept[f"kept{i}"]
            values, read, fits = map(int, told)
            parsed = fits if column.categories is None else read  # a day of no year does not parse
            outside = int(kept.get(f"outside{i}") or 0)
            found.append(Misfits(column, values, values - parsed, parsed - fits, outside))
        return tuple(one for one in found if one.unparsed or one.undeclared or one.outside)

    def _there(self, part: SourcePart, columns: Sequence[Column]) -> str:
        """Whether each column is stored in a row, and whether it can be read, as 1 or 0."""
        physical = {column.name: column for column in part.columns}
        flags = []
        for i, column in enumerate(columns):
            stored = physical.get(column.name)
            for what, x in (
                ("stored", "NULL" if stored is None else stored.sql),
                ("parsed", self._read(column, stored)),
            ):
                flags.append(f"CASE WHEN {x} IS NOT NULL THEN 1 ELSE 0 END AS {what}{i}")
        return f"SELECT {', '.join(flags)} FROM {part.relation}"

    def require_everywhere(self, *names: str) -> None:
        """Each of several tables has these columns, or InvalidInput: no row would count there."""
        for table in self._tables if len(self._tables) > 1 else ():
            lacking = sorted(set(names) - table.columns)
            if lacking:
                raise InvalidInput(
                    f"tables that are read as one must all have the unit, {table.name} has no "
                    f"column {lacking[0]:.60}"
                )

    def public_locations(self, schema: Schema) -> tuple[str, ...]:
        """Which data the public tables of a schema are."""
        found = (self._public(join).location for join in joins_of(schema))
        return tuple(location for location in found if location is not None)

    def with_public_tables(self, schema: Schema) -> Schema:
        """The schema with the places of its public tables spelled out.

        They must have the columns that are looked up, and each key once: they are public, so an
        error may say which key it is.
        """
        places = []
        for join in joins_of(schema):
            table = self._public(join)
            there = {column.name for part in table.parts for column in part.columns}
            lacking = [column.name for column in join.read_as.columns if column.name not in there]
            if lacking:
                raise InvalidInput(f"{join.table:.200} has no column {lacking[0]!r:.60}")
            key = join.read_as.columns[0]
            sql = (
                f"SELECT c0 AS {self._dialect.identifier(key.name)} FROM "
                f"({self._read_parts(table.parts, join.read_as)}) AS physical "
                "WHERE c0 IS NOT NULL GROUP BY c0 HAVING count(*) > 1 ORDER BY c0 LIMIT 1"
            )
            for repeated in self.run(Statement(sql, _typed([key]))).column(0).to_pylist():
                raise InvalidInput(
                    f"the key {join.key!r:.60} of {join.table:.200} must be unique, but "
                    f"{repeated!s:.60} is there more than once"
                )
            places.append(table.place)
        return with_places(schema, places)

    def statement(self, expression: ir.Table, texts: Texts) -> Statement:
        """The statement for an expression over one table that `declared` gave."""
        import ibis.expr.operations as ops

        names = {node.name for node in expression.op().find(ops.UnboundTable)}
        if len(names) != 1 or not names <= set(self._readings):
            raise InvalidInput("a statement is about one declared table of this source")
        return written(expression, texts, self._readings[names.pop()], self._dialect)

    def run(self, statement: Statement) -> pa.Table:
        """The rows of a statement, or EngineFailure without a word of what the engine said."""
        try:
            return self._fetch(statement).cast(statement.gives)
        except Exception:
            log.exception("a statement failed on %s (%s)", self.name, self.dialect)
        raise EngineFailure  # out here, so that the error carries no trace of the engine's own

    @contextmanager
    def ready(self) -> Iterator[None]:
        """What a statement of this thread needs is there and answers, or EngineSilent.

        Asked before farthings are reserved, and about no row: whoever has to wait waits here.
        """
        with ExitStack() as held:
            answers = False
            try:
                held.enter_context(self._answering())
                answers = True
            except Exception:
                log.exception("%s (%s) does not answer", self.name, self.dialect)
            if not answers:  # out here, so that the error carries no trace of the engine's own
                raise EngineSilent
            yield

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Hold what a statement needs. Raises whatever the engine raises."""
        self._fetch(Statement("SELECT 1 AS probed", _typed([Column("probed", INTEGER)])))
        yield

    @abstractmethod
    def _fetch(self, statement: Statement) -> pa.Table:
        """The rows of a statement, in the order of its columns. May raise whatever the engine
        raises."""

    def unchanged(self) -> Hashable | None:
        """The same as long as the rows are; None if that cannot be told."""
        return None

    def interrupt(self, thread: int) -> None:  # noqa: B027 # not every engine can
        """End the statement that this thread runs here, if there is one and the engine can."""

    @abstractmethod
    def _public(self, join: PublicJoin) -> PublicTable:
        """The public table of a join, or InvalidInput."""

    @staticmethod
    @abstractmethod
    def _literal(text: str) -> str:
        """A text of the owner's as SQL, of the type and the collation that texts are read in."""

    @abstractmethod
    def shut(self) -> None:
        """Give back what the engine holds."""

    def _require_distinct(self, schema: Schema) -> None:  # noqa: B027 # most engines tell a from A
        """Names that the engine cannot tell apart are refused."""

    def _require_zones(self, schema: Schema) -> None:
        """The engine knows every declared zone, or InvalidInput: not only once a row has a time."""
        for column in schema.columns:
            zone = column.time_zone or "UTC"
            if zone in self._zones:
                continue
            day = filled(self._readers[DATE, INSTANT], x=self._moment, zone=zone)
            try:
                self._fetch(Statement(f"SELECT {day} AS probed", _typed([Column("probed", DATE)])))
            except Exception:
                log.exception("the time zone %s failed on %s", zone, self.dialect)
            else:
                self._zones.add(zone)
                continue
            raise InvalidInput(f"{self.dialect} does not know the time zone {zone}")

    def _reading(self, name: str, schema: Schema) -> ColumnReading:
        """Total functions inside, then declared categories, then public tables."""
        parameters: list[Parameter] = []
        own = Schema(tuple(column for column in schema.columns if column.lookup is None))
        named = self._dialect.identifier
        outer = [
            f"{self._inside(column, f'c{i}', parameters)} AS {named(column.name)}"
            for i, column in enumerate(own.columns)
        ]
        rows = self._read_parts(self._parts, own)
        sql = f"SELECT {', '.join(outer)} FROM ({rows}) AS physical"
        for i, join in enumerate(joins_of(schema)):
            added = [f"public{i}.c{k + 1} AS {named(c.name)}" for k, c in enumerate(join.columns)]
            sql = (
                f"SELECT own{i}.*, {', '.join(added)} FROM ({sql}) AS own{i} "
                f"LEFT JOIN ({self._public_rows(join, parameters)}) AS public{i} "
                f"ON own{i}.{named(join.by.name)} = public{i}.c0"
            )
        return ColumnReading(name, sql, tuple(parameters))

    def _public_rows(self, join: PublicJoin, parameters: list[Parameter]) -> str:
        """The key as c0 and the columns as c1, c2, …; no row for a key that is there twice."""
        read = [
            f"{self._inside(column, f'c{k}', parameters)} AS c{k}"
            for k, column in enumerate(join.read_as.columns)
        ]
        rows = self._read_parts(self._public(join).parts, join.read_as)
        counted = f"SELECT *, count(*) OVER (PARTITION BY c0) AS times FROM ({rows}) AS physical"
        return (
            f"SELECT {', '.join(read)} FROM ({counted}) AS counted "
            "WHERE c0 IS NOT NULL AND times = 1"
        )

    def _read_parts(self, parts: Sequence[SourcePart], schema: Schema) -> str:
        """Declared columns as c0, c1, …, the rows of all parts below each other."""
        return " UNION ALL ".join(self._read_part(part, schema) for part in parts)

    def _read_part(self, part: SourcePart, schema: Schema) -> str:
        """Declared columns of one part as c0, c1, …"""
        physical = {column.name: column for column in part.columns}
        read = (
            f"{self._read(column, physical.get(column.name))} AS c{i}"
            for i, column in enumerate(schema.columns)
        )
        return f"SELECT {', '.join(read)} FROM {part.relation}"

    def _read(self, column: Column, physical: Physical | None) -> str:
        """The column through the total function for its kind and its type."""
        family, x = OTHER, "NULL"
        if physical is not None and (column.kind, physical.family) in self._readers:
            family, x = physical.family, "NULL" if physical.family == OTHER else physical.sql
        return filled(
            self._readers[column.kind, family],
            x=x,
            places=str(column.places),
            edge=str(10 ** (DIGITS - (column.places or 0))),
            zone=column.time_zone or "UTC",
        )

    def _inside(self, column: Column, read: str, parameters: list[Parameter]) -> str:
        """What no column of this kind can hold, or is not among its categories, is missing.

        Declared bounds are no part of reading: filters compare what is stored.
        """
        conditions = []
        if column.kind == DATE:
            conditions.append(f"{read} BETWEEN {DAYS}")
        if column.kind == TIMESTAMP:
            conditions.append(f"{read} BETWEEN {filled(TIMES, type=self._wall_clock)}")
        if column.categories is not None:
            parameters.append(column.categories)
            numbers = column.kind == INTEGER
            template = self._dialect.one_of_numbers if numbers else self._dialect.one_of_texts
            conditions.append(filled(template, x=read, n=str(len(parameters))))
        return f"CASE WHEN {' AND '.join(conditions)} THEN {read} END" if conditions else read


def _joined(table: ir.Table, parts: Sequence[str], schema: Schema) -> Any:
    """One text for several columns, different for different values; missing where one part is."""
    import ibis

    text = key_text([table[name] for name in parts], [schema.kinds[name] for name in parts])
    whole = reduce(and_, (table[name].notnull() for name in parts))
    return whole.ifelse(text, ibis.null("string"))


def _types(columns: Iterable[Column]) -> dict[str, str]:
    """The type of each column, as Ibis writes it."""
    return {
        one.name: f"decimal({DIGITS}, {one.places})" if one.kind == DECIMAL else _TYPES[one.kind]
        for one in columns
    }


def _typed(columns: Iterable[Column]) -> pa.Schema:
    """The same in Arrow's words."""
    import ibis

    return ibis.schema(_types(columns)).to_pyarrow()


_TYPES = {
    INTEGER: "int64",
    REAL: "float64",
    TEXT: "string",
    BOOLEAN: "boolean",
    DATE: "date",
    TIMESTAMP: "timestamp(6)",
}
