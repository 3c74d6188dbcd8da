"""Whatever a table calls its columns and holds in them, units stay limited and nothing fails."""

from __future__ import annotations

import sqlite3
from decimal import Decimal

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import Bounded, bounded_histogram, counted_rows, counts_of
from farthing.engine.sql.conditions import between, fixed_point
from farthing.engine.sql.statement import Texts
from farthing.errors import InvalidInput
from farthing.schema import INTEGER, Schema
from tests.engine.engines import clipped_sums, histogram, proposed

OURS = ("who", "worth", "value", "key0", "amount", "rows", "keys", "over", "order", "place")
OURS += ("total", "n", "label", "source", "given", "t0", "t1", "c0", "physical", "declared0")


def number(source: Source, bounded: Bounded) -> int:
    return int(counts_of(source.run(source.statement(bounded.expression, Texts())))[0])


def summed(source: Source, schema: Schema, column: str, places: int, upper: int) -> int:
    table = source.declared(schema)
    worth = fixed_point(table[column], schema.kinds[column], places)
    return number(source, clipped_sums(table, (table.member, INTEGER), worth, 0, upper))


def spread(source: Source, schema: Schema, column: str, places: int, upper: int) -> dict[str, int]:
    """What a quantile counts: values moved between its bounds."""
    table = source.declared(schema)
    worth = fixed_point(table[column], schema.kinds[column], places)
    present = table.filter(worth.notnull())
    moved = between(
        fixed_point(present[column], schema.kinds[column], places), 0, upper * 10**places
    )
    bounded = bounded_histogram(
        present,
        (present.member, INTEGER),
        [(moved, INTEGER)],
        secret="key",
        contribution_limit=1,
        per_key_limit=1,
    )
    rows = source.run(source.statement(bounded.expression, Texts())).to_pylist()
    return {row["label"]: int(row["n"]) for row in rows}


@pytest.mark.parametrize("name", [*OURS, *(name.upper() for name in OURS)])
def test_no_name_of_a_column_gets_in_the_way(name) -> None:
    """Fifty rows of one unit and one of another: each adds at most 10, and one label."""
    whose = ["u1"] * 50 + ["u2"]
    numbers = [*range(50), 7]
    for unit, other in ((name, "x"), ("x", name)):
        source = open_source(pa.table({unit: whose, other: numbers}))
        schema = proposed(source)
        table = source.declared(schema)
        owner = table[unit], schema.kinds[unit]
        assert number(source, clipped_sums(table, owner, table[other], 0, 10)) == 17
        found = histogram(source, schema, [other], unit=unit, limits=(1, 1))
        assert sum(found.values()) == 2
        assert number(source, counted_rows(table, owner, 3)) == 4
        source.shut()
    source = open_source(pa.table({"member": whose, "x": [1] * 51, name: [100] * 51}))
    schema = proposed(source, member="text")
    table = source.declared(schema)
    assert number(source, clipped_sums(table, (table.member, "text"), table.x, 0, 100)) == 51
    source.shut()


def test_numbers_of_every_size() -> None:
    rows = pa.table(
        {
            "member": [1, 2, 3],
            "small": pa.array([1, 2, 3], pa.int8()),
            "huge": pa.array([2**64 - 1, 0, 5], pa.uint64()),
            "real": [1e308, -1e308, float("nan")],
            "exact": pa.array([Decimal(10) ** 30, Decimal("0.000001"), None], pa.decimal128(38, 6)),
        }
    )
    source = open_source(rows)
    schema = proposed(source)
    for name in ("huge", "real", "exact"):
        for places in (0, 2):
            assert 0 <= summed(source, schema, name, places, 10 * 10**places) <= 20 * 10**places
            assert spread(source, schema, name, places, 9)

    def count(where) -> int:
        return sum(histogram(source, schema, ["member"], where=where).values())

    assert histogram(source, schema, ["huge"]) == {"n": 1, "i0": 1, "i5": 1}
    assert count({"huge": [2**64 - 1, 5]}) == 1
    assert count({"real": {"above": 0}}) == 1
    assert count({"real": {"below": 0}}) == 1
    assert count({"exact": {"below": 0.5}}) == 1
    assert count({"exact": {"below": 1e-7}}) == 0
    assert count({"exact": {"above": 2**63}}) == 0
    assert count({"small": {"below": 2**63}}) == 3
    source.shut()


def test_numbers_of_every_size_on_postgresql(postgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE extremes (member int, f float8, n numeric, d date)")
        connection.execute(
            "INSERT INTO extremes VALUES (1, 1e308, 1e400, 'infinity'), "
            "(2, -1e308, 1e-400, '-infinity'), (3, 'NaN', 'NaN', NULL), "
            "(4, 'infinity', 3, '1970-01-01')"
        )
    source = open_source(postgres.url(), table="extremes")
    schema = proposed(source)
    for name in ("f", "n"):
        for places in (0, 2):
            assert summed(source, schema, name, places, 10) >= 0
            assert spread(source, schema, name, places, 9)
    assert histogram(source, schema, ["d"]) == {"n": 3, "d19700101": 1}
    assert len(histogram(source, schema, ["member"], where={"n": {"above": 0.5}})) == 1
    source.shut()


def test_tables_of_one_file_are_different_data(tmp_path) -> None:
    path = tmp_path / "two.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE one AS SELECT i AS member FROM range(500) t(i)")
        connection.execute("CREATE TABLE two AS SELECT i AS member FROM range(5) t(i)")
    first, second = (open_source(path, table=name) for name in ("one", "two"))
    assert (first.name, second.name) == ("two.one", "two.two")
    assert first.location != second.location
    assert len(histogram(first, proposed(first), ["member"])) == 500
    assert len(histogram(second, proposed(second), ["member"])) == 5
    first.shut()
    second.shut()


def test_files_with_odd_names(tmp_path) -> None:
    rows = pa.table({"member": [1, 2]})
    for name in ("a[1].parquet", "b*.parquet"):
        pq.write_table(rows, tmp_path / name)
        with pytest.raises(InvalidInput, match="for patterns"):
            open_source(tmp_path / name)
    pq.write_table(rows, tmp_path / "it's 50% #1.parquet")
    source = open_source(tmp_path / "it's 50% #1.parquet")
    assert len(histogram(source, proposed(source), ["member"])) == 2
    source.shut()
    path = tmp_path / "50% #1.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (member INTEGER, name TEXT, worth REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, "a", 0.5), (2, None, 2)])
        connection.execute("CREATE TABLE nobody (member INTEGER, name TEXT)")
    connection.close()
    source = open_source(path, table="t")
    assert summed(source, proposed(source), "worth", 1, 90) == 25
    source.shut()
    empty = open_source(path, table="nobody")
    assert histogram(empty, proposed(empty), ["name"]) == {}
    empty.shut()
    with pytest.raises(InvalidInput, match="no table"):
        open_source(path, table="nothing")


def test_sources_that_cannot_be_read_leave_nothing_behind(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no, PAR1")
    with pytest.raises(InvalidInput, match="could not be read") as caught:
        open_source(tmp_path / "bad.parquet")
    assert caught.value.__context__ is None
    with pytest.raises(InvalidInput, match="256MB"):
        open_source(pa.table({"member": [1]}), memory="much")
    source = open_source(pa.table({"member": [1]}))
    source.shut()
    assert not list(tmp_path.glob("farthing-spill-*"))
