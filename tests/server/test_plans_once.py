"""What a run over HTTP costs the service: one plan, and few looks into the ledger."""

from __future__ import annotations

import threading

import httpx
import pytest

from farthing.engine import Desk, local
from tests.engine.test_transactions import counted
from tests.server.deployment import Deployment
from tests.server.in_process import HeldClock, prepared, served
from tests.waiting import HANGS

EVENTS = "/v1/datasets/events"
QUERY = {"kind": "count", "where": {"country": "NO"}}


def ran(client: httpx.Client, **more: object) -> dict[str, object]:
    response = client.post("/v1/datasets/events/run", json={"query": QUERY, **more})
    assert response.status_code == 200, response.text
    found: dict[str, object] = response.json()["answer"]
    return found


def test_a_run_plans_once(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[int] = []
    honest = local.prepare

    def counting(*given, **more):
        plans.append(1)
        return honest(*given, **more)

    deployed: Deployment = prepared(tmp_path)
    with served(deployed) as client:
        client.post("/v1/datasets/events/run", json={"query": {"kind": "count"}})  # warm
        monkeypatch.setattr(local, "prepare", counting)
        with counted(monkeypatch) as first:
            assert not ran(client)["cached"]
        assert len(plans) == 1
        assert first["writes"] == 3  # reserve, close, and the record of the run
        assert first["reads"] <= 6, first
        assert ran(client)["cached"]
        assert len(plans) == 2
        with counted(monkeypatch) as repeated:
            assert ran(client)["cached"]
        assert len(plans) == 2, "the same answer was made a moment ago"
        assert repeated == {"reads": 2, "writes": 0}  # the token, and what was granted
        assert not ran(client, again=True)["cached"]
        assert len(plans) == 3


def test_the_price_guard_holds_for_asking_again(tmp_path) -> None:
    with served(prepared(tmp_path)) as client:
        ran(client)
        plan = client.post("/v1/datasets/events/plan", json={"query": QUERY}).json()
        assert plan["known"]
        for price, status in ({"farthings": 0}, 409), (plan["price_again"], 200):
            body = {"query": QUERY, "again": True, "price": price}
            response = client.post("/v1/datasets/events/run", json=body)
            assert response.status_code == status, response.text
        several = {"kind": "batch", "queries": {"a": QUERY}}
        response = client.post("/v1/datasets/events/plan", json={"query": several})
        assert response.status_code == 422  # `batch` has a limit on how many


def test_a_field_that_is_null_is_left_out(tmp_path) -> None:
    with served(prepared(tmp_path)) as client:
        body = {"kind": "threshold", "positives": 2, "item": None}
        response = client.post("/v1/datasets/events/conversations?plan=1", json=body)
        assert response.status_code == 200, response.text


def test_a_run_that_its_owner_abandons(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays spent, its key stays used, and no number of an entry is told."""
    deployed = prepared(tmp_path, release_every=3600)
    with served(deployed) as client:
        clock, told = HeldClock(monkeypatch), []
        headers = {"Idempotency-Key": "k"}

        def run() -> None:
            told.append(client.post(f"{EVENTS}/run", json={"query": QUERY}, headers=headers))

        thread = threading.Thread(target=run)
        thread.start()
        assert clock.waited_for.wait(HANGS)
        with Desk.open(deployed.ledger) as desk:
            (held,) = [e for e in desk.ledger.reader().entries("events") if e.kind == "reserve"]
            desk.abandon("events", held.number, reason="a test")
        clock.strike()
        thread.join()
        assert told[0].status_code == 500
        assert told[0].json()["error"]["kind"] == "engine_failed"
        spent = client.get(f"{EVENTS}/purse").json()["farthings_spent"]
        again = client.post(f"{EVENTS}/run", json={"query": QUERY}, headers=headers)
        assert again.status_code == 500
        assert client.get(f"{EVENTS}/purse").json()["farthings_spent"] == spent > 0
