"""Fast transactions on the driver's own connections, group commit on SQLite, and trying again.

The connections are taken out of SQLAlchemy's pool for good, because they are set up differently,
and kept here between works.

SQLite has one writer at a time. While it flushes, the other threads of a process queue up. The
first that gets its turn takes everything that waits into the next transaction, so one flush of the
disk serves all of them. Nobody is answered before the commit.

SQLite's own wait for its lock sleeps longer and longer, up to a tenth of a second. While another
process writes one transaction after the other, such a waiter hardly ever finds the lock free. So
the lock is asked for every other millisecond here.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import ClauseElement, Engine
from sqlalchemy.exc import DBAPIError

T = TypeVar("T")

#: The first pause and the longest one, in seconds; each is drawn around it.
FIRST, LONGEST = 0.001, 0.5


class Patience:
    """How long something is tried again, and the pauses in between, which grow."""

    def __init__(self, seconds: float, longest: float = LONGEST) -> None:
        self._deadline = time.monotonic() + seconds
        self._pause = FIRST
        self._longest = longest

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def wait(self) -> None:
        """Sleep, longer each time."""
        time.sleep(self._pause * (0.5 + random.random()))
        self._pause = min(2 * self._pause, self._longest)


#: How long one wait for the lock may take before it is counted as a try; how often it is asked for.
BUSY_SECONDS, ASKED_EVERY = 20.0, 0.002
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


def begin_writing(execute: Callable[[str], object]) -> None:
    """Begin a transaction that writes, once nobody else does."""
    patience = Patience(BUSY_SECONDS, ASKED_EVERY)
    while True:
        try:
            execute("BEGIN IMMEDIATE")
            return
        except (DBAPIError, sqlite3.Error) as error:
            if patience.is_over or not is_busy(error):
                raise
        patience.wait()


def is_busy(error: Exception) -> bool:
    """Whether another connection was in the way."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, sqlite3.Error) and primary_code(cause) in _BUSY


def primary_code(error: sqlite3.Error) -> int:
    """The primary result code: the low byte of the extended one."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


#: How many idle connections are kept. More threads at once open more, and close them again.
KEPT = 5
#: The most works that one transaction takes.
MOST = 100


@dataclass(slots=True, eq=False)
class Ticket:
    """A piece of work that waits for its transaction, and its result."""

    work: Callable[[Any], Any]
    done: bool = False
    result: Any = None
    error: BaseException | None = None


class Queue:
    """The works that wait, and a lock for whose turn it is."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._turn = Lock()
        self._waiting: deque[Ticket] = deque()

    def run(self, work: Callable[[Any], Any], lead: Callable[[list[Ticket]], None]) -> Any:
        """Run `work` in a transaction of this thread or of another one.

        `lead` runs a list of tickets in one transaction and settles each of them.
        """
        if self._process != os.getpid():
            self._begin()  # on this side of a fork nobody waits
        ticket = Ticket(work)
        self._waiting.append(ticket)
        try:
            with self._turn:
                if not ticket.done:
                    lead(self._next())
        except BaseException:
            if ticket in self._waiting:  # interrupted before its turn
                self._waiting.remove(ticket)
            raise
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A turn for a transaction that is not shared, so that threads of a process do not compete
        for SQLite's lock: its waiters sleep longer each time that another one gets it."""
        if self._process != os.getpid():
            self._begin()
        with self._turn:
            yield

    def _next(self) -> list[Ticket]:
        """The next works; only the thread whose turn it is may take them."""
        return [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]


class FastTransaction:
    """A transaction, for SQL that was compiled in advance."""

    __slots__ = ("_prepared", "connection", "process", "shared")

    def __init__(self, connection: Any, prepared: Callable[[ClauseElement], str]) -> None:
        self.connection = connection
        self.process = os.getpid()
        self.shared = False  # whether others have written in this transaction
        self._prepared = prepared

    def execute(self, statement: ClauseElement, parameters: Mapping[str, Any], /) -> Any:
        """Run SQL without the layers in between."""
        return self.connection.execute(self._prepared(statement), parameters)

    def undo(self) -> None:
        """Undo what this work wrote."""
        if self.shared:
            self.connection.execute("ROLLBACK TO this_work")
        else:
            self.connection.rollback()


class FastPath:
    """Lends a connection to one piece of work at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_sqlite = engine.dialect.name == "sqlite"
        self.driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error
        self._statements: dict[int, tuple[ClauseElement, str]] = {}
        self._queue = Queue()
        self._idle: list[FastTransaction] = []
        self._of_parent: list[FastTransaction] = []

    def run(self, work: Callable[[FastTransaction], T], *, whole: bool = False) -> T:
        """One transaction, or a part of one, on SQLite. On PostgreSQL every statement is one,
        unless `whole` makes them one together."""
        if self._is_sqlite:
            result: T = self._queue.run(work, self._together)
            return result
        with self._borrowed() as run, run.connection.transaction() if whole else nullcontext():
            return work(run)

    def alone(self) -> AbstractContextManager[None]:
        """A turn for a transaction on another connection, if this is SQLite."""
        return self._queue.alone() if self._is_sqlite else nullcontext()

    def rows(self, statement: ClauseElement, parameters: Mapping[str, Any]) -> list[Any]:
        """The rows of one query, without a transaction around it."""
        with self._borrowed() as run:
            rows: list[Any] = run.execute(statement, parameters).fetchall()
            return rows

    def _together(self, tickets: list[Ticket]) -> None:
        """One transaction on SQLite; if one work fails, the others are not affected."""
        run = None
        try:
            run = self._borrow()
            run.shared = len(tickets) > 1
            begin_writing(run.connection.execute)
            for ticket in tickets:
                self._one_of_them(run, ticket)
            if run.shared or tickets[0].error is None:
                run.connection.commit()
        except self.driver_error as error:
            for ticket in tickets:
                ticket.error = DBAPIError(None, None, error)
        except BaseException:
            for ticket in tickets:  # whether they are written nobody knows: they look and try again
                ticket.error = DBAPIError(None, None, _interrupted())
            raise
        finally:
            for ticket in tickets:
                ticket.done = True
            if run is not None:
                self._give_back(run)

    def _one_of_them(self, run: FastTransaction, ticket: Ticket) -> None:
        if run.shared:
            run.connection.execute("SAVEPOINT this_work")
        try:
            ticket.result = ticket.work(run)
        except self.driver_error:
            raise  # SQLite may have given up the whole transaction
        except Exception as error:
            ticket.error = error
            if run.shared:
                run.undo()
        if run.shared:
            run.connection.execute("RELEASE this_work")

    def shut(self) -> None:
        """Close what is idle."""
        while self._idle:
            run = self._idle.pop()
            if run.process == os.getpid():
                run.connection.close()

    @contextmanager
    def _borrowed(self) -> Iterator[FastTransaction]:
        """A connection for a work; errors of the driver as SQLAlchemy raises them."""
        run = self._borrow()
        try:
            yield run
        except self.driver_error as error:
            lost = not self._is_sqlite and bool(run.connection.closed)
            raise DBAPIError(None, None, error, connection_invalidated=lost) from None
        finally:
            self._give_back(run)

    def _borrow(self) -> FastTransaction:
        """An idle connection of this process, or a new one."""
        while True:
            try:
                run = self._idle.pop()
            except IndexError:
                break
            if run.process == os.getpid():
                return run
            self._of_parent.append(run)  # neither used nor closed on this side of a fork
        try:
            pooled = self._engine.raw_connection()
        except self.driver_error as error:  # as SQLAlchemy's own connections say it
            raise DBAPIError(None, None, error) from None
        raw: Any = pooled.driver_connection
        pooled.detach()
        if not self._is_sqlite:
            raw.autocommit = True
        return FastTransaction(raw, self._prepare)

    def _give_back(self, run: FastTransaction) -> None:
        """Undo an unfinished transaction; keep the connection only if that worked."""
        whole = False
        try:
            run.connection.rollback()
            whole = True
        except self.driver_error:
            pass  # it was lost with the work, whose error is on its way
        finally:
            if whole and len(self._idle) < KEPT:
                self._idle.append(run)
            else:
                run.connection.close()

    def _prepare(self, statement: ClauseElement) -> str:
        """SQL as the driver wants it, compiled once.

        The statement is kept alive, because its id is the key.
        """
        found = self._statements.get(id(statement))
        if found is None:
            found = statement, str(statement.compile(dialect=self._engine.dialect))
            self._statements[id(statement)] = found
        return found[1]


def _interrupted() -> sqlite3.Error:
    """A thread that wrote for others was interrupted: for them that is like a busy database."""
    error = sqlite3.OperationalError("the thread that wrote for this one was interrupted")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error
