"""The commands, on both databases: JSON in one piece, errors with nothing on standard output."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import farthing as fa
from farthing import checker
from farthing.cli.deployment import statement
from farthing.cli.ledger import ledger as reader_commands
from farthing.cli.owner import owner as owner_commands
from farthing.ledger import DoesNotFit, Ledger, Reading, ReadOnly, Sealed
from tests.ledger.conftest import fill

TARIFF = """
farthings = 60

[items.select]
guarantee = "br:0.1"
price = 1
"""

app = typer.Typer()
app.add_typer(reader_commands)
app.add_typer(owner_commands)
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
        "owner", "init", "events", str(file), "--unit", "member", "--owner", "team",
        "--contribution-limit", "3",
    )  # fmt: skip # one command
    assert made["farthings"] == 60
    assert shell.json("owner", "grant", "events", "ann", "--farthings", "40")["farthings"] == 40
    return shell


def test_from_init_to_statement(shell: Shell, tmp_path: Path) -> None:
    with Ledger.open(shell.target) as ledger:
        held = ledger.analyst("events", "ann").reserve({"select": 25})
    shown = shell.json("ledger", "show", "events")["datasets"][0]
    assert [row["farthings_spent"] for row in shown["balances"]] == [25, 25]
    assert shown["open_reservations"] == [{"entry": held.entry, "analyst": "ann"}]
    shell("owner", "abandon", "events", str(held.entry), "--reason", "crash")
    assert shell.json("ledger", "show")["datasets"][0]["open_reservations"] == []
    with pytest.raises(fa.InvalidInput, match="not an open reservation"):
        shell("owner", "abandon", "events", str(held.entry), "--reason", "crash")

    reading = shell.json("ledger", "odometer", "events", "--analyst", "ann", "--delta", "1e-5")
    assert reading["assuming"] is not None
    assert 0 < reading["epsilon"] < 3
    assert "ε ≤" in shell("ledger", "odometer", "events")

    page = tmp_path / "statement.md"
    assert shell("statement", "events", "-o", str(page)) == ""
    assert page.read_text().startswith("# Privacy statement for events")
    assert shell.json("statement", "events")["limits"]["contribution_limit"] == 3
    with pytest.raises(fa.InvalidInput, match="cannot be written"):
        shell("statement", "events", "-o", str(tmp_path / "no" / "file"))

    (verified,) = shell.json("ledger", "verify")["datasets"]
    assert (verified["entries"], verified["proved"]) == (5, True)
    assert "1 certificate proved again" in shell("ledger", "verify")
    checked = shell("ledger", "verify", "events", "--quick", "--contains", verified["head"])
    assert verified["head"] in checked
    assert "1 certificate not proved again" in checked


def test_lists_and_new_tariffs(shell: Shell, tmp_path: Path) -> None:
    batch, setwise = tmp_path / "batch.toml", tmp_path / "set.toml"
    batch.write_text('[queries]\ntop = ["3xbr:0.1", "3xlap:0.1"]\nall = ["dp:0.1"]\n')
    setwise.write_text('[items]\nselect = "5xbr:0.1"\n')
    register = ["owner", "register", "events", "ann"]
    made = shell.json(*register, str(batch), "--name", "board")
    assert made["account"] == 2
    assert made["epsilon_at"]
    shell(*register, str(setwise), "--name", "set", "--mode", "setwise")
    for file, mode in ((batch, "setwise"), (setwise, "batch")):
        with pytest.raises(fa.InvalidInput, match="one table"):
            shell(*register, str(file), "--name", "x", "--mode", mode)
    signed = shell.json(
        "owner", "sign", "events", str(tmp_path / "tariff.toml"), "--name", "second"
    )
    assert signed["account"] == 4
    (shown,) = shell.json("ledger", "show")["datasets"]
    assert [(row["account"], row["analyst"], row["state"]) for row in shown["balances"]] == [
        ("tariff", "everybody", "retired"),
        ("second", "everybody", "in force"),
        ("tariff", "ann", "retired"),
    ]
    assert [(row["account"], row["item"], row["granted"]) for row in shown["lists"]] == [
        ("board", "everything", 1),
        ("set", "select", 5),
    ]
    lines = [line.split("│") for line in shell("ledger", "show").splitlines()]
    cells = {tuple(map(str.strip, line)) for line in lines}
    assert ("", "second", "everybody", "0 of 60", "0 of 0", "in force", "", "") in cells
    assert ("", "tariff", "ann", "0 of 40", "0 of 0", "retired", "", "") in cells
    assert ("", "set", "setwise", "ann", "select", "0 of 5", "") in cells
    (purse,) = (line for line in lines if "0 of 40" in "".join(line))
    assert purse[2].startswith(" ann  ")  # text to the left,
    assert purse[3].endswith("  0 of 40 ")  # numbers to the right
    shell("owner", "grant", "events", "may", "--farthings", "5", "--monthly")
    with Ledger.open(shell.target) as ledger:
        assert ledger.analyst("events", "may").purse().renewal == "monthly"
        with pytest.raises(DoesNotFit):
            ledger.analyst("events", "may").reserve({"select": 6})


def test_export_and_import_make_a_copy(shell: Shell, tmp_path: Path) -> None:
    printed = shell("ledger", "export")
    file = tmp_path / "book.jsonl"
    shell("ledger", "export", "-o", str(file))
    assert file.read_text() == printed
    other = Shell(str(tmp_path / "other.db"))
    assert other.json("ledger", "import", str(file)) == {"imported": {"events": 3}}
    assert other("ledger", "export") == printed
    assert not other.json("ledger", "show")["datasets"][0]["goes_on_here"]
    assert "nothing can be written here" in other("ledger", "show")
    with pytest.raises(ReadOnly):
        other("owner", "grant", "events", "ann", "--farthings", "1")
    with pytest.raises(fa.InvalidInput, match="cannot be read"):
        other("ledger", "import", str(tmp_path / "missing"))


def test_a_book_moves(shell: Shell, tmp_path: Path) -> None:
    other = Shell(str(tmp_path / "other.db"))
    assert shell.json("owner", "move", other.target) == {"moved": {"events": 5}}
    assert other.json("owner", "grant", "events", "ann", "--farthings", "1")["farthings"] == 41
    with pytest.raises(Sealed):
        shell("owner", "grant", "events", "ann", "--farthings", "1")
    third = Shell(str(tmp_path / "third.db"))
    third("owner", "upgrade")
    identity = third.json("ledger", "show")["ledger"]
    sealed = other.json("owner", "seal", "events", "--successor", identity)
    assert sealed["successor"] == identity
    file = tmp_path / "sealed.jsonl"
    other("ledger", "export", "-o", str(file))
    third("ledger", "import", str(file))
    assert not third.json("ledger", "show")["datasets"][0]["goes_on_here"]
    third("ledger", "import", str(file), "--take-over", sealed["seal"])
    assert third.json("ledger", "show")["datasets"][0]["goes_on_here"]
    third("ledger", "verify", "--quick")


def test_from_a_file_to_postgresql_in_one_command(
    tmp_path: Path, postgres_url: str, certificate: fa.Certificate
) -> None:
    shell, there = Shell(str(tmp_path / "small.db")), Shell(postgres_url)
    with Ledger.open(shell.target) as ledger:
        fill(ledger, certificate)
        ledger.analyst("events", "ann").reserve({"select": 3})
    assert shell.json("owner", "move", there.target) == {"moved": {"events": 6}}
    with Ledger.open(postgres_url) as ledger:
        ledger.analyst("events", "ann").reserve({"select": 97})
        with pytest.raises(DoesNotFit):
            ledger.analyst("events", "ann").reserve({"select": 1})
    with Ledger.open(shell.target) as ledger, pytest.raises(Sealed):
        ledger.analyst("events", "ann").reserve({"select": 1})
    there("ledger", "verify", "--quick")


def test_a_book_is_copied_and_goes_on_from_the_copy(shell: Shell, tmp_path: Path) -> None:
    file = str(tmp_path / "copy.jsonl")
    (made,) = shell.json("owner", "backup", file)["datasets"]
    assert made["head"] == shell.json("ledger", "verify", "--quick")["datasets"][0]["head"]
    for copy in [file, *([shell.target] if "://" not in shell.target else [])]:
        other = Shell(str(tmp_path / f"{Path(copy).stem}-restored.db"))
        assert other.json("owner", "restore", copy) == {"restored": {"events": 4}}
        (rows,) = other.json("ledger", "show")["datasets"]
        assert {row["state"] for row in rows["balances"]} == {"retired"}
        assert {row["farthings_spent"] - row["farthings"] for row in rows["balances"]} == {0}
        other("ledger", "verify", "--quick")
    with pytest.raises(fa.InvalidInput, match="cannot be read"):
        Shell(str(tmp_path / "no.db"))("owner", "restore", str(tmp_path / "missing"))
    assert not (tmp_path / "no.db").exists()
    assert "counts as spent" in Shell(str(tmp_path / "last.db"))("owner", "restore", file)


def test_what_has_come_to_its_end_is_retired(shell: Shell) -> None:
    assert shell.json("owner", "retire", "events", "--account", "tariff")["retired"] == ["tariff"]
    assert "retired" in shell("ledger", "show", "events")
    with pytest.raises(fa.InvalidInput, match="retired before"):
        shell("owner", "retire", "events")


def test_what_is_granted_can_be_taken_away(shell: Shell) -> None:
    assert shell.json("owner", "revoke", "events", "ann")["farthings"] == 40
    rows = {row["analyst"]: row for row in shell.json("ledger", "show")["datasets"][0]["balances"]}
    assert rows["ann"]["state"] == "revoked"
    with Ledger.open(shell.target) as ledger, pytest.raises(DoesNotFit):
        ledger.analyst("events", "ann").reserve({"select": 1})


def test_versions_are_declared(shell: Shell) -> None:
    assert shell.json("owner", "refresh", "events", "2026-11")["version"] == "2026-11"
    with Ledger.open(shell.target) as ledger:
        assert ledger.reader().dataset("events").version == "2026-11"
        shell("owner", "refresh", "events", "--live")
        assert ledger.reader().dataset("events").version is None


def test_history_tells_who_asked_what_when_and_for_how_much(shell: Shell) -> None:
    shell("owner", "grant", "events", "bob", "--farthings", "5")
    with Ledger.open(shell.target) as ledger:
        ann, bob = (ledger.analyst("events", name) for name in ("ann", "bob"))
        held = ann.reserve({"select": 9}, question={"top": "\x1b[2J"})
        told = {"": {"labels": ["NO"], "counts": [17]}}
        ann.close(held, "d", used={"select": 4}, release=told)
        bob.abandon(bob.reserve({"select": 2}), reason="r")
        ledger.owner().declare_version("events", "2")
        bob.reserve({"select": 1}, question="open")
    asked = shell.json("owner", "history", "events")["asked"]
    assert [(a["analyst"], a["farthings"], a["outcome"], a["version"]) for a in asked] == [
        ("ann", 4, "close", None),
        ("bob", 2, "abandon", None),
        ("bob", 1, "open", "2"),
    ]
    assert "release" not in asked[0]
    told = shell.json("owner", "history", "events", "--values")["asked"]
    assert [one["release"] for one in told] == [
        {"": {"labels": ["NO"], "counts": [17]}},
        None,
        None,
    ]
    assert "NO: 17" not in shell("owner", "history", "events")
    assert "NO: 17" in " ".join(shell("owner", "history", "events", "--values").split())
    assert asked[0]["question"] == {"top": "\x1b[2J"}
    assert asked[0]["time"][:4] == str(datetime.now(UTC).year)
    assert len(shell.json("owner", "history", "events", "--analyst", "bob")["asked"]) == 2
    today, tomorrow = (datetime.now(UTC) + timedelta(days=n) for n in (0, 1))
    day, next_day = today.date().isoformat(), tomorrow.date().isoformat()
    assert len(shell.json("owner", "history", "--until", day)["asked"]) == 3
    assert len(shell.json("owner", "history", "--since", day)["asked"]) == 3
    assert shell.json("owner", "history", "--since", next_day)["asked"] == []
    assert "nothing was asked" in shell("owner", "history", "--since", next_day)
    for words in (["history", "events"], ["history", "events", "--json"]):
        assert "\x1b[2J" not in shell("owner", *words)


def test_mistakes_leave_standard_output_empty(shell: Shell, tmp_path: Path) -> None:
    tariff = str(tmp_path / "tariff.toml")
    for words in (
        ["ledger", "show", "other"],
        ["ledger", "odometer", "other"],
        ["ledger", "verify", "--contains", "0" * 64],
        ["statement", "other"],
        ["owner", "grant", "other", "ann", "--farthings", "1"],
        ["owner", "init", "events", tariff, "--unit", "u", "--owner", "o"],
        ["owner", "init", "x", tariff, "--unit", "u", "--owner", "o", "--contribution-limit", "0"],
        ["owner", "refresh", "events"],
        ["owner", "refresh", "events", "v2", "--live"],
        ["owner", "revoke", "events", "nobody"],
        ["owner", "init", "x", str(tmp_path / "no.toml"), "--unit", "u", "--owner", "o"],
        ["owner", "sign", "events", tariff, "--name", "tariff"],
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
    shell("owner", "sign", "events", str(certificate), "--name", "from file")
    certificate.write_text(certificate.read_text().replace("br:0.1", "br:0.2"))
    with pytest.raises(fa.NotCertified, match="changed"):
        shell("owner", "sign", "events", str(certificate), "--name", "forged")


def test_a_budget_in_two_numbers_is_signed(shell: Shell, tmp_path: Path) -> None:
    two = ["--epsilon", "1", "--delta", "1e-6"]
    signed = shell.json("owner", "sign", "events", *two, "--name", "second")
    assert signed["farthings"] > 900
    with Ledger.open(shell.target) as ledger:
        claims = ledger.reader().document("events", signed["account"])["epsilon_at"]
    assert [(claim["delta"], claim["upper"] <= 1) for claim in claims] == [(1e-6, True)]
    tariff = str(tmp_path / "tariff.toml")
    for words in ([], [tariff, *two], ["--epsilon", "1"]):
        with pytest.raises(fa.InvalidInput, match=r"epsilon and delta|go together"):
            shell("owner", "sign", "events", *words, "--name", "third")


def test_a_certificate_comes_out_of_the_ledger(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert str(file) in shell("ledger", "certificate", "events", "-o", str(file))
    assert checker.check(checker.read(file.read_text(encoding="utf-8"))) > 10
    printed = shell("ledger", "certificate", "events")
    assert json.loads(printed) == json.loads(file.read_text(encoding="utf-8"))
    shell("owner", "sign", "events", str(file), "--name", "again")
    assert json.loads(shell("ledger", "certificate", "events", "--account", "tariff"))
    shell("owner", "retire", "events")
    with pytest.raises(fa.FarthingError, match="no tariff in force"):
        shell("ledger", "certificate", "events")


def test_what_an_owner_should_know_is_a_warning(shell: Shell) -> None:
    def warned(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--ledger", shell.target])
        assert done.exit_code == 0, done.output
        assert "warning" not in done.stdout
        return done.stderr

    assert warned("owner", "grant", "events", "bob", "--farthings", "20") == ""
    beyond = warned("owner", "grant", "events", "bob", "--farthings", "1")
    assert "hold 61 farthings together, and its budget is 60 farthings" in beyond
    sign = ["owner", "sign", "events", "--epsilon", "1", "--name"]
    assert warned(*sign, "small", "--delta", "1e-3") == ""
    assert warned(*sign, "large", "--delta", "0.05").startswith("warning: δ = 0.05 is large")


def test_revoking_a_purse_says_that_tokens_stay(shell: Shell) -> None:
    said = shell("owner", "revoke", "events", "ann")
    assert "tokens of a service stay valid" in said


def test_upgrade_creates_what_is_missing(tmp_path: Path) -> None:
    shell = Shell(str(tmp_path / "new.db"))
    assert shell.json("owner", "upgrade") == {"upgraded": True}
    assert shell.json("ledger", "show")["datasets"] == []
    assert "no datasets yet" in shell("ledger", "show")


def test_a_month_that_is_over_is_not_shown_as_spent(shell: Shell) -> None:
    shell("owner", "grant", "events", "may", "--farthings", "5", "--monthly")
    last_year = datetime.now(UTC).replace(day=1, year=datetime.now(UTC).year - 1)
    with Ledger.open(shell.target, clock=lambda: last_year) as ledger:
        ledger.owner().grant("events", "jun", farthings=5, renewal="monthly")
        ledger.analyst("events", "jun").reserve({"select": 5})
    rows = {row["analyst"]: row for row in shell.json("ledger", "show")["datasets"][0]["balances"]}
    assert rows["jun"]["month"] == rows["may"]["month"] == f"{datetime.now(UTC):%Y-%m}"
    assert rows["jun"]["farthings_spent"] == 0


def test_an_odometer_over_several_accounts_says_what_it_assumes(
    shell: Shell, tmp_path: Path
) -> None:
    shell("owner", "sign", "events", str(tmp_path / "tariff.toml"), "--name", "second")
    assert "if the accounts and grants were decided without" in " ".join(
        shell("ledger", "odometer", "events").split()
    )


def test_an_odometer_is_rounded_up(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading("events", None, 1.23456001, 1e-6, 1, 4, 60, shared=False)
    monkeypatch.setattr("farthing.engine.desk.book.odometer_of", lambda *_, **__: reading)
    assert "ε ≤ 1.234561 at" in shell("ledger", "odometer", "events")


def test_a_line_ends_where_json_lines_says(shell: Shell, tmp_path: Path) -> None:
    """Python splits text at U+2028 and others, which JSON leaves as they are."""
    question = {"where": "a\u2028b\u2029c\x85d\x0be"}
    with Ledger.open(shell.target) as ledger:
        ledger.analyst("events", "ann").reserve({"select": 1}, question=question)
    file = tmp_path / "book.jsonl"
    shell("ledger", "export", "-o", str(file))
    other = Shell(str(tmp_path / "other.db"))
    assert other.json("ledger", "import", str(file)) == {"imported": {"events": 4}}
    with Ledger.open(other.target) as ledger:
        assert ledger.reader().entry("events", 4).fact.question == question


def test_a_missing_file_leaves_no_new_ledger(tmp_path: Path) -> None:
    with pytest.raises(fa.InvalidInput, match="cannot be read"):
        Shell(str(tmp_path / "new.db"))("ledger", "import", str(tmp_path / "missing"))
    assert not (tmp_path / "new.db").exists()
