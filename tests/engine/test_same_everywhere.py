"""The same query with the same key gives the same bytes on DuckDB, Spark and PostgreSQL."""

from __future__ import annotations

import psycopg
import pyarrow.parquet as pq
import pytest

from farthing.engine.compiling import compile_query
from farthing.engine.on_duckdb import open_file
from farthing.engine.on_postgres import open_postgres
from farthing.engine.on_spark import open_spark
from farthing.engine.queries import (
    CountQuery,
    HistogramQuery,
    QuantileQuery,
    SumQuery,
    TopKQuery,
)
from farthing.engine.sources import Source, labels_and_counts
from tests.engine.rows import TEXTS, difficult

#: PostgreSQL has no text with a zero byte in it.
SOME_TEXTS = tuple(text for text in TEXTS if text is None or "\x00" not in text)
WHERE = {"any_of": [{"whole": {"at_least": 0}}, {"flag": [True, None], "text": {"present": True}}]}
QUERIES = [
    HistogramQuery(by=("text",), contribution_limit=2, per_key_limit=2),
    HistogramQuery(by=("text", "whole", "day", "flag"), contribution_limit=3, where=WHERE),
    HistogramQuery(by=("day",), contribution_limit=1, categories=(None,)),
    HistogramQuery(
        by=("text", "flag"), contribution_limit=2, categories=(("a|b", True), (None, None))
    ),
    TopKQuery(by=("whole", "text"), k=3, contribution_limit=4),
    TopKQuery(by=("text",), k=3, where={"day": {"below": {"date": "2000-01-01"}}}),
    QuantileQuery(
        column="worth", probability=0.5, lower=-3, upper=4, places=2, contribution_limit=2
    ),
    QuantileQuery(column="large", probability=0.5, lower=-3, upper=4),
    CountQuery(where=WHERE, per_key_limit=3),
    SumQuery(column="worth", lower=-5, upper=10, places=3),
    SumQuery(column="large", lower=-(10**9), upper=10**9, where={"text": ["a", None]}),
    CountQuery(where={"text": "nobody has this"}),
    SumQuery(column="worth", lower=-5, upper=10, where={"text": "nobody has this"}),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(difficult(1500, texts=SOME_TEXTS), path)
    return path


@pytest.fixture(scope="module")
def duckdb_rows(path):
    source = open_file(str(path), table=None, name=None, version=None, memory="1GB")
    yield source
    source.shut()


@pytest.fixture(scope="module")
def spark_rows(path, spark):
    return open_spark(str(path), spark, name=None, version=None)


@pytest.fixture(scope="module")
def postgres_rows(postgres):
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE rows (member bigint, name text, text text, whole integer, day date, "
            "flag boolean, worth double precision, large bigint)"
        )
        rows = difficult(1500, texts=SOME_TEXTS)
        with connection.cursor().copy("COPY rows FROM STDIN") as copy:
            for row in rows.to_pylist():
                copy.write_row(list(row.values()))
    source = open_postgres(postgres.url(), table="rows", name=None, version=None)
    yield source
    source.shut()


@pytest.mark.parametrize("place", range(len(QUERIES)))
@pytest.mark.parametrize("other", ["spark_rows", "postgres_rows"])
def test_same_bytes(other, place, duckdb_rows, request) -> None:
    query, unit = QUERIES[place], ("member", "name")[place % 2]
    assert result(query, unit, duckdb_rows) == result(query, unit, request.getfixturevalue(other))


def result(query, unit: str, source: Source) -> list[tuple[str, int]] | int:
    candidates = 5 if isinstance(query, TopKQuery) else None
    compiled = compile_query(query, source, unit=unit, secret="key", candidates=candidates)
    rows = source.run(compiled.sql)
    if rows.num_columns == 1:
        return int(rows.column(0)[0].as_py())
    labels, counts = labels_and_counts(rows)
    return sorted(zip(labels.tolist(), counts.tolist(), strict=True))
