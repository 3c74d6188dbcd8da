"""The state machine of one connection, in the order of the protocol's page.

    start-up     TLS if the client asks; who it is; its password, which is a token; let in
    simple       Query: each statement of it runs, then ReadyForQuery
    extended     Parse, Bind, Describe, Execute, Close; after an error everything up to Sync is
                 skipped; then ReadyForQuery

BEGIN, COMMIT and ROLLBACK are understood, because clients send them, and change nothing: what is
paid is paid. https://www.postgresql.org/docs/current/protocol-flow.html
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import ssl
from asyncio import FIRST_COMPLETED, IncompleteReadError, StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from farthing.client.wire import ServiceRefused
from farthing.dbapi.statements import (
    NotAllowed,
    Result,
    ResultColumn,
    Statements,
    is_sql,
    with_values,
)
from farthing.engine.errors import EngineFailure, EngineSilent
from farthing.errors import FarthingError, InvalidInput, Unsupported
from farthing.ledger.errors import DoesNotFit, NotInLedger, Unavailable
from farthing.server.postgres import messages as wire
from farthing.server.postgres.catalogue import (
    SERVER_VERSION,
    Catalogue,
    kind_of,
    parsed,
    split_statements,
)
from farthing.server.postgres.messages import Body, ClientMessage, ProtocolViolation

log = logging.getLogger("farthing.server")
#: SQLSTATEs by error, the first that fits.
_STATES: Sequence[tuple[type[Exception], str]] = (
    (NotAllowed, "53400"),  # configuration limit exceeded
    (DoesNotFit, "53000"),  # insufficient resources
    (NotInLedger, "3D000"),  # invalid catalog name
    (Unavailable, "57P03"),  # cannot connect now
    (EngineSilent, "57P03"),
    (EngineFailure, "58000"),  # system error
    (ServiceRefused, "28000"),  # invalid authorization
    (ProtocolViolation, "08P01"),
    (Unsupported, "0A000"),  # feature not supported
)
_NOT_SUPPORTED, _SYNTAX, _FAILED, _CANCELLED = "0A000", "42601", "25P02", "57014"
_STATUS = {
    "server_version": SERVER_VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
}
_BEGIN = re.compile(r"(BEGIN|START\s+TRANSACTION)\b[^;]*", re.IGNORECASE)
_END = re.compile(r"(COMMIT|END|ROLLBACK|ABORT)\b[^;]*", re.IGNORECASE)
_RELEASE = re.compile(r"(SAVEPOINT|RELEASE|DEALLOCATE|DISCARD|RESET)\b[^;]*", re.IGNORECASE)
_SETTING = re.compile(r"SET\b(?!\s+(SESSION\s+)?farthing\.)[^;]*", re.IGNORECASE)
_SHOWN = re.compile(r"SHOW\s+(?!farthing\.)(.+)", re.IGNORECASE)
_KNOWN_SETTINGS = {**{name.lower(): value for name, value in _STATUS.items()}}
_KNOWN_SETTINGS |= {"transaction isolation level": "read committed", "search_path": "public"}
#: How long a client may take from its first byte until it is let in, in seconds.
START_SECONDS = 30.0
#: How many prepared statements and portals a connection may hold.
MOST_HELD = 1000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement with the types of its parameters."""

    text: str
    oids: tuple[int, ...] = ()

    @property
    def parameters(self) -> int:
        """How many values it takes."""
        named = (int(one) for one in re.findall(r"\$([1-9]\d{0,3})", self.text))
        return max(max(named, default=0), len(self.oids))


@dataclass(slots=True)
class Portal:
    """A statement with its values, and what it gave once it ran."""

    prepared: Prepared
    values: tuple[Any, ...]
    formats: tuple[int, ...]
    result: Result | None = None
    sent: int = 0


class Door(Protocol):
    """What a connection needs from outside."""

    tls: ssl.SSLContext | None

    def enter(self, token: str, dataset: str) -> tuple[Statements, Catalogue]: ...

    def cancel(self, process: int, secret: int) -> None: ...

    async def in_thread(self, work: Callable[[], Any]) -> Any: ...


@dataclass
class Talk:
    """One connection from its first byte to its last."""

    reader: StreamReader
    writer: StreamWriter
    door: Door
    process: int
    secret: int = field(default_factory=lambda: secrets.randbelow(2**31))
    status: str = "I"
    skipping: bool = False
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Future[Any] | None = None
    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    statements: Statements = field(init=False)
    catalogue: Catalogue = field(init=False)

    async def run(self) -> None:
        """Until the client leaves."""
        try:
            async with asyncio.timeout(START_SECONDS):
                let_in = await self._start()
            if let_in:
                while await self._answer(await wire.read_message(self.reader)):
                    await self.writer.drain()
        except ProtocolViolation as error:
            self.writer.write(wire.error("08P01", str(error), "FATAL"))
        except (IncompleteReadError, ConnectionError, ssl.SSLError, TimeoutError):
            pass  # the client is gone
        except Exception as error:
            log.error("a connection of a SQL client ended: %s", type(error).__name__)
            self.writer.write(wire.error("XX000", "something went wrong here", "FATAL"))
        finally:
            if hasattr(self, "statements"):
                self.statements.session.shut()

    # start-up

    async def _start(self) -> bool:
        code, body = await wire.read_start(self.reader)
        while code in (wire.TLS, wire.GSS):
            secured = code == wire.TLS and self.door.tls is not None and not self._is_secured
            self.writer.write(b"S" if secured else b"N")
            await self.writer.drain()
            if secured:
                if not wire.is_all_read(self.reader):
                    raise ProtocolViolation("nothing is sent between asking for TLS and its start")
                assert self.door.tls is not None
                await self.writer.start_tls(self.door.tls)
            code, body = await wire.read_start(self.reader)
        if code == wire.CANCEL:
            self.door.cancel(body.number("i"), body.number("i"))
            return False
        if code != wire.VERSION_3:
            raise ProtocolViolation("the protocol is version 3.0")
        given: dict[str, str] = {}
        while (name := body.text()) != "":
            given[name] = body.text()
        if not self._is_secured and not self._is_nearby:
            return self._refuse("28000", "a token is only taken over TLS: sslmode=require")
        return await self._let_in(given.get("database") or given.get("user", ""))

    @property
    def _is_secured(self) -> bool:
        return self.writer.get_extra_info("sslcontext") is not None

    @property
    def _is_nearby(self) -> bool:
        peer = self.writer.get_extra_info("peername") or ("",)
        return str(peer[0]) in ("127.0.0.1", "::1", "")

    def _refuse(self, state: str, text: str) -> bool:
        self.writer.write(wire.error(state, text, "FATAL"))
        return False

    async def _let_in(self, dataset: str) -> bool:
        self.writer.write(wire.authentication(3))
        await self.writer.drain()
        sent = await wire.read_message(self.reader)
        if sent.letter != "p":
            raise ProtocolViolation("a password was expected")
        token = Body(sent.body).text()
        try:
            enter = await self.door.in_thread(lambda: self.door.enter(token, dataset))
        except FarthingError as error:
            state = _state_of(error, "")
            wrong = state in (_SYNTAX, _NOT_SUPPORTED, "28000")
            return self._refuse("28P01" if wrong else state, str(error))
        self.statements, self.catalogue = enter
        self.writer.write(wire.authentication(0))
        for name, value in _STATUS.items():
            self.writer.write(wire.parameter_status(name, value))
        self.writer.write(wire.key_data(self.process, self.secret))
        self.writer.write(wire.ready(self.status))
        await self.writer.drain()
        return True

    # what a client asks for

    async def _answer(self, sent: ClientMessage) -> bool:
        """Answer one message; False when the client says good-bye."""
        if sent.letter == "X":
            return False
        if sent.letter == "Q":
            self.skipping = False
            await self._simple(Body(sent.body).text())
        elif sent.letter == "S":
            self.skipping = False
            self.portals.clear()
            self.writer.write(wire.ready(self.status))
        elif sent.letter in _EXTENDED:
            if not self.skipping:
                with self._errors_skip():
                    await _EXTENDED[sent.letter](self, Body(sent.body))
        elif sent.letter != "H":  # everything is sent at once anyway
            raise ProtocolViolation("a message of this kind is not read")
        return True

    @contextmanager
    def _errors_skip(self, text: str = "") -> Iterator[None]:
        """An error is told, and the rest up to Sync is skipped."""
        try:
            yield
        except ProtocolViolation:
            raise
        except FarthingError as error:
            self.writer.write(wire.error(_state_of(error, text), str(error)))
            self.skipping = True
            self.status = "E" if self.status != "I" else "I"

    async def _simple(self, text: str) -> None:
        statements = split_statements(text)
        if not statements:
            self.writer.write(wire.message("I"))
        for one in statements:
            with self._errors_skip(one):
                result = await self._result(one, ())
                if result.columns:
                    self.writer.write(wire.row_description(result.columns))
                    for row in result.rows:
                        self.writer.write(wire.data_row(row, result.columns))
                self._complete(result)
            if self.skipping:
                break
        self.skipping = False
        self.writer.write(wire.ready(self.status))

    def _complete(self, result: Result) -> None:
        if result.paid:
            self.writer.write(wire.notice(result.paid))
        tag = f"SELECT {len(result.rows)}" if result.command == "SELECT" else result.command
        self.writer.write(wire.command_complete(tag))

    async def _parse(self, body: Body) -> None:
        name, text, oids = body.text(), body.text(), tuple(body.numbers("i"))
        if len(self.prepared) >= MOST_HELD:
            raise Unsupported(f"a connection has at most {MOST_HELD} prepared statements")
        if len(split_statements(text)) > 1:
            raise InvalidInput("a prepared statement is one statement")
        self.prepared[name] = Prepared(text, oids)
        self.writer.write(wire.message("1"))

    async def _bind(self, body: Body) -> None:
        portal, name, forms = body.text(), body.text(), body.numbers("h")
        given, formats = body.values(), tuple(body.numbers("h"))
        prepared = self._held(self.prepared, name)
        if {*forms, *formats} - {wire.TEXT_FORMAT, wire.BINARY_FORMAT}:
            raise ProtocolViolation("a format is text or binary")
        if len(forms) not in (0, 1, len(given)) or len(self.portals) >= MOST_HELD:
            raise ProtocolViolation("a Bind has a format for each value, and portals are few")
        oids = [*prepared.oids, *[0] * (len(given) - len(prepared.oids))]
        values = tuple(
            wire.parameter(value, oids[i], wire.format_of(forms, i))
            for i, value in enumerate(given)
        )
        self.portals[portal] = Portal(prepared, values, formats)
        self.writer.write(wire.message("2"))

    async def _describe(self, body: Body) -> None:
        kind, name = body.take(1), body.text()
        if kind == b"S":
            prepared = self._held(self.prepared, name)
            oids = [*prepared.oids, *[0] * (prepared.parameters - len(prepared.oids))]
            self.writer.write(wire.parameter_types(oids))
            portal = Portal(prepared, (0,) * len(oids), ())
        else:
            portal = self._held(self.portals, name)
        columns = await self._columns(portal.prepared.text, portal.values)
        told = wire.row_description(columns, portal.formats) if columns else wire.message("n")
        self.writer.write(told)

    async def _execute(self, body: Body) -> None:
        name, most = body.text(), body.number("i")
        portal = self._held(self.portals, name)
        if portal.result is None:
            portal.result = await self._result(portal.prepared.text, portal.values)
        result = portal.result
        last = portal.sent + most if most > 0 else len(result.rows)
        for row in result.rows[portal.sent : last]:
            self.writer.write(wire.data_row(row, result.columns, portal.formats))
        portal.sent = min(last, len(result.rows))
        if portal.sent < len(result.rows):
            self.writer.write(wire.message("s"))
        else:
            self._complete(result)

    async def _close(self, body: Body) -> None:
        kind, name = body.take(1), body.text()
        if kind == b"S":
            self.prepared.pop(name, None)
        else:
            self.portals.pop(name, None)
        self.writer.write(wire.message("3"))

    def _held(self, held: dict[str, Any], name: str) -> Any:
        if name not in held:
            raise InvalidInput(f"there is no statement or portal {name!r:.60}")
        return held[name]

    # statements

    async def _columns(self, text: str, values: Sequence[Any]) -> tuple[ResultColumn, ...]:
        """What a statement will give; a question is not asked for that."""
        kind = kind_of(text)
        if kind == "question":
            bound = with_values(text, tuple(values))
            if re.match(r"\s*EXPLAIN\b", bound, re.IGNORECASE):
                return (ResultColumn("plan", "text"), ResultColumn("detail", "text"))
            found: tuple[ResultColumn, ...] = await self.door.in_thread(
                lambda: self.statements.columns(bound)
            )
            return found
        return (await self._result(text, values)).columns if kind == "look" else ()

    async def _result(self, text: str, values: Sequence[Any]) -> Result:
        """What a statement gives."""
        if self.status == "E" and not _END.fullmatch(text.strip()):
            raise TransactionFailed("the transaction failed: ROLLBACK, then go on")
        quiet = self._of_session(text.strip())
        if quiet is not None:
            return quiet
        bound = with_values(text, tuple(values)) if kind_of(text) == "look" else ""
        if (tree := parsed(bound)) is not None:
            return await self._while_not_cancelled(partial(self.catalogue.look, tree))
        return await self._while_not_cancelled(lambda: self.statements.run(text, tuple(values)))

    def _of_session(self, text: str) -> Result | None:
        """What clients say about the session, which changes nothing here."""
        if _BEGIN.fullmatch(text):
            self.status = "T"
            return Result(command="BEGIN")
        if _END.fullmatch(text):
            failed, self.status = self.status == "E", "I"
            back = failed or text[:1].upper() in "RA"
            return Result(command="ROLLBACK" if back else "COMMIT")
        if match := _RELEASE.fullmatch(text):
            return Result(command=match[1].upper())
        if _SETTING.fullmatch(text):
            return Result(command="SET")
        if (match := _SHOWN.fullmatch(text)) and match[1].lower() in _KNOWN_SETTINGS:
            name = match[1].lower()
            return Result(
                (ResultColumn(name, "text"),), ((_KNOWN_SETTINGS[name],),), command="SHOW"
            )
        return None

    async def _while_not_cancelled(self, work: Callable[[], Result]) -> Result:
        """What comes of it, unless the client cancels. Then what is paid stays paid, and the
        answer is there when the question is asked again. One statement runs at a time, also after
        cancelling: otherwise two of them could spend the same allowance."""
        self.cancelled.clear()
        cancelled: asyncio.Future[Any] = asyncio.ensure_future(self.cancelled.wait())
        try:
            if self.running is not None:
                await asyncio.wait({self.running, cancelled}, return_when=FIRST_COMPLETED)
                if not self.running.done():
                    raise Cancelled("cancelled before it ran; nothing was paid")
            running = self.running = asyncio.ensure_future(self.door.in_thread(work))
            running.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.wait({running, cancelled}, return_when=FIRST_COMPLETED)
            if not running.done():
                raise Cancelled("cancelled; what is paid stays paid, and its answer is kept")
            result: Result = running.result()
            return result
        finally:
            cancelled.cancel()


#: The messages of the extended protocol.
_EXTENDED: Mapping[str, Callable[[Talk, Body], Awaitable[None]]] = {
    "P": Talk._parse,
    "B": Talk._bind,
    "D": Talk._describe,
    "E": Talk._execute,
    "C": Talk._close,
}


class TransactionFailed(FarthingError):
    """A statement after an error inside of BEGIN."""


class Cancelled(FarthingError):
    """The client did not want to wait."""


def _state_of(error: FarthingError, statement: str) -> str:
    if isinstance(error, TransactionFailed):
        return _FAILED
    if isinstance(error, Cancelled):
        return _CANCELLED
    for kind, state in _STATES:
        if isinstance(error, kind):
            return state
    return _NOT_SUPPORTED if is_sql(statement) else _SYNTAX
