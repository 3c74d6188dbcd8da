"""Connections and cursors of DB-API 2.0, and the errors that it names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import farthing
from farthing.dbapi.statements import Allowance, NotAllowed, Parameters, Result, Statements, is_sql
from farthing.engine.session import Session
from farthing.errors import FarthingError, InvalidInput, Unattainable, Unsupported

#: What an address may say after its question mark, besides what `fa.open` is given.
_SETTINGS = ("farthings", "delta_units", "intervals", "plan_only")
_OPENING = ("ledger", "analyst", "dataset", "table", "spark")
_NEARBY = ("localhost", "127.0.0.1", "::1")


class Warning(Exception):  # noqa: A001 # PEP 249 names it
    """Nothing here raises it; PEP 249 asks for it."""


class Error(Exception):
    """Whatever goes wrong."""


class InterfaceError(Error):
    """A connection or cursor that is closed was used."""


class DatabaseError(Error):
    """What the service, the ledger or the engine refused."""


class DataError(DatabaseError):
    """A value that cannot be read."""


class OperationalError(DatabaseError):
    """Not allowed on this connection, no budget left, or something could not be reached."""


class IntegrityError(DatabaseError):
    """Nothing here raises it; PEP 249 asks for it."""


class InternalError(DatabaseError):
    """Nothing here raises it; PEP 249 asks for it."""


class ProgrammingError(DatabaseError):
    """A statement that is not SQL, or misuse."""


class NotSupportedError(DatabaseError):
    """A clause that no question has; the message names it."""


@contextmanager
def _as_database_errors(statement: str = "") -> Iterator[None]:
    """Errors of farthing by the names of PEP 249."""
    try:
        yield
    except (InvalidInput, Unsupported, Unattainable) as error:
        kind = NotSupportedError if is_sql(statement) else ProgrammingError
        raise kind(str(error)) from error
    except FarthingError as error:
        raise OperationalError(str(error)) from error


class Cursor:
    """Runs statements, and gives the rows of the last."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._result: Result | None = None
        self._next = 0
        self._open = True

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """A name and a kind for each column; None before the first statement and after SET."""
        if self._result is None or not self._result.columns:
            return None
        return [(one.name, one.kind, *[None] * 5) for one in self._result.columns]

    @property
    def rowcount(self) -> int:
        """How many rows there are; −1 before the first statement."""
        return -1 if self._result is None else len(self._result.rows)

    @property
    def paid(self) -> str:
        """What the last statement cost, in words."""
        return "" if self._result is None else self._result.paid

    def execute(self, operation: str, parameters: Parameters = ()) -> Self:
        """Run one statement."""
        self._require_open()
        self._result = None
        with _as_database_errors(operation):
            self._result = self.connection.statements.run(operation, parameters or ())
        self._next = 0
        return self

    def executemany(self, *_: object) -> None:
        """PEP 249 has it for changes; nothing can be changed here."""
        raise NotSupportedError("one SELECT is one question: use execute")

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows."""
        self._require_open()
        if self._result is None:
            raise ProgrammingError("there are no rows: execute a statement first")
        first, self._next = self._next, self._next + (self.arraysize if size is None else size)
        return list(self._result.rows[first : self._next])

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self.fetchmany(max(self.rowcount, 0))

    def setinputsizes(self, sizes: object) -> None:
        """PEP 249 asks for it; nothing depends on it."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """PEP 249 asks for it; nothing depends on it."""

    def close(self) -> None:
        """Nothing more can be run or read."""
        self._open = False

    def _require_open(self) -> None:
        if not self._open or self.connection.closed:
            raise InterfaceError("it was closed")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Connection:
    """A session with an allowance, in the words of PEP 249.

    What is paid is paid: there are no transactions, and `rollback` takes nothing back.
    """

    def __init__(
        self, session: Session, allowance: Allowance | None = None, *, owns: bool = True
    ) -> None:
        self.statements = Statements(session, allowance)
        self.closed = False
        self._owns = owns

    @property
    def session(self) -> Session:
        """The session that statements run in."""
        return self.statements.session

    def cursor(self) -> Cursor:
        """A new cursor."""
        if self.closed:
            raise InterfaceError("it was closed")
        return Cursor(self)

    def commit(self) -> None:
        """Nothing is pending."""

    def rollback(self) -> None:
        """Nothing is pending, and nothing that was paid comes back."""

    def close(self) -> None:
        """Give back what is held open."""
        if not self.closed and self._owns:
            self.session.shut()
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(address: str | Session, **settings: Any) -> Connection:
    """A connection: to a service, to a table on this machine, or in a session that is open.

        farthing://TOKEN@data.example/salaries      a dataset of a service, over HTTPS
        farthing:///folder/salaries.parquet?analyst=ann&ledger=…    a table on this machine

    After the question mark, or as `settings`: `farthings` and `delta_units` that may be spent (0),
    `intervals` (off), `plan_only` (off). `tls=off` is for a service without HTTPS; on this machine
    HTTPS is not expected.
    """
    if isinstance(address, Session):
        return Connection(address, _allowance(settings), owns=False)
    with _as_database_errors():
        if not isinstance(address, str):
            raise InvalidInput(f"the address must be a text or a Session, got {address!r:.60}")
        parts = urlsplit(address)
        given = {**dict(parse_qsl(parts.query)), **settings}
        if parts.scheme != "farthing":
            raise InvalidInput(f"an address begins with farthing://, got {parts.scheme!r:.60}")
        own = {name: given.pop(name) for name in _SETTINGS if name in given}
        return Connection(_session(parts, given), _allowance(own))


def _allowance(settings: dict[str, Any]) -> Allowance:
    allowance = Allowance()
    for name, value in settings.items():
        allowance = allowance.with_setting(name, str(value))
    return allowance


def _session(parts: Any, given: dict[str, Any]) -> Session:
    if not parts.hostname:
        unknown = sorted(given.keys() - set(_OPENING))
        if unknown:
            raise InvalidInput(f"an address has no {unknown[0]!r:.60}: {', '.join(_OPENING)}")
        return farthing.open(unquote(parts.path), **given)
    nearby = "off" if parts.hostname in _NEARBY else "on"
    tls = str(given.pop("tls", nearby)).lower()
    if given or tls not in ("on", "off"):
        raise InvalidInput("an address of a service has tls=on or off, and what may be spent")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = f"{'http' if tls == 'off' else 'https'}://{host}"
    url = place if parts.port is None else f"{place}:{parts.port}"
    token = unquote(parts.password or parts.username or "")
    session = farthing.connect(url, token=token, dataset=unquote(parts.path.strip("/")) or None)
    if not isinstance(session, Session):
        raise NotAllowed("this is an owner's token: questions are asked with an analyst's")
    return session
