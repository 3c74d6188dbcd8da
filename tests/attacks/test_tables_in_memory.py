"""Two tables in memory under one name share a budget, and nothing that was told of their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.composition.tariffs.tariff import Price
from farthing.engine import Declaration, open_source
from farthing.ledger import Ledger, RowsChanged


def people(count: int) -> pa.Table:
    return pa.table({"who": list(range(count)), "city": ["Bergen"] * count})


@pytest.fixture
def budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    tariff = fa.Tariff({"count": (fa.PureDP(1.0), 4)}, farthings=400)
    return {"dataset": "people", "unit": "who", "tariff": tariff, "farthings": 400}


def test_a_table_in_memory_needs_a_name(budget: dict[str, Any], tmp_path: Path) -> None:
    nameless = {**budget, "dataset": None}
    for ledger in (None, tmp_path / "b.db"):
        with pytest.raises(fa.InvalidInput, match="dataset must be given for a table in memory"):
            fa.open(people(9), ledger=ledger, **nameless)
    assert not list(tmp_path.iterdir())
    with (
        fa.Desk.open(tmp_path / "b.db") as desk,
        pytest.raises(fa.InvalidInput, match="name must be given for a table in memory"),
    ):
        desk.add(open_source(people(9)), Declaration(unit="who"))


def test_another_table_gets_its_own_answers(budget: dict[str, Any]) -> None:
    """The first had 1000 people, the second has 5000: 996 for the second is a wrong answer."""
    with fa.open(people(1000), **budget) as first:
        told = first.count().run()
        assert not told.cached
        assert first.count().run().counts == told.counts
        batch = {"a": first.count(), "b": first.count(where={"city": "Bergen"})}
        first.batch(batch).run()
    with fa.open(people(5000), **budget) as second:
        answers = second.batch({"a": second.count(), "b": second.count(where={"city": "Bergen"})})
        assert not second.count().plan().known
        assert not answers.plan().known
        assert second.count().run().value == pytest.approx(5000, abs=50)
        assert answers.run()["b"].value == pytest.approx(5000, abs=50)


def test_the_budget_is_one(budget: dict[str, Any]) -> None:
    with fa.open(people(10), **budget) as first:
        first.count().run()
        left = first.remaining()
    with fa.open(people(20), **budget) as second:
        assert second.remaining() == left == Price(396)
        second.count().run()
        assert second.remaining() == Price(392)
    with Ledger.open("people.farthing.db") as ledger:
        assert ledger.reader().datasets() == ["people"]


def test_the_same_version_is_the_same_table(budget: dict[str, Any]) -> None:
    with fa.open(people(10), version="March", **budget) as first:
        told = first.count().run()
    with fa.open(people(10), version="March", **budget) as again:
        known = again.count().run()
        assert known.cached
        assert known.counts == told.counts
    with fa.open(people(10), version="April", **budget) as later:
        assert not later.count().run().cached


def test_live_rows_are_never_answered_from_the_past(budget: dict[str, Any]) -> None:
    with fa.open(people(10), version=None, **budget) as first:
        first.count().run()
        assert not first.count().run().cached
    with fa.open(people(10), version=None, **budget) as again:
        assert not again.count().run().cached


def test_two_sessions_at_once_do_not_mix(budget: dict[str, Any]) -> None:
    """What the first asks after the second was opened is about other rows: it is told so."""
    with fa.open(people(1000), **budget) as first, fa.open(people(5000), **budget) as second:
        planned = second.count().plan()
        with pytest.raises(RowsChanged, match="open the table again"):
            first.count().run()
        left = first.remaining()
        assert planned.run().value == pytest.approx(5000, abs=50)
        assert left == Price(400)


def test_two_analysts_may_hold_one_version(budget: dict[str, Any]) -> None:
    with fa.open(people(100), version="1", **budget) as ann:
        with fa.Desk.open("people.farthing.db") as desk:
            desk.grant("people", "bob", farthings=0 + 4)
        with fa.open(people(100), dataset="people", version="1", analyst="bob") as bob:
            assert not bob.count().run().cached
        assert not ann.count().run().cached


def test_a_file_keeps_the_version_that_its_owner_declared(
    budget: dict[str, Any], tmp_path: Path
) -> None:
    pq.write_table(people(10), tmp_path / "people.parquet")
    path = tmp_path / "people.parquet"
    with fa.open(path, **budget) as first:
        told = first.count().run()
    with fa.open(path, **budget) as again:
        assert again.count().run().counts == told.counts
    with pytest.raises(fa.InvalidInput, match="the version of people in the ledger is 1, got 2"):
        fa.open(path, version="2", **budget)
