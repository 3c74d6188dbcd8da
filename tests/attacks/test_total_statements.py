"""Cause: a value that makes a statement fail tells that it is there.

Every type of every engine is read through every declared kind, with the extremes of the type in
it. No statement may fail, and what does not fit is missing.
"""

from __future__ import annotations

import sqlite3
from datetime import date
from decimal import Decimal

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine.kinds.fields import MOST_KEYS
from farthing.engine.sources.opening import open_source
from farthing.engine.sources.tables import LONGEST_TEXT
from farthing.errors import InvalidInput
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, KEYS, KINDS, REAL, TEXT, Column, Schema
from tests.engine.engines import histogram, on_postgres, on_spark, proposed, read

#: Texts, and what each of them is as a whole number, a number, a truth value and a day.
TEXTS: dict[str, tuple[object, object, object, object]] = {
    "12": (12, 12.0, None, None),
    " +12. ": (12, 12.0, None, None),
    "12.50": (None, 12.5, None, None),
    "-.5e1": (None, -5.0, None, None),
    "n/a": (None, None, None, None),
    "": (None, None, None, None),
    "1": (1, 1.0, True, None),
    "No": (None, None, False, None),
    "9223372036854775807": (2**63 - 1, 9.223372036854775807e18, None, None),
    "9223372036854775808": (None, 9.223372036854775808e18, None, None),
    "1e999": (None, None, None, None),
    "12\n": (None, None, None, None),
    "nan": (None, None, None, None),
    "Infinity": (None, None, None, None),
    "0x1F": (None, None, None, None),
    "1_000": (None, None, None, None),
    "١٢": (None, None, None, None),
    "2013-02-28": (None, None, None, date(2013, 2, 28)),
    "2013-02-30": (None, None, None, None),
    "2012-02-29T10:00:00Z": (None, None, None, date(2012, 2, 29)),
    "0000-01-01": (None, None, None, None),
    "10000-01-01": (None, None, None, None),
    "9999-12-31": (None, None, None, date(9999, 12, 31)),
    "2013-13-01": (None, None, None, None),
    "é" * 300: (None, None, None, None),
    "9" * 500: (None, None, None, None),
}


def every_kind(name: str) -> list[Column]:
    return [Column(name, kind, places=2 if kind == DECIMAL else None) for kind in KINDS]


def each_kind_reads(source, names) -> None:
    """No pair of a column and a kind makes a histogram, or the rows themselves, fail."""
    for name in names:
        for column in every_kind(name):
            schema = Schema((Column("member", INTEGER), column))
            assert len(read(source, schema)) > 0
            if column.kind in KEYS:
                histogram(source, schema, [name], limits=(1, 1))
    source.shut()


def values(source, name, kind, **options):
    schema = Schema((Column("member", INTEGER), Column(name, kind, **options)))
    rows = sorted(read(source, schema), key=lambda row: row["member"])
    return [row[name] for row in rows]


def texts_source(where, request, tmp_path):
    rows = pa.table({"member": list(range(len(TEXTS))), "text": list(TEXTS)})
    if where == "memory":
        return open_source(rows)
    if where == "parquet":
        pq.write_table(rows, tmp_path / "texts.parquet")
        return open_source(tmp_path / "texts.parquet")
    if where == "spark":
        return on_spark(request.getfixturevalue("spark"), rows, tmp_path)
    url = request.getfixturevalue("postgres").url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE texts (member int, text text)")
        connection.cursor().executemany("INSERT INTO texts VALUES (%s, %s)", list(enumerate(TEXTS)))
    return open_source(url, table="texts")


@pytest.mark.parametrize("where", ["memory", "parquet", "spark", "postgres"])
def test_a_text_is_read_the_same_everywhere(where, request, tmp_path) -> None:
    source = texts_source(where, request, tmp_path)
    for place, kind in enumerate((INTEGER, REAL, BOOLEAN, DATE)):
        found = dict(zip(TEXTS, values(source, "text", kind), strict=True))
        assert found == {text: meant[place] for text, meant in TEXTS.items()}, kind
    found = values(source, "text", DECIMAL, places=1)
    wanted = {0: "12", 1: "12", 2: "12.5", 3: "-5", 6: "1"}
    assert found == [Decimal(wanted[i]) if i in wanted else None for i in range(len(TEXTS))]
    assert values(source, "text", TEXT) == list(TEXTS)
    source.shut()


DUCKDB_TYPES = {
    "tiny": ("TINYINT", "-128", "127"),
    "small": ("USMALLINT", "0", "65535"),
    "big": ("BIGINT", "-9223372036854775808", "9223372036854775807"),
    "ubig": ("UBIGINT", "0", "18446744073709551615"),
    "huge": (
        "HUGEINT",
        "-170141183460469231731687303715884105728",
        "170141183460469231731687303715884105727",
    ),
    "uhuge": ("UHUGEINT", "0", "340282366920938463463374607431768211455"),
    "bignum": ("BIGNUM", "'-1" + "0" * 300 + "'", "'1" + "0" * 300 + "'"),
    "half": ("FLOAT", "'-inf'", "'nan'"),
    "real": ("DOUBLE", "1e308", "'inf'"),
    "exact": ("DECIMAL(38, 10)", "-9999999999999999999999999999.9999999999", "0.0000000001"),
    "whole": ("DECIMAL(38, 0)", "99999999999999999999999999999999999999", "-1"),
    "text": ("VARCHAR", "''", "'x'"),
    "folded": ("VARCHAR COLLATE NOCASE", "'a'", "'A'"),
    "enum": ("ENUM('a', 'b')", "'a'", "'b'"),
    "id": ("UUID", "'00000000-0000-0000-0000-000000000000'", "NULL"),
    "blob": ("BLOB", "'\\xFF\\x00'", "'a'"),
    "bit": ("BIT", "'010'", "'1'"),
    "day": ("DATE", "'infinity'", "'5877642-06-25 (BC)'"),
    "far": ("DATE", "'5881580-07-10'", "'-infinity'"),
    "at": ("TIMESTAMP", "'infinity'", "'290309-12-22 (BC) 00:00:00'"),
    "second": ("TIMESTAMP_S", "'290000-01-01 00:00:00'", "'1970-01-01'"),
    "nano": ("TIMESTAMP_NS", "'2262-04-11 00:00:00'", "'1678-01-01'"),
    "zoned": ("TIMESTAMPTZ", "'-infinity'", "'294247-01-10 04:00:54.775806+00'"),
    "time": ("TIME", "'24:00:00'", "'00:00:00'"),
    "span": ("INTERVAL", "'1 year'", "'-1 day'"),
    "list": ("INTEGER[]", "[1]", "[]"),
    "struct": ("STRUCT(a INTEGER)", "{'a': 1}", "NULL"),
    "json": ("JSON", "'{}'", "'1'"),
}


def test_every_type_of_duckdb(tmp_path) -> None:
    path = tmp_path / "every.duckdb"
    with duckdb.connect(path) as connection:
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, *_) in DUCKDB_TYPES.items())
        connection.execute(f"CREATE TABLE t (member INTEGER, {columns})")
        for i in (1, 2):
            cells = ", ".join(
                f"CAST({v[i]} AS {v[0]})".replace(" COLLATE NOCASE", "")
                for v in DUCKDB_TYPES.values()
            )
            connection.execute(f"INSERT INTO t VALUES ({i}, {cells})")
        connection.execute("INSERT INTO t (member) VALUES (3)")
    source = open_source(path, table="t")
    assert values(source, "huge", INTEGER) == [None, None, None]
    assert values(source, "ubig", INTEGER) == [0, None, None]
    assert values(source, "bignum", INTEGER) == [None, None, None]
    assert values(source, "day", DATE) == [None, None, None]
    assert values(source, "zoned", DATE) == [None, None, None]
    assert values(source, "half", REAL) == [float("-inf"), None, None]
    assert values(source, "struct", INTEGER) == [None, None, None]
    assert values(source, "blob", TEXT) == [None, "a", None]
    assert values(source, "nobody", TEXT) == [None, None, None]
    each_kind_reads(source, [*DUCKDB_TYPES, "nobody"])


POSTGRES_TYPES = {
    "small": ("smallint", "-32768", "32767"),
    "big": ("bigint", "-9223372036854775808", "9223372036854775807"),
    "huge": ("numeric", "1e131071", "NaN"),
    "tiny": ("numeric", "1e-16383", "Infinity"),
    "thousands": ("numeric(5,-3)", "-99999000", "1000"),
    "exact": ("numeric(38,10)", "9999999999999999999999999999.9999999999", "0.0000000001"),
    "half": ("real", "NaN", "-Infinity"),
    "real": ("double precision", "1e308", "Infinity"),
    "least": ("double precision", "5e-324", "-9223372036854775808"),
    "text": ("text", "", "x"),
    "fixed": ("char(3)", "a", "ab "),
    "varying": ("varchar(3)", "a", "abc"),
    "flag": ("boolean", "t", "f"),
    "day": ("date", "infinity", "4713-01-01 BC"),
    "far": ("date", "5874897-12-31", "-infinity"),
    "at": ("timestamp", "infinity", "4713-01-01 00:00:00 BC"),
    "zoned": ("timestamptz", "-infinity", "294276-12-31 23:59:59.999999+00"),
    "blob": ("bytea", "\\xff00", "\\x61"),
    "id": ("uuid", "00000000-0000-0000-0000-000000000000", None),
    "json": ("jsonb", "{}", "1"),
    "list": ("integer[]", "{1}", "{}"),
    "point": ("point", "(1,2)", None),
    "money": ("money", "1", "-1"),
    "span": ("interval", "1 year", "-1 day"),
    "mood": ("mood", "sad", "ok"),
    "positive": ("positive", "1", "5"),
    "address": ("inet", "127.0.0.1", None),
}


def test_every_type_of_postgresql(postgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        connection.execute("CREATE DOMAIN positive AS numeric(5, 1) CHECK (VALUE > 0)")
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, *_) in POSTGRES_TYPES.items())
        connection.execute(f"CREATE TABLE every (member int, {columns})")
        marks = ", ".join(["%s"] * (len(POSTGRES_TYPES) + 1))
        for i in (1, 2):
            cells = [v[i] for v in POSTGRES_TYPES.values()]
            connection.execute(f"INSERT INTO every VALUES ({marks})", [str(i), *cells])
        connection.execute("INSERT INTO every (member) VALUES (3)")
    source = open_source(postgres.url(), table="every")
    kinds = {column.name: column for column in source.proposed_schema().columns}
    assert kinds["thousands"].kind == INTEGER
    assert (kinds["positive"].kind, kinds["positive"].places) == (DECIMAL, 1)
    assert (kinds["mood"].kind, kinds["huge"].kind) == (TEXT, REAL)
    assert "money" not in kinds
    assert values(source, "huge", INTEGER) == [None, None, None]
    assert values(source, "huge", REAL) == [None, None, None]
    assert values(source, "tiny", REAL) == [0.0, None, None]
    assert values(source, "thousands", INTEGER) == [-99999000, 1000, None]
    assert values(source, "least", INTEGER) == [None, -(2**63), None]
    assert values(source, "day", DATE) == [None, None, None]
    assert values(source, "zoned", DATE) == [None, None, None]
    assert values(source, "mood", TEXT) == ["sad", "ok", None]
    each_kind_reads(source, [*POSTGRES_TYPES, "nobody"])


def spark_rows(spark):
    return spark.sql(
        """SELECT 1 AS member, tinyint(-128) AS tiny, bigint(-9223372036854775808) AS big,
        CAST(99999999999999999999999999999999999999 AS DECIMAL(38, 0)) AS whole,
        CAST(0.0000000001 AS DECIMAL(38, 10)) AS exact, float('NaN') AS half,
        double('Infinity') AS `real`, 'x' AS text, collate('a', 'UTF8_LCASE') AS folded,
        CAST(X'FF' AS STRING) AS broken, X'FF00' AS `binary`, true AS flag,
        date_add(DATE '1970-01-01', 2147483647) AS day, timestamp_micros(9223372036854775807) AS at,
        CAST(timestamp_micros(-9223372036854775808) AS TIMESTAMP_NTZ) AS plain,
        array(1) AS list, struct(1 AS a) AS struct, map('a', 1) AS map, INTERVAL '1' DAY AS span
        UNION ALL SELECT 2, tinyint(127), 9223372036854775807,
        -1, -9999999999999999999999999999.9999999999, float('-Infinity'), 1e308D, '',
        collate('A', 'UTF8_LCASE'),
        CAST(X'61' AS STRING), X'61', false, date_add(DATE '1970-01-01', -2147483648),
        timestamp_micros(-9223372036854775808), CAST(timestamp_micros(0) AS TIMESTAMP_NTZ),
        array(), NULL, NULL, NULL"""
    )


def test_every_type_of_spark(spark) -> None:
    frame = spark_rows(spark)
    source = open_source(frame, spark=spark)
    assert values(source, "whole", INTEGER) == [None, -1]
    assert values(source, "day", DATE) == [None, None]
    assert values(source, "at", DATE) == [None, None]
    assert values(source, "plain", DATE) == [None, date(1970, 1, 1)]
    assert values(source, "broken", TEXT) == [None, "a"]
    assert values(source, "binary", TEXT) == [None, "a"]
    assert values(source, "half", REAL) == [None, float("-inf")]
    schemas = [[every_kind(name)[k] for name in frame.columns[1:]] for k in range(len(KINDS))]
    for columns in schemas:  # all columns at once, because each statement of Spark takes a while
        schema = Schema((Column("member", INTEGER), *columns))
        assert len(read(source, schema)) == 2
        if columns[0].kind in KEYS:
            names = [column.name for column in columns]
            histogram(source, schema, names[:MOST_KEYS], limits=(1, 1))
    source.shut()


def invalid_texts() -> pa.Array:
    """Four texts, two of which are not UTF-8."""
    offsets = pa.array([0, 1, 3, 4, 5], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 4, [None, offsets, pa.py_buffer(b"a\xff\xfeb\xc3")])


@pytest.mark.parametrize("where", ["memory", "parquet", "spark"])
def test_text_that_is_no_text(where, request, tmp_path) -> None:
    rows = pa.table({"member": [1, 2, 3, 4], "text": invalid_texts()})
    if where == "memory":
        source = open_source(rows)
    elif where == "parquet":
        pq.write_table(rows, tmp_path / "bad.parquet")
        source = open_source(tmp_path / "bad.parquet")
    else:
        source = on_spark(request.getfixturevalue("spark"), rows, tmp_path)
    schema = proposed(source)
    found = [row["text"] for row in sorted(read(source, schema), key=lambda row: row["member"])]
    assert found == (["a", "??", "b", "?"] if where == "parquet" else ["a", None, "b", None])
    assert sum(histogram(source, schema, ["text"]).values()) == 4
    source.shut()


@pytest.mark.parametrize("others", [[b"b"], [b"b", b"0"]])
def test_no_filter_looks_at_the_statistics_of_a_file(tmp_path, others) -> None:
    """Whether a row passes a filter may not depend on the smallest value around it."""
    texts = pa.array([b"\xff", *others], pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(texts), texts.buffers())
    rows = pa.table({"member": list(range(len(texts))), "text": text})
    pq.write_table(rows, tmp_path / "bad.parquet")
    source = open_source(tmp_path / "bad.parquet")
    found = histogram(source, proposed(source), ["text"], where={"text": "?"})
    assert found == {"s?": 1}
    source.shut()


def test_a_csv_file_with_broken_cells_and_lines(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'member,text\n1,a\n2,\xff\n3\n4,b,c\n5,"q\nr"\n6,\n7,""\n')
    source = open_source(path)
    schema = Schema((Column("member", INTEGER), Column("text", TEXT)))
    found = {row["member"]: row["text"] for row in read(source, schema)}
    assert found == {1: "a", 2: None, 5: "q\nr", 6: None, 7: ""}
    source.shut()


def test_a_sqlite_file_with_values_of_other_types(tmp_path) -> None:
    path = tmp_path / "rows.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (member INTEGER, n INT, r REAL, s TEXT, d DATE, x)")
    connection.execute(
        "INSERT INTO t VALUES (1, 'n/a', 'n/a', 5, '2013-01-05', 7), "
        "(2, 2.5, 9e999, CAST(X'FF' AS TEXT), 12, X'FF'), (3, X'00', X'00', X'61', NULL, 'b')"
    )
    connection.commit()
    connection.close()
    source = open_source(path, table="T")
    assert source.location == f"file:{path.resolve()}#t"
    assert values(source, "n", INTEGER) == [None, None, None]
    assert values(source, "r", REAL) == [None, float("inf"), None]
    assert values(source, "s", TEXT) == ["5", None, "a"]
    assert values(source, "d", DATE) == [date(2013, 1, 5), None, None]
    assert values(source, "x", TEXT) == ["7", None, "b"]
    each_kind_reads(source, ["n", "r", "s", "d", "x"])


def test_tables_in_memory_with_times_that_no_engine_can_hold() -> None:
    extremes = [-(2**63) + 1, 2**63 - 1, 0]
    columns = {
        f"{unit}{zone}": pa.array(extremes, pa.int64()).cast(pa.timestamp(unit, zone or None))
        for unit in ("s", "ms", "us", "ns")
        for zone in ("", "Europe/Oslo")
    }
    columns["day"] = pa.array([-(2**31), 2**31 - 1, 0], pa.int32()).cast(pa.date32())
    columns["half"] = pa.array(np.array([np.nan, np.inf, 1], np.float16))
    columns["long"] = pa.array(extremes, pa.int64()).cast(pa.duration("s"))
    columns["list"] = pa.array([[1], [], None])
    columns["name"] = pa.array(["a", "b", "a"]).dictionary_encode()
    rows = pa.table({"member": [1, 2, 3], **columns})
    source = open_source(rows)
    assert values(source, "s", DATE) == [None, None, date(1970, 1, 1)]
    assert values(source, "sEurope/Oslo", DATE) == [None, None, date(1970, 1, 1)]
    assert values(source, "name", TEXT) == ["a", "b", "a"]
    assert values(source, "half", INTEGER) == [None, None, 1]
    each_kind_reads(source, list(columns))


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_files_with_times_that_no_engine_can_hold(engine, request, tmp_path) -> None:
    """Spark would fail on milliseconds that are no microseconds: it reads none of that type."""
    extremes = pa.array([-(2**63) + 1, 2**63 - 1, 0], pa.int64())
    units = ("ms", "us", "ns") if engine == "duckdb" else ("ms", "us")
    columns = {
        f"{unit}{zone}": extremes.cast(pa.timestamp(unit, zone or None))
        for unit in units
        for zone in ("", "UTC")
    }
    columns["unsigned"] = pa.array([2**64 - 1, 0, 1], pa.uint64())
    rows = pa.table({"member": [1, 2, 3], **columns})
    if engine == "spark":
        source = on_spark(request.getfixturevalue("spark"), rows, tmp_path)
        left = {name for name, _ in source.proposed_schema().left_out}
        assert left == {"ms", "msUTC"}
    else:
        pq.write_table(rows, tmp_path / "times.parquet")
        source = open_source(tmp_path / "times.parquet")
        left = set()
    for name in columns:
        epoch = None if name in left or name == "unsigned" else date(1970, 1, 1)
        assert values(source, name, DATE) == [None, None, epoch]
    if engine == "duckdb":
        each_kind_reads(source, columns)
    source.shut()


def test_categories_and_time_zones_are_part_of_reading_and_bounds_are_not(
    tmp_path, spark, postgres
) -> None:
    rows = pa.table(
        {
            "member": [1, 2, 3],
            "n": [-5, 7, 2**62],
            "r": [0.1, float("inf"), 0.3],
            "s": ["a", "A", "it's"],
            "at": pa.array([1357083000000000] * 3, pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(rows, tmp_path / "rows.parquet")
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE bounds (member int, n bigint, r float8, s text, at timestamptz)"
        )
        for row in rows.to_pylist():
            connection.execute("INSERT INTO bounds VALUES (%s, %s, %s, %s, %s)", list(row.values()))
    for source in (
        open_source(rows),
        open_source(tmp_path / "rows.parquet"),
        open_source(str(tmp_path / "rows.parquet"), spark=spark),
        open_source(postgres.url(), table="bounds"),
    ):
        assert values(source, "n", INTEGER, lower=-5, upper=10.5) == [-5, 7, 2**62]
        assert values(source, "n", INTEGER, lower=1e300) == [-5, 7, 2**62]
        assert values(source, "n", INTEGER, categories=(7, 9)) == [None, 7, None]
        assert values(source, "n", DECIMAL, places=1, lower=-4.9) == [-5, 7, None]
        assert values(source, "r", REAL, lower=0.1, upper=0.3) == [0.1, float("inf"), 0.3]
        assert values(source, "s", TEXT, categories=("a", "it's")) == ["a", None, "it's"]
        assert values(source, "at", DATE, time_zone="UTC") == [date(2013, 1, 1)] * 3
        assert values(source, "at", DATE, time_zone="Asia/Tokyo") == [date(2013, 1, 2)] * 3
        source.shut()


def moments(engine, request, tmp_path):
    rows = pa.table({"member": [1], "at": pa.array([None], pa.timestamp("us", "UTC"))})
    if engine == "duckdb":
        return open_source(rows)
    if engine == "spark":
        return on_spark(request.getfixturevalue("spark"), rows, tmp_path)
    columns = "member int, at timestamptz"
    return on_postgres(request.getfixturevalue("postgres").url(), columns, [(1, None)])


@pytest.mark.parametrize("engine", ["duckdb", "spark", "postgres"])
def test_a_zone_that_the_engine_does_not_know_is_refused(engine, request, tmp_path) -> None:
    """It failed where a row had a time, and not where none had. No row has one here."""
    source = moments(engine, request, tmp_path)
    zone = Column("at", DATE, time_zone="Asia/Tokyo")
    assert read(source, Schema((Column("member", INTEGER), zone))) == [{"member": 1, "at": None}]
    object.__setattr__(zone, "time_zone", "Atlantis/Capital")  # newer than the engine, say
    with pytest.raises(InvalidInput, match="does not know the time zone Atlantis/Capital"):
        source.declared(Schema((Column("member", INTEGER), zone)))
    source.shut()


@pytest.mark.parametrize("name", ["localtime", "Factory", "posixrules"])
def test_names_that_are_no_zone_cannot_be_declared(name, monkeypatch) -> None:
    monkeypatch.setattr("farthing.schema.available_timezones", lambda: {name, "UTC"})
    assert Column("at", DATE, time_zone="UTC").time_zone == "UTC"
    with pytest.raises(InvalidInput, match="there is no time zone"):
        Column("at", DATE, time_zone=name)


@pytest.mark.parametrize("engine", ["memory", "objects", "parquet", "spark", "postgres"])
def test_text_beyond_a_limit_is_missing(engine, request, tmp_path) -> None:
    """PostgreSQL fails where the parts of a key are longer together than a text can be."""
    longest = "ä" * (LONGEST_TEXT // 2)
    texts = ["x", longest, longest + "y", "z" * (4 * LONGEST_TEXT)]
    rows = pa.table({"member": [1, 2, 3, 4], "text": texts})
    if engine == "memory":
        source = open_source(rows)
    elif engine == "objects":
        source = open_source(rows.to_pandas().astype(object))
    elif engine == "parquet":
        pq.write_table(rows, tmp_path / "rows.parquet")
        source = open_source(tmp_path / "rows.parquet")
    elif engine == "spark":
        source = on_spark(request.getfixturevalue("spark"), rows, tmp_path)
    else:
        url = request.getfixturevalue("postgres").url()
        source = on_postgres(url, "member int, text text", list(enumerate(texts, 1)))
    assert values(source, "text", TEXT) == ["x", longest, None, None]
    source.shut()


def test_a_text_of_600_megabytes_is_no_failure(postgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE huge (member int, a text, b text)")
        connection.execute("INSERT INTO huge VALUES (1, 'x', 'y')")
        connection.execute("INSERT INTO huge SELECT 2, repeat('z', 600000000), 'y'")
    source = open_source(postgres.url(), table="huge")
    schema = Schema((Column("member", INTEGER), Column("a", TEXT), Column("b", TEXT)))
    assert histogram(source, schema, ["a", "b"], limits=(1, 1)) == {"sx|sy": 1, "n|sy": 1}
    each_kind_reads(source, ["a"])


def test_generated_columns_of_sqlite_are_left_out(tmp_path) -> None:
    """The file opened while its table was empty, and failed with the first row."""
    with sqlite3.connect(tmp_path / "g.sqlite") as connection:
        connection.execute("CREATE TABLE t (member INT, a INT, b INT GENERATED ALWAYS AS (a + 1))")
        connection.execute("INSERT INTO t (member, a) VALUES (1, 5)")
    connection.close()
    source = open_source(tmp_path / "g.sqlite", table="t")
    assert [column.name for column in source.columns] == ["member", "a"]
    assert values(source, "a", INTEGER) == [5]
    source.shut()


def test_object_identifiers_of_postgresql_are_whole_numbers(postgres) -> None:
    source = on_postgres(postgres.url(), "member int, id oid", [(1, 4294967295)])
    assert values(source, "id", INTEGER) == [4294967295]
    assert values(source, "id", REAL) == [4294967295.0]
    each_kind_reads(source, ["id"])
