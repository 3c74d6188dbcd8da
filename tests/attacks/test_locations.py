"""Cause: one table, many budgets.

A budget belongs to the data. Links inside a folder, braces that only Spark expands, a table and
the folder it is kept in, a partition and its table, and two spellings of an address were places
of their own, each with a budget.
"""

from __future__ import annotations

import os

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine.sources.files import spark_location
from farthing.engine.sources.opening import open_source
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import overlap, require_location
from tests.engine.engines import proposed, read

ROWS = pa.table({"member": [1, 2, 3], "x": ["a", "b", "c"]})


@pytest.fixture
def data(tmp_path):
    """A folder with one file, seen through links."""
    (tmp_path / "data").mkdir()
    (tmp_path / "links").mkdir()
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    pq.write_table(ROWS, tmp_path / "data" / "x.parquet")
    os.symlink(tmp_path / "data" / "x.parquet", tmp_path / "links" / "x.parquet")
    os.symlink(tmp_path / "data", tmp_path / "outside" / "deep" / "y")
    return tmp_path


def place(*given, **options) -> tuple[str | None, str | None]:
    source = open_source(*given, **options)
    source.shut()
    return source.location, source.selection


LINKED = ["links", "links/*.parquet", "outside", "outside/deep/*/x.parquet", "outside/**/*.parquet"]


@pytest.mark.parametrize("path", LINKED)
def test_links_that_leave_a_folder_are_refused(data, path) -> None:
    with pytest.raises(InvalidInput, match="has links to files elsewhere"):
        open_source(str(data / path))


@pytest.mark.parametrize("path", ["links", "links/*.parquet", "outside/deep/*/x.parquet"])
def test_links_that_leave_a_folder_are_refused_on_spark(data, path, spark) -> None:
    with pytest.raises(InvalidInput, match="has links to files elsewhere"):
        open_source(str(data / path), spark=spark)


def test_links_inside_a_folder_are_read_once(data) -> None:
    os.symlink(data / "data" / "x.parquet", data / "data" / "again.parquet")
    source = open_source(data / "data")
    assert len(read(source, proposed(source))) == 3
    source.shut()


def test_a_pattern_says_what_it_selects(data, spark) -> None:
    folder, file = f"file:{data}/data", f"file:{data}/data/x.parquet"
    pattern = f"{data}/data/*.parquet"
    assert place(pattern) == (folder, pattern)
    assert place(pattern, spark=spark) == (folder, pattern)
    for given in (f"{data}/data", f"{data}/data/"):
        assert place(given) == place(given, spark=spark) == (folder, None)
    assert place(f"{data}/data/x.parquet") == (file, None)
    assert place(f"{data}/links/x.parquet", spark=spark) == (file, None)


def test_braces_are_a_pattern_on_spark(data, spark) -> None:
    for pattern in ("{x}.parquet", "{x,y}.parquet", "[x].parquet"):
        given = f"{data}/data/{pattern}"
        assert place(given, spark=spark) == (f"file:{data}/data", given)
    given = f"{data}/dat{{a}}/x.parquet"
    assert place(given, spark=spark) == (f"file:{data}", given)
    pq.write_table(ROWS, data / "data" / "{x}.parquet")  # Spark reads x.parquet all the same
    assert place(f"{data}/data/{{x}}.parquet", spark=spark)[0] == f"file:{data}/data"
    with pytest.raises(InvalidInput, match="which are for patterns"):
        open_source(data / "data")
    with pytest.raises(InvalidInput, match="backslash"):
        open_source(f"{data}/data/\\x.parquet", spark=spark)


def test_a_table_of_the_catalogue_is_where_its_files_are(data, spark) -> None:
    file = f"{data}/data/x.parquet"
    frame = spark.read.parquet(file)
    frame.write.saveAsTable("placed")
    frame.createOrReplaceTempView("seen")
    frame.createOrReplaceGlobalTempView("seen_by_all")
    spark.range(3).createOrReplaceTempView("counted")
    try:
        described = spark.sql("DESCRIBE TABLE EXTENDED placed").collect()
        folder = next(row[1] for row in described if row[0] == "Location")
        found = {place(name, spark=spark) for name in ("placed", "default.placed", "`placed`")}
        assert found == {place(folder, spark=spark)}
        assert place(folder.removeprefix("file:")) == place(folder, spark=spark)
        assert place("seen", spark=spark)[0] == f"file:{file}"
        assert place("global_temp.seen_by_all", spark=spark)[0] == f"file:{file}"
        assert place("seen", spark=spark)[1] is not None
        assert place("counted", spark=spark) == (None, None)
    finally:
        spark.sql("DROP TABLE placed")
        spark.catalog.dropGlobalTempView("seen_by_all")


def test_a_partition_is_a_part_of_its_table(postgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE events (member bigint, d date) PARTITION BY RANGE (d);"
            "CREATE TABLE events_old PARTITION OF events "
            "FOR VALUES FROM ('2000-01-01') TO ('2010-01-01') PARTITION BY RANGE (d);"
            "CREATE TABLE events_oldest PARTITION OF events_old "
            "FOR VALUES FROM ('2000-01-01') TO ('2005-01-01');"
            "CREATE TABLE parent (member bigint); CREATE TABLE child () INHERITS (parent);"
            "CREATE TABLE step (other bigint); CREATE TABLE of_two () INHERITS (parent, step)"
        )
    whole, none = place(postgres.url(), table="events")
    assert none is None
    for name in ("events_old", "events_oldest"):
        assert place(postgres.url(), table=name) == (whole, f"public.{name}")
    parent, _ = place(postgres.url(), table="parent")
    assert place(postgres.url(), table="child") == (parent, "public.child")
    with pytest.raises(InvalidInput, match="part of several tables"):
        open_source(postgres.url(), table="of_two")


def test_addresses_elsewhere_have_one_spelling() -> None:
    first = spark_location("s3a://bucket/data/x.parquet")
    assert first == "spark:s3a://bucket/data/x.parquet"
    for same in (
        "S3A://bucket/data/x.parquet",
        "s3://bucket/data/x.parquet",
        "s3a://bucket/data//x.parquet",
        "s3a://bucket/data/../data/./x.parquet/",
    ):
        assert spark_location(same) == first
    for around in ("s3a://bucket/data", "s3a://bucket/data/*.parquet", "s3a://bucket/{data}/x"):
        assert overlap(first, spark_location(around))
        assert require_location(spark_location(around))
    for apart in ("s3a://bucket/dat", "s3a://bucket/data/x", "s3a://other/data/x.parquet"):
        assert not overlap(first, spark_location(apart))
    assert spark_location("hdfs://NN:8020/data") == spark_location("hdfs://nn/data")
    with pytest.raises(InvalidInput, match="name its host"):
        spark_location("hdfs:///data")


def test_only_paths_hold_one_another() -> None:
    assert not overlap("postgresql:1/base/public.a", "postgresql:1/base/public.a/b")
    assert not overlap("spark:c.d.t", "spark:c.d.t/u")
