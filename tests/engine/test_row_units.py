"""Each row is a unit: as if every row had a number of its own, one row more changes one number.

`member` is different in every row here, so that it is the oracle for the unit `row`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.main import app
from farthing.engine.context import Asked
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.counts import CountQuery, DistinctQuery, HistogramQuery, LossQuery
from farthing.engine.kinds.quantile import QuantileQuery
from farthing.engine.kinds.ratio import RatioQuery
from farthing.engine.kinds.rollup import RollupQuery
from farthing.engine.kinds.top_k import TopKQuery
from farthing.engine.kinds.totals import MeanQuery, SumQuery, VarianceQuery
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import text_of
from farthing.errors import InvalidInput
from farthing.ledger import Ledger
from farthing.ledger.declared_data import EACH_ROW, Dataset, rows_are_units, with_unit
from farthing.ledger.reports.statement import markdown, statement
from farthing.schema import ROW, Column, Schema
from tests.engine.engines import measured
from tests.engine.test_computed import DAYS, REALS, TEXTS, WHOLES
from tests.engine.test_computed_neighbours import KEYS, SCHEMA, WHERES, by_pair, opened

Opened = Callable[[list[list[Any]]], Source]
__all__ = ["opened"]


def rows(seed: int, pairs: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """Two tables: in each pair the second has one row more, which may equal another one."""
    draw = random.Random(seed)
    less: list[list[Any]] = []
    more: list[list[Any]] = []
    for pair in range(pairs):
        kept = [
            [draw.choice(each) for each in (WHOLES, REALS, TEXTS, DAYS, (True, False, None))]
            for _ in range(draw.randint(0, 4))
        ]
        kept.append(
            draw.choice(kept) if kept and draw.random() < 0.3 else [5, 1.5, "a|b|a", None, True]
        )
        whole = [[pair, f"{pair}:{i}", *row] for i, row in enumerate(kept)]
        more += whole
        less += whole[:-1]
    return less, more


def questions(seed: int) -> list[Query]:
    draw = random.Random(seed)
    asked: list[Query] = [
        HistogramQuery(["pair", key], contribution_limit=1, where=draw.choice(WHERES))
        for key in KEYS
        if not key.startswith("split")
    ]
    bounds: dict[str, Any] = {"lower": -2, "upper": 5, "by": "pair", "contribution_limit": 1}
    return [
        *asked,
        CountQuery(where="whole < worth or per_unit(count(*)) > 1"),
        TopKQuery("text", k=3, contribution_limit=1),
        DistinctQuery("lower(text)", contribution_limit=1),
        DistinctQuery("lower(text)", by="pair", contribution_limit=1),
        CountQuery(),
        RollupQuery(["flag", "weekday(day)"], contribution_limit=1),
        SumQuery("worth", **bounds),
        SumQuery("per_unit(sum(worth) filter (where flag))", **bounds),
        RatioQuery("worth", "whole + 1", per_upper=9, **bounds),
        *(
            kind(column, per_key_limit=1, where=draw.choice(WHERES), **bounds)
            for kind in (MeanQuery, VarianceQuery, QuantileQuery)
            for column in ("worth", "whole * 2")
        ),
        QuantileQuery("worth", 0.25, lower=-2, upper=5, per_key_limit=1),
    ]


def _told(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_as_if_every_row_had_a_number(opened: Opened) -> None:
    source = opened(rows(1, 25)[1])
    for query in questions(3):
        _, expected, bounded = measured(source, SCHEMA, query, unit="member")
        _, told, alone = measured(source, SCHEMA, query, unit=ROW)
        assert _told(told) == _told(expected), query
        limits = (alone.contribution_limit, alone.per_key_limit, alone.others, alone.total)
        assert limits == (
            bounded.contribution_limit,
            bounded.per_key_limit,
            bounded.others,
            bounded.total,
        )
    source.shut()


def test_ranks_of_a_watched_quantile(opened: Opened) -> None:
    source = opened(rows(4, 9)[1])
    query = QuantileQuery("worth", 0.25, lower=-2, upper=5, per_key_limit=1, places=0)
    told = []
    for unit in ("member", ROW):
        asked = Asked.of(source, SCHEMA, unit, "key", query)
        ranks = asked.query.ranks_at(asked.rows, 1)
        told.append(source.run(asked.statement(source, ranks.expression)).to_pylist())
    assert told[0] == told[1]
    source.shut()


def test_one_row_more_changes_one_number_by_one_row(opened: Opened) -> None:
    less, more = rows(2, 40)
    sources = opened(less), opened(more)
    changed = 0
    split = HistogramQuery(["pair", "split(text, '|')"], contribution_limit=2)
    for query in [*questions(5), split]:
        if "pair" not in query.columns():
            continue
        given = [measured(source, SCHEMA, query, unit=ROW) for source in sources]
        answers, bounded = [by_pair(table) for _, table, _ in given], given[1][2]
        most = max(bounded.per_key_limit, *bounded.others, 1)
        for pair in {*answers[0], *answers[1]}:
            before, after = (answer.get(pair, {}) for answer in answers)
            moved = [after.get(label, 0) - before.get(label, 0) for label in {*before, *after}]
            moved = [step for step in moved if step]
            changed += bool(moved)
            assert len(moved) <= (2 if query is split else 1), (query, pair, moved)
            assert all(abs(step) <= most for step in moved), (query, pair, moved)
    assert changed > 200
    for source in sources:
        source.shut()


@pytest.mark.parametrize("limit", [1, 2, 9])
def test_labels_of_a_split_text_are_different_and_limited(opened: Opened, limit: int) -> None:
    given = rows(6, 25)[1]
    source = opened(given)
    expected: Counter[str] = Counter()
    for row in given:
        labels = [None] if row[4] is None else sorted(set(row[4].split("|")), key=str.encode)
        expected.update(text_of(label) for label in labels[:limit])
    query = HistogramQuery("split(text, '|')", contribution_limit=limit)
    _, told, bounded = measured(source, SCHEMA, query, unit=ROW)
    assert {row["label"]: int(row["n"]) for row in told.to_pylist()} == expected
    assert (bounded.contribution_limit, bounded.per_key_limit) == (limit, 1)
    with pytest.raises(InvalidInput, match="must be a number here"):
        measured(source, SCHEMA, query.changed(contribution_limit="auto"), unit=ROW)
    with pytest.raises(InvalidInput, match="contribution_limit must be given"):
        measured(source, SCHEMA, query.changed(contribution_limit=None), unit=ROW)
    source.shut()


TABLE = pa.table(
    {
        "city": ["Oslo", "Oslo", "Bergen", None] * 300,
        "pay": [1, 2, 3, None] * 300,
        "row_number": range(1200),
    }
)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "sales.parquet")
    with fa.open("sales.parquet", unit=ROW, epsilon=8, delta=1e-6, dataset="sales") as session:
        yield session


def test_no_limits_are_needed_and_everybody_is_told(data: fa.Session) -> None:
    counted = data.count().run()
    assert counted.caption == "The number of rows (each row is protected on its own)"
    assert abs(counted.value - 1200) < 60
    plan = data.histogram("city", contribution_limit=20, measure_loss=True).plan()
    assert plan.items == {"count": 1, "leak": 1}  # the price of one label, whatever was asked
    assert (plan.query.contribution_limit, plan.query.per_key_limit) == (1, 1)
    assert ("protects", f"{EACH_ROW}; no contribution limit is needed", "") in list(plan.lines())
    assert data.histogram("city", contribution_limit="auto").plan().price == plan.price
    assert data.top_k("city", 2).plan().items["count"] == 1
    assert data.mean("pay", by="city", lower=0, upper=4).plan().query.per_key_limit == 1
    for query in (LossQuery("city", contribution_limit=1),):
        with pytest.raises(InvalidInput, match="each row is one"):
            data.question(query).plan()
    with pytest.raises(InvalidInput, match="there is a column row already"):
        data.with_columns(row="pay + 1")
    with pytest.raises(InvalidInput, match="there is no column row"):
        data.count(where="row = 3").plan()


def test_in_sql(data: fa.Session) -> None:
    rows = data.sql("SELECT COUNT(*) FROM sales")
    assert rows.query == data.sql("SELECT COUNT(DISTINCT row) FROM sales").query
    assert rows.query == CountQuery()
    grouped = data.sql("SELECT city, COUNT(*) FROM sales GROUP BY city")
    assert grouped.query == HistogramQuery("city")
    ranked = data.sql("SELECT city FROM sales GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2")
    assert ranked.plan().query.per_key_limit == 1
    inner = "SELECT row, MAX(pay) AS most FROM sales GROUP BY row"
    told = data.sql(f"SELECT COUNT(*) FROM ({inner}) AS one WHERE most > 1").run()
    assert abs(told.value - 600) < 60


def test_conversations(data: fa.Session) -> None:
    watch = data.watch(positives=3, monotone=False).open()
    assert watch.exceeds(data.count(where={"city": "Oslo"}), 300).positive
    assert not watch.exceeds(data.count(where={"city": "Paris"}), 300).positive
    median = data.quantile("row_number", lower=0, upper=1200)
    assert watch.exceeds(median, 100).positive
    assert not watch.exceeds(data.sum("pay", lower=0, upper=1), 1200).positive


@pytest.mark.usefixtures("data")
def test_the_statement_says_it_loudly(tmp_path) -> None:
    with Ledger.open(tmp_path / "sales.farthing.db", upgrade=False) as ledger:
        said = statement(ledger.reader(), "sales")
    assert said["unit_of_privacy"] == f"row ({EACH_ROW})"
    assert f"Unit of privacy: row ({EACH_ROW})" in markdown(said).replace("\\", "")


def test_the_missing_argument_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    choices = r"unit, the column that says whose row it is \(city, pay, row_number\), or unit = row"
    with pytest.raises(InvalidInput, match=f"{choices} \\({EACH_ROW}\\), must be given"):
        fa.open(TABLE, dataset="sales", epsilon=1, delta=1e-6)
    pq.write_table(TABLE, "sales.parquet")
    with Ledger.open("other.db") as ledger:
        desk = fa.Desk(ledger, sources={"sales": open_source("sales.parquet")})
        with pytest.raises(InvalidInput, match=choices):
            desk.declare("sales")
        assert desk.declare("sales", ROW).rows_are_units
    added = CliRunner().invoke(app, ["owner", "add", "sales.parquet", "--epsilon", "1"])
    assert "or unit = row" in str(added.exception)
    command = [
        "owner",
        "add",
        "sales.parquet",
        "--unit",
        "row",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
    ]
    added = CliRunner().invoke(app, command)
    assert added.exit_code == 0, added.output
    assert EACH_ROW in " ".join(added.output.split())


@pytest.mark.parametrize("name", ["row", "ROW"])
def test_a_column_called_row_is_not_shadowed(tmp_path, name: str) -> None:
    table = TABLE.rename_columns(["city", "pay", name])
    with pytest.raises(InvalidInput, match=f"there is a column called {name}"):
        fa.open(table, unit=ROW, dataset="x", ledger=tmp_path / "x.db", epsilon=1, delta=1e-6)
    with pytest.raises(InvalidInput, match=f"there is a column called {name}"):
        with_unit(Schema((Column(name, "integer"),)), ("row",))
    without = Schema((Column("city", "text"),))
    with fa.open(
        table,
        unit=ROW,
        dataset="x",
        ledger=tmp_path / "x.db",
        epsilon=1,
        delta=1e-6,
        schema=without,
    ) as session:
        assert session.schema == without


def test_an_older_book_means_its_column() -> None:
    column = Schema((Column(ROW, "integer"), Column("city", "text")))
    old = Dataset("x", unit=ROW, owner="o", schema=column)
    new = Dataset("x", unit=ROW, owner="o", schema=Schema((Column("city", "text"),)))
    assert not rows_are_units(column, ROW)
    assert (old.protects, new.protects) == (ROW, f"row ({EACH_ROW})")
    assert CountQuery().caption(ROW, column.declared) == "The number of distinct `row`"


def test_datasets_beside_each_other_mean_the_same(tmp_path) -> None:
    column = Schema((Column(ROW, "integer"), Column("city", "text")))
    place = "file:/data/x.parquet"
    with Ledger.open(tmp_path / "x.db") as ledger:
        ledger.owner().add(Dataset("x", unit=ROW, owner="o", schema=column, location=place))
        rows = Dataset("y", unit=ROW, owner="o", schema=Schema((column["city"],)), location=place)
        with pytest.raises(InvalidInput, match="must have one unit"):
            ledger.owner().add(rows, beside="x")


def test_rows_of_several_tables(tmp_path) -> None:
    for name in ("a", "b"):
        pq.write_table(TABLE, tmp_path / f"{name}.parquet")
    paths = [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    with fa.open(paths, unit=ROW, ledger=tmp_path / "x.db", epsilon=8, delta=1e-6) as session:
        told = session.histogram(["table", "city"], categories=[("a", "Oslo"), ("b", "Oslo")]).run()
        assert all(abs(count - 600) < 60 for count in told.counts or ())
        assert abs(session.count().run().value - 2400) < 60


def test_no_rows_at_all(tmp_path) -> None:
    empty = TABLE.slice(0, 0)
    with fa.open(
        empty, unit=ROW, dataset="x", ledger=tmp_path / "x.db", epsilon=4, delta=1e-6
    ) as session:
        assert abs(session.count().run().value) < 60
        assert session.histogram("city").run().labels == ()
        assert session.mean("pay", lower=0, upper=4).run().value is not None
        assert session.quantile("pay", lower=0, upper=4).run().value is not None
