"""PostgreSQL: tables of one database, and connections that are replaced when they die.

It has no cast that cannot fail, so a CASE stands before each.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from farthing.engine.sources.base import Source, without_trace
from farthing.engine.sources.tables import (
    INSTANT,
    LONGEST_TEXT,
    OTHER,
    UNIVERSAL,
    WIDE,
    Physical,
    PublicJoin,
    SourcePart,
    SourceTable,
    shared_readers,
)
from farthing.engine.sql.statement import Dialect, Parameter, Statement
from farthing.errors import InvalidInput, Unsupported
from farthing.ledger.errors import Unavailable
from farthing.optional import Later, required
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TEXT, TIMESTAMP

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
else:
    pa = Later("pyarrow")
    psycopg = Later("psycopg")


DIALECT = Dialect(
    name="postgres",
    compiler=cache(lambda: required("ibis.backends.sql.compilers").PostgresCompiler()),
    quote='"',
    text="CAST(${n} AS text)",
    one_of_texts="({x}) = ANY(CAST(${n} AS text[]))",
    one_of_numbers="({x}) = ANY(CAST(${n} AS bigint[]))",
    as_bytes='({x}) COLLATE "C"',
    digest="CAST(CAST('x0' || left(md5({x}), 7) AS bit(32)) AS bigint)",
    common_table="AS NOT MATERIALIZED",
)

_WHOLE_NUMERIC = (
    "CASE WHEN {x} BETWEEN -9223372036854775808 AND 9223372036854775807 "
    "THEN CASE WHEN {x} = trunc({x}) THEN CAST({x} AS bigint) END END"
)
_WHOLE_FLOAT = (
    "CASE WHEN {x} >= CAST(-9223372036854775808 AS float8) "
    "AND {x} < CAST(9223372036854775808 AS float8) "
    "THEN CASE WHEN {x} = trunc(CAST({x} AS float8)) THEN CAST({x} AS bigint) END END"
)
#: NaN and Infinity are larger than every number; what is too small for a float is 0.
_FLOAT = (
    "CASE WHEN abs({x}) < 1e-300 THEN CAST(0 AS float8) "
    "WHEN abs({x}) <= 1.7976931348623157e308 THEN CAST({x} AS float8) END"
)
_DECIMAL = (
    "CASE WHEN abs({x}) < {edge} THEN CASE WHEN abs(round(CAST({x} AS numeric), {places})) < {edge}"
    " THEN CAST({x} AS numeric(18, {places})) END END"
)
#: Whole numbers are written without a fraction, as on the other engines.
_REAL_TEXT = (
    "CASE WHEN {x} = trunc(CAST({x} AS float8)) AND abs({x}) < 9007199254740992 "
    "THEN CAST(CAST({x} AS bigint) AS text) ELSE CAST(CAST({x} AS float8) AS text) END"
)
_PARSED = "CAST(btrim({x}) AS numeric)"
_YEAR = "CAST(substr(btrim({x}), 1, 4) AS integer)"
_MONTH = "CAST(substr(btrim({x}), 6, 2) AS integer)"
_OF_MONTH = "CAST(substr(btrim({x}), 9, 2) AS integer)"
_LENGTH = (
    f"CASE WHEN {_MONTH} IN (4, 6, 9, 11) THEN 30 WHEN {_MONTH} <> 2 THEN 31 "
    f"WHEN {_YEAR} % 4 = 0 AND ({_YEAR} % 100 <> 0 OR {_YEAR} % 400 = 0) THEN 29 ELSE 28 END"
)
_IS_DAY = f"{_YEAR} >= 1 AND {_MONTH} BETWEEN 1 AND 12 AND {_OF_MONTH} BETWEEN 1 AND {_LENGTH}"
#: Not so far away that no zone has a day for it.
_NEAR = (
    "{x} BETWEEN TIMESTAMPTZ '0002-01-01 00:00:00+00 BC' AND TIMESTAMPTZ '10001-01-01 00:00:00+00'"
)


READERS = shared_readers(
    {
        (INTEGER, WIDE): _WHOLE_NUMERIC,
        (INTEGER, REAL): _WHOLE_FLOAT,
        (INTEGER, TEXT): _WHOLE_NUMERIC.replace("{x}", _PARSED),
        (REAL, WIDE): _FLOAT,
        (REAL, REAL): "CASE WHEN {x} <> CAST('NaN' AS float8) THEN CAST({x} AS float8) END",
        (REAL, TEXT): _FLOAT.replace("{x}", _PARSED),
        (DECIMAL, INTEGER): _DECIMAL.replace("{x}", "CAST({x} AS numeric)"),
        (DECIMAL, WIDE): _DECIMAL,
        (DECIMAL, REAL): _DECIMAL,
        (DECIMAL, TEXT): _DECIMAL.replace("{x}", _PARSED),
        (TEXT, WIDE): "CAST(trim_scale({x}) AS text)",
        (TEXT, REAL): _REAL_TEXT,
        (DATE, TEXT): f"CASE WHEN {_IS_DAY} THEN make_date({_YEAR}, {_MONTH}, {_OF_MONTH}) END",
        (TIMESTAMP, TEXT): f"CASE WHEN {_IS_DAY} THEN CAST(replace(regexp_replace("
        f"btrim({{x}}), '{UNIVERSAL}', ''), 'T', ' ') AS timestamp) END",
    },
    matching="{x} ~ '^{pattern}$'",
    text="text",
    double="float8",
    clock="timestamp",
    near=_NEAR,
    local="timezone('{zone}', {x})",
    utc="timezone('UTC', {x})",
)


#: By the name that the catalogue gives a type; all others fit no kind. The text of money depends on
#: a locale.
_FAMILIES = {
    "boolean": BOOLEAN,
    **dict.fromkeys(("smallint", "integer", "bigint", "oid"), INTEGER),
    "numeric": WIDE,
    **dict.fromkeys(("real", "double precision"), REAL),
    **dict.fromkeys(("text", "character varying", "character", "name", "citext", "uuid"), TEXT),
    "date": DATE,
    "timestamp without time zone": TIMESTAMP,
    "timestamp with time zone": INSTANT,
}


def physical_column(name: str, declared: str, modifier: int, enum: bool) -> Physical:
    """A column by its declared type, without and with its modifier."""
    sql = DIALECT.identifier(name)
    if declared == "oid":  # it can be cast to few types
        return Physical(name, declared, INTEGER, f"CAST({sql} AS bigint)")
    family = TEXT if enum else _FAMILIES.get(declared, OTHER)
    if family == TEXT:
        text = f"CAST({sql} AS text)"
        short = f"CASE WHEN octet_length({text}) <= {LONGEST_TEXT} THEN {text} END"
        return Physical(name, declared, TEXT, f'({short} COLLATE "C")')
    if family == WIDE and modifier >= 4:
        # eleven bits with a sign: numeric(5, -3) has places too
        return Physical(name, declared, WIDE, sql, (((modifier - 4) & 2047) ^ 1024) - 1024)
    return Physical(name, declared, family, sql)


ADDRESSES = ("postgresql://", "postgresql+psycopg://", "postgres://")
#: Connections of one source at most, as many as a worker of the service has threads; and how many
#: seconds one is waited for, before anything is paid.
MOST, PATIENCE = 16, 30

#: What statements rely on. Quotes mean what they mean in the standard, text is UTF-8, and names
#: of functions are PostgreSQL's own.
SETTINGS: Mapping[str, str] = {
    "standard_conforming_strings": "on",
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "search_path": "pg_catalog",
}


class _Connections:
    """Connections to one database: as many as there are statements at once, up to `MOST`.

    Each of them can only read and has every setting. One that waited is asked whether it still
    answers before it is used again, and replaced if it does not.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._shut = False
        #: Connections that wait, on top of None for each that there is room for.
        self._places: queue.LifoQueue[Any] = queue.LifoQueue()
        for _ in range(MOST):
            self._places.put(None)
        #: Of the first connection: which data this is, and where it looks for plain names.
        self.server: str | None = None
        self.path: list[str] = []

    @contextmanager
    def one(self) -> Iterator[Any]:
        """A connection that answers, for this caller alone."""
        try:
            connection = self._places.get(timeout=PATIENCE)
        except queue.Empty:
            raise TimeoutError("every connection is in use") from None
        try:
            if self._shut:
                raise psycopg.OperationalError("the source is shut")
            if connection is None or not _answers(connection):
                connection = self._made()
            yield connection
        finally:
            if connection is not None and (self._shut or connection.closed):
                connection.close()
                connection = None
            self._places.put(connection)

    def shut(self) -> None:
        """Close those that wait; the others close when they come back."""
        self._shut = True
        waiting = []
        with suppress(queue.Empty):
            while True:
                waiting.append(self._places.get_nowait())
        for connection in waiting:
            if connection is not None:
                connection.close()
            self._places.put(None)

    def _made(self) -> Any:
        """A new connection, closed again if it turns out not to be what it should be."""
        connection: Any = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=PATIENCE,
            cursor_factory=psycopg.RawCursor,  # parameters stay the server's, text stays text
        )
        try:
            connection.read_only = True
            server = _server(connection)
            if self.server is None:
                [path] = connection.execute("SELECT current_schemas(false)::text[]").fetchone()
                self.server, self.path = server, list(path)
            if server != self.server:
                raise Unsupported("the address leads to another database now")
            _force(connection)
            return connection
        except BaseException:
            connection.close()
            raise


def _answers(connection: Any) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        connection.close()
    return not connection.closed


class PostgresSource(Source):
    """Tables in PostgreSQL; every statement runs in a read-only transaction of its own."""

    dialect = DIALECT
    readers = READERS

    def __init__(self, connections: _Connections, tables: Sequence[str]) -> None:
        self._connections = connections
        #: By thread: the connection that it holds; and what it runs on, with a lock, so that
        #: nobody else's statement is interrupted.
        self._held: dict[int, Any] = {}
        self._running: dict[int, tuple[Any, threading.Lock]] = {}
        with connections.one() as connection:
            names = [_resolved(connection, connections.path, table) for table in tables]
            super().__init__([_table(connection, *name) for name in names])

    def public_table(self, join: PublicJoin) -> SourceTable:
        with self._connections.one() as connection:
            schema, name = _resolved(connection, self._connections.path, join.table)
            return replace(_table(connection, schema, name), name=f"{schema}.{name}")

    @contextmanager
    def answering(self) -> Iterator[None]:
        """A connection is kept for the statements of this thread."""
        thread = threading.get_ident()
        with self._connections.one() as connection:
            self._held[thread] = connection
            try:
                yield
            finally:
                del self._held[thread]

    def _connection(self) -> AbstractContextManager[Any]:
        """The one that this thread holds, or one for a moment."""
        held = self._held.get(threading.get_ident())
        return self._connections.one() if held is None else nullcontext(held)

    @staticmethod
    def literal(text: str) -> str:
        return "(CAST('" + text.replace("'", "''") + '\' AS text) COLLATE "C")'

    def fetch(self, statement: Statement) -> pa.Table:
        sent = [_sendable(parameter) for parameter in statement.parameters]
        thread, ending = threading.get_ident(), threading.Lock()
        with self._connection() as used, used.transaction(), used.cursor() as cursor:
            self._running[thread] = used, ending
            try:
                cursor.execute(statement.sql, sent)
                rows = cursor.fetchall()
            finally:
                with ending:
                    del self._running[thread]
        columns = list(zip(*rows, strict=True)) or [()] * len(statement.gives)
        given = [pa.array(*pair) for pair in zip(columns, statement.gives.types, strict=True)]
        return pa.table(given, schema=statement.gives)

    def interrupt(self, thread: int) -> None:
        connection, ending = self._running.get(thread, (None, None))
        if connection is None or ending is None:
            return
        with ending:  # until it is through, the statement does not end
            if self._running.get(thread) == (connection, ending):
                connection.cancel_safe()

    def shut(self) -> None:
        self._connections.shut()


def open_postgres(url: str, *, tables: Sequence[str | None]) -> PostgresSource:
    """A source from tables at postgresql://…; each is a name, or schema.name.

    Unavailable if the server does not answer: nothing is wrong then that would not pass.
    """
    names = [table for table in tables if table is not None]
    if not names:
        raise InvalidInput(
            "this is a database: say which of its tables to read with table= (--table on the "
            "command line)"
        )
    required("psycopg")
    shown = " and ".join(names)

    def opened() -> PostgresSource:
        with ExitStack() as undo:
            connections = _Connections(url.replace("postgresql+psycopg://", "postgresql://"))
            undo.callback(connections.shut)
            source = PostgresSource(connections, names)
            undo.pop_all()
            return source

    failed = InvalidInput(f"the table {shown} could not be opened; the owner's log says why")
    passing = (InvalidInput, Unsupported, psycopg.OperationalError)
    try:
        return without_trace(opened, failed, f"opening the table {shown}", passing=passing)
    except psycopg.OperationalError as error:
        why = str(error).partition("\n")[0]
    raise Unavailable(f"the database of {shown} cannot be reached: {why}", passes=True)


def _force(connection: Any) -> None:
    """The database holds UTF-8 and every setting has its value, or Unsupported."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise Unsupported(f"the database must hold UTF-8 text, got {encoding}")
    for name, value in SETTINGS.items():
        [taken] = connection.execute("SELECT set_config($1, $2, false)", (name, value)).fetchone()
        if taken != value:
            raise Unsupported(f"PostgreSQL does not take {name} = {value}")


def _table(connection: Any, schema: str, name: str) -> SourceTable:
    relation = f"{DIALECT.identifier(schema)}.{DIALECT.identifier(name)}"
    columns = tuple(physical_column(*row) for row in _columns(connection, schema, name))
    own, root = f"{schema}.{name}", _root(connection, schema, name)
    part, selection = SourcePart(relation, columns), None if own == root else own
    return SourceTable(name, f"{_server(connection)}/{root}", (part,), selection)


def _resolved(connection: Any, path: list[str], table: str) -> tuple[str, str]:
    """Schema and name as the catalogue has them; a plain name is looked up in the search path."""
    row = connection.execute(
        "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND "
        "((c.relname = $1 AND n.nspname = ANY($2::text[])) "
        "OR n.nspname || '.' || c.relname = $1) "
        "ORDER BY c.relname = $1 DESC, array_position($2::text[], n.nspname::text)",
        (table, path),
    ).fetchone()
    if row is None:
        raise InvalidInput(f"there is no table {table!r:.80}")
    return str(row[0]), str(row[1])


def _columns(connection: Any, schema: str, table: str) -> list[tuple[str, str, int, bool]]:
    """Name, type without its modifier, the modifier, and whether it is an enumeration.

    A domain counts as the type it is made of.
    """
    rows: list[tuple[str, str, int, bool]] = connection.execute(
        "WITH RECURSIVE typed AS (SELECT a.attnum, a.attname, a.atttypid AS type, "
        "a.atttypmod AS modifier FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped "
        "UNION ALL SELECT d.attnum, d.attname, t.typbasetype, "
        "CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE d.modifier END "
        "FROM typed d JOIN pg_type t ON t.oid = d.type WHERE t.typtype = 'd') "
        "SELECT d.attname, CASE WHEN t.typname = 'citext' THEN 'citext' "
        "ELSE format_type(d.type, NULL) END, d.modifier, t.typtype = 'e' "
        "FROM typed d JOIN pg_type t ON t.oid = d.type WHERE t.typtype <> 'd' ORDER BY d.attnum",
        (schema, table),
    ).fetchall()
    return rows


def _root(connection: Any, schema: str, table: str) -> str:
    """The table that holds these rows too: a partition, and what inherits, is a part of it."""
    roots = connection.execute(
        "WITH RECURSIVE above AS (SELECT c.oid FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2 "
        "UNION SELECT i.inhparent FROM above a JOIN pg_inherits i ON i.inhrelid = a.oid) "
        "SELECT n.nspname || '.' || c.relname FROM above a JOIN pg_class c ON c.oid = a.oid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = a.oid)",
        (schema, table),
    ).fetchall()
    if len(roots) != 1:
        raise InvalidInput(f"{table!r:.80} is a part of several tables; open one of those")
    return str(roots[0][0])


def _server(connection: Any) -> str:
    """The server by its own identifier where it may be asked, and the database."""
    try:
        row = connection.execute("SELECT system_identifier FROM pg_control_system()").fetchone()
        server = str(row[0])
    except psycopg.Error:
        server = f"{connection.info.host}:{connection.info.port}"
    return f"postgresql:{server}/{connection.info.dbname}"


def _sendable(parameter: Parameter) -> str | list[str | int]:
    """PostgreSQL has no text with a zero byte in it, so none of its values equals one in a list."""
    if isinstance(parameter, str):
        return parameter  # psycopg refuses a zero byte
    return [value for value in parameter if not (isinstance(value, str) and "\0" in value)]
