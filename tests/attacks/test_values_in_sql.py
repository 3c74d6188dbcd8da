"""Cause: values inside SQL text.

Spark expanded ${env:…} inside the text of a filter, and PostgreSQL with
standard_conforming_strings = off took a backslash for an escape: full injection. A value now
travels beside the statement. Whatever it is, it equals itself and nothing else.
"""

from __future__ import annotations

import os

import duckdb
import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farthing.engine.filters import Equals, filter_from
from farthing.engine.sources.opening import open_source
from farthing.engine.sources.spark_session import SETTINGS as SPARK_SETTINGS
from farthing.engine.sql.conditions import condition
from farthing.engine.sql.statement import Texts
from farthing.engine.where_text.conditions import filter_in
from farthing.engine.where_text.writing import value_in_sql
from farthing.errors import InvalidInput, Unsupported
from farthing.schema import INTEGER, TEXT, Column, Schema
from tests.engine.engines import histogram, on_postgres, on_spark, read

HOSTILE = [
    "'",
    "''",
    '"',
    "\\",
    "\\'",
    "\\' OR 1=1 --",
    "' OR '1'='1",
    "${env:HOME}",
    "${system:user.dir}",
    "${spark.app.name}",
    "${hiveconf:a}",
    "$1",
    "${1}",
    ":p1",
    "?",
    "%s",
    "%(p1)s",
    "{x}",
    "{n}",
    "`",
    "$$",
    "--",
    "/*",
    "*/",
    ";",
    "\n",
    "\r\n",
    "\t",
    "\u2028",
    "\u202e",
    "\ufeff",
    "e\u0301",
    "é",
    "E'\\x27'",
    "U&'\\0027'",
    "x' COLLATE NOCASE",
    "\\u0027",
    "\x1b[31m",
    "NULL",
    "null",
    "n",
    "s",
    "[1]",
    '["a"]',
    "\x7f",
    "\U0001f600",
    "ſ",
    "K",
    "İ",
    " a",
    "a ",
    "",
    "farthing_text",
    "\\\\",
]
SCHEMA = Schema((Column("member", INTEGER), Column("k", TEXT)))
TEXTS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=8)


@pytest.fixture(scope="module", params=["duckdb", "spark", "postgres"])
def hostile(request, tmp_path_factory):
    """Every hostile text, each of one member; and one table for whatever comes besides."""
    rows = list(enumerate(HOSTILE))
    members, keys = map(list, zip(*rows, strict=True))
    table = pa.table({"member": members, "k": keys})
    if request.param == "duckdb":
        found = open_source(table)
    elif request.param == "spark":
        spark = request.getfixturevalue("spark")
        found = on_spark(spark, table, tmp_path_factory.mktemp("rows"))
    else:
        url = request.getfixturevalue("postgres").url()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE hostile (member int, k text)")
            connection.cursor().executemany("INSERT INTO hostile VALUES (%s, %s)", rows)
        found = open_source(url, table="hostile")
    yield found
    found.shut()


def test_every_hostile_text_equals_itself_and_nothing_else(hostile) -> None:
    """In one statement: which members pass the filter of which text."""
    texts, table = Texts(), hostile.declared(SCHEMA)
    passed = {
        f"f{i}": condition(table, filter_from({"k": text}), SCHEMA.kinds, texts)
        for i, text in enumerate(HOSTILE)
    }
    statement = hostile.statement(table.select("member", **passed), texts)
    assert not any(text in statement.sql for text in HOSTILE if len(text) > 3 and "1" not in text)
    for row in hostile.run(statement).to_pylist():
        equal = [i for i in range(len(HOSTILE)) if row[f"f{i}"]]
        assert equal == [row["member"]]


def test_a_list_of_hostile_texts(hostile) -> None:
    assert set(histogram(hostile, SCHEMA, ["k"], categories=HOSTILE)) == {f"s{t}" for t in HOSTILE}
    for some in (HOSTILE[::2], HOSTILE[1::2]):
        found = histogram(hostile, SCHEMA, ["k"], where={"k": some})
        assert set(found) == {f"s{text}" for text in some}
    pairs = [(i, text) for i, text in enumerate(HOSTILE)][::3]
    found = histogram(hostile, SCHEMA, ["member", "k"], categories=pairs)
    assert len(found) == len(pairs)


def test_hostile_texts_in_a_condition_that_is_text(hostile) -> None:
    some = HOSTILE[::2]
    where = filter_in(f"k NOT IN ({', '.join(map(value_in_sql, some))})")
    found = histogram(hostile, SCHEMA, ["k"], where=where)
    assert set(found) == {f"s{text}" for text in HOSTILE if text not in some}
    for text in HOSTILE:
        assert filter_in(f"k = {value_in_sql(text)}") == Equals("k", text)


def test_ranges_of_hostile_texts_are_those_of_python(hostile) -> None:
    for text in ("${env:HOME}", "'", "\\", "é", "a"):
        found = histogram(hostile, SCHEMA, ["k"], where={"k": {"below": text}})
        bytes_of = text.encode()
        assert set(found) == {f"s{t}" for t in HOSTILE if t.encode() < bytes_of}


def test_any_text(hostile) -> None:
    """Texts that nobody thought of: all of them in one list, against all of them as columns."""

    @settings(
        max_examples=3 if hostile.dialect.name == "pyspark" else 25,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(st.lists(TEXTS, min_size=1, max_size=8, unique=True))
    def equal(values: list[str]) -> None:
        texts, table = Texts(), hostile.declared(SCHEMA)
        one = table.filter(table.member == 0)
        literals = [texts.literal(value) for value in values]
        compared = {
            f"e{i}_{j}": literals[i] == literals[j]
            for i in range(len(values))
            for j in range(len(values))
        }
        listed = {f"l{i}": texts.one_of(literals[i], values[i:]) for i in range(len(values))}
        apart = {
            f"a{i}": texts.one_of(literals[i], values[i + 1 :]) for i in range(len(values) - 1)
        }
        row = hostile.run(
            hostile.statement(one.select("member", **compared, **listed, **apart), texts)
        ).to_pylist()[0]
        for i in range(len(values)):
            assert row[f"l{i}"] is True
            assert i == len(values) - 1 or row[f"a{i}"] is False
            assert all(row[f"e{i}_{j}"] is (i == j) for j in range(len(values)))

    equal()


def test_a_hundred_thousand_categories(hostile) -> None:
    many = [*(f"nobody {i}" for i in range(100_000)), *HOSTILE]
    assert len(histogram(hostile, SCHEMA, ["k"], categories=many)) == len(HOSTILE)
    numbers = list(range(10, 100_010))
    assert len(histogram(hostile, SCHEMA, ["member"], categories=numbers)) == len(HOSTILE) - 10


def test_texts_that_no_engine_holds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="surrogates"):
        Texts().literal("\ud800")
    with pytest.raises(InvalidInput, match="NUL"):
        filter_from({"k": "a\0"})


def test_spark_expands_nothing_even_if_it_was_told_to(spark, tmp_path) -> None:
    rows = pa.table({"member": [1, 2], "k": ["${env:HOME}", os.environ["HOME"]]})
    source = on_spark(spark, rows, tmp_path)
    hostile = {
        "spark.sql.variable.substitute": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.ansi.enabled": "true",
    }
    for name, value in hostile.items():
        spark.conf.set(name, value)
    assert histogram(source, SCHEMA, ["k"], where={"k": "${env:HOME}"}) == {"s${env:HOME}": 1}
    below = histogram(source, SCHEMA, ["k"], where={"k": {"at_most": "${env:HOME}"}})
    assert below == {"s${env:HOME}": 1}
    assert all(spark.conf.get(name) == value for name, value in SPARK_SETTINGS.items())
    source.shut()


def test_postgresql_with_backslashes_that_escape(postgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE escaping")
        connection.execute("ALTER DATABASE escaping SET standard_conforming_strings = off")
        connection.execute("ALTER DATABASE escaping SET search_path = evil, public")
        connection.execute("ALTER DATABASE escaping SET TimeZone = 'Asia/Tokyo'")
    url = postgres.url("escaping")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA evil")
        connection.execute(
            "CREATE FUNCTION evil.md5(text) RETURNS text LANGUAGE sql AS $$ SELECT '0' $$"
        )
    source = on_postgres(url, "member int, k text", [(1, "a"), (2, "\\' OR true --")])
    assert histogram(source, SCHEMA, ["k"], where={"k": "\\' OR true --"}) == {"s\\' OR true --": 1}
    assert source.location is not None
    assert "/escaping/evil.rows" in source.location
    source.shut()


def test_postgresql_without_utf_8_is_refused(postgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' "
            "TEMPLATE template0"
        )
    with psycopg.connect(postgres.url("ascii"), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (member int)")
    with pytest.raises(Unsupported, match="UTF-8"):
        open_source(postgres.url("ascii"), table="t")


NAMES = [
    'a"b',
    "a`b",
    "a'b",
    "${env:HOME}",
    "\\",
    "a\nb",
    "%s",
    "?",
    ":x",
    "$1",
    "{x}",
    "a.b",
    "a b",
    "é",
    "select",
    "*",
    "--",
    "a;b",
    "[0]",
    "c0",
    "declared0",
    "physical",
    "source",
    "\u202e",
    "A",
    "a",
]


@pytest.mark.parametrize("where", ["duckdb", "file", "spark", "postgres"])
def test_any_name_of_a_column(where, request, tmp_path) -> None:
    names = [name for name in NAMES if name != "a" or where in ("spark", "postgres")]
    values = {name: [f"{i}", "x"] for i, name in enumerate(names)}
    rows = pa.table({"member": [1, 2], **values})
    if where == "duckdb":
        source = open_source(rows)
    elif where == "file":
        with duckdb.connect(tmp_path / "t.duckdb") as connection:
            connection.register("given", rows)
            connection.execute('CREATE TABLE "a ""table""" AS SELECT * FROM given')
        source = open_source(tmp_path / "t.duckdb", table='a "table"')
    elif where == "spark":
        source = on_spark(request.getfixturevalue("spark"), rows, tmp_path)
    else:
        url = request.getfixturevalue("postgres").url()
        quoted = ['"' + name.replace('"', '""') + '" text' for name in names]
        cells = [[1, *(values[name][0] for name in names)], [2, *["x"] * len(names)]]
        source = on_postgres(url, ", ".join(["member int", *quoted]), cells)
    schema = Schema((Column("member", INTEGER), *(Column(name, TEXT) for name in names)))
    first = next(row for row in read(source, schema) if row["member"] == 1)
    assert first == {"member": 1, **{name: value[0] for name, value in values.items()}}
    for name in names if where != "spark" else names[:4]:
        found = histogram(source, schema, [name], where={name: {"present": True}}, limits=(1, 2))
        assert found == {f"s{values[name][0]}": 1, "sx": 1}
    source.shut()


def test_duckdb_refuses_names_that_differ_in_case_only() -> None:
    source = open_source(pa.table({"member": [1], "a": ["x"], "A": ["y"]}))
    proposal = source.proposed_schema()
    assert [column.name for column in proposal.columns] == ["member", "a"]
    assert proposal.left_out == (("A", "VARCHAR"),)
    schema = Schema((Column("a", TEXT), Column("A", TEXT)))
    with pytest.raises(InvalidInput, match="differ in case"):
        source.declared(schema)
    other = Schema((Column("member", INTEGER), Column("A", TEXT)))
    assert read(source, other) == [{"member": 1, "A": "y"}]
    source.shut()
