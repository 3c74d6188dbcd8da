"""The same question with the same key gives the same bytes on DuckDB, Spark and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from farthing.engine.filters import filter_from
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.bound import BoundQuery
from farthing.engine.kinds.counts import DistinctQuery, HistogramQuery
from farthing.engine.kinds.moments import CorrelationQuery, CovarianceQuery, RegressionQuery
from farthing.engine.kinds.quantile import QuantileQuery
from farthing.engine.kinds.ratio import RatioQuery
from farthing.engine.kinds.rollup import RollupQuery
from farthing.engine.kinds.totals import MeanQuery, StandardDeviationQuery, SumQuery, VarianceQuery
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import (
    Bounded,
    bounded_histogram,
    counted_rows,
    labels_of_units,
    largest,
    pairs_above,
    shape_of,
    sizes_of,
)
from farthing.engine.sql.conditions import between, condition, fixed_point, within
from farthing.engine.sql.measuring import Grouped, weighed_ranks
from farthing.engine.sql.statement import Texts
from farthing.schema import INTEGER, REAL, Schema
from tests.engine.engines import clipped_sums, measured, proposed
from tests.engine.rows import TEXTS, difficult

#: PostgreSQL has no text with a zero byte in it.
SOME_TEXTS = tuple(text for text in TEXTS if text is None or "\x00" not in text)
WHERE = {"any_of": [{"whole": {"at_least": 0}}, {"flag": [True, None], "text": {"present": True}}]}
NOBODY = {"text": "nobody has this"}


class Asked:
    """A question in the making: rows of one source, and the texts of its statement."""

    def __init__(self, source: Source, unit: str) -> None:
        self.schema = proposed(source)
        self.rows: Any = source.declared(self.schema)
        self.texts = Texts()
        self._unit = unit

    @property
    def unit(self) -> tuple[Any, str]:
        return self.rows[self._unit], self.schema.kinds[self._unit]

    def where(self, where: Any) -> Asked:
        passing = condition(self.rows, filter_from(where), self.schema.kinds, self.texts)
        self.rows = self.rows.filter(passing)
        return self

    def within(self, by: tuple[str, ...], categories: Any) -> Asked:
        self.rows = within(self.rows, by, categories, self.schema.kinds, self.texts)
        return self

    def histogram(self, *by: str, limit: int | None, per_key: int = 1) -> Any:
        keys = [(self.rows[name], self.schema.kinds[name]) for name in by]
        return self._bounded(keys, limit, per_key).expression

    def quantile(self, column: str, places: int, lower: int, upper: int, limit: int) -> Any:
        worth = fixed_point(self.rows[column], self.schema.kinds[column], places)
        return self._bounded([(between(worth, lower, upper), INTEGER)], limit, 1).expression

    def ranks(self, column: str, places: int, threshold: int, limit: int) -> Any:
        worth = fixed_point(self.rows[column], self.schema.kinds[column], places)
        table = self.rows.select(who=self.unit[0], value=worth)
        table = table.filter(table.value.notnull() & table.who.notnull())
        grouped = Grouped(table, {"who": self.unit[1]}, "key", None)
        return weighed_ranks(grouped, threshold, (9, 1), limit)

    def sum(self, column: str, places: int, lower: int, upper: int) -> Any:
        worth = fixed_point(self.rows[column], self.schema.kinds[column], places)
        return clipped_sums(self.rows, self.unit, worth, lower, upper).expression

    def above(self, *by: str, limit: int, most: int) -> Any:
        return pairs_above(self._units(by, most), limit, most).expression

    def shape(self, *by: str, most: int) -> Any:
        sizes = sizes_of(self.histogram(*by, limit=most), 5)
        return shape_of(self._units(by, most)).union(sizes)

    def _units(self, by: tuple[str, ...], most: int) -> Any:
        keys = [(self.rows[name], self.schema.kinds[name]) for name in by]
        return labels_of_units(self.rows, self.unit, keys, most)

    def count(self, per_key: int) -> Any:
        return counted_rows(self.rows, self.unit, per_key).expression

    def _bounded(self, keys: Any, limit: int | None, per_key: int) -> Bounded:
        return bounded_histogram(
            self.rows,
            self.unit,
            keys,
            secret="key",
            contribution_limit=limit,
            per_key_limit=per_key,
        )


QUESTIONS = [
    lambda ask: ask.histogram("text", limit=2, per_key=2),
    lambda ask: ask.where(WHERE).histogram("text", "whole", "day", "flag", limit=3),
    lambda ask: ask.within(("day",), (None, date(1970, 1, 1))).histogram("day", limit=1),
    lambda ask: ask.within(("text", "flag"), (("a|b", True), (None, None))).histogram(
        "text", "flag", limit=2
    ),
    lambda ask: largest(ask.histogram("whole", "text", limit=4), 6),
    lambda ask: largest(
        ask.where({"day": {"below": date(2000, 1, 1)}}).histogram("text", limit=None), 6
    ),
    lambda ask: ask.quantile("worth", 2, -300, 400, 2),
    lambda ask: ask.quantile("large", 0, -3, 4, 1),
    lambda ask: ask.ranks("worth", 2, 17, 3),
    lambda ask: ask.where(NOBODY).ranks("large", 0, 1, 1),
    lambda ask: ask.where(WHERE).count(3),
    lambda ask: ask.sum("worth", 3, -5000, 10000),
    lambda ask: ask.where({"text": ["a", None]}).sum("large", 0, -(10**9), 10**9),
    lambda ask: ask.where(NOBODY).count(1),
    lambda ask: ask.where(NOBODY).sum("worth", 0, -5, 10),
    lambda ask: ask.where({"text": {"above": "a", "at_most": "é"}}).histogram("text", limit=None),
    lambda ask: ask.where({"worth": [1.5, 3.1, None]}).histogram("text", "flag", limit=None),
    lambda ask: ask.above("text", "whole", limit=2, most=5),
    lambda ask: ask.where(NOBODY).above("day", limit=1, most=2),
    lambda ask: ask.where(WHERE).shape("text", "flag", most=4),
    lambda ask: ask.shape("day", most=64),
    lambda ask: ask.where(NOBODY).shape("whole", most=3),
    lambda ask: ask.where({"not": {"text": ["a", "é"]}}).histogram("text", "whole", limit=None),
    lambda ask: ask.where({"not": {**WHERE, "worth": -2.25}}).histogram("text", "day", limit=None),
]

LIMITED = {"contribution_limit": 2, "per_key_limit": 2}
WORTH = {"lower": -3, "upper": 400, "places": 2}
KEYS = [*(f"{period}(day)" for period in ("day", "week", "month", "quarter", "year"))]
BINS = ["bins(whole, -3, 0, 2, 8)", "bins(worth, -1e300, -2.25, 0, 3.1, 1e301)"]
LARGE = {"column": "large", "bins": [-(2**63), 0, 5, 6, 2**63 - 1]}
MEASURES = [
    MeanQuery("worth", **WORTH, per_key_limit=2),
    MeanQuery("worth", by="text", **WORTH, **LIMITED),
    MeanQuery("large", by=("flag", "text"), lower=-(2**40), upper=2**40, **LIMITED),
    MeanQuery("whole", by="flag", categories=(True, None), lower=-3, upper=7, **LIMITED),
    MeanQuery("whole", lower=0, upper=1, per_key_limit=1000, where=NOBODY),
    VarianceQuery("worth", by="whole", **WORTH, **LIMITED),
    VarianceQuery("large", by="day", lower=-(2**40), upper=2**40, **LIMITED),
    StandardDeviationQuery("whole", lower=-3, upper=7, per_key_limit=1),
    RatioQuery("worth", "whole", lower=-5, upper=5, per_upper=9),
    RatioQuery("whole", "worth", by="text", lower=0, upper=7, per_upper=2.5, contribution_limit=2),
    CovarianceQuery(
        "whole", "worth", by="text", lower=-3, upper=7, on_lower=[-3], on_upper=[4], **LIMITED
    ),
    CorrelationQuery(
        "large", "whole", lower=-(2**40), upper=2**40, on_lower=[-3], on_upper=[7], per_key_limit=2
    ),
    RegressionQuery(
        "worth",
        ["whole", "large"],
        **WORTH,
        on_lower=[-3, -(2**40)],
        on_upper=[7, 2**40],
        per_key_limit=2,
    ),
    SumQuery("worth", by="text", lower=-5, upper=1000, places=3, contribution_limit=1),
    SumQuery("large", by="whole", lower=-(2**40), upper=2**40, contribution_limit=3),
    SumQuery("whole", by="text", categories=("a", None), lower=-5, upper=5, contribution_limit=1),
    QuantileQuery("worth", **WORTH, per_key_limit=1),
    QuantileQuery("worth", by="day", **WORTH, **LIMITED),
    BoundQuery("large", by=("whole", "day"), **LIMITED),
    BoundQuery("worth", per_key_limit=2, where=NOBODY),
    BoundQuery("large", by="whole", sums=True, contribution_limit=2),
    BoundQuery("worth", sums=True),
    QuantileQuery("large", by=("whole", "day"), lower=-(2**40), upper=2**40, **LIMITED),
    QuantileQuery("whole", by="flag", categories=(None, False), lower=-3, upper=7, **LIMITED),
    *(HistogramQuery(key, contribution_limit=2) for key in (*KEYS, *BINS, LARGE)),
    *(MeanQuery("whole", by=key, lower=-3, upper=7, **LIMITED) for key in (*KEYS, *BINS, LARGE)),
    QuantileQuery("whole", by=("month(day)", *BINS), lower=-3, upper=7, **LIMITED),
    DistinctQuery("text", by=("flag", "year(day)"), contribution_limit=2),
    DistinctQuery("day", by="text", categories=["a", None], contribution_limit=1),
    RollupQuery(("flag", "text"), categories=[(True, "a"), (False, "a")], contribution_limit=1),
]


#: Bounds that most rows lie outside of, one of them between two values.
BOUNDED: dict[str, dict[str, Any]] = {
    "whole": {"lower": 0, "upper": 1.5},
    "worth": {"lower": -2, "upper": 3},
    "large": {"upper": 10**6},
}
MOVED: list[Query] = [
    MeanQuery("worth", by="text", **(WORTH | LIMITED)),
    VarianceQuery("whole", by="bins(worth, -2, 0, 3)", lower=-3, upper=7, **LIMITED),
    SumQuery("worth", lower=-5, upper=1000, places=3),
    SumQuery("large", by="whole", lower=-(2**40), upper=2**40, contribution_limit=3),
    QuantileQuery("large", by="day", lower=-(2**40), upper=2**40, **LIMITED),
    HistogramQuery(("whole", "bins(whole, 0, 1, 1.5)"), contribution_limit=2),
    HistogramQuery("large", contribution_limit=2, where={"large": {"above": 10}}),
    DistinctQuery("whole", contribution_limit=2),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(difficult(1500, texts=SOME_TEXTS), path)
    return path


@pytest.fixture(scope="module")
def duckdb_rows(path):
    source = open_source(path, memory="1GB")
    yield source
    source.shut()


@pytest.fixture(scope="module")
def spark_rows(path, spark):
    return open_source(str(path), spark=spark)


@pytest.fixture(scope="module")
def postgres_rows(postgres):
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE difficult (member bigint, name text, text text, whole integer, day date, "
            "flag boolean, worth double precision, large bigint)"
        )
        rows = difficult(1500, texts=SOME_TEXTS)
        with connection.cursor().copy("COPY difficult FROM STDIN") as copy:
            for row in rows.to_pylist():
                copy.write_row(list(row.values()))
    source = open_source(postgres.url(), table="difficult")
    yield source
    source.shut()


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
@pytest.mark.parametrize("other", ["spark_rows", "postgres_rows"])
def test_same_bytes(other, place, duckdb_rows, request) -> None:
    unit = ("member", "name")[place % 2]
    found = result(place, unit, duckdb_rows)
    assert result(place, unit, request.getfixturevalue(other)) == found


@pytest.mark.parametrize("query", MEASURES, ids=lambda query: query.kind)
@pytest.mark.parametrize("other", ["spark_rows", "postgres_rows"])
def test_same_measures(other, query, duckdb_rows, request) -> None:
    place = MEASURES.index(query)
    found = table(query, place, duckdb_rows)
    assert found != [] or query.filter is not None
    assert table(query, place, request.getfixturevalue(other)) == found


@pytest.mark.parametrize("query", MOVED, ids=lambda query: query.kind)
@pytest.mark.parametrize("other", ["spark_rows", "postgres_rows"])
def test_same_where_declared_bounds_move(other, query, duckdb_rows, request) -> None:
    columns = proposed(duckdb_rows).columns
    bounded = [replace(one, **BOUNDED.get(one.name, {})) for one in columns]
    schema, place = Schema(tuple(bounded)), MOVED.index(query)
    found = table(query, place, duckdb_rows, schema)
    assert found != table(query, place, duckdb_rows)
    assert table(query, place, request.getfixturevalue(other), schema) == found


def table(
    query: Query, place: int, source: Source, schema: Schema | None = None
) -> list[tuple[Any, ...]]:
    declared = schema or proposed(source)
    _, rows, _ = measured(source, declared, query, unit=("member", "name")[place % 2])
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


def result(place: int, unit: str, source: Source) -> list[tuple[Any, ...]]:
    ask = Asked(source, unit)
    assert ask.schema.kinds["worth"] == REAL
    statement = source.statement(QUESTIONS[place](ask), ask.texts)
    return sorted(tuple(row.values()) for row in source.run(statement).to_pylist())
