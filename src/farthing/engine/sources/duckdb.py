"""DuckDB, embedded: Parquet, CSV, Arrow, pandas and Polars tables, DuckDB and SQLite files.

Once the source is registered, the connection can read that source and nothing else: external
access is off, except for the files of the source, and the configuration is locked.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from farthing.engine.sources.base import Proposal, Source, without_trace
from farthing.engine.sources.copies import frame_rows
from farthing.engine.sources.duckdb_files import DIALECT, READERS, Database
from farthing.engine.sources.files import local_path
from farthing.engine.sources.tables import (
    Physical,
    PublicJoin,
    SourceTable,
)
from farthing.engine.sql.statement import Statement, Texts, filled
from farthing.errors import InvalidInput
from farthing.schema import BOOLEAN, DATE, INTEGER, REAL, TEXT, Column, Schema

if TYPE_CHECKING:
    import pyarrow as pa


class DuckDBSource(Source):
    """A table in an embedded DuckDB."""

    dialect = DIALECT
    readers = READERS

    def __init__(
        self, database: Database, tables: Sequence[SourceTable], *, memory: str | None
    ) -> None:
        super().__init__(tables)
        self._database = database
        self._memory = memory
        self._running: dict[int, Any] = {}  # cursors by the thread that uses them

    def proposed_schema(self) -> Proposal:
        """Columns that nothing gives a type are proposed by what fits all of their values."""
        proposal = super().proposed_schema()
        columns, left, seen = [], list(proposal.left_out), set[str]()
        types = {column.name: column.type for column in self.columns}
        typed = {c.name for part in self.parts for c in part.columns if c.name not in part.untyped}
        for column in proposal.columns:
            if column.name.casefold() in seen:
                left.append((column.name, types[column.name]))
                continue
            seen.add(column.name.casefold())
            columns.append(column if column.name in typed else self._fitting(column.name))
        return Proposal(tuple(columns), tuple(left))

    def _fitting(self, name: str) -> Column:
        """The narrowest kind that loses no value; text where numbers start with zeros."""
        kinds = (INTEGER, REAL, BOOLEAN, DATE)
        counts = [
            self._lost(part.relation, column, kinds)
            for part in self.parts
            for column in part.columns
            if column.name == name
        ]
        present, padded, *lost = map(sum, zip(*counts, strict=True))
        if not present or padded:
            return Column(name, TEXT)
        fits = [kind for kind, count in zip(kinds, lost, strict=True) if not count]
        return Column(name, fits[0] if fits else TEXT)

    def _lost(self, relation: str, column: Physical, kinds: Sequence[str]) -> tuple[int, ...]:
        """How many values there are, how many start with zeros, and how many each kind loses."""
        sql = column.sql
        reads = [filled(READERS[kind, column.family], x=sql, zone="UTC") for kind in kinds]
        lost = [f"count(*) FILTER ({sql} IS NOT NULL AND {read} IS NULL)" for read in reads]
        zeros = f"count(*) FILTER (regexp_full_match({sql}, 's?[ ]*[+-]?0[0-9].*'))"
        asked = f"SELECT count({sql}), {zeros}, {', '.join(lost)} FROM {relation}"
        [counts] = self._database.execute(asked).fetchall()
        return tuple(counts)

    def fetch(self, statement: Statement) -> pa.Table:
        cursor = self._database.cursor()
        self._running[threading.get_ident()] = cursor
        try:
            given = [list(p) if isinstance(p, tuple) else p for p in statement.parameters]
            return _interruptible(
                lambda: cursor.sql(statement.sql, params=given).to_arrow_table(), cursor.interrupt
            )
        finally:
            del self._running[threading.get_ident()]
            cursor.close()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """It runs in this process: it answers unless it was shut."""
        self._database.cursor().close()
        yield

    def unchanged(self) -> Hashable | None:
        """What the system says of the files that are read; what was copied does not change."""
        try:
            states = [os.stat(file) for file in self._database.files]
        except OSError:
            return None
        return tuple((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in states)

    def interrupt(self, thread: int) -> None:
        cursor = self._running.get(thread)
        if cursor is not None:
            cursor.interrupt()

    def require_distinct(self, schema: Schema) -> None:
        names = {column.name.casefold() for column in schema.columns}
        if len(names) != len(schema.columns):
            raise InvalidInput("DuckDB cannot tell columns apart whose names differ in case only")

    def public_table(self, join: PublicJoin) -> SourceTable:
        """The table is opened by itself and copied: the connection may read no other file."""
        path, _, table = join.table.rpartition("#")
        whole = not path or os.path.exists(join.table)
        named = (local_path(join.table), None) if whole else (local_path(path), table)
        public = open_files([named], memory=self._memory)
        try:
            if public.location is None or public.selection is not None:
                raise InvalidInput(f"a public table must be a file or a folder, got {path:.200}")
            rows = public.run(public.statement(public.declared(join.read_as), Texts()))
        finally:
            public.shut()
        there = {column.name for column in public.columns}
        kept = [column.name for column in join.read_as.columns if column.name in there]
        part = self._database.copy(frame_rows(rows.select(kept)))
        return SourceTable(public.location.removeprefix("file:"), public.location, (part,))

    def shut(self) -> None:
        self._database.close()


def open_files(
    given: Sequence[tuple[str, str | None]], *, memory: str | None, threads: int | None = None
) -> DuckDBSource:
    """A source from paths and the tables in them: each a file, a folder of Parquet files or a
    pattern such as events/*.parquet."""
    return _opened(
        lambda database: [database.table(path, table) for path, table in given], memory, threads
    )


def open_rows(
    frame: Any, *, name: str = "table", location: str | None = None, memory: str | None = None
) -> DuckDBSource:
    """A source from a pandas, Polars or Arrow table in memory, which is copied.

    `location` says which data it is, such as shelf:/place/rows; None if nobody knows.
    """
    return without_trace(
        lambda: _opened(
            lambda database: [SourceTable(name, location, (database.copy(frame_rows(frame)),))],
            memory,
        ),
        InvalidInput("the table could not be read; the owner's log says why"),
        "a table in memory could not be opened",
    )


def _opened(
    tables: Callable[[Database], list[SourceTable]], memory: str | None, threads: int | None = None
) -> DuckDBSource:
    """A source from the tables of a new database, which is closed again if that fails."""
    with ExitStack() as undo:
        database = Database(memory, threads)
        undo.callback(database.close)
        opened = tables(database)
        database.lock()
        source = DuckDBSource(database, opened, memory=memory)
        undo.pop_all()
        return source


def _interruptible(work: Callable[[], pa.Table], stop: Callable[[], None]) -> pa.Table:
    """What work gives. Ctrl-C, of which DuckDB hears late or never, ends it by `stop`."""
    if threading.current_thread() is not threading.main_thread():
        return work()  # no other thread hears Ctrl-C
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            while not wait([running], timeout=0.1).done:
                stop()
            raise
