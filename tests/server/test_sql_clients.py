"""SQL clients over the PostgreSQL protocol: psql, psycopg, bytes that nobody sends."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import farthing as fa
from farthing.dbapi.statements import Result, ResultColumn, Statements
from farthing.errors import InvalidInput
from farthing.server.postgres.catalogue import Catalogue
from farthing.server.postgres.conversing import Talk
from tests.server.conftest import WIDE, served
from tests.server.deployment import WORD, Deployment, free_port
from tests.waiting import HANGS

(_PACKAGE,) = find_spec("pgserver").submodule_search_locations
PSQL = Path(_PACKAGE) / "pginstall" / "bin" / "psql"
COUNT = "SELECT COUNT(DISTINCT member) AS people FROM events"


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, certificate: fa.Certificate
) -> Iterator[Deployment]:
    place = tmp_path_factory.mktemp("clients")
    port = free_port()
    more = f'[postgres]\nlisten = "127.0.0.1:{port}"\ncertificate = "cert.pem"\nkey = "key.pem"'
    _certify(place)
    one = Deployment(place, str(place / "budget.db"), limits=WIDE, more=more)
    one.prepare(certificate)
    one.sql_port = port
    yield from served(one)


@pytest.fixture
def connect(service: Deployment) -> Iterator[Callable[..., psycopg.Connection[Any]]]:
    opened: list[psycopg.Connection[Any]] = []

    def to(who: str = "ann", dataset: str = "events", **how: Any) -> psycopg.Connection[Any]:
        place = {"host": "127.0.0.1", "port": service.sql_port, "dbname": dataset}
        given = {"user": who, "password": service.tokens[who], "connect_timeout": int(HANGS)}
        one = psycopg.connect(**{**place, **given, **how})
        opened.append(one)
        return one

    yield to
    for one in opened:
        one.close()


def _certify(place: Path) -> None:
    """A certificate that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    signed = made.sign(key, hashes.SHA256())
    (place / "cert.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (place / "key.pem").write_bytes(plain)


def psql(service: Deployment, *commands: str, who: str = "ann") -> str:
    """What psql prints."""
    asked = [part for command in commands for part in ("-c", command)]
    place = ["-h", "127.0.0.1", "-p", str(service.sql_port), "-U", who, "-d", "events"]
    environment = {**os.environ, "PGPASSWORD": service.tokens[who]}
    ran = subprocess.run(
        [PSQL, *place, "-At", *asked],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    return ran.stdout + ran.stderr


def test_psql_sees_the_schema_and_asks(service: Deployment) -> None:
    described = psql(service, r"\d", r"\d events", r"\l", r"\dn", r"\dt+", "SELECT version()")
    assert "ERROR" not in described
    assert "public|events|table|owner" in described
    for line in ("member|bigint", "name|text", "country|text", "age|bigint", "day|date"):
        assert line in described
    assert "PostgreSQL 15.0 (farthing)" in described
    refused = psql(service, COUNT)
    assert "this costs 4 farthings" in refused
    assert "SET farthing.farthings = 4" in refused
    told = psql(service, "SET farthing.farthings = 4", COUNT, COUNT)
    assert "paid 4 farthings" in told
    assert "asked before" in told
    again = psql(service, COUNT)
    assert "asked before" in again, "a reload costs nothing"
    planned = psql(service, f"EXPLAIN {COUNT} WHERE age > 3")
    assert "price|4 farthings" in planned


def test_psycopg_prepared_statements_and_transactions(connect: Callable[..., Any]) -> None:
    connection = connect()
    cursor = connection.cursor()
    cursor.execute("SET farthing.farthings = 40")
    asked = COUNT + " WHERE country = %s AND age < %s"
    cursor.execute(asked, ("NO", 50))
    assert cursor.description[0].name == "people"
    (first,) = cursor.fetchall()
    cursor.execute(asked, ("NO", 50), prepare=True)
    assert cursor.fetchall() == [first]
    with connection.cursor(binary=True) as binary:
        assert binary.execute(asked, ("NO", 50)).fetchall() == [first]
    cursor.execute(asked, ("NO' OR '1' = '1", 50))
    assert cursor.fetchall()[0][0] < first[0] + 200, "nothing but a value"
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="rows are not told"):
        cursor.execute("SELECT * FROM events")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        cursor.execute(asked, ("NO", 50))
    connection.rollback()
    assert cursor.execute(asked, ("NO", 50)).fetchall() == [first]
    with pytest.raises(psycopg.errors.SyntaxError):
        cursor.execute("DELETE FROM events")
    connection.rollback()
    names = "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
    found = cursor.execute(names, ("events",)).fetchall()
    assert [name for (name,) in found] == ["member", "name", "country", "age", "day"]


def test_groups_come_in_the_order_of_the_select(connect: Callable[..., Any]) -> None:
    cursor = connect(autocommit=True).cursor()
    cursor.execute("SET farthing.farthings = 100")
    cursor.execute(
        "SELECT COUNT(DISTINCT member), country FROM events "
        "WHERE country IN ('NO', 'SE') GROUP BY country OPTIONS (contribution_limit = 1)"
    )
    assert [row[1] for row in cursor.fetchall()] == ["NO", "SE"]
    cursor.execute("SET farthing.intervals = on")
    cursor.execute(COUNT)
    assert [column.name for column in cursor.description] == [
        "people", "people_lower", "people_upper"
    ]  # fmt: skip # one list


@pytest.mark.parametrize(
    ("who", "dataset"),
    [("expired", "events"), ("revoked", "events"), ("narrow", "events"), ("ann", "private"),
     ("team", "events"), ("ann", "nothing")],
)  # fmt: skip # one list
def test_whoever_may_not_ask_is_not_let_in(
    connect: Callable[..., Any], who: str, dataset: str
) -> None:
    with pytest.raises(psycopg.OperationalError):
        connect(who, dataset)


def test_a_wrong_token_and_tls(connect: Callable[..., Any]) -> None:
    with pytest.raises(psycopg.OperationalError):
        connect(password="fth_no")
    secured = connect(sslmode="require")
    assert secured.execute("SHOW farthing.farthings").fetchall() == [("0",)]


def test_cancelling_does_not_wait_and_pays(connect: Callable[..., Any]) -> None:
    connection = connect("ann", "slow", autocommit=True)
    connection.execute("SET farthing.farthings = 40")
    clock = threading.Timer(1.0, connection.cancel)
    clock.start()
    with pytest.raises(psycopg.errors.QueryCanceled, match="stays paid"):
        connection.execute("SELECT COUNT(DISTINCT member) FROM slow")
    clock.join()
    assert connection.execute("SHOW farthing.farthings").fetchall() == [("40",)]


def test_the_word_is_nowhere(service: Deployment) -> None:
    """Texts of cells are in no message of this door."""
    said = psql(
        service,
        "SET farthing.farthings = 100",
        "SELECT COUNT(DISTINCT member) FROM events WHERE name > 'a'",
        "SELECT SUM(name) FROM events",
        "SELECT name FROM events",
        "SELECT * FROM pg_catalog.pg_class, events",
        "SELECT * FROM read_parquet('events.parquet')",
        "SELECT * FROM pg_catalog.pg_stats",
        "COPY events TO STDOUT",
    )
    assert WORD.lower() not in said.lower()
    assert said.count("ERROR") >= 6


class Silent:
    """A writer that keeps what is written, and never waits."""

    def __init__(self) -> None:
        self.sent = bytearray()

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        return

    def close(self) -> None:
        return

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None


class Pretended:
    """A door to nowhere: statements are echoed or refused."""

    tls: ssl.SSLContext | None = None

    def enter(self, *_: str) -> Any:
        return _Echo(), _NO_CATALOGUE

    def cancel(self, *_: int) -> None:
        return

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        return work()


class _Echo(Statements):
    def __init__(self) -> None:
        self.session = SimpleNamespace(shut=lambda: None)

    def run(self, text: str, _: Any = ()) -> Result:
        if "x" in text:
            raise InvalidInput("no")
        return Result((ResultColumn("a", "text"),), (("b",),) * 3)

    def columns(self, _: str) -> Any:
        return (ResultColumn("a", "text"),)


_ABOUT: Any = SimpleNamespace(
    name="events", declared_schema=SimpleNamespace(kinds={"member": "integer"})
)
_NO_CATALOGUE = Catalogue(_ABOUT)
_WORDS = [b"", b"SELECT 1", b"SELECT a FROM b", b"x", b"BEGIN", b"ROLLBACK", b"\xff", b"p", b"$1"]


def _some_message(draw: random.Random) -> bytes:
    """A message that a client might send, or nearly."""
    kind = draw.choice(b"QPBDECSHXFdcfpZ\x00")
    word = draw.choice(_WORDS)
    texts = b"".join(draw.choice(_WORDS) + b"\0" for _ in range(draw.randrange(3)))
    numbers = struct.pack("!hhi", draw.randrange(-2, 4), draw.randrange(3), draw.randrange(-2, 9))
    body = draw.choice(
        [word + b"\0", texts, texts + numbers, b"S" + word + b"\0", draw.randbytes(9)]
    )
    body = body if draw.random() < 0.9 else body[:-1]
    length = len(body) + 4 if draw.random() < 0.98 else draw.choice([0, 3, 2**31 - 1, 2**20 + 1])
    return struct.pack("!Bi", kind, length & 0x7FFFFFFF) + body


START = struct.pack("!ii", 32, 196608) + b"user\0ann\0database\0e\0\0"
START = struct.pack("!i", len(START)) + START[4:]
PASSWORD = b"p" + struct.pack("!i", 7) + b"tk\0"


def _asked(text: bytes) -> bytes:
    return b"Q" + struct.pack("!i", len(text) + 5) + text + b"\0"


def test_a_statement_waits_for_one_that_was_cancelled() -> None:
    """Otherwise both could be paid from the same allowance."""
    order: list[str] = []

    async def talked() -> bytes:
        ended = asyncio.Event()

        class Slow(Pretended):
            async def in_thread(self, work: Callable[[], Any]) -> Any:
                result = work()
                if isinstance(result, Result):
                    order.append("began")
                    if len(order) == 1:
                        talk.cancelled.set()
                        await ended.wait()
                    order.append("ended")
                return result

        reader, writer = asyncio.StreamReader(), Silent()
        talk = Talk(reader, writer, Slow(), 1)
        reader.feed_data(START + PASSWORD + _asked(b"SELECT a FROM b") * 2)
        reader.feed_eof()
        running = asyncio.ensure_future(talk.run())
        while b"stays paid" not in writer.sent:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert order == ["began"]
        ended.set()
        await running
        return bytes(writer.sent)

    sent = asyncio.run(asyncio.wait_for(talked(), HANGS))
    assert order == ["began", "ended", "began", "ended"]
    assert sent.count(b"SELECT 3") == 1


def test_nothing_is_taken_from_before_tls() -> None:
    """Bytes behind the request for TLS could be those of somebody in between."""

    class Secured(Pretended):
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    async def talked() -> bytes:
        reader, writer = asyncio.StreamReader(), Silent()
        reader.feed_data(struct.pack("!ii", 8, 80877103) + START + PASSWORD)
        reader.feed_eof()
        await Talk(reader, writer, Secured(), 1).run()
        return bytes(writer.sent)

    sent = asyncio.run(asyncio.wait_for(talked(), HANGS))
    assert b"08P01" in sent
    assert b"server_version" not in sent


@pytest.mark.slow
def test_no_bytes_break_a_connection() -> None:
    """100 000 messages: every connection ends with an answer or an error of the protocol."""
    draw = random.Random(7)

    async def one(count: int) -> tuple[bytes, int]:
        reader, writer = asyncio.StreamReader(), Silent()
        sent = b"".join(_some_message(draw) for _ in range(count))
        sent = b"".join(draw.sample([sent], 1)) if draw.random() < 0.9 else draw.randbytes(200)
        reader.feed_data((START + PASSWORD if draw.random() < 0.95 else b"") + sent)
        reader.feed_eof()
        await Talk(reader, writer, Pretended(), 1).run()
        return bytes(writer.sent), len(sent)

    async def many() -> None:
        for _ in range(4_000):
            sent, size = await asyncio.wait_for(one(25), HANGS)
            assert len(sent) < 10_000 + 100 * size, "bounded by what came in"
            assert b"something went wrong" not in sent

    asyncio.run(many())


@pytest.mark.slow
def test_many_idle_connections_are_light(service: Deployment) -> None:
    """1000 connections that wait for a token hold little memory, and others are let in."""
    assert service.process is not None
    before = _memory(service.process.pid)
    start = struct.pack("!ii", 41, 196608) + b"user\0ann\0database\0events\0\0"
    start = struct.pack("!i", len(start)) + start[4:]
    held: list[socket.socket] = []
    try:
        for _ in range(1000):
            one = socket.create_connection(("127.0.0.1", service.sql_port), timeout=HANGS)
            one.sendall(start)
            held.append(one)
        assert "asked before" in psql(service, COUNT) or "paid" in psql(
            service, "SET farthing.farthings = 4", COUNT
        )
        assert _memory(service.process.pid) - before < 300 * 2**20
    finally:
        for one in held:
            one.close()


def _memory(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
