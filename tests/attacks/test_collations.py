"""Cause: SQL equality that is not equality of bytes.

Where a collation takes Oslo for OSLO, a thousand rows of one spelling are counted under an
arbitrary one of them, so that one unit can relabel everybody: a count of OSLO could go from 0 to
1001 when one unit was added.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import psycopg
import pytest

from farthing.engine.kinds.counts import HistogramQuery
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.schema import INTEGER, TEXT, Column, Schema
from tests.engine.engines import histogram, measured
from tests.engine.test_neighbours import make_citext

SCHEMA = Schema((Column("member", INTEGER), Column("k", TEXT)))
NAMES = Schema((Column("member", TEXT), Column("k", TEXT)))
CROWD = 1000
#: Spellings that some collation takes for one another, and their order in Python.
ALIKE = ["OSLO", "Oslo", "oslo", "ÓSLO", "oslo ", "O\u0301SLO"]


def in_duckdb(folder: Path, rows: list[tuple[object, str]], member: str = "INTEGER") -> Source:
    path = folder / f"{len(list(folder.iterdir()))}.duckdb"
    with duckdb.connect(path) as connection:
        collated = "VARCHAR COLLATE NOCASE.NOACCENT"
        kind = collated if member == "TEXT" else member
        connection.execute(f"CREATE TABLE t (member {kind}, k {collated})")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.execute("CREATE VIEW v AS SELECT * FROM t")
    return open_source(path, table="v")


def in_spark(spark, rows: list[tuple[object, str]], member: str = "INTEGER") -> Source:
    frame = spark.createDataFrame(rows, "member STRING, k STRING")
    who = "collate(member, 'UNICODE_CI')" if member == "TEXT" else "CAST(member AS INT)"
    return open_source(
        frame.selectExpr(f"{who} AS member", "collate(k, 'UNICODE_CI_AI') AS k"), spark=spark
    )


def in_postgres(url: str, rows: list[tuple[object, str]], member: str = "INTEGER") -> Source:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_type WHERE typname = 'citext'").fetchone()
        if found is None:
            make_citext(connection)
        kind = "citext" if member == "TEXT" else member
        connection.execute(
            f"DROP TABLE IF EXISTS cities; CREATE TABLE cities (member {kind}, k citext)"
        )
        with connection.cursor().copy("COPY cities FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    return open_source(url, table="cities")


@pytest.fixture(params=["duckdb", "spark", "postgres"])
def place(request, tmp_path):
    if request.param == "duckdb":
        return lambda rows, member="INTEGER": in_duckdb(tmp_path, rows, member)
    if request.param == "spark":
        spark = request.getfixturevalue("spark")
        texts = lambda rows: [(str(who), key) for who, key in rows]
        return lambda rows, member="INTEGER": in_spark(spark, texts(rows), member)
    url = request.getfixturevalue("postgres").url()
    return lambda rows, member="INTEGER": in_postgres(url, rows, member)


def test_one_unit_relabels_nobody(place) -> None:
    crowd = [(i, "Oslo") for i in range(CROWD)]
    source = place(crowd)
    assert histogram(source, SCHEMA, ["k"], categories=["OSLO"]) == {}
    source.shut()
    for first in (True, False):
        one = [(CROWD, "OSLO")]
        source = place([*one, *crowd] if first else [*crowd, *one])
        assert histogram(source, SCHEMA, ["k"], categories=["OSLO"]) == {"sOSLO": 1}
        assert histogram(source, SCHEMA, ["k"]) == {"sOSLO": 1, "sOslo": CROWD}
        assert histogram(source, SCHEMA, ["k"], where={"k": "oslo"}) == {}
        assert histogram(source, SCHEMA, ["k"], where={"k": {"at_most": "OSLO"}}) == {"sOSLO": 1}
        source.shut()


def test_units_that_look_alike_are_two_units(place) -> None:
    """A limit of one key for each: u and U are two, and so are their keys."""
    source = place([("u", "a"), ("U", "b"), ("u ", "c")], "TEXT")
    found = histogram(source, NAMES, ["k"], unit="member", limits=(1, 1))
    assert found == {"sa": 1, "sb": 1, "sc": 1}
    source.shut()


def test_ties_are_in_the_order_of_python(place) -> None:
    source = place([(i, name) for i, name in enumerate(ALIKE)])
    for size in range(1, len(ALIKE) + 1):
        found = histogram(source, SCHEMA, ["k"], candidates=size)
        assert sorted(found) == sorted(f"s{name}" for name in ALIKE)[:size]
    source.shut()


def test_numbers_are_in_the_order_of_their_texts_too(place) -> None:
    """i-10 comes before i1: a collation of a language would pass over the sign."""
    numbers = ["-10", "1", "-2", "10", "2"]
    source = place([(i, number) for i, number in enumerate(numbers)])
    schema = Schema((Column("member", INTEGER), Column("k", INTEGER)))
    for size in range(1, len(numbers) + 1):
        found = histogram(source, schema, ["k"], candidates=size)
        assert sorted(found) == sorted(f"i{number}" for number in numbers)[:size]
    source.shut()


def test_postgresql_with_collations_of_languages(icu_postgres) -> None:
    """A nondeterministic collation folds case."""
    with psycopg.connect(icu_postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE COLLATION fold (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)"
        )
        connection.execute("CREATE TABLE folded (member int, k text COLLATE fold)")
        connection.execute("INSERT INTO folded SELECT i, 'Oslo' FROM generate_series(1, 9) i")
        connection.execute("INSERT INTO folded VALUES (10, 'OSLO')")
    source = open_source(icu_postgres.url(), table="folded")
    assert histogram(source, SCHEMA, ["k"]) == {"sOSLO": 1, "sOslo": 9}
    assert histogram(source, SCHEMA, ["k"], categories=["OSLO"]) == {"sOSLO": 1}
    source.shut()


def test_ties_where_a_language_is_the_default(icu_postgres) -> None:
    """The database itself orders a before B; Python, and every engine for us, does not."""
    names = ["a", "B", "c", "A", "b", "Z", "é", "_"]
    with psycopg.connect(icu_postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE words (member int, k text)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO words VALUES (%s, %s)", list(enumerate(names)))
        asked = connection.execute("SELECT k FROM words ORDER BY k").fetchall()
        assert [row[0] for row in asked] != sorted(names)
    source = open_source(icu_postgres.url(), table="words")
    for size in range(1, len(names) + 1):
        found = histogram(source, SCHEMA, ["k"], candidates=size)
        assert sorted(found) == sorted(f"s{name}" for name in names)[:size]
    assert set(histogram(source, SCHEMA, ["k"], where={"k": {"below": "a"}})) == {
        "sB",
        "sA",
        "sZ",
        "s_",
    }
    source.shut()


#: Computed columns, and what they are of a spelling.
COMPUTED = {
    "lower(k)": lambda k: k.translate({code: code + 32 for code in range(65, 91)}),
    "left(k, 2)": lambda k: k[:2],
    "coalesce(k, 'x')": lambda k: k,
    "case when k like 'O%' then 'O' else 'other' end": lambda k: "O" if k[:1] == "O" else "other",
    "case when k = 'OSLO' then 'same' else 'other' end": lambda k: (
        "same" if k == "OSLO" else "other"
    ),
    "per_unit(max(k))": lambda k: k,
    "split(k, ' ')": lambda k: k.split(" "),
}


@pytest.mark.parametrize("key", COMPUTED)
def test_computed_columns_compare_bytes(place, key: str) -> None:
    """Members and labels differ by case and accents alone, and stay apart."""
    rows = [(name, name) for name in ALIKE]
    source = place(rows, "TEXT")
    query = HistogramQuery(key, contribution_limit=2, categories=None)
    table = measured(source, NAMES, query)[1]
    source.shut()
    wanted: Counter[str] = Counter()
    for name in ALIKE:
        label = COMPUTED[key](name)
        wanted.update({f"s{one}" for one in (label if isinstance(label, list) else [label])})
    told = zip(table.column("label").to_pylist(), table.column("n").to_pylist(), strict=True)
    assert {label: int(n) for label, n in told if n} == {
        label: n for label, n in wanted.items() if n
    }
