"""DuckDB, embedded: Parquet, CSV, Arrow, pandas and Polars tables, DuckDB and SQLite files.

Once the source is registered, the connection can read that source and nothing else: external
access is off, except for the files of the source, and the configuration is locked.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from farthing.engine.sources.base import LONGEST_TEXT, OBJECT, Proposal, Source, log
from farthing.engine.sources.copied import OBJECTS, TYPED, UNTYPED, Copied
from farthing.engine.sources.csv_files import CSV, csv_rows
from farthing.engine.sources.duckdb_reading import (
    DIALECT,
    READERS,
    physical_column,
    text_literal,
    text_literals,
)
from farthing.engine.sources.files import (
    files_of,
    local_path,
    location_of,
    selection_of,
    title_of,
)
from farthing.engine.sources.frames import frame_rows
from farthing.engine.sources.parquet_files import parquet_parts
from farthing.engine.sources.public_tables import PublicJoin, PublicTable
from farthing.engine.sources.sqlite_files import SQLITE, sqlite_rows, sqlite_table
from farthing.engine.sources.tables import Physical, SourcePart, SourceTable
from farthing.engine.sql.statement import Statement, Texts, filled
from farthing.errors import InvalidInput, Unsupported
from farthing.optional import installing
from farthing.schema import BOOLEAN, DATE, INTEGER, REAL, TEXT, Column, Schema

if TYPE_CHECKING:
    import pyarrow as pa

TABLE, PUBLIC = "source", "public_copy"
PARQUET = (".parquet", ".pq")
DUCKDB = (".duckdb", ".ddb")
#: Share of the machine's memory that DuckDB may use before it spills to disk.
MEMORY = "60%"
#: With much less, whether a statement fails could depend on a single row.
LEAST_MEMORY = 256e6

#: How text becomes plain text.
_PLAIN, _OF_TABLE = "{x}", "({x} COLLATE c)"


class _Database:
    """A connection, and the folder it spills to, which goes with it."""

    def __init__(self, connection: Any, spill: str) -> None:
        self._connection = connection
        self._clean = weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
        self.execute = connection.execute
        self.cursor = connection.cursor
        self.register = connection.register
        self.unregister = connection.unregister

    def close(self) -> None:
        self._connection.close()
        self._clean()


class DuckDBSource(Source):
    """A table in an embedded DuckDB."""

    dialect = "duckdb"
    _dialect = DIALECT
    _readers = READERS

    def __init__(
        self,
        connection: _Database,
        tables: Sequence[SourceTable],
        read: Sequence[str],
        *,
        memory: str | None,
    ) -> None:
        super().__init__(tables)
        self._connection = connection
        self._files = tuple(read)
        self._memory = memory
        self._copies = itertools.count()
        self._running: dict[int, Any] = {}  # cursors by the thread that uses them

    def proposed_schema(self) -> Proposal:
        """Columns that nothing gives a type are proposed by what fits all of their values."""
        found = super().proposed_schema()
        columns, left, seen = [], list(found.left_out), set[str]()
        types = {column.name: column.type for column in self.columns}
        typed = {c.name for part in self._parts for c in part.columns if c.name not in part.untyped}
        for column in found.columns:
            if column.name.casefold() in seen:
                left.append((column.name, types[column.name]))
                continue
            seen.add(column.name.casefold())
            columns.append(column if column.name in typed else self._fitting(column.name))
        return Proposal(tuple(columns), tuple(left))

    def _fitting(self, name: str) -> Column:
        """The narrowest kind that loses no value; text where numbers start with zeros."""
        kinds = (INTEGER, REAL, BOOLEAN, DATE)
        found = [
            self._misfits(part.relation, column, kinds)
            for part in self._parts
            for column in part.columns
            if column.name == name
        ]
        present, padded, *misfits = map(sum, zip(*found, strict=True))
        if not present or padded:
            return Column(name, TEXT)
        fits = [kind for kind, misfit in zip(kinds, misfits, strict=True) if not misfit]
        return Column(name, fits[0] if fits else TEXT)

    def _misfits(self, relation: str, column: Physical, kinds: Sequence[str]) -> tuple[int, ...]:
        """How many values there are, how many start with zeros, and how many each kind loses."""
        sql = column.sql
        reads = [filled(READERS[kind, column.family], x=sql, zone="UTC") for kind in kinds]
        lost = [f"count(*) FILTER ({sql} IS NOT NULL AND {read} IS NULL)" for read in reads]
        zeros = f"count(*) FILTER (regexp_full_match({sql}, 's?[ ]*[+-]?0[0-9].*'))"
        asked = f"SELECT count({sql}), {zeros}, {', '.join(lost)} FROM {relation}"
        return tuple(self._connection.execute(asked).fetchone())

    def _fetch(self, statement: Statement) -> pa.Table:
        cursor = self._connection.cursor()
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
    def _answering(self) -> Iterator[None]:
        """It runs in this process: it answers unless it was shut."""
        self._connection.cursor().close()
        yield

    def unchanged(self) -> Hashable | None:
        """What the system says of the files that are read; what was copied does not change."""
        try:
            found = [os.stat(file) for file in self._files]
        except OSError:
            return None
        return tuple((one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) for one in found)

    def interrupt(self, thread: int) -> None:
        cursor = self._running.get(thread)
        if cursor is not None:
            cursor.interrupt()

    def _require_distinct(self, schema: Schema) -> None:
        names = {column.name.casefold() for column in schema.columns}
        if len(names) != len(schema.columns):
            raise InvalidInput("DuckDB cannot tell columns apart whose names differ in case only")

    def _public(self, join: PublicJoin) -> PublicTable:
        """The table is opened by itself and copied: the connection may read no other file."""
        path, _, table = join.table.rpartition("#")
        whole = not path or os.path.exists(join.table)
        given = (local_path(join.table), None) if whole else (local_path(path), table)
        found = open_files([given], memory=self._memory)
        try:
            if found.location is None or found.selection is not None:
                raise InvalidInput(f"a public table must be a file or a folder, got {path:.200}")
            rows = found.run(found.statement(found.declared(join.read_as), Texts()))
            there = {column.name for column in found.columns}
        finally:
            found.shut()
        kept = [column.name for column in join.read_as.columns if column.name in there]
        relation = f"{PUBLIC}{next(self._copies)}"
        cursor = self._connection.cursor()
        try:
            places = [f"c{i}" for i in range(len(kept))]
            cursor.register("given", rows.select(kept).rename_columns(places))
            cursor.execute(f"CREATE TABLE {relation} AS SELECT * FROM given")
            cursor.unregister("given")
            described = cursor.execute(f"DESCRIBE {relation}").fetchall()
        finally:
            cursor.close()
        columns = tuple(
            physical_column(column, row[0], row[1], _PLAIN)
            for column, row in zip(kept, described, strict=True)
        )
        place = found.location.removeprefix("file:")
        return PublicTable(place, found.location, (SourcePart(relation, columns),))

    @staticmethod
    def _literal(text: str) -> str:
        return text_literal(text)

    def shut(self) -> None:
        self._connection.close()


def open_files(
    given: Sequence[tuple[str, str | None]], *, memory: str | None, threads: int | None = None
) -> DuckDBSource:
    """A source from paths and the tables in them: each a file, a folder of Parquet files or a
    pattern such as events/*.parquet."""
    connection = _connect(memory, threads)
    try:
        files = _Files(connection)
        tables = [files.table(path, table) for path, table in given]
        _lock(connection, files.read)
        return DuckDBSource(connection, tables, files.read, memory=memory)
    except BaseException:
        connection.close()
        raise


def open_frame(frame: Any, *, memory: str | None) -> DuckDBSource:
    """A source from a pandas, Polars or Arrow table in memory."""
    connection = _connect(memory)
    try:
        part = _copy(connection, frame_rows(frame), TABLE)
        _lock(connection, [])
        return DuckDBSource(connection, [SourceTable("table", None, (part,))], [], memory=memory)
    except InvalidInput:
        connection.close()
        raise
    except Exception:
        connection.close()
        log.exception("a table in memory could not be opened")
    raise InvalidInput("the table could not be read; the owner's log says why")


class _Files:
    """Tables of files on one connection; `read` are the files that it must go on reading."""

    def __init__(self, connection: _Database) -> None:
        self._connection = connection
        self._tables = 0
        self._attached: dict[str, str] = {}
        self.read: list[str] = []

    def table(self, path: str, table: str | None) -> SourceTable:
        """The table of a path, or InvalidInput."""
        files = files_of(path)
        ending = next((end for end in _ENDINGS if files[0].lower().endswith(end)), None)
        if ending is None:
            known = ", ".join(_ENDINGS)
            raise InvalidInput(f"a file must end in one of {known}, got {title_of(files[0])!r:.80}")
        if ending in DUCKDB + SQLITE and table is None:
            raise InvalidInput(
                f"{title_of(path)} is a database: say which of its tables to read with table= "
                "(--table on the command line)"
            )
        try:
            return self._opened(path, files, ending, table)
        except InvalidInput:
            raise
        except Exception:
            log.exception("the source %s could not be opened", title_of(path, table))
        raise InvalidInput(
            f"{title_of(path, table)} could not be read as {ending[1:]}: the file is damaged, or "
            "is something else, or may not be read; the owner's log says which (--log FILE)"
        )

    def _opened(self, path: str, files: list[str], ending: str, table: str | None) -> SourceTable:
        location, name, selection = location_of(path), title_of(path, table), selection_of(path)
        relation = TABLE if not self._tables else f"{TABLE}_{self._tables}_"
        self._tables += 1
        if ending in CSV:
            part = _copy(self._connection, csv_rows(files), relation)
            return SourceTable(name, location, (part,), selection)
        if ending in SQLITE:
            spelled = sqlite_table(files[0], str(table))
            part = _copy(self._connection, sqlite_rows(files[0], spelled), relation)
            return SourceTable(name, f"{location}#{spelled}", (part,))
        self.read += files
        if ending in PARQUET:
            parts = parquet_parts(self._connection, files, relation)
            return SourceTable(name, location, tuple(parts), selection)
        schema, spelled, part = self._in_file(files[0], str(table))
        location += f"#{spelled}" if schema == "main" else f"#{schema}.{spelled}"
        return SourceTable(name, location, (part,), selection)

    def _in_file(self, file: str, table: str) -> tuple[str, str, SourcePart]:
        """Schema, name and rows of a table of a DuckDB file, which is attached once."""
        if file not in self._attached:
            alias = f"file{len(self._attached)}"
            self._connection.execute(f"ATTACH {text_literal(file)} AS {alias} (READ_ONLY)")
            self._attached[file] = alias
        alias = self._attached[file]
        schema, spelled = _table_of(self._connection, alias, table)
        relation = f"{alias}.{DIALECT.identifier(schema)}.{DIALECT.identifier(spelled)}"
        described = self._connection.execute(f"DESCRIBE {relation}").fetchall()
        columns = (
            physical_column(row[0], DIALECT.identifier(row[0]), row[1], _OF_TABLE)
            for row in described
        )
        return schema, spelled, SourcePart(relation, tuple(columns))


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


def _copy(connection: _Database, rows: Copied, relation: str) -> SourcePart:
    """A table of our own, with columns c0, c1, …; text that is not UTF-8 is missing in it."""
    import pyarrow as pa

    connection.register("given", pa.RecordBatchReader.from_batches(rows.schema, rows.parts))
    places = [f"c{i}" for i in range(len(rows.names))]
    reads = [
        place if way == TYPED else f"TRY(decode({place})) AS {place}"
        for place, way in zip(places, rows.ways, strict=True)
    ]
    connection.execute(f"CREATE TABLE {relation} AS SELECT {', '.join(reads)} FROM given")
    connection.unregister("given")
    described = connection.execute(f"DESCRIBE {relation}").fetchall()
    columns = tuple(
        Physical(column, "object", OBJECT, _short(row[0]))
        if way == OBJECTS
        else physical_column(column, row[0], row[1], _PLAIN)
        for column, way, row in zip(rows.names, rows.ways, described, strict=True)
    )
    ways = zip(rows.names, rows.ways, strict=True)
    untyped = frozenset(column for column, way in ways if way in (UNTYPED, OBJECTS))
    return SourcePart(relation, columns, untyped)


def _short(objects: str) -> str:
    """What is too long behind its mark is missing."""
    return f"CASE WHEN strlen({objects}) <= {LONGEST_TEXT + 1} THEN {objects} END"


def _table_of(connection: _Database, alias: str, table: str) -> tuple[str, str]:
    """Schema and name of a table or view as the file spells them; case is not told apart."""
    found = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = $2 AND (lower(table_name) = lower($1) "
        "OR lower(table_schema || '.' || table_name) = lower($1)) "
        "ORDER BY table_schema = 'main' DESC, table_schema, table_name",
        [table, alias],
    ).fetchall()
    if not found:
        raise InvalidInput(f"there is no table {table!r:.80}")
    return str(found[0][0]), str(found[0][1])


def _enough(memory: str) -> bool:
    """A share of the machine's memory, or an amount that is no trap for single rows."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|[KMGT]i?B)\s*", memory, flags=re.IGNORECASE)
    if found is None:
        return False
    unit = found[2].upper().replace("I", "")
    if unit == "%":
        return float(found[1]) >= 10
    bytes_in: float = 1000.0 ** ("KMGT".index(unit[0]) + 1)
    return float(found[1]) * bytes_in >= LEAST_MEMORY


def _connect(memory: str | None, threads: int | None = None) -> _Database:
    if memory is not None and not _enough(memory):
        raise InvalidInput(f'memory must be an amount of at least "256MB", got {memory!r:.40}')
    try:
        import duckdb
    except ImportError:
        raise Unsupported(f"DuckDB is not installed; {installing('engine')}") from None
    spill = tempfile.mkdtemp(prefix="farthing-spill-")
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": spill,
        "autoinstall_known_extensions": "false",
        "default_collation": "",
        "memory_limit": memory or MEMORY,
    }
    if threads is not None:
        config["threads"] = threads
    try:
        connection = duckdb.connect(":memory:", config=config)
    except duckdb.Error:
        shutil.rmtree(spill, ignore_errors=True)
    else:
        connection.execute("SET TimeZone = 'UTC'")
        return _Database(connection, spill)
    raise InvalidInput(f'memory must be an amount such as "8GB", got {memory!r:.40}')


def _lock(connection: _Database, files: list[str]) -> None:
    connection.execute(f"SET allowed_paths = {text_literals(files)}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


_ENDINGS = (*PARQUET, *CSV, *DUCKDB, *SQLITE)
