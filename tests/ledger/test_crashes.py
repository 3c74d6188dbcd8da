"""kill −9 in the middle of reserving and closing, and a server that goes away under load."""

from __future__ import annotations

import multiprocessing
import random
import time

import pytest

import farthing as fa
from farthing.ledger import DoesNotFit, Ledger, verify
from tests.ledger import workers
from tests.ledger.conftest import fill
from tests.ledger.server import Server
from tests.ledger.test_races import start

Context = multiprocessing.context.ForkServerContext

KILLS = 200


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing_and_overspend_nothing(
    target: str, certificate: fa.Certificate, processes: Context
) -> None:
    with Ledger.open(target) as ledger:
        fill(ledger, certificate)
        ledger.owner().grant("events", "ann", farthings=400)
    choose = random.Random(5)
    acknowledged: list[tuple[str, int]] = []
    for seed in range(KILLS):
        process, pipe = start(processes, workers.spend_forever, target, seed)
        acknowledged.append(pipe.recv())
        time.sleep(choose.random() * 0.02)
        process.kill()
        process.join()
        acknowledged += _drain(pipe)
        pipe.close()
    with Ledger.open(target, upgrade=False) as ledger:
        verify(ledger.reader())
        written = [told for told in acknowledged if told[0] != "refused"]
        found = steps(ledger)
        assert set(written) <= set(found)
        assert len(set(written)) == len(written) > KILLS / 2
        # at most the operation that was under way when the process died is unacknowledged
        assert len(found) - len(written) <= KILLS
        _check_balances(ledger)


def steps(ledger: Ledger) -> list[tuple[str, int]]:
    """What was done about which reservation, as the book tells it."""
    book = ledger.reader().entries("events", "reserve", "close", "abandon")
    return [(entry.kind, getattr(entry.fact, "settles", entry.number)) for entry in book]


def wait_for(target: str, count: int) -> None:
    """Until so much was done that it is under way."""
    with Ledger.open(target, upgrade=False) as ledger:
        while len(steps(ledger)) < count:
            time.sleep(0.02)


def _drain(pipe: multiprocessing.connection.Connection) -> list[tuple[str, int]]:
    found = []
    try:
        while True:
            found.append(pipe.recv())
    except (EOFError, OSError):
        return found


def _check_balances(ledger: Ledger) -> None:
    """Never more spent than granted, and what is open or abandoned is spent."""
    (account,) = ledger.reader().accounts("events")
    (purse,) = ledger.reader().purses("events")
    entries = list(ledger.reader().entries("events"))
    spent = sum(e.fact.farthings for e in entries if e.kind in ("reserve", "close"))
    assert account.farthings_spent == purse.farthings_spent == spent <= 500
    held = ledger.reader().open_reservations("events")
    assert held  # some were killed between reserving and closing
    for reservation in held:
        ledger.owner().abandon(reservation, reason="found open after a crash")
    assert ledger.reader().purses("events") == [purse]
    with pytest.raises(DoesNotFit):
        ledger.analyst("events", "ann").reserve({"select": 501 - spent})


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_the_server_restarts_under_load(
    postgres: Server,
    postgres_url: str,
    certificate: fa.Certificate,
    processes: Context,
    mode: str,
) -> None:
    with Ledger.open(postgres_url) as ledger:
        fill(ledger, certificate)
        ledger.owner().grant("events", "ann", farthings=10**6)
    running = [start(processes, workers.spend_until_told, postgres_url) for _ in range(4)]
    for _, pipe in running:
        assert pipe.recv() == "ready"
    wait_for(postgres_url, 20)
    postgres.restart(mode)
    wait_for(postgres_url, 60)
    acknowledged: list[tuple[str, int]] = []
    for process, pipe in running:
        pipe.send("stop")
        entries, strange = pipe.recv()
        assert strange == []  # every process waited and went on
        acknowledged += entries
        process.join()
        pipe.close()
    with Ledger.open(postgres_url) as ledger:
        verify(ledger.reader())
        book = steps(ledger)
        # what was cut off in its commit was found again by its token: nothing lost, nothing twice
        assert sorted(acknowledged) == sorted(book)
        assert len(book) >= 60
        (account,) = ledger.reader().accounts("events")
        assert account.farthings_spent == len(ledger.reader().open_reservations("events")) == 0
