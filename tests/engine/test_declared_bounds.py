"""One rule on every engine: declared bounds move values, filters compare what is stored, and what
does not fit its kind is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.engine.context import record_of
from farthing.engine.kinds.counts import CountQuery, DistinctQuery, HistogramQuery
from farthing.engine.kinds.quantile import QuantileQuery
from farthing.engine.kinds.totals import MeanQuery, StandardDeviationQuery, SumQuery, VarianceQuery
from farthing.engine.sources.base import Source
from farthing.engine.sources.misfits import misfits_of
from farthing.engine.sources.opening import open_source
from farthing.errors import InvalidInput
from farthing.schema import DATE, DECIMAL, INTEGER, REAL, TEXT, Column, Schema
from tests.engine.engines import measured, read

UNITS = 20_000


def flights() -> pa.Table:
    """x is 5 for nine of ten units and 1000 for one of ten."""
    return pa.table(
        {"who": range(UNITS), "x": [1000 if unit % 10 == 0 else 5 for unit in range(UNITS)]}
    )


def test_the_numbers_of_an_analyst(tmp_path) -> None:
    """What 1.0.0 answered: a mean of 5, nobody above 5, a quantile of 5."""
    schema = Schema((Column("who", INTEGER), Column("x", INTEGER, lower=0, upper=10)))
    path = tmp_path / "flights.parquet"
    pq.write_table(flights(), path)
    data = fa.open(path, unit="who", schema=schema, epsilon=5, delta=1e-6)
    mean = data.mean("x", per_key_limit=1, epsilon=0.3).run()
    assert mean.intervals is not None
    assert mean.intervals[0][0] <= 5.5 <= mean.intervals[0][1]
    assert mean.value == pytest.approx(5.5, abs=0.1)
    assert data.count(where="x > 5", epsilon=0.3).run().value == pytest.approx(2000, abs=100)
    assert data.quantile("x", 0.95, per_key_limit=1, epsilon=0.3).run().value == 10
    total = data.sum("x", per_key_limit=1, epsilon=0.3).run()
    assert total.value == pytest.approx(5.5 * UNITS, rel=0.02)
    watch = data.watch(positives=3, per_unit=19, monotone=False).open()
    assert watch.exceeds(data.sum("x", per_key_limit=1), 5.2 * UNITS).positive
    assert watch.exceeds(data.count(where="x > 5"), 1500).positive
    assert watch.exceeds(data.quantile("x", 0.95, per_key_limit=1), 8).positive
    data.shut()


#: Units 1 to 8 are inside or out of 0 to 10; of the others nothing can be read.
CELLS = ["-7", "0", "2.5", "5", "10", "11", "1000", "1e300", "ten", "nan", "2013-01-05x", None]
WHO = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "9", "9", "9"]
LABELS = ["a", "a", "a", "b", "b", "c", "c", "c", "a", "b", "c", None]
DAYS = ["2013-01-05", "x", None, *["2013-02-30"] * 9]

DECLARED = Schema(
    (
        Column("who", INTEGER, lower=1, upper=2),  # a unit is who is stored
        Column("x", REAL, lower=0, upper=10),
        Column("label", TEXT, categories=("a", "b")),
        Column("day", DATE),
    )
)
TEXTS = pa.table(
    {
        "who": pa.array(WHO, pa.string()),
        "x": pa.array(CELLS, pa.string()),
        "label": pa.array(LABELS, pa.string()),
        "day": pa.array(DAYS, pa.string()),
    }
)

Place = Callable[[pa.Table, Path], Any]


def in_csv(rows: pa.Table, folder: Path) -> Any:
    pyarrow.csv.write_csv(rows, folder / "t.csv")
    return open_source(folder / "t.csv")


def in_sqlite(rows: pa.Table, folder: Path) -> Any:
    connection = sqlite3.connect(folder / "t.sqlite")
    connection.execute(f"CREATE TABLE t ({', '.join(rows.column_names)})")
    cells = [tuple(row.values()) for row in rows.to_pylist()]
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * rows.num_columns)})", cells)
    connection.commit()
    connection.close()
    return open_source(folder / "t.sqlite", table="t")


def in_duckdb(rows: pa.Table, folder: Path) -> Any:
    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return open_source(folder / "t.duckdb", table="t")


def in_parquet(rows: pa.Table, folder: Path) -> Any:
    pq.write_table(rows, folder / "t.parquet")
    return open_source(folder / "t.parquet")


def as_pandas(rows: pa.Table, _: Path) -> Any:
    return open_source(pd.DataFrame(rows.to_pydict(), dtype=object))


def as_polars(rows: pa.Table, _: Path) -> Any:
    return open_source(pl.from_arrow(rows))


def as_arrow(rows: pa.Table, _: Path) -> Any:
    return open_source(rows)


PLACES = [in_csv, in_sqlite, in_duckdb, in_parquet, as_pandas, as_polars, as_arrow]


@pytest.fixture(params=[*(place.__name__ for place in PLACES), "in_postgres", "in_spark"])
def placed(request, tmp_path) -> Any:
    """The table of texts, wherever a table can be."""
    named = {place.__name__: place for place in PLACES}
    if request.param in named:
        found = named[request.param](TEXTS, tmp_path)
    elif request.param == "in_spark":
        pq.write_table(TEXTS, tmp_path / "t.parquet")
        found = open_source(str(tmp_path / "t.parquet"), spark=request.getfixturevalue("spark"))
    else:
        url = request.getfixturevalue("postgres").url()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS moved")
            connection.execute("CREATE TABLE moved (who text, x text, label text, day text)")
            with connection.cursor().copy("COPY moved FROM STDIN") as copy:
                for row in TEXTS.to_pylist():
                    copy.write_row(list(row.values()))
        found = open_source(url, table="moved")
    yield found
    found.shut()


MOVED = [0, 0, 2.5, 5, 10, 10, 10, 10]
ONE = {"per_key_limit": 1}


def numbers(source: Source, query: Any, schema: Schema = DECLARED) -> Any:
    whole, rows, _ = measured(source, schema, query, unit="who")
    return whole.collected(rows).of


def counted(source: Source, query: Any, schema: Schema = DECLARED) -> dict[Any, int]:
    _, rows, _ = measured(source, schema, query, unit="who")
    return {row.get("label", ""): int(row["n"]) for row in rows.to_pylist()}


def test_every_question_of_the_same_rows(placed) -> None:
    """Values are moved, filters are not, and a unit is neither moved nor missing."""
    assert [row["x"] for row in read(placed, DECLARED)][:8] == [-7, 0, 2.5, 5, 10, 11, 1000, 1e300]
    assert [row["x"] for row in read(placed, DECLARED)][8:] == [None] * 4
    assert [row["label"] for row in read(placed, DECLARED)].count(None) == 5

    for kind in (MeanQuery, VarianceQuery, StandardDeviationQuery):
        [totals] = numbers(placed, kind("x", places=1, **ONE)).values()
        assert totals[0] == 8  # the rows whose text is a number
    mean = MeanQuery("x", lower=0, upper=10, places=1, **ONE)
    [(rows, middle)] = numbers(placed, mean).values()
    steps = mean.scales[0].reach
    assert (middle / steps + rows) * 10 / 2 == pytest.approx(sum(MOVED), abs=1e-5)
    [values] = numbers(placed, QuantileQuery("x", places=1, **ONE)).values()
    assert sorted(values.labels.tolist()) == [0, 25, 50, 100]
    assert counted(placed, SumQuery("x", places=1, **ONE)) == {"": 10 * sum(MOVED)}
    wide = SumQuery("x", lower=-(10**6), upper=10**6, places=1)
    assert counted(placed, wide) == {"": 10 * sum(MOVED)}

    assert counted(placed, CountQuery(where="x > 5")) == {"": 4}
    assert counted(placed, CountQuery(where="x > 10")) == {"": 3}
    assert counted(placed, CountQuery(where="x < 0")) == {"": 1}
    assert counted(placed, CountQuery(where="x == 1000")) == {"": 1}
    assert counted(placed, CountQuery(where="x is not null")) == {"": 8}
    assert counted(placed, CountQuery(where="x is null")) == {"": 1}
    assert counted(placed, SumQuery("x", places=1, where="x > 10", **ONE)) == {"": 300}

    bins = HistogramQuery("bins(x, 0, 5, 10)", contribution_limit=1)
    assert counted(placed, bins) == {"s[0, 5)": 3, "s[5, 10]": 5}
    inner = HistogramQuery("bins(x, 1, 5, 9)", contribution_limit=1)
    assert counted(placed, inner) == {"s[1, 5)": 1, "s[5, 9)": 1}
    labels = HistogramQuery("label", categories=("a", "b"), contribution_limit=2)
    assert counted(placed, labels) == {"sa": 4, "sb": 3}


EXACT = Schema(
    (
        Column("who", INTEGER),
        Column("x", DECIMAL, places=2, lower=0.125, upper=9.996),
        Column("label", TEXT),
    )
)
WHOLE = Schema((Column("who", INTEGER), Column("x", INTEGER, lower=0.5, upper=9.5)))


def test_a_bound_between_two_values_moves_to_the_one_inside(placed) -> None:
    whole = DistinctQuery("x", contribution_limit=3)
    assert counted(placed, whole, WHOLE) == {"": 3}  # 1, 5 and 9
    keys = HistogramQuery("x", contribution_limit=1)
    assert counted(placed, keys, WHOLE) == {"i1": 2, "i5": 1, "i9": 3, "n": 3}
    exact = counted(placed, keys, EXACT)
    assert {label[:5]: number for label, number in exact.items()} == {
        "m1300": 2,
        "m2500": 1,
        "m5000": 1,
        "m9990": 3,
        "n": 2,
    }


def test_units_that_bounds_would_merge_stay_apart(placed) -> None:
    """Moved to one bound, seven units would be limited as one."""
    assert counted(placed, CountQuery()) == {"": 9}
    assert counted(placed, CountQuery(where="x >= 0", per_key_limit=3)) == {"": 7}


def test_one_side_is_enough() -> None:
    rows = pa.table({"who": [1, 2, 3], "x": [-5, 5, 50]})
    for bounds, found in (({"lower": 0}, {0, 5, 50}), ({"upper": 10}, {-5, 5, 10})):
        schema = Schema((Column("who", INTEGER), Column("x", INTEGER, **bounds)))
        source = open_source(rows)
        labels = counted(source, HistogramQuery("x", contribution_limit=1), schema)
        source.shut()
        assert labels == {f"i{value}": 1 for value in found}


def test_bounds_of_a_question_are_kept_within_those_of_the_schema() -> None:
    source = open_source(pa.table({"who": [1, 2], "x": [-50, 50]}))
    schema = Schema((Column("who", INTEGER), Column("x", INTEGER, lower=0, upper=10)))
    whole, _, _ = measured(source, schema, MeanQuery("x", lower=-9, upper=4, **ONE), unit="who")
    assert (whole.lower, whole.upper) == (0, 4)
    with pytest.raises(InvalidInput, match="overlap the declared bounds"):
        measured(source, schema, MeanQuery("x", lower=20, upper=30, **ONE), unit="who")
    source.shut()


def test_a_release_of_the_old_rule_is_not_given_out_again(tmp_path) -> None:
    """Declared bounds are part of what the ledger keeps of a question."""
    schema = Schema(
        (Column("who", INTEGER), Column("x", INTEGER, lower=0, upper=10), Column("y", INTEGER))
    )
    rows = pa.table({"who": [1, 2], "x": [5, 50], "y": [1, 2]})
    pq.write_table(rows, tmp_path / "t.parquet")
    data = fa.open(tmp_path / "t.parquet", unit="who", schema=schema, epsilon=3, delta=1e-6)
    for question, bounds in (
        (data.mean("x", per_key_limit=1), {"x": [0, 10]}),
        (data.count(where="x > 5"), {"x": [0, 10]}),
        (data.count(where="y > 5"), None),
    ):
        plan = question.plan()
        bought = {key: step.purchase for key, step in plan._details.steps.items()}
        [asked] = record_of(plan._details.context, bought).values()
        assert asked.get("bounds") == bounds
    data.shut()


def test_an_owner_sees_what_is_not_as_declared(placed) -> None:
    found = {one.column.name: one for one in misfits_of(placed, DECLARED)}
    told = {n: (m.values, m.unparsed, m.undeclared, m.outside) for n, m in found.items()}
    assert told == {
        "who": (12, 0, 0, 10),
        "x": (11, 3, 0, 4),
        "label": (11, 0, 4, 0),
        "day": (11, 10, 0, 0),
    }
    assert found["day"].in_words() == "day: 10 of 11 values do not parse"
    assert found["x"].in_words() == (
        "x: 3 of 11 values do not parse; 4 of 11 values lie outside the bounds: they are moved"
    )
    assert found["label"].in_words() == ("label: 4 of 11 values are not declared: they are missing")
    assert not any(one.useless for one in found.values())
    numbers = Schema((Column("who", INTEGER), Column("label", INTEGER), Column("none", DATE)))
    [label] = misfits_of(placed, numbers)
    assert label.useless
    assert label.in_words() == "label: 11 of 11 values do not parse"


def test_nothing_is_wrong_with_no_rows() -> None:
    source = open_source(TEXTS.slice(0, 0))
    assert misfits_of(source, DECLARED) == ()
    source.shut()


def test_bounds_are_named_wherever_an_answer_is_shown(opened) -> None:
    """In text, HTML and plain data, of plans and answers, now and later."""
    schema = Schema(
        (
            Column("who", INTEGER),
            Column("x", INTEGER, lower=0, upper=10),
            Column("k", TEXT, categories=("a", "b")),
        )
    )
    rows = {"who": list(range(50)), "x": [5, 1000] * 25, "k": ["a", "z"] * 25}
    data = opened(pa.table(rows), unit="who", schema=schema)
    moved, sums = "is clipped to the range 0 to 10", "a sum clipped to the range 0 to 30"
    labels = "are listed, and rows with others are left out"
    for question, words in (
        (data.mean("x", per_key_limit=3, lower=-9, upper=99), (moved, "at most 3 rows")),
        (data.standard_deviation("x", per_key_limit=3), (moved, "at most 3 rows")),
        (data.quantile("x", per_key_limit=3), (moved, "at most 3 rows")),
        (data.sum("x", per_key_limit=3), (moved, sums)),
        (data.histogram("bins(x, 0, 5, 10)", contribution_limit=1), (moved, labels)),
        (
            data.sum("x", by="k", contribution_limit=1, per_key_limit=3),
            (moved, labels, "at most 1 value of `k`", "2 values of `k`"),
        ),
    ):
        plan = question.plan()
        answer = plan.run()
        again = question.run()
        assert again.cached
        for shown in (
            str(plan),
            plan._repr_html_(),
            plan.to_json()["caption"],
            str(answer),
            answer._repr_html_(),
            answer.to_json()["caption"],
            again.caption,
        ):
            assert moved in " ".join(shown.split())
        for word in words:
            assert word in plan.caption
            assert word in answer.caption
            assert word in again.caption
            assert any(word in one.asked for one in data.history())
    batch = data.batch({"mean": data.mean("x", per_key_limit=2)})
    assert moved in batch.plan().to_json()["queries"]["mean"]["caption"]


def test_a_plan_offers_what_shows_how_much_is_moved(opened) -> None:
    rows = {"who": [1, 2], "x": [5, 1000], "k": ["a", "b"]}
    schema = Schema((Column("who", INTEGER), Column("x", INTEGER, upper=10), Column("k", TEXT)))
    data = opened(pa.table(rows), unit="who", schema=schema)
    mean = data.mean("x", lower=0, per_key_limit=1).plan()
    [offered] = mean.to_json()["offered"]
    assert offered == "count(where='x < 0 or x > 10') says how many have values that are clipped"
    assert offered in " ".join(str(mean).split())
    assert data.count(where="x < 0 or x > 10").run().value is not None
    histogram = data.histogram("k", contribution_limit=1)
    assert "measure_loss says how much" in str(histogram.plan())
    assert (
        data.histogram("k", contribution_limit=1, measure_loss=True).plan().to_json()["offered"]
        == []
    )
    assert data.count().plan().to_json()["offered"] == []


def test_categories_outside_the_bounds_are_refused(tmp_path) -> None:
    """99 would be moved to 10, so that its label always read 0."""
    pq.write_table(pa.table({"who": [1], "x": [99]}), tmp_path / "t.parquet")
    schema = Schema((Column("who", INTEGER), Column("x", INTEGER, upper=10, categories=(1, 99))))
    with pytest.raises(InvalidInput, match="categories of x must lie within its bounds, got 99"):
        fa.open(tmp_path / "t.parquet", unit="who", schema=schema, epsilon=3, delta=1e-6)
