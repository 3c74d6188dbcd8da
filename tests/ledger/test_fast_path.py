"""The driver's own connections: whatever happens to one, the next reservation works."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import farthing as fa
from farthing.ledger import Analyst, DoesNotFit, Ledger, Unavailable, verify
from tests.ledger.conftest import fill

#: Of the driver's own and of SQLAlchemy's connections, this many of each are kept.
KEPT = 5


@pytest.fixture
def server(postgres_url: str, certificate: fa.Certificate) -> Iterator[psycopg.Connection]:
    """A connection to a database that holds a filled ledger."""
    with Ledger.open(postgres_url) as ledger:
        fill(ledger, certificate)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def ann(server: psycopg.Connection, postgres_url: str) -> Iterator[Analyst]:  # noqa: ARG001 # filled
    with Ledger.open(postgres_url) as ledger:
        yield ledger.analyst("events", "ann")
        verify(ledger.reader())


OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def others(server: psycopg.Connection) -> int:
    """How many connections the server sees besides this one."""
    row = server.execute(f"SELECT count(*) {OTHERS}").fetchone()
    assert row is not None
    return int(row[0])


def alter(server: psycopg.Connection, setting: str) -> None:
    database = server.info.dbname
    server.execute(f"ALTER DATABASE {database} SET {setting}".encode())


def test_one_connection_serves_one_request_after_the_other(
    server: psycopg.Connection, ann: Analyst
) -> None:
    ann.reserve({"select": 1})
    before = others(server)
    for _ in range(5):
        ann.reserve({"select": 1})
        with pytest.raises(DoesNotFit):
            ann.reserve({"select": 1000})
    assert others(server) == before


def test_a_few_idle_connections_are_kept(server: psycopg.Connection, ann: Analyst) -> None:
    with ThreadPoolExecutor(4 * KEPT) as pool:
        list(pool.map(lambda _: ann.reserve({"select": 1}), range(4 * KEPT)))
    assert 0 < others(server) <= 2 * KEPT


def test_connections_that_are_lost_are_replaced(server: psycopg.Connection, ann: Analyst) -> None:
    for spent in range(1, 4):
        ann.reserve({"select": 1})
        assert ann.remaining().farthings == 100 - spent
        assert others(server) > 0
        server.execute(f"SELECT pg_terminate_backend(pid) {OTHERS}")


def test_a_connection_that_cannot_be_made_is_tried_again(
    ann: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while the server restarts, when no connection of before works."""
    engine = ann._book.store.engine
    connect, tries = engine.raw_connection, []

    def fails_twice() -> object:
        tries.append(1)
        if len(tries) <= 2:
            raise psycopg.OperationalError("connection refused")
        return connect()

    monkeypatch.setattr(engine, "raw_connection", fails_twice)
    ann._book.store._fast.shut()
    ann.reserve({"select": 1})
    assert len(tries) > 2
    assert ann.remaining().farthings == 99


def test_a_server_that_ends_idle_sessions(server: psycopg.Connection, postgres_url: str) -> None:
    alter(server, "idle_session_timeout = '300ms'")
    with Ledger.open(postgres_url) as ledger:
        ann = ledger.analyst("events", "ann")
        held = ann.reserve({"select": 2})
        time.sleep(0.8)
        ann.reserve({"select": 1})
        time.sleep(0.8)
        ann.close(held, "d", used={"select": 1})
        time.sleep(0.8)
        ledger.owner().grant("events", "ann", farthings=1)
        assert ann.remaining().farthings == 99
        verify(ledger.reader())


def test_another_default_isolation_changes_nothing(
    server: psycopg.Connection, postgres_url: str
) -> None:
    """What a reservation runs in is noted by the server itself."""
    alter(server, "default_transaction_isolation = 'serializable'")
    _on_insert(server, "INSERT INTO seen VALUES (current_setting('transaction_isolation'));")
    with Ledger.open(postgres_url) as ledger:
        ann = ledger.analyst("events", "ann")
        ann.close(ann.reserve({"select": 1}), "d")
    seen = server.execute("SELECT how FROM seen").fetchall()
    assert seen == [("read committed",)] * 2


@pytest.mark.parametrize("state", ["08006", "57P05", "25P03", "40001"])
def test_what_passes_by_itself_is_tried_again(
    server: psycopg.Connection, ann: Analyst, state: str
) -> None:
    """The server raises it at the first entry that is written, and not again."""
    _on_insert(server, f"IF nextval('tries') = 1 THEN RAISE SQLSTATE '{state}'; END IF;")
    ann.reserve({"select": 1})
    assert server.execute("SELECT last_value FROM tries").fetchone() == (2,)
    assert ann.remaining().farthings == 99


def test_what_does_not_pass_is_not_tried_again(server: psycopg.Connection, ann: Analyst) -> None:
    _on_insert(server, "IF nextval('tries') = 1 THEN RAISE SQLSTATE '42501'; END IF;")
    with pytest.raises(Unavailable):
        ann.reserve({"select": 1})
    assert server.execute("SELECT last_value FROM tries").fetchone() == (1,)
    assert ann.remaining().farthings == 100


def test_a_connection_that_ends_in_the_middle_is_tried_again(
    server: psycopg.Connection, ann: Analyst
) -> None:
    ended = "PERFORM pg_terminate_backend(pg_backend_pid());"
    _on_insert(server, f"IF nextval('tries') = 1 THEN {ended} END IF;")
    ann.reserve({"select": 1})
    assert ann.remaining().farthings == 99


def _on_insert(server: psycopg.Connection, action: str) -> None:
    """Have the server do this whenever an entry is written."""
    for statement in (
        "CREATE SEQUENCE tries",
        "CREATE TABLE seen (how text)",
        f"CREATE FUNCTION act() RETURNS trigger AS $$ BEGIN {action} RETURN NEW; END $$ "
        "LANGUAGE plpgsql",
        "CREATE TRIGGER acts BEFORE INSERT ON farthing_entries FOR EACH ROW EXECUTE FUNCTION act()",
    ):
        server.execute(statement.encode())
