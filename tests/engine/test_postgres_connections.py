"""Connections to PostgreSQL: many at once, replaced when they die, each with every setting."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pyarrow as pa
import pytest

from farthing.engine.errors import EngineFailure, EngineSilent
from farthing.engine.sources import postgres as postgres_sources
from farthing.engine.sources.postgres import MOST, SETTINGS
from farthing.engine.sql.statement import Statement
from tests.engine.engines import on_postgres

N = pa.schema({"n": pa.int64()})
ONE = Statement("SELECT 1 AS n", N)
SLOW = Statement("SELECT 1 AS n FROM pg_sleep(3600)", N)
BACKEND = Statement("SELECT pg_backend_pid() AS n", N)


@pytest.fixture
def table(postgres):
    source = on_postgres(postgres.url(), "member int, k text", [(1, "a")])
    yield source
    source.shut()


def number(source, statement=BACKEND) -> int:
    return source.run(statement).column(0)[0].as_py()


def test_every_connection_has_every_setting_and_can_only_read(table) -> None:
    """Each thread holds its own meanwhile."""
    together = threading.Barrier(4)
    asked = [*SETTINGS, "default_transaction_read_only", "transaction_read_only"]

    def look(_: int) -> tuple[int, dict[str, str]]:
        with table.ready():
            together.wait()
            told = {}
            for name in asked:
                sql = f"SELECT current_setting('{name}') AS s"
                rows = table.run(Statement(sql, pa.schema({"s": pa.string()})))
                told[name] = rows.column(0)[0].as_py()
            return number(table), told

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(look, range(4)))
    assert len({backend for backend, _ in found}) == 4
    for _, told in found:
        assert {name: told[name] for name in SETTINGS} == dict(SETTINGS)
        assert told["transaction_read_only"] == "on"


def test_a_thread_holds_one_connection_for_all_of_its_statements(table) -> None:
    with table.ready():
        assert len({number(table) for _ in range(5)}) == 1


def test_only_the_statement_of_that_thread_is_interrupted(table, postgres) -> None:
    """The other one goes on, and so does whatever uses the same connection next."""
    started = {name: threading.Event() for name in ("first", "second")}
    threads: dict[str, int] = {}

    def run(name: str) -> str:
        threads[name] = threading.get_ident()
        with table.ready():
            started[name].set()
            try:
                table.run(SLOW)
            except EngineFailure:
                return "interrupted"
            return "ended"

    def sleeping() -> int:
        with psycopg.connect(postgres.url()) as other:
            sql = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3600)%' "
            found = other.execute(sql + "AND state = 'active' AND pid <> pg_backend_pid()")
            return int(found.fetchone()[0])

    with ThreadPoolExecutor(2) as pool:
        runs = {name: pool.submit(run, name) for name in started}
        for event in started.values():
            event.wait()
        while sleeping() < 2:
            pass
        table.interrupt(threading.get_ident())  # nothing runs here
        table.interrupt(threads["first"])
        assert runs["first"].result() == "interrupted"
        assert sleeping() == 1
        assert not runs["second"].done()
        assert number(table, ONE) == 1
        table.interrupt(threads["first"])  # it is over: nobody else's
        assert sleeping() == 1
        table.interrupt(threads["second"])
        assert runs["second"].result() == "interrupted"
    assert number(table, ONE) == 1


def test_a_connection_that_died_is_replaced_before_it_is_used(table, postgres) -> None:
    backend = number(table)
    with psycopg.connect(postgres.url(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", (backend,))
    with table.ready():
        assert number(table) != backend


def test_a_connection_that_dies_under_a_statement_is_an_engine_that_failed(table, postgres) -> None:
    with table.ready():
        backend = number(table)
        with psycopg.connect(postgres.url(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", (backend,))
        with pytest.raises(EngineFailure):
            table.run(ONE)
    with table.ready():
        assert number(table, ONE) == 1


def test_more_than_there_are_connections_wait_and_are_told(table, monkeypatch) -> None:
    monkeypatch.setattr(postgres_sources, "PATIENCE", 0)
    everybody, over = threading.Barrier(MOST + 1), threading.Event()

    def hold(_: int) -> None:
        with table.ready():
            everybody.wait()
            over.wait()

    with ThreadPoolExecutor(MOST) as threads:
        held = [threads.submit(hold, i) for i in range(MOST)]
        everybody.wait()
        with pytest.raises(EngineSilent) as refused, table.ready():
            raise AssertionError
        assert refused.value.__context__ is None
        over.set()
        for one in held:
            one.result()
    with table.ready():
        assert number(table, ONE) == 1


def test_an_address_that_leads_elsewhere_is_not_the_same_data(table, monkeypatch) -> None:
    """A failover to other rows: the budget belongs to those that were opened."""
    table.shut()
    table._connections._shut = False
    monkeypatch.setattr(postgres_sources, "_server", lambda _: "postgresql:another/postgres")
    with pytest.raises(EngineSilent), table.ready():
        raise AssertionError


def test_a_source_that_was_shut_is_silent(table) -> None:
    table.shut()
    with pytest.raises(EngineSilent), table.ready():
        raise AssertionError
