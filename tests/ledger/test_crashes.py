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


def test_two_hundred_kills_lose_nothing_and_overspend_nothing(
    target: str, certificate: fa.Certificate, processes: Context
) -> None:
    with Ledger.open(target) as ledger:
        fill(ledger, certificate)
        ledger.grant("events", "ann", farthings=400)
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
        verify(ledger)
        kinds = {entry.number: entry.kind for entry in ledger.entries("events")}
        written = [(kind, number) for kind, number in acknowledged if kind != "refused"]
        assert all(kinds[number] == kind for kind, number in written)
        assert len(set(written)) == len(written) > KILLS / 2
        # at most the operation that was under way when the process died is unacknowledged
        assert len(kinds) - 4 - len(written) <= KILLS
        _check_balances(ledger)


def _drain(pipe: multiprocessing.connection.Connection) -> list[tuple[str, int]]:
    found = []
    try:
        while True:
            found.append(pipe.recv())
    except (EOFError, OSError):
        return found


def _check_balances(ledger: Ledger) -> None:
    """Never more spent than granted, and what is open or abandoned is spent."""
    (account,) = ledger.accounts("events")
    (purse,) = ledger.purses("events")
    entries = list(ledger.entries("events"))
    spent = sum(e.fact["farthings"] for e in entries if e.kind in ("reserve", "close"))
    assert account.farthings_spent == purse.farthings_spent == spent <= 500
    held = ledger.open_reservations("events")
    assert held  # some were killed between reserving and closing
    for reservation in held:
        ledger.abandon(reservation, reason="found open after a crash")
    assert ledger.purses("events") == [purse]
    with pytest.raises(DoesNotFit):
        ledger.reserve("events", "ann", {"select": 501 - spent})


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
        ledger.grant("events", "ann", farthings=10**6)
    running = [start(processes, workers.spend_until_told, postgres_url) for _ in range(4)]
    for _, pipe in running:
        assert pipe.recv() == "ready"
    time.sleep(0.2)
    postgres.restart(mode)
    time.sleep(0.3)
    acknowledged: list[int] = []
    for process, pipe in running:
        pipe.send("stop")
        entries, strange = pipe.recv()
        assert strange == []  # every process waited and went on
        acknowledged += entries
        process.join()
        pipe.close()
    with Ledger.open(postgres_url) as ledger:
        verify(ledger)
        book = [e.number for e in ledger.entries("events") if e.kind in ("reserve", "close")]
        # what was cut off in its commit was found again by its token: nothing lost, nothing twice
        assert sorted(acknowledged) == book
        assert len(book) > 40
        (account,) = ledger.accounts("events")
        assert account.farthings_spent == len(ledger.open_reservations("events")) == 0
