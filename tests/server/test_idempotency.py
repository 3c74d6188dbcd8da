"""A request that is sent again is charged once and answered once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from farthing.ledger.errors import Unavailable
from farthing.server.access import AccessStore
from farthing.server.problems import Refused
from farthing.server.routes.dependencies import is_used, once
from farthing.server.routes.requests import on_time
from tests.server.deployment import Deployment

EVENTS = "/v1/datasets/events"
NORWAY = {"query": {"kind": "count", "where": {"country": "NO"}}, "again": True}


def sent(store: AccessStore, work: Callable[[], tuple[int, dict[str, object]]]) -> Any:
    """What comes of a request under a key."""

    async def go() -> tuple[int, dict[str, object]]:
        return work()

    return asyncio.run(once(store, "ann", "key", {"a": 1}, go))


def left(client: httpx.Client) -> int:
    return int(client.get(f"{EVENTS}/purse").json()["left"]["farthings"])


def test_the_same_again_is_the_same_answer_at_no_cost(ann: httpx.Client) -> None:
    before = left(ann)
    key = {"Idempotency-Key": "one"}
    first = ann.post(f"{EVENTS}/run", json=NORWAY, headers=key)
    assert first.status_code == 200
    for _ in range(3):
        again = ann.post(f"{EVENTS}/run", json=NORWAY, headers=key)
        assert (again.status_code, again.json()) == (200, first.json())
    assert left(ann) == before - 4
    assert ann.post(f"{EVENTS}/run", json=NORWAY).status_code == 200  # without it: paid anew
    assert left(ann) == before - 8


def test_another_body_under_the_same_key_is_refused(ann: httpx.Client) -> None:
    key = {"Idempotency-Key": "two"}
    assert ann.post(f"{EVENTS}/run", json=NORWAY, headers=key).status_code == 200
    before = left(ann)
    for body in ({**NORWAY, "again": False}, {"query": {"kind": "count"}}):
        other = ann.post(f"{EVENTS}/run", json=body, headers=key)
        assert other.status_code == 409
        assert other.json()["error"]["kind"] == "key_reused"
    elsewhere = ann.post("/v1/datasets/slow/run", json=NORWAY, headers=key)
    assert elsewhere.status_code == 409
    assert left(ann) == before


def test_keys_of_two_callers_are_two_keys(ann: httpx.Client, bob: httpx.Client) -> None:
    key = {"Idempotency-Key": "three"}
    hers = ann.post(f"{EVENTS}/run", json=NORWAY, headers=key).json()
    before = left(bob)
    his = bob.post(f"{EVENTS}/run", json={"query": {"kind": "count"}}, headers=key)
    assert his.status_code == 200
    assert left(bob) == before - 4
    assert his.json() != hers


def test_many_at_once_are_charged_once(ann: httpx.Client) -> None:
    before = left(ann)

    def send(_: int) -> httpx.Response:
        return ann.post(f"{EVENTS}/run", json=NORWAY, headers={"Idempotency-Key": "four"})

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(send, range(16)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    told = {str(one.json()["answer"]["counts"]) for one in answers if one.status_code == 200}
    assert len(told) == 1
    refused = {one.json()["error"]["kind"] for one in answers if one.status_code == 409}
    assert refused <= {"key_in_use"}
    assert left(ann) == before - 4


def test_a_refusal_leaves_the_key_free(ann: httpx.Client) -> None:
    key = {"Idempotency-Key": "five"}
    dear = {"query": {"kind": "top_k", "by": "name", "k": 5000}}
    assert ann.post(f"{EVENTS}/run", json=dear, headers=key).status_code == 402
    assert ann.post(f"{EVENTS}/run", json=NORWAY, headers=key).status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_strange_keys_are_refused(ann: httpx.Client, key: str) -> None:
    answer = ann.post(f"{EVENTS}/run", json=NORWAY, headers={"Idempotency-Key": key})
    assert answer.status_code in (400, 422)


def test_a_conversation_is_opened_once(ann: httpx.Client) -> None:
    before = left(ann)
    opened = [
        ann.post(
            f"{EVENTS}/conversations",
            json={"kind": "threshold"},
            headers={"Idempotency-Key": "six"},
        ).json()
        for _ in range(2)
    ]
    assert opened[0]["id"] == opened[1]["id"]
    assert left(ann) == before - 4


def test_what_is_free_takes_no_key(ann: httpx.Client, deployed: Deployment) -> None:
    """Else one release could be copied into the database again and again."""
    asked = {"query": {"kind": "count", "where": {"age": 71}}}
    first = ann.post(f"{EVENTS}/run", json=asked, headers={"Idempotency-Key": "paid"}).json()
    again = ann.post(f"{EVENTS}/run", json=asked, headers={"Idempotency-Key": "paid"}).json()
    assert again == first
    known = ann.post(f"{EVENTS}/run", json=asked, headers={"Idempotency-Key": "free"}).json()
    assert known["answer"]["cached"]
    assert known["answer"]["counts"] == first["answer"]["counts"]
    store = AccessStore(deployed.access)
    assert is_used(store, "analyst:ann", "paid")
    assert not is_used(store, "analyst:ann", "free")
    store.shut()


def test_a_worker_that_died_leaves_a_key_that_runs_nothing(tmp_path) -> None:
    store = AccessStore(str(tmp_path / "access.db"))

    class Killed(BaseException):
        pass

    def die() -> tuple[int, dict[str, object]]:
        raise Killed

    with pytest.raises(Killed):
        sent(store, die)
    with pytest.raises(Refused, match="has begun and was not answered"):
        sent(store, lambda: (200, {}))
    store.shut()


def test_what_is_not_there_now_leaves_the_key_free(tmp_path) -> None:
    store = AccessStore(str(tmp_path / "access.db"))

    def absent() -> tuple[int, dict[str, object]]:
        raise Unavailable("not now")

    assert sent(store, absent)[0] == 503
    assert sent(store, lambda: (200, {"b": 2})) == (200, {"b": 2})
    assert sent(store, absent) == (200, {"b": 2})
    store.shut()


def test_a_ledger_that_fails_while_it_is_paid_is_no_reason_to_pay_again(tmp_path) -> None:
    store = AccessStore(str(tmp_path / "access.db"))
    paid = []

    def pay() -> dict[str, object]:
        paid.append(1)
        raise Unavailable("lost after it was written")

    inquiry = SimpleNamespace(
        service=SimpleNamespace(runner=SimpleNamespace(wait_for_the_clock=lambda: None))
    )
    for _ in range(2):
        told = sent(store, lambda: (200, on_time(inquiry, pay)))
        assert (told[0], told[1]["error"]["kind"]) == (500, "unsure")
    assert paid == [1]
    store.shut()
