"""Runs that take long: named, followed, limited, cancelled; nothing is paid back."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from farthing.server.routes.everybody import MOST_STREAMS
from tests.server.conftest import served
from tests.server.deployment import Deployment
from tests.waiting import until

SLOW, EVENTS = "/v1/datasets/slow", "/v1/datasets/events"
COUNT = {"query": {"kind": "count"}}
LATER = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def hasty(tmp_path_factory, certificate):
    """A service that makes a job of everything, and waits for nobody when it stops."""
    place = tmp_path_factory.mktemp("hasty")
    limits = {"time_limit": 600.0, "answer_within": 0, "jobs_at_once": 2, "grace": 1.0}
    one = Deployment(place, str(place / "budget.db"), limits=limits)
    one.prepare(certificate)
    yield from served(one)


def until_over(client: httpx.Client, identity: str) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        return dict(client.get(f"/v1/jobs/{identity}").json()["job"])

    until(lambda: look()["state"] != "running")
    return look()


def until_paid(client: httpx.Client, before: int) -> None:
    until(lambda: client.get(f"{SLOW}/purse").json()["left"]["farthings"] < before)


def test_a_run_that_is_not_waited_for(hasty: Deployment) -> None:
    with hasty.client("ann") as ann:
        begun = ann.post(f"{EVENTS}/run", json=COUNT, headers=LATER)
        assert begun.status_code == 202
        job = until_over(ann, begun.json()["job"]["id"])
        assert (job["state"], job["status"]) == ("done", 200)
        told = ann.post(f"{EVENTS}/run", json=COUNT).json()
        if "job" in told:
            told = until_over(ann, told["job"]["id"])["result"]
        assert told["answer"]["cached"]
        assert job["result"]["answer"]["counts"] == told["answer"]["counts"]


def test_a_refusal_is_the_outcome_of_a_job(hasty: Deployment) -> None:
    dear = {"query": {"kind": "count", "where": {"age": 3}, "repeats": 60}}
    with hasty.client("ann") as ann:
        begun = ann.post(f"{EVENTS}/run", json=dear, headers=LATER).json()
        job = until_over(ann, begun["job"]["id"])
        assert job["status"] == 402
        assert job["result"]["error"]["kind"] == "does_not_fit"


def test_a_run_that_takes_long_becomes_a_job_and_ends_at_its_limit(deploy) -> None:
    with deploy(limits={"time_limit": 10.0, "answer_within": 0.5}).client("ann") as ann:
        before = ann.get(f"{SLOW}/purse").json()["left"]["farthings"]
        begun = ann.post(f"{SLOW}/run", json=COUNT)
        assert begun.status_code == 202
        identity = begun.json()["job"]["id"]
        with ann.stream("GET", f"/v1/jobs/{identity}/events") as stream:
            lines = [line for line in stream.iter_lines() if line]
        names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
        assert names[0] == "progress"
        assert names[-1] == "end"
        last = json.loads(lines[-1].removeprefix("data: "))["job"]
        assert last["status"] == 408
        assert last["result"]["error"]["kind"] == "time_limit"
        assert ann.get(f"{SLOW}/purse").json()["left"]["farthings"] == before - 4


def test_a_job_goes_on_without_its_client_and_is_cancelled_at_no_refund(
    hasty: Deployment,
) -> None:
    where = {"query": {"kind": "count", "where": {"name": "word"}}}
    with hasty.client("ann") as ann:
        before = ann.get(f"{SLOW}/purse").json()["left"]["farthings"]
        identity = ann.post(f"{SLOW}/run", json=where, headers=LATER).json()["job"]["id"]
    with hasty.client("ann") as ann:  # another connection
        until_paid(ann, before)
        assert ann.get(f"/v1/jobs/{identity}").json()["job"]["state"] == "running"
        assert ann.delete(f"/v1/jobs/{identity}").json()["job"]["state"] == "cancelled"
        assert ann.delete(f"/v1/jobs/{identity}").json()["job"]["state"] == "cancelled"
        assert ann.get(f"{SLOW}/purse").json()["left"]["farthings"] == before - 4
        assert ann.get(f"{SLOW}/releases").json()["releases"] == []


def test_so_many_streams_at_once_and_no_more(hasty: Deployment) -> None:
    asked = {"query": {"kind": "count", "repeats": 5}}
    with hasty.client("ann") as ann, ExitStack() as streams:
        path = f"/v1/jobs/{ann.post(f'{SLOW}/run', json=asked, headers=LATER).json()['job']['id']}"
        followed = [
            streams.enter_context(ann.stream("GET", f"{path}/events")).iter_lines()
            for _ in range(MOST_STREAMS)
        ]
        assert {next(lines) for lines in followed} == {"retry: 1000"}
        refused = ann.get(f"{path}/events")
        assert (refused.status_code, refused.json()["error"]["kind"]) == (429, "too_many_streams")
        assert ann.get(path).status_code == 200
        ann.delete(path)
    with hasty.client("ann") as ann:  # they are over, and counted no longer
        until(lambda: ann.get(f"{path}/events").status_code == 200)


def test_so_many_at_once_and_no_more(hasty: Deployment) -> None:
    asked = [{"query": {"kind": "count", "repeats": n}} for n in (2, 3, 4)]
    with hasty.client("ann") as ann, hasty.client("bob") as bob:
        begun = [ann.post(f"{SLOW}/run", json=one, headers=LATER) for one in asked]
        assert [one.status_code for one in begun] == [202, 202, 429]
        assert begun[2].json()["error"]["kind"] == "too_many_runs"
        his = bob.post(f"{EVENTS}/run", json=COUNT, headers=LATER).json()["job"]
        assert until_over(bob, his["id"])["status"] == 200  # others are not held up
        for one in begun[:2]:
            ann.delete(f"/v1/jobs/{one.json()['job']['id']}")


def test_stopping_waits_for_nobody_for_ever(deploy) -> None:
    deployed: Deployment = deploy(limits={"answer_within": 0.2, "time_limit": 600.0})
    with deployed.client("ann") as ann:
        assert ann.post(f"{SLOW}/run", json=COUNT).status_code == 202
    assert deployed.stop() == 0
    deployed.start()
    with deployed.client("ann") as ann:
        assert ann.get(f"{SLOW}/purse").json()["farthings_spent"] == 4
