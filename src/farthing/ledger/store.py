"""The database behind a ledger: transactions that are durable, isolated and tried again.

SQLite runs in WAL mode with synchronous=FULL; a writing transaction starts with BEGIN
IMMEDIATE. PostgreSQL runs at READ COMMITTED, where a guarded UPDATE waits for the row and
looks at it again; reads of several tables take one snapshot. What is acknowledged was flushed.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from sqlalchemy import URL, ClauseElement, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import String

from farthing.errors import InvalidInput
from farthing.ledger.chain import linked
from farthing.ledger.errors import Damaged, Unavailable

T = TypeVar("T")

#: How long a write waits for others, for a restart, for a lock, before it gives up.
PATIENCE_SECONDS = 120.0
#: How long one wait for SQLite's lock may take before it is counted as a try.
BUSY_SECONDS = 20.0

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
#: PostgreSQL: serialization failure, deadlock, and the ways in which a server goes away.
_AGAIN = {"40001", "40P01", "57P01", "57P02", "57P03"}


class Again(Exception):
    """Raised by a piece of work to be run once more from the start."""


class link(FunctionElement[str]):  # noqa: N801 # a function in SQL
    """`chain.linked` inside the database."""

    type = String()
    inherit_cache = True


@compiles(link, "sqlite")
def _(element: Any, compiler: Any, **options: Any) -> str:
    return f"farthing_link({compiler.process(element.clauses, **options)})"


@compiles(link, "postgresql")
def _(element: Any, compiler: Any, **options: Any) -> str:
    previous, content = (compiler.process(clause, **options) for clause in element.clauses)
    return f"encode(sha256(convert_to({previous} || {content}, 'UTF8')), 'hex')"


@dataclass(frozen=True, slots=True)
class Prepared:
    """The text of a statement, and the order of its parameters if they have one."""

    statement: ClauseElement  # kept alive, because its id is the key
    text: str
    order: list[str] | None


@dataclass(frozen=True, slots=True)
class Found:
    """What a statement gave, with the names of SQLAlchemy's results."""

    names: list[str]
    rows: list[tuple[Any, ...]]
    rowcount: int

    def all(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(**dict(zip(self.names, row, strict=True))) for row in self.rows]

    def one_or_none(self) -> tuple[Any, ...] | None:
        return self.rows[0] if self.rows else None


@dataclass(frozen=True, slots=True)
class Quick:
    """A transaction on the driver's own connection, for statements made in advance."""

    connection: Any
    prepared: Callable[[ClauseElement], Prepared]
    process: int
    pooled: Any

    def execute(self, statement: ClauseElement, parameters: Mapping[str, Any], /) -> Found:
        """The same statements as everywhere, without the layers in between."""
        ready = self.prepared(statement)
        given = parameters if ready.order is None else [parameters[name] for name in ready.order]
        cursor = self.connection.execute(ready.text, given)
        if cursor.description is None:
            return Found([], [], cursor.rowcount)
        return Found([d[0] for d in cursor.description], cursor.fetchall(), cursor.rowcount)

    def undo(self) -> None:
        """Forget what was written; from here on things look as they do to everybody else."""
        self.connection.rollback()


class Store:
    """An engine, and the ways to use it: `write` and `ask`, which insist, and `read`."""

    def __init__(self, target: str | os.PathLike[str], *, create: bool) -> None:
        self.url = _url(target)
        self.name = self.url.render_as_string(hide_password=True)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self._prepare_file(create)
        self.engine = _engine(self.url)
        self._statements: dict[int, Prepared] = {}
        self._idle: list[Quick] = []
        self._of_parent: list[Quick] = []
        self.driver_error: type[Exception] = self.engine.dialect.loaded_dbapi.Error
        self._errors = (DBAPIError, self.driver_error)
        if self.is_sqlite:
            self._use_wal()

    def write(
        self,
        work: Callable[[Connection], T],
        *,
        done: Callable[[Connection], T | None] | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> T:
        """Run `work` in one transaction, again if a lock or a restart got in the way.

        After a try whose commit was not acknowledged, `done` says whether it took effect
        nevertheless; its answer is then the answer.
        """

        def attempt() -> T:
            with self.engine.connect() as connection, connection.begin():
                return work(connection)

        return self._insist(attempt, done, patience)

    def write_quickly(
        self, work: Callable[[Quick], T], *, done: Callable[[Connection], T | None]
    ) -> T:
        """The same on the driver's own connection, for the one thing that must be fast.

        On SQLite the work is one transaction. On PostgreSQL every statement is one, so the work
        must write with a single statement.
        """
        return self._insist(lambda: self._quickly(work), done, PATIENCE_SECONDS)

    def ask(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one consistent snapshot, again if a restart got in the way."""

        def attempt() -> T:
            with self._snapshot() as connection:
                return work(connection)

        return self._insist(attempt, None, PATIENCE_SECONDS)

    def _insist(
        self,
        attempt: Callable[[], T],
        done: Callable[[Connection], T | None] | None,
        patience: float,
    ) -> T:
        deadline = time.monotonic() + patience
        pause = 0.001
        unsure = False
        while True:
            try:
                if unsure and done is not None:
                    with self.engine.connect() as connection, connection.begin():
                        found = done(connection)
                    if found is not None:
                        return found
                return attempt()
            except Again:
                if time.monotonic() > deadline:
                    raise Unavailable(f"the ledger at {self.name} is too busy") from None
            except self._errors as error:
                unsure = True
                if not self._worth_another_try(error) or time.monotonic() > deadline:
                    raise self._translated(error) from None
            time.sleep(pause * (0.5 + random.random()))
            pause = min(2 * pause, 0.5)

    def _quickly(self, work: Callable[[Quick], T]) -> T:
        """Work on a connection that is kept between such works."""
        run = self._borrow()
        try:
            if self.is_sqlite:
                run.connection.execute("BEGIN IMMEDIATE")
            result = work(run)
            run.connection.commit()
        except BaseException:
            try:
                run.connection.rollback()
                self._idle.append(run)
            except self._errors:
                run.pooled.invalidate()
            raise
        self._idle.append(run)
        return result

    def _borrow(self) -> Quick:
        """An idle connection of this process, or a new one."""
        while self._idle:
            run = self._idle.pop()
            if run.process != os.getpid():
                self._of_parent.append(run)  # neither used nor closed on this side of a fork
            elif getattr(run.connection, "closed", False):
                run.pooled.invalidate()
            else:
                return run
        pooled = self.engine.raw_connection()
        raw: Any = pooled.driver_connection
        if not self.is_sqlite:
            raw.autocommit = True
        return Quick(raw, self._prepared, os.getpid(), pooled)

    def _prepared(self, statement: ClauseElement) -> Prepared:
        """A statement as the driver wants it, made once."""
        found = self._statements.get(id(statement))
        if found is None:
            compiled: Any = statement.compile(dialect=self.engine.dialect)
            order = compiled.positiontup if self.is_sqlite else None
            found = Prepared(statement, compiled.string, order)
            self._statements[id(statement)] = found
        return found

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent snapshot, for what is too long to be asked twice."""
        try:
            with self._snapshot() as connection:
                yield connection
        except self._errors as error:
            raise self._translated(error) from None

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._connected() as connection:
            connection.execution_options(farthing_reads=True, **options)
            with connection.begin():
                yield connection

    def _connected(self) -> Connection:
        """A connection that works: one kept from before a restart of the server does not."""
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
        """SQLite's own check of the file's structure; PostgreSQL looks after its own."""
        if not self.is_sqlite:
            return
        with self.read() as connection:
            found = connection.execute(text("PRAGMA quick_check(1)")).scalar()
        if found != "ok":
            raise Damaged(f"{self.name} is damaged: {str(found).splitlines()[-1]}")

    def shut(self) -> None:
        """Give the connections back."""
        while self._idle:
            run = self._idle.pop()
            if run.process == os.getpid():
                run.pooled.invalidate()  # it was set up for quick work only
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

        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return switch()
            except self._errors as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise self._translated(error) from None
            time.sleep(0.01)

    def _worth_another_try(self, error: Exception) -> bool:
        if isinstance(_cause(error), sqlite3.Error):
            return _is_busy(error)
        return self._is_gone(error) or _state(error) in _AGAIN or _is_unreachable(error)

    def _is_gone(self, error: Exception) -> bool:
        """Whether the connection is lost with the error."""
        if isinstance(error, DBAPIError):
            return error.connection_invalidated
        return bool(self.engine.dialect.is_disconnect(cast(Any, error), None, None))

    def _translated(self, error: Exception) -> Damaged | Unavailable:
        """What happened in one line, without the statement and its parameters."""
        cause = _cause(error)
        lines = str(cause).strip().splitlines()
        what = lines[0] if lines else type(cause).__name__
        if isinstance(cause, sqlite3.Error) and _primary(cause) in _DAMAGED:
            return Damaged(f"{self.name} is damaged or not a ledger: {what}")
        return Unavailable(f"the ledger at {self.name} could not be used: {what}")


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
    arguments: dict[str, Any] = {"timeout": BUSY_SECONDS} if sqlite else {}
    try:
        engine = create_engine(url, connect_args=arguments, max_overflow=-1)
    except ImportError as error:
        raise Unavailable(f"{error}; install farthing[ledger]") from None
    event.listen(engine, "connect", _connected_sqlite if sqlite else _connected_postgresql)
    event.listen(engine, "checkout", _same_process)
    if sqlite:
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _connected_sqlite(raw: sqlite3.Connection, record: Any) -> None:
    record.info["process"] = os.getpid()
    raw.isolation_level = None  # transactions are begun by _begin_sqlite and nobody else
    raw.create_function("farthing_link", 2, linked, deterministic=True)
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("PRAGMA foreign_keys = ON")


def _connected_postgresql(raw: Any, record: Any) -> None:
    """A server that acknowledges before it has flushed is told not to, for these connections."""
    record.info["process"] = os.getpid()
    with raw.cursor() as cursor:
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
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _cause(error: Exception) -> BaseException | None:
    """What the driver said."""
    return error.orig if isinstance(error, DBAPIError) else error


def _state(error: Exception) -> str | None:
    return getattr(_cause(error), "sqlstate", None)


def _is_unreachable(error: Exception) -> bool:
    """A connection that could not be made at all: the server is being restarted."""
    return type(_cause(error)).__name__ == "OperationalError" and _state(error) is None


def _is_busy(error: Exception) -> bool:
    cause = _cause(error)
    return isinstance(cause, sqlite3.Error) and _primary(cause) in _BUSY


def _primary(error: sqlite3.Error) -> int:
    """The primary result code: the low byte of the extended one."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
