"""One more unit changes what a limit allows and no more, with computed keys, filters and values.

Many pairs of tables are in one table, told apart by a column that is part of the key.
FARTHING_PAIRS=20000 says how many pairs each engine gets.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine.kinds.base import Query
from farthing.engine.kinds.counts import HistogramQuery
from farthing.engine.kinds.moments import RegressionQuery
from farthing.engine.kinds.ratio import RatioQuery
from farthing.engine.kinds.totals import SumQuery
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import LABEL, counts_of
from farthing.schema import Column, Schema
from tests.engine.engines import measured, on_postgres, on_spark
from tests.engine.test_computed import DAYS, REALS, TEXTS, WHOLES

PAIRS = int(os.environ.get("FARTHING_PAIRS", "60"))
SCHEMA = Schema(
    (
        Column("pair", "integer"),
        Column("member", "text"),
        Column("whole", "integer", lower=-3, upper=9),
        Column("worth", "real", lower=-10, upper=10),
        Column("text", "text"),
        Column("day", "date"),
        Column("flag", "boolean"),
    )
)
TYPES = {
    "pair": pa.int64(),
    "member": pa.string(),
    "whole": pa.int64(),
    "worth": pa.float64(),
    "text": pa.string(),
    "day": pa.string(),
    "flag": pa.bool_(),
}
SQL_TYPES = "pair bigint, member text, whole numeric, worth float8, text text, day text, flag bool"
KEYS = [
    "lower(text)",
    "left(text, 1)",
    "split(text, '|')",
    "weekday(day)",
    "month(day)",
    "whole * 2 - 1",
    "round(least(greatest(worth / whole, -9), 9))",
    "case when whole < worth then 'below' when flag then 'flag' end",
    "coalesce(text, 'none')",
    "per_unit(count(*))",
    "per_unit(count(distinct text))",
    "per_unit(min(day))",
    "per_unit(max(text) filter (where flag))",
    'per_unit(count(*) filter (where "day > per_unit(min(day))"))',
    "case when per_unit(count(*) filter (where flag)) > 0 then per_unit(max(text)) end",
    "round(least(greatest(per_unit(sum(worth)), -50), 50))",
    "bins(per_unit(avg(whole)), -3, 0, 2, 9)",
]
WHERES = [
    None,
    None,
    "whole < worth",
    "text like '%a%' or flag",
    "per_unit(count(*)) > 1",
    "not (per_unit(count(*) filter (where flag)) > 0)",
    "whole * worth between -5 and 20",
    "per_unit(max(day)) > day and text is not null",
    "days(day, DATE '2024-01-01') > 0",
    "lower(text) = 'nobody has this'",
]


def questions(seed: int) -> Iterator[tuple[Query, int, int]]:
    """Histograms and sums, with how many numbers a unit may change and by how much."""
    draw = random.Random(seed)
    for key in KEYS:
        limit, rows = draw.choice([1, 2, 3]), draw.choice([1, 2])
        by, where = ["pair", key], draw.choice(WHERES)
        query = HistogramQuery(by, contribution_limit=limit, per_key_limit=rows, where=where)
        yield query, limit, rows
    for column in ("whole * worth", "per_unit(count(*))", "per_unit(sum(worth))"):
        total = SumQuery(
            column, by="pair", lower=-7, upper=5, contribution_limit=1, where=draw.choice(WHERES)
        )
        yield total, 1, 7 * 10**9
    ratio = RatioQuery(
        "worth", "whole + 1", by="pair", lower=-7, upper=5, per_upper=9, contribution_limit=1
    )
    yield ratio, 1, 9 * 10**9
    on = ["whole + 1", "whole * worth", "per_unit(count(*))"]
    fit = RegressionQuery(
        "worth", on, by="pair", on_upper=[9, 90, 20], per_key_limit=2, contribution_limit=1
    )
    yield fit, 1, 2**32


def tables(seed: int, pairs: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """Two tables: in each pair the second has one unit more."""
    draw = random.Random(seed)
    less: list[list[Any]] = []
    more: list[list[Any]] = []
    for pair in range(pairs):
        for unit in range(draw.randint(1, 4)):
            name = f"{pair}:{unit}" if draw.random() < 0.95 else None
            for _ in range(draw.randint(1, 5)):
                row = [
                    pair,
                    name,
                    draw.choice(WHOLES),
                    draw.choice(REALS),
                    draw.choice(TEXTS),
                    draw.choice(DAYS),
                    draw.choice([True, False, None]),
                ]
                more.append(row)
                if unit:
                    less.append(row)
    return less, more


Opened = Callable[[list[list[Any]]], Source]


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens rows on one engine."""

    def make(rows: list[list[Any]]) -> Source:
        if request.param == "postgres":
            url = request.getfixturevalue("postgres").url()
            return on_postgres(url, SQL_TYPES, [tuple(row) for row in rows])
        columns = zip(*rows, strict=True)
        made = pa.table(
            {
                name: pa.array(values, kind)
                for (name, kind), values in zip(TYPES.items(), columns, strict=True)
            }
        )
        if request.param == "spark":
            return on_spark(request.getfixturevalue("spark"), made, tmp_path)
        path = tmp_path / f"rows{len(rows)}.parquet"
        pq.write_table(made, path)
        return open_source(str(path))

    return make


def by_pair(table: pa.Table) -> dict[str, dict[str, int]]:
    """Counts by pair and label."""
    told: dict[str, dict[str, int]] = defaultdict(dict)
    for number in (name for name in table.column_names if name != LABEL):
        for label, count in zip(table[LABEL].to_pylist(), counts_of(table, number), strict=True):
            pair, _, rest = label.partition("|")
            told[f"{number} {pair}"][rest] = int(count)
    return told


def test_neighbours(opened: Opened) -> None:
    less, more = tables(20260101, PAIRS)
    sources = opened(less), opened(more)
    changed = 0
    for query, limit, most in questions(7):
        answers = [by_pair(measured(source, SCHEMA, query)[1]) for source in sources]
        for pair in {*answers[0], *answers[1]}:
            before, after = (answer.get(pair, {}) for answer in answers)
            labels = {*before, *after}
            moved = {
                label: after.get(label, 0) - before.get(label, 0)
                for label in labels
                if after.get(label, 0) != before.get(label, 0)
            }
            changed += bool(moved)
            assert len(moved) <= limit, (query, pair, moved)
            assert all(abs(step) <= most for step in moved.values()), (query, pair, moved)
            if isinstance(query, HistogramQuery):
                assert all(step > 0 for step in moved.values()), (query, pair, moved)
    assert changed > PAIRS
    for source in sources:
        source.shut()
