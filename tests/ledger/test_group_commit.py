"""Threads that share a transaction on SQLite: each gets its own answer, after the commit."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

import farthing as fa
from farthing.ledger import DoesNotFit, Ledger, NotInLedger, Unavailable, verify
from farthing.ledger.store.fast_path import Patience
from tests.ledger.conftest import fill
from tests.ledger.test_faults import files_end_at
from tests.waiting import HANGS, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path: Path, certificate: fa.Certificate) -> Iterator[Ledger]:
    with Ledger.open(path) as ledger:
        fill(ledger, certificate)
        ledger.analyst("events", "ann").reserve({"select": 1})  # the terms are remembered
        yield ledger
        verify(ledger.reader())


HOLD = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read(1)
file.execute("ROLLBACK")
"""


def waiting(ledger: Ledger, others: int) -> None:
    """Until one thread writes, or waits to, and so many wait for it."""
    queue = ledger.book.store._fast._queue
    until(lambda: queue._turn.locked() and len(queue._waiting) == others)


@contextmanager
def nobody_else_writes(path: Path) -> Iterator[None]:
    """Another program holds the file; whoever writes meanwhile waits."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        yield
        other.communicate(b"\n")


def at_once(ledger: Ledger, path: Path, works: list[Callable[[], object]]) -> list[Future[object]]:
    """Let everybody wait before anybody gets a turn."""
    with ThreadPoolExecutor(len(works)) as pool, nobody_else_writes(path):
        futures = [pool.submit(work) for work in works]
        waiting(ledger, len(works) - 1)
        return futures


def spend(ledger: Ledger, times: int, who: str = "ann") -> Callable[[], object]:
    return lambda: ledger.analyst("events", who).reserve({"select": times})


def commits(path: Path) -> int:
    """How many transactions the write-ahead log holds: frames that say how long the file is."""
    log = Path(f"{path}-wal").read_bytes()
    page = struct.unpack(">I", log[8:12])[0]
    salt = log[16:24]
    frames = (log[at : at + 24] for at in range(32, len(log), page + 24))
    return sum(frame[4:8] != b"\0\0\0\0" for frame in frames if frame[8:16] == salt)


def left(ledger: Ledger) -> int:
    return ledger.analyst("events", "ann").remaining().farthings


def test_one_transaction_serves_many(ledger: Ledger, path: Path) -> None:
    before, written = left(ledger), commits(path)
    works = [spend(ledger, n) for n in (1, 2, 3, 4, 5, 6)]
    held = [future.result() for future in at_once(ledger, path, works)]
    assert len({reservation.entry for reservation in held}) == 6
    assert left(ledger) == before - 21
    assert commits(path) - written == 2  # the first one alone, then all that waited for it


def test_a_refusal_takes_nothing_of_the_others_with_it(ledger: Ledger, path: Path) -> None:
    before = left(ledger)
    first, good, much, stranger, last = at_once(
        ledger,
        path,
        [
            spend(ledger, 1),
            spend(ledger, 1),
            spend(ledger, 401),
            spend(ledger, 1, "eve"),
            spend(ledger, 2),
        ],
    )
    assert isinstance(much.exception(), DoesNotFit)
    assert isinstance(stranger.exception(), NotInLedger)
    assert len({id(future.result()) for future in (first, good, last)}) == 3
    assert left(ledger) == before - 4


def test_what_is_not_committed_is_nobody_s(ledger: Ledger, path: Path) -> None:
    """A full disk: everybody hears of it, and what is in the book is what was acknowledged."""
    before = left(ledger)
    ann = ledger.analyst("events", "ann")
    works = [lambda: ann.reserve({"select": 1}, question="x" * 400_000) for _ in range(6)]
    with files_end_at(Path(f"{path}-wal").stat().st_size + 100_000):
        futures = at_once(ledger, path, works)
    assert [type(future.exception()) for future in futures] == [Unavailable] * 6
    assert left(ledger) == before


def test_a_connection_that_cannot_be_made_is_everybody_s_error(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told of a reservation that was not made."""
    fast = ledger.book.store._fast
    borrow, tries = fast._borrow, []

    def fails_once() -> object:
        tries.append(1)
        if len(tries) == 2:  # the one that writes for all who waited
            raise DBAPIError(None, None, sqlite3.OperationalError("unable to open database file"))
        return borrow()

    before = left(ledger)
    monkeypatch.setattr(fast, "_borrow", fails_once)
    futures = at_once(ledger, path, [spend(ledger, 1) for _ in range(4)])
    errors = [type(one.exception()) for one in futures if one.exception() is not None]
    assert errors == [Unavailable]  # of the thread that met it; the others tried again
    assert all(one.exception() or one.result() for one in futures)
    assert left(ledger) == before - 3


def test_who_waited_for_an_interrupted_thread_tries_again(ledger: Ledger, path: Path) -> None:
    outcomes: dict[str, object] = {}

    def run(name: str) -> None:
        try:
            outcomes[name] = spend(ledger, 1)()
        except BaseException as error:
            outcomes[name] = error

    before = left(ledger)
    threads = [threading.Thread(target=run, args=(f"{n}",)) for n in range(4)]
    with nobody_else_writes(path):
        threads[0].start()
        waiting(ledger, 0)  # it writes for the others, as soon as it can
        for thread in threads[1:]:
            thread.start()
        waiting(ledger, 3)
        interrupt = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threads[0].ident or 0), interrupt)
    for thread in threads:
        thread.join()
    assert isinstance(outcomes.pop("0"), KeyboardInterrupt)
    assert not [one for one in outcomes.values() if isinstance(one, BaseException)]
    assert left(ledger) in (before - 3, before - 4)


def test_a_fork_does_not_wait_for_the_parent_s_threads(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = threading.Thread(target=spend(ledger, 1))
    pauses, forked = threading.Event(), threading.Event()

    def wait(_: Patience) -> None:
        """Between two tries: a thread inside SQLite keeps its locks in every child."""
        if threading.current_thread() is first:
            pauses.set()
            forked.wait()

    with nobody_else_writes(path):
        monkeypatch.setattr(Patience, "wait", wait)
        first.start()
        assert pauses.wait(HANGS)
        waiting(ledger, 0)
        child = os.fork()
        forked.set()
        if child == 0:
            try:
                spend(ledger, 1)()
            except BaseException:
                os._exit(1)
            os._exit(7)
    first.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert left(ledger) == 100 - 3
