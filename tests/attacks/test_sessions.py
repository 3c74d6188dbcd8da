"""What an analyst holds: no owner's power, one budget per table, nothing that rows decide."""

from __future__ import annotations

import os
import re
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.main import app
from farthing.composition.tariffs.tariff import Price
from farthing.engine import Declaration, open_source
from farthing.errors import FarthingError, InvalidInput
from farthing.ledger import AlreadyThere, Ledger, NotInLedger, RowsChanged, export_lines

ROWS = pa.table({"member": [1, 2, 3, 4], "age": [20, 30, 40, 500], "k": ["a", "b", "a", "b"]})
OWNERS = {"register", "sign", "grant", "revoke", "add", "seal", "move", "declare_version", "owner"}


def test_a_session_has_no_owners_methods(opened) -> None:
    session = opened(ROWS)
    for held in (session, session.count(), session.batch({"a": session.count()})):
        public = {name for name in dir(held) if not name.startswith("_")}
        assert not public & OWNERS, type(held)
    assert not {n for n in dir(session.backend.context.analyst) if not n.startswith("_")} & OWNERS


def test_opening_what_is_there_grants_signs_and_adds_nothing(opened, tmp_path, certificate) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(ROWS, path)
    session = opened(path)
    again = {"unit": "member", "ledger": tmp_path / "budget.db", "dataset": "events"}
    with pytest.raises(NotInLedger, match="no purse"):
        fa.open(path, analyst="somebody new", farthings=1000, **again)
    dearer = fa.Tariff({"count": (fa.PureDP(9.0), 1)}, farthings=1000)
    with pytest.raises(InvalidInput, match="another tariff"):
        fa.open(path, tariff=dearer, farthings=1000, **again)
    with fa.open(path, tariff=certificate, farthings=4000, **again) as same:
        assert same.remaining() == session.remaining() == Price(1000, 100)
    with Ledger.open(tmp_path / "budget.db") as ledger:
        kinds = [entry.kind for entry in ledger.reader().entries("events")]
    assert kinds == ["dataset", "account", "grant"]


def test_the_command_line_of_an_analyst_has_no_owners_options() -> None:
    for kind in ("count", "histogram", "top-k", "quantile", "sum", "mean", "distinct"):
        shown = CliRunner().invoke(app, ["query", kind, "--help"], env={"COLUMNS": "200"}).stdout
        assert "--ledger" in shown
        for option in ("--tariff", "--farthings", "--owner", "--version"):
            assert option not in shown, (kind, option)


def test_a_budget_on_the_command_line_is_for_new_data_only(opened, tmp_path) -> None:
    pq.write_table(ROWS, tmp_path / "events.parquet")
    left = opened(tmp_path / "events.parquet").remaining()
    more = ["--ledger", str(tmp_path / "budget.db"), "--epsilon", "9", "--delta", "1e-6"]
    refused = CliRunner().invoke(app, ["query", "count", str(tmp_path / "events.parquet"), *more])
    assert refused.exit_code != 0
    assert opened(tmp_path / "events.parquet").remaining() == left


def test_one_table_by_many_names_is_one_budget(tmp_path, certificate) -> None:
    """Path, symlink, folder, symlinked folder, pattern, a way around: one purse."""
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(ROWS, folder / "events.parquet")
    os.symlink(folder / "events.parquet", tmp_path / "link.parquet")
    os.symlink(folder, tmp_path / "elsewhere")
    first = fa.open(
        folder / "events.parquet",
        unit="member",
        ledger=tmp_path / "b.db",
        tariff=certificate,
        farthings=40,
    )
    first.count().run()
    for name in (
        "link.parquet",
        "elsewhere/events.parquet",
        "data/../data/events.parquet",
        "./data//events.parquet",
    ):
        with fa.open(str(tmp_path / name), ledger=tmp_path / "b.db") as session:
            assert session.name == "events"
            assert session.remaining() == Price(36, 0), name
    for name in ("data", "data/*.parquet", "elsewhere", "elsewhere/e*.parquet", "."):
        with pytest.raises(FarthingError):
            fa.open(
                str(tmp_path / name),
                unit="member",
                ledger=tmp_path / "b.db",
                tariff=certificate,
                farthings=40,
            )
    first.shut()


def test_another_name_is_refused_unless_the_owner_says_so(tmp_path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(ROWS, path)
    source = open_source(str(path))
    with fa.Desk.open(tmp_path / "b.db") as desk:
        desk.add(source, Declaration(unit="member"))
        with pytest.raises(AlreadyThere, match="events"):
            desk.add(source, Declaration(unit="member"), name="another")
        desk.add(source, Declaration(unit="member"), name="another", beside="events")
        assert set(desk.ledger.reader().beside("events")) == {"another", "events"}
    source.shut()
    with pytest.raises(InvalidInput, match="events"):
        fa.open(path, ledger=tmp_path / "b.db")  # which of the two must be said


def test_what_rows_hold_changes_no_plan(tmp_path, certificate) -> None:
    """A row that does not fit, a missing value, a longer number: the plan is the same."""
    path = tmp_path / "people.csv"
    path.write_text("member,age,k\n1,20,a\n2,30,b\n", encoding="utf-8")
    budget = {"unit": "member", "ledger": tmp_path / "b.db", "tariff": certificate}
    with fa.open(path, farthings=40, **budget) as session:
        before = session.sum("age", lower=0, upper=100).plan().to_json()
        with pytest.raises(InvalidInput) as refused:
            session.histogram("age", categories=["x"]).plan()
    for more in ("500,n/a,c\n", "7,,c\n", "8,99999999999999999999.5,d\n", ',"a\nb",e\n'):
        path.write_text(f"member,age,k\n1,20,a\n2,30,b\n{more}", encoding="utf-8")
        with fa.open(path, ledger=tmp_path / "b.db") as session:
            assert session.sum("age", lower=0, upper=100).plan().to_json() == before
            with pytest.raises(InvalidInput) as again:
                session.histogram("age", categories=["x"]).plan()
            assert str(again.value) == str(refused.value)
            assert session.count().plan().known is None


def test_whether_rows_changed_is_not_told(opened, tmp_path) -> None:
    """The earlier release is given out until the owner declares another version."""
    opened(ROWS).count().run()
    changed = opened(ROWS.slice(1))
    assert changed.count().plan().known is not None
    with Ledger.open(tmp_path / "budget.db") as ledger:
        whole = "\n".join(export_lines(ledger.reader()))
    with sqlite3.connect(tmp_path / "budget.db") as raw:
        whole += "\n".join(raw.iterdump())
    raw.close()
    for cell in ("500", '"b"'):
        assert f"[{cell}" not in whole


def test_a_question_may_ask_for_less_than_the_declared_limit_never_for_more(opened) -> None:
    session = opened(ROWS, limits=fa.Limits(contribution_limit=2, per_key_limit=3))
    assert session.histogram("k", contribution_limit=1).plan().query.contribution_limit == 1
    assert session.top_k("k", 1).plan().query.contribution_limit == 2
    assert session.count(per_key_limit=3).plan().fits
    for ask in (
        lambda s: s.histogram("k", contribution_limit=3),
        lambda s: s.top_k("k", 1, contribution_limit=3),
        lambda s: s.count(per_key_limit=4),
        lambda s: s.quantile("age", lower=0, upper=9, per_key_limit=4),
    ):
        with pytest.raises(InvalidInput, match="must be at most"):
            ask(session).plan()


def test_the_asker_cannot_make_memory_a_trap(opened) -> None:
    """With a megabyte a filter that one row passes fails, and one that none passes does not."""
    for memory in ("1MB", "2MB", "64 MB", "100KB", "0.1GB", "5%", "-1GB", "much"):
        with pytest.raises(InvalidInput, match="at least"):
            opened(ROWS, memory=memory)
    assert opened(ROWS, memory="300MB").count().plan().fits


def test_a_question_does_not_show_what_it_is_asked_with(opened) -> None:
    """No public name leads to the rows, to the statement or to the purse behind the plan."""
    session = opened(ROWS)
    for held in (
        session,
        session.count(),
        session.count().plan(),
        session.batch({"a": session.count()}),
        session.batch({"a": session.count()}).plan(),
        session.watch(),
        session.watch().plan(),
    ):
        for name in dir(held):
            if not name.startswith("_"):
                kind = type(getattr(held, name)).__module__
                assert not kind.startswith(
                    (
                        "farthing.engine.context",
                        "farthing.engine.sources",
                        "farthing.ledger.roles.analyst",
                    )
                ), (held, name)


def test_another_version_is_noticed_by_a_session_that_is_open(opened, tmp_path) -> None:
    pq.write_table(ROWS, tmp_path / "events.parquet")
    session = opened(tmp_path / "events.parquet")
    session.count().run()
    planned = session.count(where={"k": "a"}).plan()
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        desk.declare_version("events", "2")
        assert session.count().plan().known is None
        with pytest.raises(RowsChanged):
            planned.run()
        desk.declare_version("events", None)
        assert not session.count().run().cached
        assert not session.count().run().cached


def test_a_table_in_memory_is_not_a_file_of_the_same_name(tmp_path, certificate) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(ROWS, path)
    budget = {"unit": "member", "ledger": tmp_path / "b.db", "tariff": certificate}
    with fa.open(path, farthings=40, **budget) as session:
        session.count().run()
    with pytest.raises(InvalidInput, match="another place"):
        fa.open(ROWS.slice(1), ledger=tmp_path / "b.db", dataset="events")
    (tmp_path / "other").mkdir()
    pq.write_table(ROWS, tmp_path / "other" / "events.parquet")
    with pytest.raises(InvalidInput, match="other data"):
        fa.open(tmp_path / "other" / "events.parquet", farthings=40, **budget)


def test_widths_and_levels_are_never_shown_smaller(opened) -> None:
    for level in (0.995, 0.999, 0.9999, 0.95, 0.5):
        session = opened(ROWS, confidence=level)
        plan = session.sum("age", lower=0, upper=9, places=1).plan()
        shown = str(plan)
        assert f"{level * 100:.10g}%" in shown
        assert plan.expectation.counts is not None
        text = re.search(r"± ([0-9\u202f.]+) at", shown)
        assert text is not None
        assert float(text[1].replace("\u202f", "")) >= plan.expectation.counts.half_width
