"""A source: one table, or several read as one, on one engine.

Rows are only ever read through a schema that the owner declared, by the total functions of
`readers`. So no value can make a statement fail, and nothing about the rows decides what a column
is. To add an engine, subclass `Source`; `conformance.check_source` tests the result.
"""

from __future__ import annotations

import itertools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from farthing.engine.computed.compile import with_keys
from farthing.engine.errors import EngineFailure, EngineSilent
from farthing.engine.sources.tables import (
    DAYS,
    INSTANT,
    OBJECT,
    OTHER,
    TIMES,
    WIDE,
    Physical,
    PublicJoin,
    Readers,
    SourcePart,
    SourceTable,
    in_order,
    joins_of,
    together,
    with_places,
)
from farthing.engine.sql.bounding import key_text
from farthing.engine.sql.statement import (
    ColumnReading,
    Dialect,
    Parameter,
    Select,
    Statement,
    Texts,
    filled,
    select,
    written,
)
from farthing.errors import FarthingError, InvalidInput, Unsupported
from farthing.optional import Later
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
    import ibis
    import ibis.expr.types as ir
    import pyarrow as pa
else:
    ibis = Later("ibis")

#: What engines say when they fail may quote the data. It goes to handlers that an owner attached
#: to this logger on purpose, to no other and not to the terminal.
log = logging.getLogger("farthing.engine")
log.propagate = False
log.addHandler(logging.NullHandler())

_TYPES = {
    INTEGER: "int64",
    REAL: "float64",
    TEXT: "string",
    BOOLEAN: "boolean",
    DATE: "date",
    TIMESTAMP: "timestamp(6)",
}


_Made = TypeVar("_Made")


def without_trace(
    work: Callable[[], _Made],
    failed: FarthingError | type[FarthingError],
    said: str,
    *,
    passing: type[Exception] | tuple[type[Exception], ...] = (InvalidInput, Unsupported),
) -> _Made:
    """What `work` gives. If it fails, the owner's log has the reason, and `failed` is raised.

    It is raised where nothing is being handled, so it carries no trace of the engine's own error.
    """
    try:
        return work()
    except passing:
        raise
    except Exception:
        log.exception(said)
    raise failed


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an engine's declared types suggest: columns, and (name, type) of what fits no kind."""

    columns: tuple[Column, ...]
    left_out: tuple[tuple[str, str], ...]


class Source(ABC):
    """A table on an engine. A subclass says how its engine writes SQL, and runs statements.

    It must give `dialect` and `readers`, and implement `fetch` and `shut`. The other methods have
    defaults that suit most engines.
    """

    #: What the engine writes differently, and how it reads columns.
    dialect: ClassVar[Dialect]
    readers: ClassVar[Readers]
    #: An instant, as SQL; and the type of times without a zone.
    instant: ClassVar[str] = "TIMESTAMPTZ '2000-01-01 00:00:00+00'"
    clock: ClassVar[str] = "TIMESTAMP"

    def __init__(self, tables: Sequence[SourceTable]) -> None:
        self._tables = in_order(tables)
        whole = together(self._tables, self.literal)
        self.name = whole.name
        self.location = whole.location
        self.selection = whole.selection
        self.parts = whole.parts
        #: What is declared about a column is what the first part says that has it.
        named: dict[str, Physical] = {}
        for part in self.parts:
            for column in part.columns:
                named.setdefault(column.name, column)
        self.columns = tuple(named.values())
        self._zones = {"UTC"}
        self._readings: dict[Schema, ColumnReading] = {}
        self._names = itertools.count()

    # What a subclass says of its engine.

    @abstractmethod
    def fetch(self, statement: Statement) -> pa.Table:
        """The rows of a statement, in the order of its columns. May raise whatever the engine
        raises."""

    @abstractmethod
    def shut(self) -> None:
        """Give back what the engine holds."""

    @staticmethod
    def literal(text: str) -> str:
        """A text of the owner's as SQL, of the type and the collation that texts are read in."""
        return "'" + text.replace("'", "''") + "'"

    def public_table(self, join: PublicJoin) -> SourceTable:
        """The public table of a join; its name says where it is. InvalidInput if there is none."""
        raise InvalidInput(f"{self.dialect.name} has no public tables, got {join.table:.200}")

    def unchanged(self) -> Hashable | None:
        """The same as long as the rows are; None if that cannot be told."""
        return None

    def interrupt(self, thread: int) -> None:  # noqa: B027 # not every engine can
        """End the statement that this thread runs here, if there is one and the engine can."""

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Hold what a statement needs. Raises whatever the engine raises."""
        self.fetch(Statement("SELECT 1 AS probed", arrow_schema([Column("probed", INTEGER)])))
        yield

    def require_distinct(self, schema: Schema) -> None:  # noqa: B027 # most engines tell a from A
        """Refuse names that the engine cannot tell apart."""

    # What everybody else uses.

    def proposed_schema(self) -> Proposal:
        """What the declared types of the engine suggest; for an owner to look at and change."""
        kept, left = [], []
        for column in self.columns:
            proposed = _proposed(column) if column.name else None
            if proposed is None:
                left.append((column.name, column.type))
            else:
                kept.append(proposed)
        return Proposal(tuple(kept), tuple(left))

    def declared(self, schema: Schema) -> ir.Table:
        """Every declared column under its own name, with the type of its kind. Columns that are
        computed are added later (`engine.computed`)."""
        self.require_distinct(schema)
        self._require_zones(schema)
        own = (c for c in schema.columns if c.parts is None and c.expression is None)
        stored = Schema(tuple(own))
        reading = self._readings.get(stored)
        if reading is None:
            made = self._reading(f"declared{next(self._names)}", stored)
            reading = self._readings.setdefault(stored, made)  # another thread may have been first
        table = ibis.table(_types(stored.columns), name=reading.name)
        joined = {c.name: _joined(table, c.parts, schema) for c in schema.columns if c.parts}
        return table.mutate(**joined) if joined else table

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
        locations = (self.public_table(join).location for join in joins_of(schema))
        return tuple(location for location in locations if location is not None)

    def with_public_tables(self, schema: Schema) -> Schema:
        """The schema with the places of its public tables spelled out.

        They must have the columns that are joined, and each key once: they are public, so an error
        may say which key it is.
        """
        places = []
        for join in joins_of(schema):
            table = self.public_table(join)
            wanted = [column.name for column in join.read_as.columns]
            lacking = [name for name in wanted if name not in table.columns]
            if lacking:
                raise InvalidInput(f"{join.table:.200} has no column {lacking[0]!r:.60}")
            names = join.key_columns
            keys, there = ", ".join(names), " AND ".join(f"{name} IS NOT NULL" for name in names)
            sql = (
                f"SELECT {keys} FROM ({self._read_parts(table.parts, join.read_as)}) AS physical "
                f"WHERE {there} GROUP BY {keys} HAVING count(*) > 1 ORDER BY {keys} LIMIT 1"
            )
            given = zip(names, join.read_as.columns, strict=False)
            gives = arrow_schema(replace(key, name=name) for name, key in given)
            for repeated in self.run(Statement(sql, gives)).to_pylist():
                raise InvalidInput(
                    f"the key {', '.join(join.key)!r:.60} of {join.table:.200} must be unique, but "
                    f"{', '.join(map(str, repeated.values())):.60} is there more than once"
                )
            places.append(table.name)
        return with_places(schema, places)

    def statement(
        self, expression: ir.Table, texts: Texts, main: Select | None = None
    ) -> Statement:
        """The statement for an expression over one table that `declared` gave, or for `main` over
        the rows of that expression."""
        reading = self._reading_in(expression)
        first = len(reading.parameters) + 1 if main is None else main.end
        own = select(expression, texts, self.dialect, first)
        return written(reading, self.dialect, *((own,) if main is None else (main, own)))

    def main_part(self, passing: ir.Table, expression: ir.Table, texts: Texts) -> Select:
        """The part of a statement that reads the rows of `passing`, whatever its filter is."""
        return select(
            expression, texts, self.dialect, len(self._reading_in(passing).parameters) + 1
        )

    def _reading_in(self, expression: ir.Table) -> ColumnReading:
        names = {node.name for node in expression.op().find(ibis.expr.operations.UnboundTable)}
        readings = [reading for reading in self._readings.values() if {reading.name} == names]
        if not readings:
            raise InvalidInput("a statement is about one declared table of this source")
        return readings[0]

    def run(self, statement: Statement) -> pa.Table:
        """The rows of a statement, or EngineFailure without a word of what the engine said."""
        said = f"a statement failed on {self.name} ({self.dialect.name})"
        return without_trace(
            lambda: self.fetch(statement).cast(statement.gives), EngineFailure, said, passing=()
        )

    @contextmanager
    def ready(self) -> Iterator[None]:
        """What a statement of this thread needs is there and answers, or EngineSilent.

        Asked before farthings are reserved, and about no row: whoever has to wait waits here.
        """
        said = f"{self.name} ({self.dialect.name}) does not answer"
        with ExitStack() as held:
            without_trace(
                lambda: held.enter_context(self.answering()), EngineSilent, said, passing=()
            )
            yield

    def read_column(self, column: Column, physical: Physical | None) -> str:
        """The column through the total function for its kind and its type."""
        family, x = OTHER, "NULL"
        if physical is not None and (column.kind, physical.family) in self.readers:
            family, x = physical.family, physical.sql
        read = filled(
            self.readers[column.kind, family],
            x=x,
            places=str(column.places),
            edge=str(10 ** (DIGITS - (column.places or 0))),
            zone=column.time_zone or "UTC",
        )
        return filled(self.dialect.as_bytes, x=read) if column.kind == TEXT else read

    def _require_zones(self, schema: Schema) -> None:
        """The engine knows every declared zone, or InvalidInput: not only once a row has a time."""
        gives = arrow_schema([Column("probed", DATE)])
        for zone in sorted({column.time_zone or "UTC" for column in schema.columns} - self._zones):
            day = filled(self.readers[DATE, INSTANT], x=self.instant, zone=zone)
            probe = partial(self.fetch, Statement(f"SELECT {day} AS probed", gives))
            unknown = f"{self.dialect.name} does not know the time zone {zone}"
            without_trace(probe, InvalidInput(unknown), unknown, passing=())
            self._zones.add(zone)

    def _reading(self, name: str, schema: Schema) -> ColumnReading:
        """Total functions inside, then declared categories, then public tables, by columns or by
        what is computed from a row."""
        parameters: list[Parameter] = []
        own = Schema(tuple(column for column in schema.columns if column.lookup is None))
        named = self.dialect.identifier
        outer = [
            f"{self._inside(column, f'c{i}', parameters)} AS {named(column.name)}"
            for i, column in enumerate(own.columns)
        ]
        rows = self._read_parts(self.parts, own)
        sql = f"SELECT {', '.join(outer)} FROM ({rows}) AS physical"
        joins = joins_of(schema)
        computed = dict.fromkeys(by.name for join in joins for by in join.by if by.name not in own)
        keys = {text: f"looked up {i}" for i, text in enumerate(computed)}
        if keys:
            rows_read, texts = ColumnReading("own rows", sql, tuple(parameters)), Texts()
            table = with_keys(ibis.table(_types(own.columns), name="own rows"), own, keys, texts)
            own_keys = select(table, texts, self.dialect, len(parameters) + 1)
            statement = written(rows_read, self.dialect, own_keys)
            sql, parameters = statement.sql, [*statement.parameters]
        for i, join in enumerate(joins):
            first = len(join.key)
            added = [
                f"public{i}.c{first + k} AS {named(c.name)}" for k, c in enumerate(join.columns)
            ]
            equal = " AND ".join(
                f"own{i}.{named(keys.get(by.name, by.name))} = public{i}.{key}"
                for by, key in zip(join.by, join.key_columns, strict=True)
            )
            sql = (
                f"SELECT own{i}.*, {', '.join(added)} FROM ({sql}) AS own{i} "
                f"LEFT JOIN ({self._public_rows(join, parameters)}) AS public{i} ON {equal}"
            )
        if keys:
            told = ", ".join(named(column.name) for column in schema.columns)
            sql = f"SELECT {told} FROM ({sql}) AS joined"
        return ColumnReading(name, sql, tuple(parameters))

    def _public_rows(self, join: PublicJoin, parameters: list[Parameter]) -> str:
        """The key as c0, c1, … and the columns after it; no row for a key that is there twice."""
        read = [
            f"{self._inside(column, f'c{k}', parameters)} AS c{k}"
            for k, column in enumerate(join.read_as.columns)
        ]
        rows = self._read_parts(self.public_table(join).parts, join.read_as)
        keys = ", ".join(join.key_columns)
        there = " AND ".join(f"{name} IS NOT NULL" for name in join.key_columns)
        counted = (
            f"SELECT *, count(*) OVER (PARTITION BY {keys}) AS times FROM ({rows}) AS physical"
        )
        return f"SELECT {', '.join(read)} FROM ({counted}) AS counted WHERE {there} AND times = 1"

    def _read_parts(self, parts: Sequence[SourcePart], schema: Schema) -> str:
        """Declared columns as c0, c1, …, the rows of all parts below each other."""
        selects = []
        for part in parts:
            physical = {column.name: column for column in part.columns}
            read = (
                f"{self.read_column(column, physical.get(column.name))} AS c{i}"
                for i, column in enumerate(schema.columns)
            )
            selects.append(f"SELECT {', '.join(read)} FROM {part.relation}")
        return " UNION ALL ".join(selects)

    def _inside(self, column: Column, read: str, parameters: list[Parameter]) -> str:
        """What no column of this kind can hold, or is not among its categories, is missing.

        Declared bounds are no part of reading: filters compare what is stored.
        """
        conditions = []
        if column.kind == DATE:
            conditions.append(f"{read} BETWEEN {DAYS}")
        if column.kind == TIMESTAMP:
            conditions.append(f"{read} BETWEEN {filled(TIMES, type=self.clock)}")
        if column.categories is not None:
            parameters.append(column.categories)
            numbers = column.kind == INTEGER
            template = self.dialect.one_of_numbers if numbers else self.dialect.one_of_texts
            conditions.append(filled(template, x=read, n=str(len(parameters))))
        return f"CASE WHEN {' AND '.join(conditions)} THEN {read} END" if conditions else read


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """The types of declared columns, as Arrow has them."""
    return ibis.schema(_types(columns)).to_pyarrow()


def _types(columns: Iterable[Column]) -> dict[str, str]:
    """The type of each column, as Ibis writes it."""
    return {
        column.name: f"decimal({DIGITS}, {column.places})"
        if column.kind == DECIMAL
        else _TYPES[column.kind]
        for column in columns
    }


def _joined(table: ir.Table, parts: Sequence[str], schema: Schema) -> Any:
    """One text for several columns, different for different values; missing where one part is."""
    text = key_text([table[name] for name in parts], [schema.kinds[name] for name in parts])
    whole = reduce(and_, (table[name].notnull() for name in parts))
    return whole.ifelse(text, ibis.null("string"))


def _proposed(column: Physical) -> Column | None:
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
        return Column(column.name, column.family, categories=column.labels)
    return None
