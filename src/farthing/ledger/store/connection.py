"""The connection to the database: transactions that are durable, isolated and tried again.

SQLite runs in WAL mode with synchronous=FULL; a writing transaction starts with BEGIN
IMMEDIATE. PostgreSQL is told to run at READ COMMITTED, where a guarded UPDATE waits for the row
and looks at it again; reads of several tables take one snapshot. Whatever is acknowledged has been
flushed.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, ClauseElement, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError

from farthing.errors import InvalidInput
from farthing.ledger.errors import Damaged, Unavailable
from farthing.ledger.store.fast_path import (
    ASKED_EVERY,
    FastPath,
    FastTransaction,
    Patience,
    begin_writing,
    is_busy,
    primary_code,
)
from farthing.optional import installing

T = TypeVar("T")

#: How long a write waits for others, for a restart, for a lock, before it gives up.
PATIENCE_SECONDS = 120.0

_NOT_WRITABLE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
#: PostgreSQL: serialization failure, deadlock, and the ways in which it ends a connection: shut
#: down, crashed, starting up, idle for too long.
_AGAIN = {"40001", "40P01", "57P01", "57P02", "57P03", "57P05", "25P03"}
#: The class of errors of a connection.
_CONNECTION = "08"
#: Functions of PostgreSQL that SQLite gets, so that both link the chain in the same words.
_OF_POSTGRESQL: tuple[tuple[str, int, Callable[..., Any]], ...] = (
    ("convert_to", 2, str.encode),
    ("sha256", 1, lambda content: hashlib.sha256(content).digest()),
    ("encode", 2, lambda content, _: content.hex()),
)


class Store:
    """A database: `write` and `ask` try again until they succeed, `read` does not."""

    def __init__(self, target: str | os.PathLike[str], *, create: bool) -> None:
        self.url = _url(target)
        self.name = self.url.render_as_string(hide_password=True)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self._prepare_file(create)
        self.engine = _engine(self.url)
        self._fast = FastPath(self.engine)
        self.driver_error = self._fast.driver_error
        if self.is_sqlite:
            self._use_wal()

    def write(
        self,
        work: Callable[[Connection], T | None],
        *,
        done: Callable[[Connection], T | None] | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> T | None:
        """Run `work` in one transaction, again if a lock or a restart got in the way.

        If `work` gives None, what it wrote is undone. After an attempt whose commit was not
        acknowledged, `done` looks whether it took effect nevertheless, and gives its result. If a
        server runs it only after that, from a connection that its client has given up, it is
        written twice; both are spent.
        """

        def attempt() -> T | None:
            with self._fast.alone(), self.engine.connect() as connection:
                transaction = connection.begin()
                result = work(connection)
                if result is None:
                    transaction.rollback()
                else:
                    transaction.commit()
                return result

        return self._insist(attempt, done, patience)

    def write_fast(
        self,
        work: Callable[[FastTransaction], T],
        *,
        done: Callable[[Connection], T | None],
        whole: bool = False,
    ) -> T:
        """The same on the driver's own connection, for charges and turns, which must be fast.

        On SQLite the work is a transaction, which it may share with works of other threads. On
        PostgreSQL every command is one, so without `whole` the work must write with a single one.
        """
        return self._insist(lambda: self._fast.run(work, whole=whole), done, PATIENCE_SECONDS)

    def ask(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one consistent snapshot, again if a restart got in the way."""

        def attempt() -> T:
            with self._snapshot() as connection:
                return work(connection)

        return self._insist(attempt, None, PATIENCE_SECONDS)

    def look_up(self, statement: ClauseElement, parameters: Mapping[str, Any]) -> list[Any]:
        """The rows of one query that runs with every request; again if a restart got in the way.

        The caller builds the query once and keeps it."""
        return self._insist(lambda: self._fast.rows(statement, parameters), None, PATIENCE_SECONDS)

    def _insist(
        self,
        attempt: Callable[[], T],
        done: Callable[[Connection], T | None] | None,
        seconds: float,
    ) -> T:
        """The result of the first attempt that works; after one that failed, `done` looks first.

        An error that goes away by itself is waited for, until patience is over.
        """
        patience, failed = Patience(seconds), False
        while True:
            try:
                if failed and done is not None:
                    with self.engine.connect() as connection, connection.begin():
                        result = done(connection)
                    if result is not None:
                        return result
                return attempt()
            except (DBAPIError, self.driver_error) as error:
                if patience.is_over or not self._passes(error):
                    raise self._translated(error) from None
            failed = True
            patience.wait()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent snapshot, for reads that take too long to be tried again."""
        try:
            with self._snapshot() as connection:
                yield connection
        except DBAPIError as error:
            raise self._translated(error) from None

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._connected() as connection:
            connection.execution_options(farthing_reads=True, **options)
            with connection.begin():
                yield connection

    def _connected(self) -> Connection:
        """A working connection; one from before a restart of the server does not work."""
        connection = self.engine.connect()
        if self.is_sqlite:
            return connection
        try:
            connection.exec_driver_sql("SELECT 1")
            connection.rollback()
        except DBAPIError as error:
            connection.close()
            if not error.connection_invalidated:
                raise
            return self.engine.connect()
        return connection

    def check_pages(self) -> None:
        """Run SQLite's own check of the file; PostgreSQL checks its own files."""
        if not self.is_sqlite:
            return
        with self.read() as connection:
            verdict = connection.execute(text("PRAGMA quick_check(1)")).scalar()
        if verdict != "ok":
            raise Damaged(f"{self.name} is damaged: {str(verdict).splitlines()[-1]}")

    def shut(self) -> None:
        """Give the connections back."""
        self._fast.shut()
        self.engine.dispose()

    def _prepare_file(self, create: bool) -> None:
        path = self.url.database
        if not path or path == ":memory:":
            raise InvalidInput("a ledger must be durable: give a file, not a database in memory")
        if not create and not Path(path).exists():
            raise Unavailable(f"there is no ledger at {path}")
        if not Path(path).absolute().parent.is_dir():
            raise Unavailable(f"the folder of {path} does not exist")

    def _use_wal(self) -> None:
        """WAL is a property of the file; only the first to open it has to switch."""

        def switch() -> None:
            with self.engine.connect() as connection:
                raw = connection.connection.cursor()
                raw.execute("PRAGMA journal_mode = WAL")
                mode = raw.fetchone()
                raw.close()
            if mode != ("wal",):
                raise Unavailable(f"{self.name} cannot use a write-ahead log, its mode is {mode}")

        self._insist(switch, None, PATIENCE_SECONDS)

    def _passes(self, error: Exception) -> bool:
        """Whether what went wrong goes away by itself."""
        if self.is_sqlite:
            return is_busy(error)
        state = sqlstate_of(error) or ""
        ended = state in _AGAIN or state.startswith(_CONNECTION)
        lost = isinstance(error, DBAPIError) and error.connection_invalidated
        return lost or ended or _is_unreachable(error)

    def _translated(self, error: Exception) -> Damaged | Unavailable:
        """What happened in one line, without the statement and its parameters."""
        cause = _cause(error)
        lines = str(cause).strip().splitlines()
        what = lines[0] if lines else type(cause).__name__
        if isinstance(cause, sqlite3.Error) and primary_code(cause) in _DAMAGED:
            return Damaged(f"{self.name} is damaged or not a ledger: {what}")
        if isinstance(cause, sqlite3.Error) and primary_code(cause) in _NOT_WRITABLE:
            what += "; the file and its folder must be writable (SQLite keeps a log beside it)"
        sentence = f"the ledger at {self.name} could not be used: {what}"
        return Unavailable(sentence, passes=self._passes(error))


def _url(target: str | os.PathLike[str]) -> URL:
    given = os.fspath(target)
    if "://" not in given:
        return URL.create("sqlite", database=given)
    try:
        url = make_url(given)
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError):
        raise InvalidInput(
            "a ledger must be a path, sqlite:///path or postgresql://…, got an address that is none"
        ) from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise InvalidInput(
            f"a ledger is kept in SQLite or PostgreSQL, got {url.get_backend_name()}"
        )
    return url


def _engine(url: URL) -> Engine:
    sqlite = url.get_backend_name() == "sqlite"
    # what a connection returns to after a snapshot; `_connected_postgresql` is for the fast path
    options: dict[str, Any] = (
        {"connect_args": {"timeout": ASKED_EVERY}, "paramstyle": "named"}
        if sqlite
        else {"isolation_level": "READ COMMITTED"}
    )
    try:
        engine = create_engine(url, max_overflow=-1, **options)
    except ImportError as error:
        raise Unavailable(f"{error}; {installing('ledger')}") from None
    event.listen(engine, "connect", _connected_sqlite if sqlite else _connected_postgresql)
    event.listen(engine, "checkout", _same_process)
    if sqlite:
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _connected_sqlite(raw: sqlite3.Connection, record: Any) -> None:
    record.info["process"] = os.getpid()
    raw.isolation_level = None  # transactions are begun by _begin_sqlite and nobody else
    for name, arguments, function in _OF_POSTGRESQL:
        raw.create_function(name, arguments, function, deterministic=True)
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("PRAGMA foreign_keys = ON")


def _connected_postgresql(raw: Any, record: Any) -> None:
    """A server that acknowledges before it has flushed, or isolates in another way, is told not
    to, for these connections."""
    record.info["process"] = os.getpid()
    with raw.cursor() as cursor:
        cursor.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("SHOW synchronous_commit")
        if cursor.fetchone() == ("off",):
            cursor.execute("SET synchronous_commit = on")
    raw.commit()


def _same_process(_: Any, record: Any, proxy: Any) -> None:
    """A connection must not be used on both sides of a fork."""
    if record.info["process"] != os.getpid():
        record.dbapi_connection = proxy.dbapi_connection = None
        raise DisconnectionError("the connection belongs to another process")


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get("farthing_reads", False)
    if reads:
        connection.exec_driver_sql("BEGIN")
    else:
        begin_writing(connection.exec_driver_sql)


def _cause(error: Exception) -> BaseException | None:
    """What the driver said."""
    return error.orig if isinstance(error, DBAPIError) else error


def sqlstate_of(error: Exception) -> str | None:
    """PostgreSQL's five letters; the driver that has them may not be installed."""
    return getattr(_cause(error), "sqlstate", None)


def _is_unreachable(error: Exception) -> bool:
    """A connection that could not be made at all: the server is being restarted."""
    return type(_cause(error)).__name__ == "OperationalError" and sqlstate_of(error) is None
