"""What a run over HTTP costs the service: one plan, and few looks into the ledger."""

from __future__ import annotations

import httpx
import pytest

from farthing.engine import local
from tests.engine.test_transactions import counted
from tests.server.deployment import Deployment
from tests.server.in_process import prepared, served

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
