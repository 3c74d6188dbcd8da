"""The driver's own connections: whatever happens to one, none is left in a wrong state."""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import farthing as fa
from farthing.ledger import DoesNotFit, Ledger, Unavailable, verify
from farthing.ledger.quick import KEPT, Quick, QuickConnections
from farthing.ledger.store import Again
from tests.ledger.conftest import fill


@pytest.fixture
def quick(ledger: Ledger) -> QuickConnections:
    return ledger.store._quick


def idle(quick: QuickConnections) -> list[Quick]:
    return quick._idle


def test_one_connection_serves_one_request_after_the_other(
    ledger: Ledger, quick: QuickConnections
) -> None:
    ledger.reserve("events", "ann", {"select": 1})
    (kept,) = idle(quick)
    for _ in range(3):
        ledger.reserve("events", "ann", {"select": 1})
        with pytest.raises(DoesNotFit):
            ledger.reserve("events", "ann", {"select": 1000})
    assert idle(quick) == [kept]


def test_a_connection_that_is_lost_never_returns_to_the_pool(
    ledger: Ledger, quick: QuickConnections
) -> None:
    ledger.reserve("events", "ann", {"select": 1})
    lost = idle(quick).pop().connection
    gc.collect()
    with ledger.store.engine.connect() as connection:
        raw = connection.connection.driver_connection
        assert raw is not lost
        assert not getattr(raw, "autocommit", False) or ledger.store.is_sqlite
    lost.close()


class Stubborn:
    """A connection whose work was interrupted and cannot be undone."""

    def __init__(self, connection: object, error: type[BaseException]) -> None:
        self.connection = connection
        self.error = error
        self.is_closed = False

    def __getattr__(self, name: str) -> object:
        return getattr(self.connection, name)

    def rollback(self) -> None:
        raise self.error

    def close(self) -> None:
        self.is_closed = True
        self.connection.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("interrupted", [True, False])
def test_what_cannot_be_undone_is_closed(
    ledger: Ledger, quick: QuickConnections, interrupted: bool
) -> None:
    ledger.reserve("events", "ann", {"select": 1})
    error = KeyboardInterrupt if interrupted else quick.driver_error
    stubborn = Stubborn(idle(quick)[0].connection, error)
    idle(quick)[0].connection = stubborn

    def work(_: Quick) -> None:
        raise Again

    with pytest.raises(KeyboardInterrupt if interrupted else Again):
        quick.run(work)
    assert stubborn.is_closed
    assert idle(quick) == []
    ledger.reserve("events", "ann", {"select": 1})
    verify(ledger)


def test_a_few_idle_connections_are_kept(quick: QuickConnections) -> None:
    with ThreadPoolExecutor(3 * KEPT) as pool:
        held = list(pool.map(lambda _: quick._borrow(), range(3 * KEPT)))
    assert len({id(run) for run in held}) == 3 * KEPT
    for run in held:
        quick._give_back(run)
    assert len(idle(quick)) == KEPT


class TakenMeanwhile(list[Quick]):
    """Looks as if there were one, which another thread is faster to take."""

    def __bool__(self) -> bool:
        return True


def test_threads_do_not_fight_over_the_last_idle_connection(quick: QuickConnections) -> None:
    quick._idle = TakenMeanwhile()
    quick._give_back(quick._borrow())
    assert len(idle(quick)) == 1
    quick._idle = list(idle(quick))


@pytest.fixture
def server_setting(postgres_url: str, certificate: fa.Certificate) -> tuple[str, str]:
    """A database with a filled ledger, and its name."""
    with Ledger.open(postgres_url) as ledger:
        fill(ledger, certificate)
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT current_database()").fetchone()
    assert row is not None
    return postgres_url, row[0]


def alter(url: str, database: str, setting: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {database} SET {setting}")


def test_a_server_that_ends_idle_sessions(server_setting: tuple[str, str]) -> None:
    url, database = server_setting
    alter(url, database, "idle_session_timeout = '300ms'")
    with Ledger.open(url) as ledger:
        held = ledger.reserve("events", "ann", {"select": 2})
        time.sleep(0.8)
        ledger.reserve("events", "ann", {"select": 1})
        time.sleep(0.8)
        ledger.close(held, "d", used={"select": 1})
        time.sleep(0.8)
        ledger.grant("events", "ann", farthings=1)
        assert ledger.remaining("events", "ann").farthings == 99
        verify(ledger)


def test_another_default_isolation_changes_nothing(server_setting: tuple[str, str]) -> None:
    url, database = server_setting
    alter(url, database, "default_transaction_isolation = 'serializable'")
    with Ledger.open(url) as ledger:
        ledger.reserve("events", "ann", {"select": 1})
        (kept,) = idle(ledger.store._quick)
        shown = kept.connection.execute("SHOW transaction_isolation").fetchone()
        assert shown == ("read committed",)
        with ledger.store.engine.connect() as connection:
            shown = connection.exec_driver_sql("SHOW transaction_isolation").scalar()
        assert shown == "read committed"


@pytest.mark.parametrize(
    ("state", "again"), [("08006", True), ("57P05", True), ("25P03", True), ("42501", False)]
)
def test_which_errors_are_tried_again(postgres_url: str, state: str, again: bool) -> None:
    """The server raises them itself, once."""
    with Ledger.open(postgres_url) as ledger:
        tries = []

        def work(run: Quick) -> str:
            tries.append(1)
            if len(tries) == 1:
                run.connection.execute(f"DO $$ BEGIN RAISE SQLSTATE '{state}'; END $$")
            return "done"

        def not_done(_: object) -> None:
            return None

        if again:
            assert ledger.store.write_quickly(work, done=not_done) == "done"
        else:
            with pytest.raises(Unavailable):
                ledger.store.write_quickly(work, done=not_done)


def test_an_error_that_ends_the_connection_is_tried_again(postgres_url: str) -> None:
    with Ledger.open(postgres_url) as ledger:
        tries = []

        def work(run: Quick) -> str:
            tries.append(1)
            if len(tries) == 1:
                run.connection.close()
                raise psycopg.errors.InternalError_("of no class that is tried again")
            return "done"

        assert ledger.store.write_quickly(work, done=lambda _: None) == "done"
