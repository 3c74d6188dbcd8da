"""Tokens, keys and jobs in SQLite and in PostgreSQL, from two workers at once."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from farthing.server import access as tokens
from farthing.server.access import AccessStore, find, listed, mint, withdraw
from farthing.server.callers import AnalystCaller, Doorkeeper, OwnerCaller
from farthing.server.jobs import DONE, Run, Runner
from farthing.server.problems import Refused
from farthing.server.protection import ReleaseClock
from farthing.server.settings import Protections
from tests.server.test_idempotency import sent
from tests.waiting import HANGS


@pytest.fixture(params=["sqlite", "postgresql"])
def stores(request, tmp_path):
    target = str(tmp_path / "access.db")
    if request.param == "postgresql":
        target = request.getfixturevalue("postgres_url")
    with ThreadPoolExecutor(2) as pool:  # both make the tables
        made = list(pool.map(lambda _: AccessStore(target), range(2)))
    yield made
    for one in made:
        one.shut()


def test_two_workers_have_one_secret(stores) -> None:
    assert stores[0].secret == stores[1].secret


def test_tokens(stores, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = stores
    token, record = mint(one, "analyst", "ann", datasets=["events"])
    soon = datetime.now(UTC) + timedelta(hours=1)
    brief, _ = mint(one, "owner", "team", expires=soon)
    door = Doorkeeper(other)
    assert door.caller(token) == AnalystCaller("ann", record.id, ("events",))
    assert isinstance(door.caller(brief), OwnerCaller)
    assert {found.id for found in listed(other)} >= {record.id}
    withdraw(one, record.id)
    assert door.caller(token) is None  # though its secret was right a moment ago
    assert find(other, record.id) is not None
    monkeypatch.setattr(tokens, "_now", lambda: soon)
    assert door.caller(brief) is None


def test_a_key_runs_once_on_two_workers(stores) -> None:
    ran: list[int] = []

    def work() -> tuple[int, dict[str, object]]:
        ran.append(1)
        time.sleep(0.2)
        return 200, {"answer": 1}

    def send(number: int) -> object:
        try:
            return sent(stores[number % 2], work)
        except Refused as refused:
            return refused.kind

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(send, range(8)))
    assert len(ran) == 1
    assert (200, {"answer": 1}) in found
    assert {one for one in found if isinstance(one, str)} <= {"key_in_use"}
    assert sent(stores[1], work) == (200, {"answer": 1})
    assert len(ran) == 1


def test_a_job_is_seen_and_cancelled_from_another_worker(stores) -> None:
    runners = [Runner(store, Protections(), ReleaseClock(0)) for store in stores]
    ended = threading.Event()

    def work() -> dict[str, object]:
        ended.wait(HANGS)
        raise RuntimeError

    run = Run("ann", "events", "run", lambda _: ended.set())
    runners[0].start(run, work)
    assert runners[0].job(run).state == "running"
    assert runners[1].records.find("ann", run.id).state == "running"
    with pytest.raises(Refused):
        runners[1].records.find("bob", run.id)
    assert runners[1].cancel("ann", run.id).state == "cancelled"
    assert ended.wait(HANGS)  # with the next beat of its worker
    quick = Run("ann", None, "run", lambda _: None)
    runners[1].start(quick, lambda: {"x": 1})
    assert asyncio.run(runners[1].outcome(quick, HANGS)) == (200, {"x": 1})
    runners[1].job(quick)
    assert runners[0].records.find("ann", quick.id).state == DONE
    for one in runners:
        one.shut(1)
