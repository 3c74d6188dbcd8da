"""A session that was shut, and Ctrl-C: what happened is said, and what it cost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.composition.tariffs.tariff import Price
from farthing.engine import Interrupted, execute
from farthing.ledger import Ledger
from tests.engine.conftest import Opened

ROWS = pa.table({"member": list(range(50)), "k": ["a", "b"] * 25})
SLOW = "SELECT count(*) AS n FROM range(20000000000) WHERE hash(range) % 7 = 1"


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Who starts the tests in the background has them ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_session_that_was_shut_runs_and_charges_nothing(opened: Opened, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "book.db") as book:
        data = opened(ROWS, ledger=book)
        planned, both = data.count().plan(), data.batch({"a": data.count(), "b": data.count()})
        together, watch = both.plan(), data.watch().plan()
        talk = watch.open()
        left = data.remaining()
        data.shut()
        for asked in (
            planned.run,
            together.run,
            watch.open,
            data.count().run,
            data.watch().open,
            lambda: talk.exceeds(data.count(), 10),
        ):
            with pytest.raises(fa.InvalidInput, match="session on events was shut"):
                asked()
        assert book.analyst("events", "analyst").remaining() == left


@contextmanager
def pressing() -> Iterator[None]:
    """Ctrl-C, once, while the engine is busy."""
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def slow_statements(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine runs something that takes long, and Ctrl-C is pressed once it does."""
    source = data.backend._context.source
    honest = source.fetch

    def fetch(statement: Any) -> Any:
        with pressing():
            return honest(replace(statement, sql=SLOW, parameters=()))

    monkeypatch.setattr(source, "fetch", fetch)


def test_an_interrupt_in_the_engine_says_what_was_spent(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = opened(ROWS)
    slow_statements(data, monkeypatch)
    with pytest.raises(Interrupted, match=r"^interrupted; 4 farthings stay spent$") as caught:
        data.count().run()
    assert caught.value.price == Price(4)
    assert data.remaining() == Price(996, 100)
    assert not caught.value.at_most


def test_an_interrupt_while_the_ledger_is_written_says_at_most(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = opened(ROWS)

    def pressed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(data.backend._context.analyst), "reserve", pressed)
    with pytest.raises(Interrupted, match="at most 4 farthings stay spent"):
        data.count().run()
    assert data.remaining() == Price(1000, 100)


def test_the_limit_that_was_found_is_part_of_what_was_spent(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = opened(ROWS)
    honest, asked = execute._answers, []

    def answers(*given: Any) -> Any:
        asked.append(given)
        if len(asked) > 1:
            raise KeyboardInterrupt
        return honest(*given)

    monkeypatch.setattr(execute, "_answers", answers)
    planned = data.histogram("k", contribution_limit="auto").plan()
    with pytest.raises(Interrupted) as caught:
        planned.run()
    assert caught.value.price == Price(1000, 100) - data.remaining()
    assert caught.value.price.farthings > planned._details.searches[""].first.price.farthings


COMMAND = """
import sys
from dataclasses import replace
from farthing.cli import main
from farthing.engine.sources.duckdb import DuckDBSource
from tests.engine.test_ended_early import pressing
honest = DuckDBSource.fetch
def fetch(self, statement):
    with pressing():
        return honest(self, replace(statement, sql={slow!r}, parameters=()))
DuckDBSource.fetch = fetch
sys.argv = ["farthing", {arguments}]
main.run()
"""


def command(*arguments: str) -> tuple[int, str]:
    given = ", ".join(map(repr, arguments))
    code = COMMAND.format(slow=SLOW, arguments=given)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_on_the_command_line(opened: Opened, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "events.parquet")
    path, book = str(tmp_path / "events.parquet"), str(tmp_path / "budget.db")
    opened(path).shut()
    query = ("query", "count", path, "--ledger", book)
    assert command(*query) == (130, "farthing: interrupted; 4 farthings stay spent\n")


def test_an_owner_who_interrupts_spends_nothing(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("who,city\n1,Bergen\n2,Oslo\n")
    code = """
import os, signal, sys
from farthing.cli import main
from farthing.engine.desk import Desk
Desk.add = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
sys.argv = ["farthing", "owner", "add", {data!r}, "--unit", "who", "--ledger", {book!r}]
main.run()
"""
    code = code.format(book=str(tmp_path / "b.db"), data=str(tmp_path / "people.csv"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "farthing: interrupted\n")
