"""The service comes back by itself: from kills, from a busy machine, from a database that is away.

Only what starting again would not mend ends it, with a sentence and a code that is not 0.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from farthing.errors import InvalidInput
from farthing.ledger import Ledger, verify
from farthing.server import serving
from tests.ledger.server import Server
from tests.server.deployment import Deployment
from tests.waiting import until

EVENTS = "/v1/datasets/events"
BUSY = [sys.executable, "-c", "while True: pass"]
#: Longer than uvicorn's own supervisor waits for the answer to a ping.
SILENT_SECONDS = 8


@contextmanager
def busy_machine(processes: int) -> Iterator[None]:
    """So many processes beside that take all they can get."""
    started = [subprocess.Popen(BUSY) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_worker_that_is_slow_is_left_alone(deploy) -> None:
    with busy_machine(6):
        deployed: Deployment = deploy(workers=2)
        until(lambda: len(deployed.workers()) == 2)
        workers = deployed.workers()
        for worker in workers:  # as in a proof that holds the interpreter
            os.kill(worker, signal.SIGSTOP)
        time.sleep(SILENT_SECONDS)
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
        with deployed.client("ann") as ann:
            assert ann.get("/v1/me").status_code == 200
        assert deployed.workers() == workers


class Clients:
    """Callers that never pause, and what they are told."""

    def __init__(self, deployed: Deployment, number: int) -> None:
        self._deployed = deployed
        self._stop = threading.Event()
        self.told: list[Counter[str]] = [Counter() for _ in range(number)]
        self._threads = [threading.Thread(target=self._call, args=(one,)) for one in self.told]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _call(self, told: Counter[str]) -> None:
        body = {"query": {"kind": "count"}, "again": True}
        while not self._stop.is_set():
            try:
                with self._deployed.client("ann") as client:
                    while not self._stop.is_set():
                        told[str(client.get("/v1/me").status_code)] += 1
                        told[str(client.post(f"{EVENTS}/run", json=body).status_code)] += 1
            except httpx.TransportError:
                told["cut"] += 1

    def wait_for_more(self) -> None:
        """Until everybody has been answered again."""
        before = [one["200"] for one in self.told]
        until(lambda: all(one["200"] > then for one, then in zip(self.told, before, strict=True)))


def test_the_ledger_s_server_restarts_and_a_worker_dies_meanwhile(
    deploy, postgres: Server, postgres_url: str
) -> None:
    wide = {"requests_per_minute": 10**7, "jobs_at_once": 64}
    deployed: Deployment = deploy(postgres_url, wide, workers=2)
    with Clients(deployed, 6) as clients:
        clients.wait_for_more()
        first, second = deployed.workers()
        postgres.halt("immediate")
        os.kill(first, signal.SIGKILL)
        until(lambda: len({*deployed.workers()} - {first, second}) == 1)
        time.sleep(2)
        postgres.begin()
        clients.wait_for_more()
    found = sum(clients.told, Counter())
    assert set(found) <= {"200", "402", "503", "cut"}, found
    assert second in deployed.workers()
    assert len(deployed.workers()) == 2
    with Ledger.open(deployed.ledger) as ledger:
        verify(ledger.reader())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_database_that_is_away_at_the_start_is_waited_for(
    deploy, postgres: Server, postgres_url: str, workers: int
) -> None:
    deployed: Deployment = deploy(postgres_url, workers=workers)
    assert deployed.stop() == 0
    postgres.halt("fast")
    try:
        deployed.begin()
        deployed.wait_for(lambda: "waiting: the ledger at postgresql" in deployed.log)
    finally:
        postgres.begin()
    deployed.wait_until_ready()
    assert "Traceback" not in deployed.log


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_the_configuration_ends_it_at_once(deploy, workers: int) -> None:
    deployed: Deployment = deploy(workers=workers)
    assert deployed.stop() == 0
    text = deployed.configuration.read_text(encoding="utf-8")
    deployed.configuration.write_text(text.replace("datasets.events", "datasets.other"))
    told = subprocess.run(
        [sys.executable, "-m", "farthing", "serve", "--config", str(deployed.configuration)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 2
    (sentence,) = told.stderr.splitlines()  # once, whatever the number of workers
    assert sentence.startswith("farthing: this data is in the ledger as events")


def test_workers_end_with_their_parent(deploy) -> None:
    """Else they would keep the port, and nobody could stop them."""
    deployed: Deployment = deploy(workers=2)
    workers = deployed.workers()
    assert deployed.process is not None
    deployed.process.kill()
    deployed.process.wait()
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    deployed.start()


def test_the_runs_of_a_dead_worker_are_not_counted(deploy) -> None:
    deployed: Deployment = deploy(workers=2)
    with deployed.client("ann") as ann:
        slow = {"query": {"kind": "count"}}
        later = {"Prefer": "respond-async"}
        assert ann.post("/v1/datasets/slow/run", json=slow, headers=later).status_code == 202

        def active() -> set[str]:
            lines = ann.get("/metrics").text.splitlines()
            return {line.split()[1] for line in lines if line.startswith("farthing_runs_active ")}

        until(lambda: active() == {"1.0"})  # asked of the worker that runs it
        for worker in deployed.workers():
            os.kill(worker, signal.SIGKILL)
    deployed.wait_until_ready()
    with deployed.client("ann") as ann:
        until(lambda: active() == {"0.0"})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[serving.Place]:
    """Where a worker would run."""
    monkeypatch.setenv(serving.FOLDER, str(tmp_path))
    with socket.socket() as listening:
        yield serving.Place(str(tmp_path), listening)


def ended(place: serving.Place) -> float:
    """Start a worker, wait until it has died, and how long the place then stays empty at most."""
    until(lambda: place.look() or place.process is not None)
    assert place.process is not None
    place.process.join()
    place.look()
    return place.pause


def test_pauses_grow_while_workers_die_young(
    place: serving.Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_work", lambda *_: os._exit(1))
    monkeypatch.setattr(serving, "LONGEST_PAUSE", 0.3)
    assert [ended(place) for _ in range(4)] == [0.1, 0.2, 0.3, 0.3]
    monkeypatch.setattr(serving, "YOUNG_SECONDS", 0.0)
    assert ended(place) == 0.0


def test_what_starting_again_would_not_mend_is_told_once(
    place: serving.Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "read_settings", _refuse)
    with pytest.raises(InvalidInput, match="workers must be"):
        ended(place)


def _refuse(_: str) -> None:
    raise InvalidInput("workers must be at least 1")
