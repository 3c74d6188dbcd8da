"""The commands, on both databases: JSON in one piece, errors with nothing on standard output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.ledger import ledger as commands
from farthing.cli.ledger import statement
from farthing.ledger import DoesNotFit, Ledger

TARIFF = """
farthings = 60

[items.select]
guarantee = "br:0.1"
price = 1
"""

app = typer.Typer()
app.add_typer(commands)
app.command()(statement)


class Shell:
    """Runs commands on one ledger."""

    def __init__(self, target: str) -> None:
        self.target = target

    def __call__(self, *words: str) -> str:
        result = CliRunner().invoke(app, [*words, "--ledger", self.target])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            assert result.stdout == ""
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def shell(target: str, tmp_path: Path) -> Shell:
    file = tmp_path / "tariff.toml"
    file.write_text(TARIFF)
    shell = Shell(target)
    made = shell.json(
        "ledger", "init", "events", str(file), "--unit", "member", "--owner", "team",
        "--limit", "keys=3",
    )  # fmt: skip # one command
    assert made["farthings"] == 60
    assert shell.json("ledger", "grant", "events", "ann", "--farthings", "40")["farthings"] == 40
    return shell


def test_from_init_to_statement(shell: Shell, tmp_path: Path) -> None:
    with Ledger.open(shell.target) as ledger:
        held = ledger.reserve("events", "ann", {"select": 25})
    shown = shell.json("ledger", "show", "events")["datasets"][0]
    assert [row["farthings_spent"] for row in shown["balances"]] == [25, 25]
    assert shown["open_reservations"] == [{"entry": held.entry, "analyst": "ann"}]
    shell("ledger", "abandon", "events", str(held.entry), "--reason", "crash")
    assert shell.json("ledger", "show")["datasets"][0]["open_reservations"] == []
    with pytest.raises(fa.InvalidInput, match="not an open reservation"):
        shell("ledger", "abandon", "events", str(held.entry), "--reason", "crash")

    reading = shell.json("ledger", "odometer", "events", "--analyst", "ann", "--delta", "1e-5")
    assert 0 < reading["epsilon"] < 3
    assert "ε ≤" in shell("ledger", "odometer", "events")

    page = tmp_path / "statement.md"
    assert shell("statement", "events", "-o", str(page)) == ""
    assert page.read_text().startswith("# Privacy statement for events")
    assert shell.json("statement", "events")["contribution_limits"] == {"keys": 3}
    with pytest.raises(fa.InvalidInput, match="cannot be written"):
        shell("statement", "events", "-o", str(tmp_path / "no" / "file"))

    verified = shell.json("ledger", "verify", "--prove")
    assert verified["datasets"][0]["entries"] == 5
    head = verified["datasets"][0]["head"]
    assert head in shell("ledger", "verify", "events", "--contains", head)


def test_lists_and_new_tariffs(shell: Shell, tmp_path: Path) -> None:
    batch, setwise = tmp_path / "batch.toml", tmp_path / "set.toml"
    batch.write_text('[queries]\ntop = ["3xbr:0.1", "3xlap:0.1"]\nall = ["dp:0.1"]\n')
    setwise.write_text('[items]\nselect = "5xbr:0.1"\n')
    register = ["ledger", "register", "events", "ann"]
    made = shell.json(*register, str(batch), "--name", "board")
    assert made["account"] == 2
    assert made["epsilon_at"]
    shell(*register, str(setwise), "--name", "set", "--mode", "setwise")
    for file, mode in ((batch, "setwise"), (setwise, "batch")):
        with pytest.raises(fa.InvalidInput, match="one table"):
            shell(*register, str(file), "--name", "x", "--mode", mode)
    signed = shell.json(
        "ledger", "sign", "events", str(tmp_path / "tariff.toml"), "--name", "second"
    )
    assert signed["account"] == 4
    assert "second" in shell("ledger", "show")
    shell("ledger", "grant", "events", "may", "--farthings", "5", "--monthly")
    with Ledger.open(shell.target) as ledger:
        assert ledger.purse("events", "may").renewal == "monthly"
        with pytest.raises(DoesNotFit):
            ledger.reserve("events", "may", {"select": 6})


def test_export_and_import(shell: Shell, tmp_path: Path) -> None:
    printed = shell("ledger", "export")
    file = tmp_path / "book.jsonl"
    shell("ledger", "export", "-o", str(file))
    assert file.read_text() == printed
    other = Shell(str(tmp_path / "other.db"))
    assert other.json("ledger", "import", str(file)) == {"imported": {"events": 3}}
    assert other("ledger", "export") == printed
    with pytest.raises(fa.FarthingError):
        other("ledger", "import", str(file))
    with pytest.raises(fa.InvalidInput, match="cannot be read"):
        other("ledger", "import", str(tmp_path / "missing"))


def test_mistakes_leave_standard_output_empty(shell: Shell, tmp_path: Path) -> None:
    tariff = str(tmp_path / "tariff.toml")
    for words in (
        ["ledger", "show", "other"],
        ["ledger", "odometer", "other"],
        ["ledger", "verify", "--contains", "0" * 64],
        ["statement", "other"],
        ["ledger", "grant", "other", "ann", "--farthings", "1"],
        ["ledger", "init", "events", tariff, "--unit", "u", "--owner", "o"],
        ["ledger", "init", "x", tariff, "--unit", "u", "--owner", "o", "--limit", "keys"],
        ["ledger", "init", "x", str(tmp_path / "no.toml"), "--unit", "u", "--owner", "o"],
        ["ledger", "sign", "events", tariff, "--name", "tariff"],
    ):
        with pytest.raises(fa.FarthingError):
            shell(*words)
    with pytest.raises(fa.FarthingError, match="no ledger at"):
        Shell(str(tmp_path / "typo.db"))("ledger", "show")
    assert not (tmp_path / "typo.db").exists()


def test_a_certificate_file_is_proved_before_it_is_signed(shell: Shell, tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    tariff = fa.Tariff({"select": (fa.BoundedRange(0.1), 1)}, farthings=20)
    tariff.certify(tolerance=0.1, deltas=(1e-6,), epsilons=(1.0,)).write(certificate)
    shell("ledger", "sign", "events", str(certificate), "--name", "from file")
    certificate.write_text(certificate.read_text().replace("br:0.1", "br:0.2"))
    with pytest.raises(fa.NotCertified, match="changed"):
        shell("ledger", "sign", "events", str(certificate), "--name", "forged")


def test_upgrade_creates_what_is_missing(tmp_path: Path) -> None:
    shell = Shell(str(tmp_path / "new.db"))
    assert shell.json("ledger", "upgrade") == {"upgraded": True}
    assert shell.json("ledger", "show") == {"datasets": []}
