"""On a terminal long work shows that it goes on and what is known so far; a pipe gets nothing."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import farthing as fa
from farthing.cli.options import PATIENCE_SECONDS
from farthing.ledger import Dataset, Ledger

AT_ONCE = """
import sys
from rich.progress import Progress
from farthing.cli import main, options
options.PATIENCE_SECONDS = 0.0
update = Progress.update
Progress.update = lambda self, task, **news: update(self, task, refresh=True, **news)
sys.argv = ["farthing", *sys.argv[1:]]
main.run()
"""
BUDGET = ("--epsilon", "2", "--delta", "1e-6", "--json")
#: A command, what it says it is doing, and what it tells.
COMMANDS = [
    (("epsilon", "97xbr:0.0931", "--delta", "1e-6", "--json"), "composing", "ε between 2."),
    (("delta", "97xbr:0.0931", "--epsilon", "2", "--json"), "composing", "δ between "),
    (("convert", "9xbr:0.0931", "3xpoisson:0.1/gauss:1", "--json"), "composing", "the unit: ε"),
    (("plan", "br:0.2", *BUDGET), "planning", "the count is between"),
    (("plan", "20xbr", *BUDGET), "planning", "ε of each is between 0."),
    (("calibrate", "9xbr:0.1", "9xgauss:?", *BUDGET), "calibrating", "the noise is between"),
    (("tariff", "propose", "a=br:0.2", "b=dp:0.2", *BUDGET), "certifying", "farthings"),
    (("tariff", "certify", "tariff.toml", "--json"), "certifying", "40 farthings"),
]


def on_a_terminal(folder: Path, *arguments: str) -> tuple[str, str]:
    """What stdout got, a pipe, and what the terminal saw, which is stderr."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", AT_ONCE, *arguments]
    terminal = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, cwd=folder, env=terminal
    ) as running:
        os.close(theirs)
        seen = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # how a terminal without a process ends
                break
            if not more:
                break
            seen += more
        out = running.communicate()[0]
    os.close(ours)
    assert running.returncode == 0, seen.decode()
    return out.decode(), seen.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tariff = fa.Tariff({"a": (fa.BoundedRange(0.1), 1), "b": (fa.PureDP(0.1), 4)}, farthings=40)
    tariff.write(tmp_path / "tariff.toml")
    return tmp_path


@pytest.mark.parametrize(("arguments", "doing", "known"), COMMANDS, ids=lambda one: one[1][:9])
def test_a_terminal_sees_what_is_known_so_far(
    folder: Path, arguments: tuple[str, ...], doing: str, known: str
) -> None:
    out, seen = on_a_terminal(folder, *arguments)
    assert isinstance(json.loads(out), dict)
    assert doing in seen
    assert known in seen
    last_words = seen.rfind(doing)
    assert "\x1b[2K" in seen[last_words:], "it is erased at the end"


def test_books_are_counted_as_they_are_read(folder: Path) -> None:
    with Ledger.open(folder / "budget.db") as ledger:
        owner = ledger.owner()
        owner.add(Dataset("events", unit="member", owner="team"))
        sold = fa.Tariff({"select": (fa.PureDP(0.01), 1)}, farthings=1000)
        owner.sign("events", sold.certify(tolerance=0.9, deltas=(1e-3,), epsilons=(1.0,)))
        owner.grant("events", "ann", farthings=1000)
        analyst = ledger.analyst("events", "ann")
        for _ in range(1000):
            analyst.reserve({"select": 1})
    for doing, arguments in (
        ("exporting", ("ledger", "export", "--output", "book.jsonl")),
        ("verifying", ("ledger", "verify", "--quick")),
        ("backing up", ("owner", "backup", "copy.jsonl")),
    ):
        _, seen = on_a_terminal(folder, *arguments, "--ledger", "budget.db")
        assert doing in seen
        assert "1000 entries of events" in seen


def test_a_pipe_gets_nothing(folder: Path) -> None:
    for arguments, _, _ in COMMANDS[::3]:
        done = subprocess.run(
            [sys.executable, "-c", AT_ONCE, *arguments], capture_output=True, cwd=folder
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"\x1b" not in done.stdout


def test_nobody_is_bothered_before_two_seconds() -> None:
    assert PATIENCE_SECONDS == 2.0
