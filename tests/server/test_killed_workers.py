"""kill −9 in the middle of a question: what was reserved stays spent, and the service goes on."""

from __future__ import annotations

import os
import signal

import httpx

from farthing.ledger import Ledger, verify
from tests.server.deployment import Deployment
from tests.waiting import until

SLOW, EVENTS = "/v1/datasets/slow", "/v1/datasets/events"
COUNT = {"query": {"kind": "count"}}


def spent(deployed: Deployment) -> int:
    with Ledger.open(deployed.ledger) as ledger:
        (purse,) = ledger.reader().purses("slow")
        return purse.farthings_spent


def answers(deployed: Deployment) -> bool:
    try:
        with deployed.client("ann") as ann:
            return ann.get(EVENTS).status_code == 200
    except httpx.TransportError:
        return False


def test_killed_workers_are_replaced_and_nothing_comes_back(deploy) -> None:
    deployed: Deployment = deploy(workers=2)
    headers = {"Prefer": "respond-async", "Idempotency-Key": "killed"}
    with deployed.client("ann") as ann:
        begun = ann.post(f"{SLOW}/run", json=COUNT, headers=headers).json()
    identity = begun["job"]["id"]
    until(lambda: spent(deployed) == 4)
    killed = deployed.workers()
    assert len(killed) == 2
    for worker in killed:
        os.kill(worker, signal.SIGKILL)
    until(lambda: answers(deployed))
    assert spent(deployed) == 4  # reserved, and never given back
    with deployed.client("ann") as ann:
        assert ann.post(f"{EVENTS}/run", json=COUNT).status_code == 200
        until(lambda: ann.get(f"/v1/jobs/{identity}").json()["job"]["state"] == "lost")
        again = ann.post(f"{SLOW}/run", json=COUNT, headers=headers).json()
        assert again == begun  # the key names the job that is lost, and runs nothing
    assert spent(deployed) == 4
    with Ledger.open(deployed.ledger) as ledger:
        assert len(ledger.reader().open_reservations("slow")) == 1
        verify(ledger.reader())
    assert deployed.stop() == 0, deployed.log


def test_the_whole_service_is_killed_and_started_again(deploy) -> None:
    deployed: Deployment = deploy()
    with deployed.client("ann") as ann:
        told = ann.post(f"{EVENTS}/run", json=COUNT).json()
        later = {"Prefer": "respond-async"}
        assert ann.post(f"{SLOW}/run", json=COUNT, headers=later).status_code == 202
    until(lambda: spent(deployed) == 4)
    assert deployed.process is not None
    deployed.process.kill()
    deployed.process.wait()
    deployed.start()
    assert spent(deployed) == 4
    with deployed.client("ann") as ann:
        again = ann.post(f"{EVENTS}/run", json=COUNT).json()
        assert again["id"] == told["id"]
        assert again["answer"]["cached"]
