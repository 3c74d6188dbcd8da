"""Threads that share a transaction on SQLite: each gets its own answer, after the commit."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import farthing as fa
from farthing.ledger import DoesNotFit, Ledger, NotInLedger, Unavailable, verify
from farthing.ledger.quick import Quick
from farthing.ledger.together import MOST, Ticket
from tests.ledger.conftest import fill


@pytest.fixture
def ledger(tmp_path: Path, certificate: fa.Certificate) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "budget.db") as ledger:
        fill(ledger, certificate)
        yield ledger


def at_once(ledger: Ledger, works: list[Callable[[], object]]) -> list[Future[object]]:
    """Let everybody queue up before anybody gets a turn."""
    queue = ledger.store._quick._queue
    with ThreadPoolExecutor(len(works)) as pool, queue._turn:
        futures = [pool.submit(work) for work in works]
        while len(queue._waiting) < len(works):
            time.sleep(0.001)
    return futures


def spend(ledger: Ledger, times: int, who: str = "ann") -> Callable[[], object]:
    return lambda: ledger.reserve("events", who, {"select": times})


@pytest.fixture
def sizes(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many works each transaction took."""
    quick, seen = ledger.store._quick, []
    together = quick._together

    def watched(tickets: list[Ticket]) -> None:
        seen.append(len(tickets))
        together(tickets)

    monkeypatch.setattr(quick, "_together", watched)
    return seen


def test_one_transaction_serves_everybody(ledger: Ledger, sizes: list[int]) -> None:
    before = ledger.remaining("events", "ann").farthings
    held = [future.result() for future in at_once(ledger, [spend(ledger, n) for n in (1, 2, 3, 4)])]
    assert sizes == [4]
    assert len({reservation.entry for reservation in held}) == 4
    assert ledger.remaining("events", "ann").farthings == before - 10
    verify(ledger)


def test_a_refusal_takes_nothing_of_the_others_with_it(ledger: Ledger, sizes: list[int]) -> None:
    before = ledger.remaining("events", "ann").farthings
    good, much, stranger, last = at_once(
        ledger,
        [spend(ledger, 1), spend(ledger, 401), spend(ledger, 1, "eve"), spend(ledger, 2)],
    )
    assert isinstance(much.exception(), DoesNotFit)
    assert isinstance(stranger.exception(), NotInLedger)
    assert good.result() != last.result()
    assert ledger.remaining("events", "ann").farthings == before - 3
    assert sizes[0] == 4
    verify(ledger)


def test_what_is_not_committed_is_nobody_s(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk at the commit: everybody hears of it, and nothing is written."""
    ledger.reserve("events", "ann", {"select": 1})
    (run,) = ledger.store._quick._idle
    before, count = ledger.remaining("events", "ann"), len(list(ledger.entries("events")))

    class Full:
        def __init__(self, connection: sqlite3.Connection) -> None:
            self.connection = connection

        def __getattr__(self, name: str) -> object:
            return getattr(self.connection, name)

        def commit(self) -> None:
            raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(run, "connection", Full(run.connection))
    for future in at_once(ledger, [spend(ledger, 1) for _ in range(3)]):
        assert isinstance(future.exception(), Unavailable)
        assert "disk is full" in str(future.exception())
    monkeypatch.undo()
    assert ledger.remaining("events", "ann") == before
    assert len(list(ledger.entries("events"))) == count
    verify(ledger)


def test_who_waited_for_an_interrupted_thread_tries_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = ledger.store._quick
    one, done = quick._one_of_them, []

    def interrupted(run: Quick, ticket: Ticket) -> None:
        if not done:
            done.append(ticket)
            raise KeyboardInterrupt
        one(run, ticket)

    monkeypatch.setattr(quick, "_one_of_them", interrupted)
    before = ledger.remaining("events", "ann").farthings
    futures = at_once(ledger, [spend(ledger, 1) for _ in range(4)])
    errors = [future.exception() for future in futures]
    assert [type(error) for error in errors if error is not None] == [KeyboardInterrupt]
    assert ledger.remaining("events", "ann").farthings == before - 3
    verify(ledger)


def test_a_transaction_has_an_end(ledger: Ledger, sizes: list[int]) -> None:
    at_once(ledger, [spend(ledger, 1) for _ in range(5)])
    many = [spend(ledger, 500) for _ in range(MOST + 3)]
    for future in at_once(ledger, many):
        assert isinstance(future.exception(), DoesNotFit)
    assert max(sizes) == MOST


def test_a_fork_does_not_wait_for_the_parent_s_threads(ledger: Ledger) -> None:
    with ledger.store._quick._queue._turn:
        child = os.fork()
        if child == 0:
            ledger.reserve("events", "ann", {"select": 1})
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    verify(ledger)
