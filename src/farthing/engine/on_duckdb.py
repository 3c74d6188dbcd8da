"""DuckDB, embedded: Parquet, CSV, Arrow, pandas and Polars tables, DuckDB and SQLite files.

Once the source is registered, the connection can read that source and nothing else: external
access is off, except for the files of the source, and the configuration is locked.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from farthing.engine.sources import Source, log
from farthing.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = "source"
_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_DUCKDB = (".duckdb", ".ddb")
_SQLITE = (".sqlite", ".sqlite3")
#: Share of the machine's memory that DuckDB may use before it spills to disk.
MEMORY = "60%"


class DuckDBSource(Source):
    """A table in an embedded DuckDB."""

    dialect = "duckdb"

    def __init__(
        self, connection: Any, spill: str, *, name: str, version: str | None, files: Sequence[str]
    ) -> None:
        import ibis

        self._connection = connection
        self._clean = weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
        self._files = {file: _stamp(file) for file in files}
        described = connection.execute(f"DESCRIBE {TABLE}").fetchall()
        columns = {row[0]: _ibis_type(row[1]) for row in described}
        super().__init__(ibis.table(columns, name=TABLE), name=name, version=version)

    def fetch(self, sql: str) -> pa.Table:
        cursor = self._connection.cursor()
        try:
            return cursor.sql(sql).to_arrow_table()
        finally:
            cursor.close()

    def require_unchanged(self) -> None:
        """Files that are read again for each query must be those that were opened."""
        if any(_stamp(file) != stamp for file, stamp in self._files.items()):
            raise InvalidInput(f"{self.name} has changed since it was opened; open it again")

    def shut(self) -> None:
        self._connection.close()
        self._clean()


def open_file(
    path: str, *, table: str | None, name: str | None, version: str | None, memory: str | None
) -> DuckDBSource:
    """A source from a file, a folder of Parquet files or a pattern such as events/*.parquet."""
    files = files_of(path)
    title = Path(files[0] if len(files) == 1 else path).name.split(".")[0]
    title = title if table is None else f"{title}.{table}"
    stamp = version or version_of_files(files, table)
    connection, spill = _connect(memory)
    try:
        _read(connection, files, table)
        _lock(connection, files)
        again = files if files[0].lower().endswith((*_PARQUET, *_DUCKDB)) else ()
        return DuckDBSource(connection, spill, name=name or title, version=stamp, files=again)
    except Exception as error:
        _undo(connection, spill)
        if isinstance(error, InvalidInput):
            raise
        log.exception("the source %s could not be opened", title)
    raise InvalidInput(
        f"{Path(path).name} could not be read as {_kind(files[0])}; the owner's log says why"
    )


def open_frame(
    frame: Any, *, name: str | None, version: str | None, memory: str | None
) -> DuckDBSource:
    """A source from a pandas, Polars or Arrow table in memory."""
    rows = _arrow(frame)
    stamp = version or version_of_rows(rows)
    connection, spill = _connect(memory)
    try:
        connection.register("given", rows)
        connection.execute(f"CREATE TABLE {TABLE} AS SELECT * FROM given")
        connection.unregister("given")
        _lock(connection, ())
        return DuckDBSource(connection, spill, name=name or "table", version=stamp, files=())
    except Exception:
        _undo(connection, spill)
        log.exception("a table in memory could not be opened")
    raise InvalidInput("the table could not be read; the owner's log says why")


def _undo(connection: Any, spill: str) -> None:
    connection.close()
    shutil.rmtree(spill, ignore_errors=True)


def files_of(path: str) -> list[str]:
    """The files that a path, a folder or a pattern stands for, in order."""
    if os.path.isdir(path):
        found = sorted(
            glob.glob(os.path.join(glob.escape(path), "**", "*.parquet"), recursive=True)
        )
    elif os.path.exists(path):
        found = [path]
    else:
        found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise InvalidInput(f"there is no file {path!r:.200}")
    odd = next((file for file in found if set(file) & set("*?[")), None)
    if odd is not None:
        raise InvalidInput(f"{odd} has one of *, ? and [ in its name, which are for patterns")
    return [os.path.abspath(file) for file in found]


def version_of_files(files: list[str], table: str | None = None) -> str:
    """What changes when a file is written again: names, sizes and times of all of them."""
    facts = [table, *((file, _stamp(file)) for file in files)]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _stamp(file: str) -> tuple[int, int]:
    try:
        facts = os.stat(file)
    except OSError:
        return 0, 0
    return facts.st_size, facts.st_mtime_ns


def version_of_rows(rows: pa.Table) -> str:
    """A digest of the rows themselves."""
    import pyarrow as pa

    digest = hashlib.sha256()

    class Sink:
        closed = False

        def write(self, data: Any) -> int:
            digest.update(data)
            return len(data)

        def flush(self) -> None: ...

        def close(self) -> None: ...

    sink = pa.PythonFile(Sink(), mode="w")
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return digest.hexdigest()


def _connect(memory: str | None) -> tuple[Any, str]:
    try:
        import duckdb
    except ImportError:
        raise Unsupported("DuckDB is not installed; install farthing[engine]") from None
    spill = tempfile.mkdtemp(prefix="farthing-spill-")
    config = {"temp_directory": spill, "autoinstall_known_extensions": "false"}
    try:
        return duckdb.connect(
            ":memory:", config={**config, "memory_limit": memory or MEMORY}
        ), spill
    except duckdb.Error:
        shutil.rmtree(spill, ignore_errors=True)
    raise InvalidInput(f'memory must be an amount such as "8GB", got {memory!r:.40}')


def _read(connection: Any, files: list[str], table: str | None) -> None:
    first = files[0].lower()
    if first.endswith(_PARQUET):
        _view(connection, f"read_parquet({_texts(files)}, union_by_name = true)")
    elif first.endswith(_TEXT):
        # read whole, so that a value that does not fit its column is found now, by the owner
        connection.execute(f"CREATE TABLE {TABLE} AS SELECT * FROM read_csv({_texts(files)})")
    elif first.endswith(_DUCKDB):
        wanted = _name(_required(table))
        connection.execute(f"ATTACH {_text(files[0])} AS file (READ_ONLY)")
        _view(connection, f"file.{wanted}")
    elif first.endswith(_SQLITE):
        connection.register("given", _from_sqlite(files[0], _required(table)))
        connection.execute(f"CREATE TABLE {TABLE} AS SELECT * FROM given")
        connection.unregister("given")
    else:
        known = ", ".join((*_PARQUET, *_TEXT, *_DUCKDB, *_SQLITE))
        raise InvalidInput(f"a file must end in one of {known}, got {Path(files[0]).name!r:.80}")


def _lock(connection: Any, files: list[str] | tuple[str, ...]) -> None:
    connection.execute(f"SET allowed_paths = {_texts(list(files))}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _view(connection: Any, what: str) -> None:
    connection.execute(f"CREATE VIEW {TABLE} AS SELECT * FROM {what}")


def _from_sqlite(path: str, table: str) -> pa.Table:
    """All rows, a part at a time, with the types that the columns were declared with."""
    import pyarrow as pa

    connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)
    try:
        declared = connection.execute(f"PRAGMA table_info({_name(table)})").fetchall()
        if not declared:
            raise InvalidInput(f"there is no table {table!r:.80}")
        schema = pa.schema([(column[1], _sqlite_type(column[2])) for column in declared])
        cursor = connection.execute(f"SELECT * FROM {_name(table)}")
        parts = []
        while rows := cursor.fetchmany(100_000):
            columns = zip(*rows, strict=True)
            arrays = [pa.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)]
            parts.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        return pa.Table.from_batches(parts, schema=schema)
    finally:
        connection.close()


def _sqlite_type(declared: str) -> pa.DataType:
    """By the rules of SQLite's type affinity."""
    import pyarrow as pa

    text = declared.upper()
    if "INT" in text:
        return pa.int64()
    if any(word in text for word in ("CHAR", "CLOB", "TEXT")):
        return pa.string()
    if any(word in text for word in ("REAL", "FLOA", "DOUB", "NUM", "DEC")):
        return pa.float64()
    return pa.binary() if text in ("", "BLOB") else pa.string()


def _arrow(frame: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    module = type(frame).__module__.split(".")[0]
    if module == "polars":
        if hasattr(frame, "collect"):
            frame = frame.collect()
        return frame.to_arrow()
    if module == "pandas":
        try:
            rows = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            log.exception("a pandas table could not be converted")
        else:
            return rows.replace_schema_metadata(None)
        raise InvalidInput("a column of the pandas table mixes types; the owner's log says which")
    raise InvalidInput(
        "data must be a path, an address, or a pandas, Polars or Arrow table, "
        f"got {type(frame).__name__}"
    )


def _ibis_type(text: str) -> Any:
    """An Ibis type for a DuckDB type; what Ibis does not know is carried under its own name."""
    import ibis
    from ibis.backends.sql.datatypes import DuckDBType

    if text.startswith("ENUM("):
        return ibis.dtype("string")
    return DuckDBType.from_string(text)


def _kind(file: str) -> str:
    return Path(file).suffix.lstrip(".") or "a table"


def _required(table: str | None) -> str:
    if table is None:
        raise InvalidInput("a database file needs table=, the name of the table to read")
    return table


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _texts(values: list[str]) -> str:
    return "[" + ", ".join(map(_text, values)) + "]"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
