"""The access store was locked for longer than its patience while a run became a job. The answer was
"not now", its key was free again, and the run went on: who sent it again was charged twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial

import pytest

from farthing.server import access as access_store
from farthing.server.jobs import Runner
from tests.server.in_process import kinds_of_entries, prepared, served
from tests.waiting import HANGS, until

SLOW = "/v1/datasets/slow"
COUNT = {"query": {"kind": "count"}}
KEY = {"Idempotency-Key": "once"}


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """A deployment, and a connection that can lock its access store."""
    deployed = prepared(tmp_path)
    monkeypatch.setattr(access_store, "PATIENCE_SECONDS", 0.3)
    connected = sqlite3.connect(deployed.access, timeout=HANGS, check_same_thread=False)
    with closing(connected) as lock:
        lock.isolation_level = None
        yield deployed, lock


def patiently(request):
    """What it answers when the machine has time: the patience of the store is short here."""
    answers = []
    until(lambda: answers.append(request()) or answers[-1].status_code != 503)
    return answers[-1]


def test_a_store_that_is_locked_after_the_start_charges_nobody_twice(locked, monkeypatch) -> None:
    deployed, lock = locked
    go = Runner._go

    def go_with_a_lock(*given):
        if not lock.in_transaction:
            lock.execute("BEGIN IMMEDIATE")
        return go(*given)

    monkeypatch.setattr(Runner, "_go", go_with_a_lock)
    with served(deployed, answer_within=0.2) as ann:
        run = partial(ann.post, f"{SLOW}/run", json=COUNT, headers=KEY)
        first = patiently(run)
        again = run()
        lock.execute("ROLLBACK")
        until(lambda: "reserve" in kinds_of_entries(deployed, "slow"))
        last = patiently(run)
        assert first.status_code == 202
        job = f"/v1/jobs/{first.json()['job']['id']}"
        assert patiently(partial(ann.get, job)).json()["job"]["state"] == "running"
        patiently(partial(ann.delete, job))
        assert {again.status_code, last.status_code} <= {202, 409}
    assert kinds_of_entries(deployed, "slow").count("reserve") == 1


def test_a_run_that_cannot_be_recorded_does_not_start(locked) -> None:
    deployed, lock = locked
    with served(deployed) as ann:
        lock.execute("BEGIN IMMEDIATE")
        refused = ann.post("/v1/datasets/events/run", json=COUNT)
        lock.execute("ROLLBACK")
        assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "unavailable")
        assert "reserve" not in kinds_of_entries(deployed, "events")
        run = partial(ann.post, "/v1/datasets/events/run", json=COUNT)
        assert patiently(run).status_code == 200
    assert kinds_of_entries(deployed, "events").count("reserve") == 1
