"""An owner's desk in a terminal, from a table to a history that people can read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.main import app
from farthing.composition.tariffs import prices as rungs
from farthing.errors import InvalidInput
from farthing.ledger import AlreadyThere

SMALL = ("--epsilon", "1", "--delta", "1e-4")


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FARTHING_LEDGER", raising=False)
    rows = {"member": list(range(300)), "team": ["a", "b", "c"] * 100}
    pq.write_table(pa.table(rows), "rows.parquet")
    return tmp_path


def test_a_budget_in_two_numbers_beside_the_data(table: Path) -> None:
    told = run("owner", "add", "rows.parquet", "--unit", "member", *SMALL)
    beside = str(table / "rows.farthing.db")
    assert f"The budget is kept in {beside}." in " ".join(told.split("\n"))
    whole = json.loads(run("ledger", "show", "--json", "--ledger", beside))
    farthings = whole["datasets"][0]["balances"][0]["farthings"]
    assert f"{farthings} farthings and " in told, "how much there is to grant"
    assert "within ε = " in told
    half = str(farthings // 2)
    granted = run("owner", "grant", "rows", "ann", "--farthings", half, "--ledger", beside)
    assert f"ann holds {half} farthings" in granted
    assert f"the budget is {farthings} farthings for everybody" in " ".join(granted.split())
    run("query", "count", "rows.parquet", "--analyst", "ann", "--where", "team=a")
    shown = run("owner", "history", "--ledger", beside)
    assert "ann" in shown
    assert "answered" in shown
    assert "team" in shown, "what was asked, in words"
    (asked,) = json.loads(run("owner", "history", "--json", "--ledger", beside))["asked"]
    assert (asked["analyst"], asked["dataset"]) == ("ann", "rows")
    with pytest.raises(InvalidInput, match="not both"):
        run("owner", "add", "rows.parquet", "--unit", "member", *SMALL, "--tariff", "t.toml")


def test_adding_compares_the_rows_with_the_schema_for_the_owner_alone(table: Path) -> None:
    """Neither the ledger nor anything that an analyst is told holds what was found."""
    schema = '[[columns]]\nname = "member"\nkind = "integer"\n\n[[columns]]\nname = "team"\n'
    (table / "schema.toml").write_text(schema + 'kind = "text"\ncategories = ["b"]\n')
    rows = pq.read_table("rows.parquet").column("team").to_pylist()
    others = sum(team is not None and team != "b" for team in rows)
    given = ("rows.parquet", "--unit", "member", "--schema", "schema.toml", *SMALL)
    told = run("owner", "add", *given, "--json")
    [found] = json.loads(told)["misfits"]
    assert found == {
        "column": "team",
        "values": len(rows) - rows.count(None),
        "unparsed": 0,
        "undeclared": others,
        "outside": 0,
    }
    kept = run("ledger", "export", "--ledger", str(table / "rows.farthing.db"))
    assert "undeclared" not in kept
    (table / "rows.farthing.db").unlink()
    said = run("owner", "add", *given)
    assert "team: " in said
    assert "are not declared: they are missing" in " ".join(said.split())


@pytest.mark.usefixtures("table")
def test_what_cannot_be_declared_is_refused_before_a_budget_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ladder(**_: object) -> None:
        pytest.fail("seconds of work for nothing")

    monkeypatch.setattr(rungs, "ladder", ladder)
    Path("bad.toml").write_text('[columns.member]\nkind = "nothing"\n', encoding="utf-8")
    add = ["owner", "add", "rows.parquet", *SMALL]
    for words, unit in ((["--schema", "bad.toml"], "member"), ([], "no such column")):
        with pytest.raises(InvalidInput):
            run(*add, *words, "--unit", unit)
    with pytest.raises(InvalidInput, match="no such column"):
        fa.open("rows.parquet", epsilon=1, delta=1e-6, unit="no such column")
    assert not Path("rows.farthing.db").exists() or "rows" not in run(
        "ledger", "show", "--ledger", "rows.farthing.db"
    )


def test_one_variable_names_the_ledger_everywhere(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARTHING_LEDGER", str(table / "central.db"))
    run("owner", "add", "rows.parquet", "--unit", "member", *SMALL)
    run("owner", "grant", "rows", "ann", "--farthings", "20")
    run("query", "count", "rows.parquet", "--analyst", "ann")
    with fa.open("rows.parquet", analyst="ann") as data:
        assert data.ledger_path == str(table / "central.db")
        assert data.count().run().cached
    assert "ann" in run("owner", "history")
    run("statement", "rows")
    assert not (table / "rows.farthing.db").exists()


def test_a_folder_that_moved_is_relocated(table: Path) -> None:
    run("owner", "add", "rows.parquet", "--unit", "member", *SMALL)
    run("owner", "grant", "rows", "ann", "--farthings", "100", "--ledger", "rows.farthing.db")
    new = table / "new"
    new.mkdir()
    for file in table.glob("rows*"):
        file.rename(new / file.name)
    ledger = str(new / "rows.farthing.db")
    count = ("query", "count", "new/rows.parquet", "--analyst", "ann", "--ledger", ledger)
    with pytest.raises(InvalidInput, match="farthing owner relocate rows") as refused:
        run(*count)
    assert "\n" not in str(refused.value), "one sentence"
    told = run("owner", "relocate", "rows", "new/rows.parquet", "--ledger", ledger)
    assert "its budget goes on" in " ".join(told.split())
    run(*count)
    pq.write_table(pa.table({"member": [1], "team": ["a"]}), "rows.parquet")
    add = ("owner", "add", "rows.parquet", "--unit", "member", "--name", "again")
    with pytest.raises(AlreadyThere, match="as the dataset rows"):
        run(*add, *SMALL, "--ledger", ledger)


def test_the_ledger_beside_the_data_is_its_only_one(table: Path) -> None:
    run("owner", "add", "rows.parquet", "--unit", "member", *SMALL)
    add = ("owner", "add", "rows.parquet", "--unit", "member", *SMALL, "--ledger")
    with pytest.raises(InvalidInput, match="has a budget already, in"):
        run(*add, str(table / "other.db"))
    run("owner", "move", str(table / "other.db"), "--ledger", "rows.farthing.db")
    with pytest.raises(AlreadyThere, match="choose another name"):
        run(*add, str(table / "other.db"))
    with pytest.raises(InvalidInput, match="the one in which its book goes on"):
        run(*add, str(table / "third.db"))
    with pytest.raises(InvalidInput, match="has a budget already, in"):
        run("owner", "add", str(table), *add[3:], str(table / "third.db"))


def test_a_folder_and_a_file_in_it_have_one_budget(table: Path) -> None:
    inner = table / "inner"
    inner.mkdir()
    (table / "rows.parquet").rename(inner / "rows.parquet")
    given = ("--unit", "member", *SMALL)
    run("owner", "add", "inner/rows.parquet", *given)
    with pytest.raises(InvalidInput, match="has a budget already, in"):
        run("owner", "add", "inner", *given)
    (inner / "rows.farthing.db").unlink()
    run("owner", "add", "inner", *given)
    for ledger in ((), ("--ledger", "other.db")):
        with pytest.raises(InvalidInput, match="has a budget already, in"):
            run("owner", "add", "inner/rows.parquet", *given, *ledger)


@pytest.mark.usefixtures("table")
def test_other_data_is_not_relocated_to_data_with_a_budget() -> None:
    run("owner", "add", "rows.parquet", "--unit", "member", *SMALL)
    pq.write_table(pa.table({"member": [1], "team": ["a"]}), "small.parquet")
    run("owner", "add", "small.parquet", "--unit", "member", *SMALL)
    with pytest.raises(InvalidInput, match="has a budget already, in"):
        run("owner", "relocate", "small", "rows.parquet", "--ledger", "small.farthing.db")
