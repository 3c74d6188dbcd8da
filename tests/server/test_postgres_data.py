"""Data in PostgreSQL behind a service: restarts, slow neighbours, results without rows."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from farthing.engine import Declaration, Desk, open_source
from farthing.ledger import Ledger, Limits
from tests.ledger.server import Server
from tests.server.deployment import Deployment
from tests.server.test_jobs import until_over

PEOPLE = "/v1/datasets/people"
AGAIN = {"query": {"kind": "count"}, "again": True}
PRICE = 4


@pytest.fixture(scope="module")
def data_server() -> Iterator[Server]:
    """A server of this file alone, which restarts."""
    folder = Path(tempfile.mkdtemp(prefix="data"))
    folder.chmod(0o755)
    server = Server(folder / "pg")
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE health")
    with psycopg.connect(server.url("health"), autocommit=True) as connection:
        # whoever reads `slow` waits for it: a hundred of them take longer than a run may
        connection.execute(
            """CREATE TABLE seen (member int, diag text, age int, zip text);
            INSERT INTO seen SELECT i, 'flu', i % 90, 'z1' FROM generate_series(1, 99) i;
            INSERT INTO seen VALUES (100, 'hiv', 37, 'z99');
            CREATE FUNCTION slowly(text) RETURNS text STABLE LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_sleep(0.1); RETURN $1; END $$;
            CREATE VIEW people AS SELECT *, slowly(diag) AS slow FROM seen"""
        )
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def served(tmp_path, certificate, data_server: Server) -> Iterator[Deployment]:
    """The dataset people is in PostgreSQL; the budget is elsewhere."""
    url = data_server.url("health")
    more = f'[datasets.people]\ndata = "{url}"\ntable = "people"'
    limits = {"time_limit": 8.0, "grace": 1.0, "jobs_at_once": 8}
    one = Deployment(tmp_path, str(tmp_path / "budget.db"), limits=limits, more=more)
    one.prepare(certificate)
    with Ledger.open(one.ledger) as ledger:
        desk = Desk(ledger, owner="team")
        source = open_source(url, table="people")
        limited = Limits(contribution_limit=3, per_key_limit=2)
        desk.add(source, Declaration(unit="member", limits=limited), name="people")
        source.shut()
        desk.sign("people", certificate)
        for analyst in ("ann", "bob"):
            desk.grant("people", analyst, farthings=150)
    one.start()
    yield one
    assert one.stop() == 0, one.log


def left(client: httpx.Client) -> int:
    return int(client.get(PEOPLE).json()["purse"]["left"]["farthings"])


def test_nobody_passes_a_filter(served: Deployment) -> None:
    """Seven of these at a farthing each told the age of the one who is ill."""
    with served.client("ann") as ann:
        for most in (36, 37):
            query = {
                "kind": "quantile",
                "column": "age",
                "by": "diag",
                "categories": ["hiv"],
                "lower": 0,
                "upper": 100,
                "per_key_limit": 1,
                "where": {"zip": "z99", "age": {"at_most": most}},
            }
            answer = ann.post(f"{PEOPLE}/run", json={"query": query})
            assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_the_database_restarts(served: Deployment, data_server: Server, mode) -> None:
    """Every run failed after that, and was charged; a conversation ended."""
    with served.client("ann") as ann:
        opened = ann.post(f"{PEOPLE}/conversations", json={"kind": "threshold"}).json()
        before = left(ann)
        for _ in range(2):
            data_server.restart(mode)
            assert ann.post(f"{PEOPLE}/run", json=AGAIN).status_code == 200
            assert ann.get("/ready").status_code == 200
        assert left(ann) == before - 2 * PRICE
        data_server.restart(mode)
        asked = {"questions": [{"query": {"kind": "count"}, "threshold": 100_000}]}
        answer = ann.post(f"{PEOPLE}/conversations/{opened['id']}/ask", json=asked)
        assert answer.status_code == 200, answer.text


def test_a_database_that_is_away_costs_nothing(served: Deployment, data_server: Server) -> None:
    with (
        served.client("ann") as ann,
        psycopg.connect(data_server.url(), autocommit=True) as boss,
    ):
        opened = ann.post(f"{PEOPLE}/conversations", json={"kind": "threshold"}).json()
        ask = f"{PEOPLE}/conversations/{opened['id']}/ask"
        asked = {"questions": [{"query": {"kind": "count"}, "threshold": 100_000}]}
        before = left(ann)
        boss.execute("ALTER DATABASE health ALLOW_CONNECTIONS false")
        try:
            boss.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'health'"
            )
            for path, body in ((f"{PEOPLE}/run", AGAIN), (ask, asked)):
                refused = ann.post(path, json=body)
                assert refused.status_code == 503
                assert refused.json()["error"]["kind"] == "data_unavailable"
            assert ann.get("/ready").status_code == 503
            assert ann.get("/health").status_code == 200
        finally:
            boss.execute("ALTER DATABASE health ALLOW_CONNECTIONS true")
        assert left(ann) == before
        assert ann.post(f"{PEOPLE}/run", json=AGAIN).status_code == 200
        assert ann.post(ask, json=asked).status_code == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_a_database_that_is_away_at_the_start_is_waited_for(
    served: Deployment, data_server: Server, workers: int
) -> None:
    """It ended the service, with a code after which nobody starts it again."""
    assert served.stop() == 0
    served.options["workers"] = workers
    data_server.halt("fast")
    try:
        served.begin()
        served.wait_for(lambda: "waiting: the database of people cannot be reached" in served.log)
    finally:
        data_server.begin()
    served.wait_until_ready()
    assert "Traceback" not in served.log


def test_slow_runs_of_one_are_not_anothers(served: Deployment) -> None:
    """They used up the time of others, whose farthings were reserved before they waited."""
    whole = {"kind": "histogram", "by": "slow", "categories": ["flu"]}
    slow, short = (
        {"query": {**whole, "where": {"age": {"at_most": most}}}, "again": True}
        for most in (100, 3)
    )
    with served.client("ann") as ann, served.client("bob") as bob:
        later = {"Prefer": "respond-async"}
        begun = [ann.post(f"{PEOPLE}/run", json=slow, headers=later) for _ in range(4)]
        before = left(bob)
        for _ in range(3):
            answer = bob.post(f"{PEOPLE}/run", json=short)
            assert answer.status_code == 200, answer.text
        assert left(bob) == before - 3 * PRICE
        for one in begun:
            assert until_over(ann, one.json()["job"]["id"])["status"] == 408
