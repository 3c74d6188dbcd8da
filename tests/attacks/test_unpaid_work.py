"""Planning is free. Forty-five batches of five hundred questions took every thread and minutes of
processor: nobody else was answered, not even about whether the service lives."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from farthing.server.problems import Refused
from farthing.server.protection import UNPAID_AT_ONCE, UnpaidWork
from farthing.server.routes.requests import Inquiry
from tests.server.in_process import prepared, served
from tests.waiting import HANGS, until

EVENTS = "/v1/datasets/events"
COUNT = {"query": {"kind": "count"}}
MANY = 60  # more than the threads of a worker


@pytest.mark.parametrize("path", ["plan", "run", "releases", "conversations?plan=1"])
def test_others_are_answered_while_somebody_has_much_planned(tmp_path, monkeypatch, path) -> None:
    deployed = prepared(tmp_path)
    begun, go_on = threading.Semaphore(0), threading.Event()
    of = Inquiry._by.__func__

    def held(cls, service, analyst):
        if analyst.name == "ann":
            begun.release()
            assert go_on.wait(120)
        return of(cls, service, analyst)

    monkeypatch.setattr(Inquiry, "_by", classmethod(held))
    with served(deployed, requests_per_minute=1000) as ann, ThreadPoolExecutor(MANY) as pool:

        def send(_: int) -> int:
            if path == "releases":
                return ann.get(f"{EVENTS}/{path}").status_code
            body = {"kind": "threshold"} if "plan=1" in path else COUNT
            return ann.post(f"{EVENTS}/{path}", json=body).status_code

        sent = [pool.submit(send, number) for number in range(MANY)]
        try:
            assert begun.acquire(timeout=HANGS)
            with deployed.client("bob") as bob:
                assert bob.get("/health").status_code == 200
                assert bob.get("/v1/me").json()["name"] == "bob"
                assert bob.post(f"{EVENTS}/plan", json=COUNT).status_code == 200
                assert bob.post(f"{EVENTS}/run", json=COUNT).status_code == 200
            assert not begun.acquire(blocking=False), "one of a caller at a time"
        finally:
            go_on.set()
        assert {one.result() for one in sent} <= {200, 429}


def spin(seconds: float) -> None:
    begun = time.thread_time()
    while time.thread_time() - begun < seconds:
        pass


def test_processor_time_that_was_not_paid_for_runs_out() -> None:
    unpaid = UnpaidWork(0.2)
    asyncio.run(unpaid.do("ann", lambda: spin(0.5)))  # more than there is leaves a debt
    with pytest.raises(Refused, match="s of processor a minute") as refused:
        asyncio.run(unpaid.do("ann", lambda: None))
    assert (refused.value.status, refused.value.kind) == (429, "too_much_work")
    assert int(refused.value.headers["Retry-After"]) >= 1
    assert asyncio.run(unpaid.do("bob", lambda: "planned")) == "planned"


def test_work_that_fails_is_counted_too_and_waiting_is_not() -> None:
    unpaid = UnpaidWork(0.2)
    asyncio.run(unpaid.do("ann", lambda: time.sleep(0.5)))

    def refuse() -> None:
        spin(0.5)
        raise Refused(422, "invalid", "no")

    with pytest.raises(Refused, match="no"):
        asyncio.run(unpaid.do("ann", refuse))
    with pytest.raises(Refused, match="processor"):
        asyncio.run(unpaid.do("ann", lambda: None))


def test_a_few_at_once_and_one_of_a_caller() -> None:
    unpaid, most, now, turn = UnpaidWork(60.0), [0], [0], threading.Lock()

    def work() -> None:
        with turn:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.02)
        with turn:
            now[0] -= 1

    async def all_of(callers: list[str]) -> None:
        await asyncio.gather(*(unpaid.do(one, work) for one in callers))

    asyncio.run(all_of(["ann"] * 10))
    assert most == [1]
    asyncio.run(all_of([f"caller {number}" for number in range(10)]))
    assert most == [UNPAID_AT_ONCE]
    assert not unpaid._turns, "nothing is kept of who is served"


def test_a_refused_run_is_unpaid_work(tmp_path) -> None:
    deployed = prepared(tmp_path)
    with served(deployed, unpaid_seconds_per_minute=0.01) as ann:
        dear = {"query": {"kind": "top_k", "by": "name", "k": 5000}}

        def refused() -> bool:
            return ann.post(f"{EVENTS}/run", json=dear).json()["error"]["kind"] == "too_much_work"

        until(refused)
        assert ann.get("/v1/me").status_code == 200
