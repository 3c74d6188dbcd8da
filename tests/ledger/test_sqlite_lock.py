"""Who waits for SQLite's lock gets it when it is free, and not before."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from farthing.ledger.store import fast_path as sqlite_lock
from farthing.ledger.store.fast_path import Queue, begin_writing


def connected(path: Path) -> sqlite3.Connection:
    made = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    made.execute("PRAGMA journal_mode = WAL")
    return made


def test_it_is_waited_for(tmp_path: Path) -> None:
    first, second = connected(tmp_path / "a.db"), connected(tmp_path / "a.db")
    begin_writing(first.execute)
    written = []

    def wait() -> None:
        begin_writing(second.execute)
        written.append(second.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])

    waiting = threading.Thread(target=wait)
    waiting.start()
    first.execute("CREATE TABLE one (x)")
    assert written == []
    first.execute("COMMIT")
    waiting.join()
    assert written == [1]  # what the first one wrote


def test_it_is_not_waited_for_longer_than_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_lock, "BUSY_SECONDS", 0.01)
    first, second = connected(tmp_path / "a.db"), connected(tmp_path / "a.db")
    begin_writing(first.execute)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        begin_writing(second.execute)


def test_other_errors_are_not_waited_for(tmp_path: Path) -> None:
    one = connected(tmp_path / "a.db")
    begin_writing(one.execute)
    with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
        begin_writing(one.execute)


def test_a_transaction_of_its_own_keeps_others_of_the_process_waiting() -> None:
    queue, seen = Queue(), []

    def lead(tickets: list) -> None:
        for ticket in tickets:
            ticket.result, ticket.done = ticket.work(None), True

    with queue.alone():
        shared = threading.Thread(target=lambda: queue.run(lambda _: seen.append("shared"), lead))
        shared.start()
        seen.append("alone")
    shared.join()
    assert seen == ["alone", "shared"]
