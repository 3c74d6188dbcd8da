"""`farthing converse`: open, ask, list and close in a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.converse import converse
from farthing.cli.ledger import ledger as ledger_commands
from farthing.cli.owner import owner
from farthing.errors import InvalidInput
from farthing.ledger import Ledger, NotInLedger, verify

Shell = Callable[..., Any]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Runs a command on a table of 2000 members, with so much ε that answers are certain."""
    rows = {
        "member": list(range(2000)),
        "country": ["NO" if i % 4 else "SE" for i in range(2000)],
        "spend": [i % 10 for i in range(2000)],
    }
    path, book = tmp_path / "events.parquet", tmp_path / "budget.db"
    pq.write_table(pa.table(rows), path)
    tariff = fa.Tariff({"sure": (fa.PureDP(30.0), 10)}, farthings=60)
    certificate = tariff.certify(tolerance=0.9, deltas=(1e-3,), epsilons=(1.0,))
    fa.open(path, unit="member", ledger=book, tariff=certificate, farthings=50).shut()

    def run(command: str, *arguments: str, app: Any = converse) -> Any:
        about = str(path) if command in ("open", "ask") else "events"
        done = CliRunner().invoke(
            app, [command, about, *arguments, "--ledger", str(book)], catch_exceptions=False
        )
        assert done.exit_code == 0
        return json.loads(done.stdout) if "--json" in arguments else done.stdout.strip()

    return run


def test_the_median(shell: Shell) -> None:
    shell("open", "--no-monotone")
    median = (
        "--query",
        '{"kind": "quantile", "column": "spend", "lower": 0, "upper": 9, "per_key_limit": 1}',
    )
    assert shell("ask", *median, "--threshold", "6") == "no"
    assert shell("ask", *median, "--threshold", "4") == "yes"


def test_a_whole_conversation(shell: Shell, tmp_path: Path) -> None:
    assert "10 farthings" in shell("open", "--positives", "2", "--plan")
    assert shell("open", "--plan", "--json")["price"]["farthings"] == 10
    assert shell("list") == "no conversation was opened"
    identity = shell("open", "--positives", "2")
    norway = ("--where", "country=NO")
    assert shell("ask", *norway, "--threshold", "1600") == "no"
    assert shell("ask", *norway, "--threshold", "1400", "--id", identity) == "yes"
    (held,) = shell("list", "--json")["conversations"]
    assert (held["id"], held["asked"], held["open"]) == (identity, 2, True)
    assert "2 questions asked" in shell("list")
    shown = shell("show", "--json", app=ledger_commands)["datasets"][0]
    assert [one["id"] for one in shown["open_conversations"]] == [identity]
    assert "1 open conversations" in shell("show", app=ledger_commands)
    assert shell("close", "--json") == {"closed": identity}
    assert " over " in shell("list")
    with Ledger.open(tmp_path / "budget.db") as ledger:
        verify(ledger.reader())


def test_guesses_and_other_numbers(shell: Shell) -> None:
    shell("open", "--tolerance", "100")
    assert shell("ask", "--guess", "2010") == "right"
    answer = shell("ask", "--guess", "5", "--query", '{"kind": "count"}', "--json")
    assert answer["positive"]
    assert answer["value"] == pytest.approx(2000, abs=20)


def test_which_one_must_be_clear(shell: Shell) -> None:
    with pytest.raises(InvalidInput, match="0 conversations open"):
        shell("ask", "--threshold", "1")
    first, second = shell("open"), shell("open", "--json")["id"]
    with pytest.raises(InvalidInput, match="2 conversations open; say which one"):
        shell("ask", "--threshold", "1")
    with pytest.raises(NotInLedger):
        shell("ask", "--threshold", "1", "--id", "0" * 32)
    assert second in shell("end-conversation", second, app=owner)
    assert shell("ask", "--threshold", "1") == "yes"
    assert first in shell("list")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "one of --threshold and --guess"),
        (("--threshold", "1", "--guess", "1"), "one of --threshold and --guess"),
        (("--threshold", "1", "--query", "{"), "must be one object"),
        (("--threshold", "1", "--query", '{"kind": "count"}', "--where", "a=1"), "field where"),
    ],
)
def test_what_cannot_be_asked(shell: Shell, arguments: tuple[str, ...], reason: str) -> None:
    shell("open")
    with pytest.raises(InvalidInput, match=reason):
        shell("ask", *arguments)
