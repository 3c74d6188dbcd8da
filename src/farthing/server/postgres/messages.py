"""Messages of the PostgreSQL protocol as bytes.

A message is a letter, its length (with the length itself), and a body. The first one of a client
has no letter. https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import struct
from asyncio import StreamReader
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from farthing.dbapi.statements import ResultColumn
from farthing.errors import FarthingError
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TIMESTAMP

#: The first messages that a client may send.
VERSION_3, CANCEL, TLS, GSS = 196608, 80877102, 80877103, 80877104
#: Longer messages are refused unread: a statement has at most 20 000 characters.
LONGEST_BODY, LONGEST_START = 1 << 20, 10_000
TEXT_FORMAT, BINARY_FORMAT = 0, 1
#: The type of a column, by kind, and the size of its values in bytes (−1: they differ).
OIDS: Mapping[str, tuple[int, int]] = {
    INTEGER: (20, 8),
    REAL: (701, 8),
    DECIMAL: (1700, -1),
    BOOLEAN: (16, 1),
    DATE: (1082, 4),
    TIMESTAMP: (1114, 8),
}
TEXT_OID = 25
#: Types of parameters that are numbers; all others are texts.
_WHOLE, _REAL, _TRUTH = (20, 21, 23, 26), (700, 701, 1700), 16
_EPOCH = date(2000, 1, 1)


class ProtocolViolation(FarthingError):
    """Bytes that no client sends; the connection ends."""


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """What a client sent: a letter and a body."""

    letter: str
    body: bytes


class Body:
    """Reads a body from its beginning to its end."""

    def __init__(self, body: bytes) -> None:
        self._rest = body

    def number(self, code: str) -> int:
        """A whole number: `h` has two bytes, `i` four."""
        size = struct.calcsize("!" + code)
        (value,) = struct.unpack("!" + code, self.take(size))
        return int(value)

    def take(self, size: int) -> bytes:
        """So many bytes."""
        if not 0 <= size <= len(self._rest):
            raise ProtocolViolation("a message is shorter than it says")
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def text(self) -> str:
        """A text that ends with a zero."""
        taken, zero, self._rest = self._rest.partition(b"\0")
        if not zero:
            raise ProtocolViolation("a text does not end")
        return as_text(taken)

    def numbers(self, code: str) -> list[int]:
        """A count, and so many numbers."""
        return [self.number(code) for _ in range(self._count())]

    def values(self) -> list[bytes | None]:
        """A count, and so many values with their lengths; −1 is NULL."""
        lengths = (self.number("i") for _ in range(self._count()))
        return [None if length == -1 else self.take(length) for length in lengths]

    def _count(self) -> int:
        count = self.number("h")
        if count < 0:
            raise ProtocolViolation("a count is negative")
        return count

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return not self._rest


def as_text(value: bytes) -> str:
    """UTF-8, or ProtocolViolation."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ProtocolViolation("a text is not UTF-8") from None


def is_all_read(reader: StreamReader) -> bool:
    """Whether nothing waits to be read. Bytes that came before TLS could be anybody's, and must not
    be taken for the client's afterwards (CVE-2021-23214)."""
    waiting: bytearray = reader._buffer  # type: ignore[attr-defined] # nothing public tells
    return not waiting


async def read_start(reader: StreamReader) -> tuple[int, Body]:
    """The first message: a code and what follows it."""
    length = struct.unpack("!i", await reader.readexactly(4))[0]
    if not 8 <= length <= LONGEST_START:
        raise ProtocolViolation("this is not a start of PostgreSQL's protocol")
    body = Body(await reader.readexactly(length - 4))
    return body.number("i"), body


async def read_message(reader: StreamReader) -> ClientMessage:
    """The next message of a client."""
    letter, length = struct.unpack("!ci", await reader.readexactly(5))
    if not 4 <= length <= LONGEST_BODY:
        raise ProtocolViolation("a message is longer than any that is read")
    return ClientMessage(letter.decode("latin-1"), await reader.readexactly(length - 4))


def message(letter: str, body: bytes = b"") -> bytes:
    """A message of the server."""
    return letter.encode() + struct.pack("!i", len(body) + 4) + body


def texts(*given: str) -> bytes:
    """Texts, each ended by a zero."""
    return b"".join(one.replace("\0", "").encode() + b"\0" for one in given)


def authentication(kind: int) -> bytes:
    """0: let in. 3: the password, please."""
    return message("R", struct.pack("!i", kind))


def parameter_status(name: str, value: str) -> bytes:
    """A setting of the server."""
    return message("S", texts(name, value))


def key_data(process: int, secret: int) -> bytes:
    """What a client must know to cancel what runs."""
    return message("K", struct.pack("!ii", process, secret))


def ready(status: str) -> bytes:
    """I: idle. T: in a transaction. E: in one that failed."""
    return message("Z", status.encode())


def error(state: str, text: str, severity: str = "ERROR") -> bytes:
    """An error with its SQLSTATE."""
    parts = (("S", severity), ("V", severity), ("C", state), ("M", text))
    return message("E", b"".join(texts(letter + words) for letter, words in parts) + b"\0")


def notice(text: str) -> bytes:
    """Words for whoever looks: what an answer cost."""
    parts = (("S", "NOTICE"), ("V", "NOTICE"), ("C", "00000"), ("M", text))
    return message("N", b"".join(texts(letter + words) for letter, words in parts) + b"\0")


def row_description(columns: Sequence[ResultColumn], formats: Sequence[int] = ()) -> bytes:
    """Names and types of columns."""
    described = [struct.pack("!h", len(columns))]
    for i, column in enumerate(columns):
        oid, size = OIDS.get(column.kind, (TEXT_OID, -1))
        fixed = struct.pack("!ihihih", 0, 0, oid, size, -1, format_of(formats, i))
        described.append(texts(column.name) + fixed)
    return message("T", b"".join(described))


def format_of(formats: Sequence[int], place: int) -> int:
    """None given: text. One: for all. Else one for each."""
    if not formats:
        return TEXT_FORMAT
    return formats[0] if len(formats) == 1 else formats[place]


def data_row(
    row: Sequence[Any], columns: Sequence[ResultColumn], formats: Sequence[int] = ()
) -> bytes:
    """The values of one row."""
    parts = [struct.pack("!h", len(row))]
    for i, (value, column) in enumerate(zip(row, columns, strict=True)):
        if value is None:
            parts.append(struct.pack("!i", -1))
            continue
        binary = format_of(formats, i) == BINARY_FORMAT
        written = _binary(value, column.kind) if binary else _written(value).encode()
        parts.append(struct.pack("!i", len(written)) + written)
    return message("D", b"".join(parts))


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    return repr(value) if isinstance(value, float) else str(value).replace("\0", "")


def _binary(value: Any, kind: str) -> bytes:
    if kind == INTEGER:
        return struct.pack("!q", int(value))
    if kind == REAL:
        return struct.pack("!d", float(value))
    if kind == BOOLEAN:
        return struct.pack("!?", bool(value))
    if kind == DATE:
        return struct.pack("!i", (value - _EPOCH).days)
    if kind in (TIMESTAMP, DECIMAL):
        raise ProtocolViolation("this type is sent as text only")
    return _written(value).encode()


def parameter(value: bytes | None, oid: int, form: int) -> Any:
    """The value of a parameter, from its bytes."""
    if value is None:
        return None
    if form == BINARY_FORMAT:
        return _from_binary(value, oid)
    text = as_text(value)
    try:
        if oid in _WHOLE:
            return int(text)
        if oid in _REAL:
            return Decimal(text)
        if oid == _TRUTH:
            return {"t": True, "true": True, "f": False, "false": False}[text.lower()]
        if oid == OIDS[DATE][0]:
            return date.fromisoformat(text)
        if oid == OIDS[TIMESTAMP][0]:
            return datetime.fromisoformat(text)
    except (ValueError, ArithmeticError, KeyError):
        raise ProtocolViolation("a parameter is not of its type") from None
    return text


def _from_binary(value: bytes, oid: int) -> Any:
    codes = {(20, 8): "q", (23, 4): "i", (21, 2): "h", (701, 8): "d", (700, 4): "f", (16, 1): "?"}
    if (code := codes.get((oid, len(value)))) is not None:
        return struct.unpack("!" + code, value)[0]
    if oid in (0, TEXT_OID, 1043):
        return as_text(value)
    raise ProtocolViolation("a parameter of this type is read as text only")


def command_complete(tag: str) -> bytes:
    """The end of a statement."""
    return message("C", texts(tag))


def parameter_types(oids: Iterable[int]) -> bytes:
    """The types of a prepared statement's parameters."""
    known = [oid or TEXT_OID for oid in oids]
    return message("t", struct.pack(f"!h{len(known)}i", len(known), *known))
