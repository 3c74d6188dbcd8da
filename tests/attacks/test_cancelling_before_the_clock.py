"""Answers leave on a clock, so that running time tells little. Who cancelled a run at an instant of
their choice found a release if the engine had finished by then, and none if it had not."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from farthing.engine.sources.duckdb import DuckDBSource
from farthing.server.access import AccessStore
from farthing.server.jobs import JobRecords
from tests.server.in_process import HeldClock, kinds_of_entries, prepared, served
from tests.waiting import HANGS, until

EVENTS = "/v1/datasets/events"
LATER = {"Prefer": "respond-async"}


def cancel(client: Any, deployed: Any, job: str, elsewhere: bool) -> None:
    if not elsewhere:
        assert client.delete(f"/v1/jobs/{job}").json()["job"]["state"] == "cancelled"
        return
    store = AccessStore(deployed.access)  # as another worker writes it
    JobRecords(store).cancel(job)
    store.shut()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_was_cancelled_before_the_clock_struck_is_not_released(
    tmp_path,
    monkeypatch,
    elsewhere,
) -> None:
    deployed = prepared(tmp_path, release_every=3600)
    with served(deployed) as ann:
        clock = HeldClock(monkeypatch)
        asked = {"query": {"kind": "count"}}
        job = ann.post(f"{EVENTS}/run", json=asked, headers=LATER).json()["job"]["id"]
        assert clock.waited_for.wait(HANGS)  # the engine has finished
        cancel(ann, deployed, job, elsewhere)
        clock.strike()
        until(lambda: kinds_of_entries(deployed, "events")[-1] != "reserve")
        assert kinds_of_entries(deployed, "events")[-1] == "abandon"
        assert ann.get(f"{EVENTS}/releases").json()["releases"] == []
        assert ann.get(f"{EVENTS}/purse").json()["farthings_spent"] == 4
        job = ann.get(f"/v1/jobs/{job}").json()["job"]
        assert (job["state"], job["result"]) == ("cancelled", None)


def test_what_is_cancelled_after_the_clock_struck_was_released(
    tmp_path,
    monkeypatch,
) -> None:
    deployed = prepared(tmp_path, release_every=3600)
    with served(deployed) as ann:
        HeldClock(monkeypatch).strike()
        asked = {"query": {"kind": "count"}}
        job = ann.post(f"{EVENTS}/run", json=asked, headers=LATER).json()["job"]["id"]
        until(lambda: ann.get(f"/v1/jobs/{job}").json()["job"]["state"] == "done")
        ann.delete(f"/v1/jobs/{job}")
        assert len(ann.get(f"{EVENTS}/releases").json()["releases"]) == 1


@pytest.mark.parametrize("finished", [True, False])
def test_a_conversation_ends_whether_or_not_the_engine_had_finished(
    tmp_path,
    monkeypatch,
    finished,
) -> None:
    deployed = prepared(tmp_path, release_every=3600)
    dataset = "events" if finished else "slow"
    path = f"/v1/datasets/{dataset}/conversations"
    with served(deployed, answer_within=0.0) as ann:
        job = ann.post(path, json={"kind": "threshold"}).json()["job"]["id"]
        until(lambda: ann.get(f"/v1/jobs/{job}").json()["job"]["state"] == "done")
        talk = ann.get(path).json()["conversations"][0]["id"]
        clock, begun, fetch = HeldClock(monkeypatch), threading.Event(), DuckDBSource.fetch

        def noticed(*given):
            begun.set()
            return fetch(*given)

        monkeypatch.setattr(DuckDBSource, "fetch", noticed)
        body = {"questions": [{"query": {"kind": "count"}, "threshold": 10}]}
        job = ann.post(f"{path}/{talk}/ask", json=body).json()["job"]["id"]
        assert (clock.waited_for if finished else begun).wait(HANGS)
        ann.delete(f"/v1/jobs/{job}")
        assert clock.waited_for.wait(HANGS)
        assert ann.get(f"{path}/{talk}").json()["open"], "nothing shows before the clock strikes"
        clock.strike()
        until(lambda: not ann.get(f"{path}/{talk}").json()["open"])
        assert ann.get(f"{path}/{talk}").json()["transcript"] == []
