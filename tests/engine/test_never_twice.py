"""One question about one version is paid for once, and planning changes nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.main import app
from farthing.composition.tariffs.tariff import Price
from tests.engine.conftest import Opened

ROWS = pa.table({"member": list(range(60)), "k": ["a", "b", "c"] * 20, "age": list(range(60))})
OLD = {"age": {"at_least": 30}}
HEAD = "SELECT number FROM farthing_datasets"


def test_a_batch_does_not_pay_for_what_was_released_singly(opened: Opened) -> None:
    data = opened(ROWS)
    single = data.count(where=OLD).run()
    left = data.remaining()
    batch = data.batch({"old": data.count(where=OLD), "all": data.count()})
    plan = batch.plan()
    assert plan.price == Price(4)
    assert plan.to_json()["queries"]["old"]["known"]
    assert "asked before" in str(plan)
    answers = plan.run()
    assert list(answers) == ["old", "all"]
    assert answers["old"].cached
    assert answers["old"].counts == single.counts
    assert not answers["all"].cached
    assert data.remaining() == left - Price(4) == answers["old"].remaining
    assert batch.plan().known is not None
    assert batch.run()["all"].counts == answers["all"].counts
    assert data.remaining() == left - Price(4)


def test_a_single_question_does_not_pay_for_what_a_batch_told(opened: Opened) -> None:
    data = opened(ROWS)
    told = data.batch({"old": data.count(where=OLD), "all": data.count()}).run()
    left = data.remaining()
    again = data.count(where=OLD).run()
    assert again.cached
    assert again.counts == told["old"].counts
    other = data.batch({"x": data.count(), "y": data.count(where=OLD)}).run()
    assert other["x"].counts == told["all"].counts
    assert data.remaining() == left
    fresh = opened(ROWS)  # in another session as well: the ledger knows it
    assert fresh.count().run().counts == told["all"].counts
    assert fresh.remaining() == left
    assert not fresh.count().run(again=True).cached
    assert fresh.remaining() == left - Price(4)


def test_not_across_versions_or_analysts(opened: Opened, tmp_path: Path) -> None:
    data = opened(ROWS)
    data.batch({"old": data.count(where=OLD), "all": data.count()}).run()
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        desk.grant("events", "somebody else", farthings=8)
    other = opened(ROWS, analyst="somebody else")
    assert not other.count().run().cached
    later = opened(ROWS, version="2")
    assert not later.count().plan().known
    assert not later.batch({"a": later.count()}).run()["a"].cached


def test_one_question_under_two_names_is_paid_for_once(opened: Opened) -> None:
    data = opened(ROWS)
    batch = data.batch({"a": data.count(), "b": data.count(), "c": data.count(where=OLD)})
    assert batch.plan().price == Price(8)
    answers = batch.run()
    assert answers["a"].counts == answers["b"].counts
    assert data.remaining() == Price(992, 100)
    assert sum(one.price.farthings for one in answers.values()) == 8


def test_what_is_measured_beside_a_question_comes_with_it(opened: Opened) -> None:
    data = opened(ROWS)
    asked = {"contribution_limit": 1, "categories": ["a", "b", "c"], "measure_loss": True}
    single = data.histogram("k", **asked).run()
    left = data.remaining()
    told = data.batch({"h": data.histogram("k", **asked), "n": data.count()}).run()
    assert told["h"].cached
    assert told["h"].loss == single.loss
    assert data.remaining() == left - Price(4)


def test_what_was_measured_beside_a_question_of_a_batch_can_be_asked_alone(opened: Opened) -> None:
    """It was looked for under a name that the batch released nothing under, and failed."""
    data = opened(ROWS)
    asked = {"contribution_limit": 1, "categories": ["a", "b", "c"]}
    data.batch({"h": data.histogram("k", **asked, measure_loss=True), "n": data.count()}).run()
    assert not data.loss("k", **asked).run().cached


def test_a_question_of_a_batch_has_a_name(opened: Opened) -> None:
    """Without one it is kept like a question that was asked alone, and the others are not found."""
    data = opened(ROWS)
    with pytest.raises(fa.InvalidInput, match="must have a name"):
        data.batch({"": data.count(), "old": data.count(where=OLD)})


def test_a_batch_that_is_paid_for_again_is_paid_for_whole(opened: Opened) -> None:
    data = opened(ROWS)
    data.count().run()
    batch = data.batch({"old": data.count(where=OLD), "all": data.count()})
    assert not any(one.cached for one in batch.run(again=True).values())
    assert data.remaining() == Price(1000 - 4 - 8, 100)


@pytest.mark.parametrize("ledger", [None, "mine.db"])
@pytest.mark.parametrize("command", [["query", "count"], ["converse", "open"]])
def test_a_plan_on_new_data_signs_nothing(
    tmp_path: Path, ledger: str | None, command: list[str]
) -> None:
    pq.write_table(ROWS, tmp_path / "events.parquet")
    given = [*command, str(tmp_path / "events.parquet"), "--unit", "member", "--plan"]
    budget = ["--epsilon", "3", "--delta", "1e-6"]
    where = [] if ledger is None else ["--ledger", str(tmp_path / ledger)]
    done = CliRunner().invoke(app, [*given, *budget, *where])
    assert done.exit_code == 0, done.output
    assert "price" in done.stdout
    assert "kept in" not in done.output
    assert [one.name for one in tmp_path.iterdir()] == ["events.parquet"]


def test_a_plan_on_known_data_changes_nothing(opened: Opened, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "events.parquet")
    path, book = tmp_path / "events.parquet", tmp_path / "budget.db"
    opened(path).shut()
    before = book.read_bytes()
    with fa.open(path, ledger=book, plan_only=True) as data:
        planned, watch = data.count().plan(), data.watch().plan()
        assert planned.remaining == Price(1000, 100)
        for run in (planned.run, watch.open, data.batch({"a": data.count()}).run):
            with pytest.raises(fa.InvalidInput, match="plan_only"):
                run()
    assert book.read_bytes() == before


SCHEMA = fa.Schema(
    (
        fa.Column("member", "integer"),
        fa.Column("k", "text", categories=("a", "b")),
        fa.Column("age", "integer", lower=0, upper=50),
        fa.Column("pay", "real"),
        fa.Column("day", "date"),
    )
)


@pytest.mark.parametrize(
    "where",
    [
        {"k": "z"},
        {"k": ["y", "z"]},
        {"k": {"above": "b"}},
        {"age": {"at_least": 30, "below": 20}},
        {"age": {"above": 3, "below": 4}},
        {"age": {"at_least": 3, "below": 3}},
        {"age": 1.5},
        {"all_of": [{"k": "a"}, {"k": "b"}]},
        {"all_of": [{"age": 3}, {"age": {"at_most": 2}}, {"k": "a"}]},
        {"all_of": [{"pay": None}, {"pay": {"present": True}}]},
        {"any_of": [{"k": "z"}, {"age": {"at_least": 9, "at_most": 8}}]},
        {"all_of": [{"any_of": [{"k": "z"}, {"k": "y"}]}, {"age": 3}]},
        "day >= DATE '2020-02-01' and day < DATE '2020-01-01'",
    ],
)
def test_a_filter_that_can_never_hold_is_refused_unpaid(opened: Opened, where: object) -> None:
    data = opened(ROWS, schema=SCHEMA)
    for asked in (data.count(where=where), data.batch({"a": data.count(where=where)})):
        with pytest.raises(fa.InvalidInput, match="no row can pass this filter"):
            asked.run()
    assert data.remaining() == Price(1000, 100)


@pytest.mark.parametrize(
    "where",
    [
        {"k": None},
        {"k": ["z", None]},
        {"k": ["a", "z"]},
        {"k": {"at_least": "b"}},
        {"age": {"at_least": 60}},  # a filter compares what is stored, also beyond the bounds
        {"age": {"above": 3, "below": 5}},
        {"age": {"at_least": 3, "at_most": 3}},
        {"not": {"k": "z"}},
        {"any_of": [{"k": "z"}, {"k": "a"}]},
        {"all_of": [{"k": ["a", None]}, {"k": [None, "b"]}]},
        {"pay": {"above": 3, "below": 4}},
        {"all_of": [{"k": "a"}, {"not": {"k": "a"}}]},  # not seen, so it is run
    ],
)
def test_what_may_hold_is_planned(opened: Opened, where: object) -> None:
    assert opened(ROWS, schema=SCHEMA).count(where=where).plan().price == Price(4)


def test_what_was_looked_through_is_not_looked_through_again(opened: Opened) -> None:
    """A plan must not take longer the more others were told."""
    data = opened(ROWS)
    data.count().run()
    data.count(where=OLD).plan()
    analyst, recent = data.backend.context.analyst, data.backend.context.recent
    head = analyst._book.store.ask(lambda c: c.exec_driver_sql(HEAD).scalar_one())
    assert recent.seen == head > 0
