"""Whatever a table calls its columns and holds in them, units stay limited and nothing fails."""

from __future__ import annotations

import sqlite3
from datetime import date
from decimal import Decimal

import duckdb
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing import engine
from farthing.composition.tariff import Price
from farthing.engine.compiling import data_from
from farthing.errors import InvalidInput
from farthing.mechanisms import Histogram

OURS = ("who", "worth", "value", "key0", "amount", "rows", "keys", "over", "digest", "place")
OURS += ("total", "n", "label", "source", "given", "t0", "t1")


def before_noise(question: engine.Question) -> int | dict[object, int]:
    """What the mechanism will run on."""
    prepared = question.prepare()
    found = data_from(prepared.purchase.query, question.data.source.run(prepared.compiled.sql))
    if isinstance(found, Histogram):
        return dict(zip(found.labels.tolist(), found.counts.tolist(), strict=True))
    return found


@pytest.mark.parametrize("name", [*OURS, *(name.upper() for name in OURS)])
def test_no_name_of_a_column_gets_in_the_way(opened, name) -> None:
    """Fifty rows of one unit and one of another: each adds at most 10, and one label."""
    whose = ["u1"] * 50 + ["u2"]
    number = [*range(50), 7]
    for unit, other in ((name, "x"), ("x", name)):
        rows = pa.table({unit: whose, other: number})
        data = opened(rows, unit=unit, dataset=f"{unit} {other}")
        assert before_noise(data.sum(other, lower=0, upper=10)) == 17
        assert sum(before_noise(data.quantile(other, lower=0, upper=100)).values()) == 2
        assert sum(before_noise(data.histogram(other)).values()) == 2
        assert before_noise(data.count(per_key_limit=3)) == {"count": 4}
    rows = pa.table({"member": whose, "x": [1] * 51, name: [100] * 51})
    data = opened(rows, dataset=f"beside {name}")
    assert before_noise(data.sum("x", lower=0, upper=100)) == 51


def test_numbers_of_every_size(opened) -> None:
    rows = pa.table(
        {
            "member": [1, 2, 3],
            "small": pa.array([1, 2, 3], pa.int8()),
            "huge": pa.array([2**64 - 1, 0, 5], pa.uint64()),
            "real": [1e308, -1e308, float("nan")],
            "exact": pa.array([Decimal(10) ** 30, Decimal("0.000001"), None], pa.decimal128(38, 6)),
        }
    )
    data = opened(rows)
    for name in ("huge", "real", "exact"):
        for places in (0, 2):
            sums = data.sum(name, lower=0, upper=10, places=places)
            assert 10 * 10**places <= before_noise(sums) <= 20 * 10**places
            assert before_noise(data.quantile(name, lower=0, upper=9, places=places))
    assert set(data.top_k("huge", k=1, categories=[2**64 - 1, 5]).run().labels) <= {2**64 - 1, 5}
    assert data.top_k("huge", k=1, categories=[2**64 - 1, 5]).run().cached
    assert before_noise(data.count(where={"real": {"above": 0}})) == {"count": 1}
    assert before_noise(data.count(where={"real": {"below": 0}})) == {"count": 1}
    assert before_noise(data.count(where={"exact": {"below": 0.5}})) == {"count": 1}
    assert before_noise(data.count(where={"exact": {"above": 2**63}})) == {"count": 1}
    with pytest.raises(InvalidInput, match="6 decimal places"):
        data.count(where={"exact": {"below": 1e-7}}).run()
    small = pa.table({"member": [1], "part": pa.array([Decimal("0.5")], pa.decimal128(38, 30))})
    with pytest.raises(InvalidInput, match="as large as"):
        opened(small, dataset="small").count(where={"part": {"below": 10**12}}).run()
    with pytest.raises(InvalidInput, match="as large as"):
        data.count(where={"small": {"below": 2**63}}).run()


def test_numbers_of_every_size_on_postgresql(opened, postgres) -> None:
    url = postgres.url()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE extremes (member int, f float8, n numeric, d date)")
        connection.execute(
            "INSERT INTO extremes VALUES (1, 1e308, 1e400, 'infinity'), "
            "(2, -1e308, 1e-400, '-infinity'), (3, 'NaN', 'NaN', NULL), "
            "(4, 'infinity', 3, '1970-01-01')"
        )
    data = opened(url, table="extremes")
    for name in ("f", "n"):
        for places in (0, 2):
            assert before_noise(data.sum(name, lower=0, upper=10, places=places)) >= 0
            assert before_noise(data.quantile(name, lower=0, upper=9, places=places))
    assert len(before_noise(data.histogram("d"))) == 4
    # in a numeric column NaN is larger than everything, as PostgreSQL has it
    assert before_noise(data.count(where={"n": {"above": 0.5}})) == {"count": 3}
    with pytest.raises(InvalidInput, match="NUL"):
        data.count(where={"n": "a\0b"})


def test_dates_without_end(opened) -> None:
    with duckdb.connect() as connection:
        rows = connection.sql(
            "SELECT * FROM (VALUES (1, DATE 'infinity'), (2, DATE '-infinity'), (3, NULL), "
            "(4, DATE '1970-01-01')) t(member, day)"
        ).to_arrow_table()
    data = opened(rows)
    assert before_noise(data.histogram("day")) == {"d+": 1, "d-": 1, "n": 1, "d19700101": 1}
    known = data.histogram("day", categories=[None, date(1970, 1, 1)])
    assert before_noise(known) == {"n": 1, "d19700101": 1}


def test_tables_of_one_file_are_different_data(opened, tmp_path) -> None:
    path = tmp_path / "two.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE one AS SELECT i AS member FROM range(500) t(i)")
        connection.execute("CREATE TABLE two AS SELECT i AS member FROM range(5) t(i)")
    for dataset in (None, "events"):
        first = opened(path, table="one", dataset=dataset)
        assert first.count().run().value > 200
        second = opened(path, table="two", dataset=dataset)
        assert not second.count().run().cached
    assert second.source.name == "events"
    assert opened(path, table="two", dataset=None).source.name == "two.two"


def test_a_file_that_changed_must_be_opened_again(opened, tmp_path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"member": list(range(1000))}), path)
    data = opened(path)
    data.count().run()
    pq.write_table(pa.table({"member": list(range(5))}), path)
    left = data.remaining()
    for step in (data.count().plan, data.count().run):
        with pytest.raises(InvalidInput, match="changed since it was opened"):
            step()
    assert data.remaining() == left
    assert not opened(path).count().run().cached


def test_files_with_odd_names(opened, tmp_path) -> None:
    rows = pa.table({"member": [1, 2]})
    for name in ("a[1].parquet", "b*.parquet"):
        pq.write_table(rows, tmp_path / name)
        with pytest.raises(InvalidInput, match="for patterns"):
            opened(tmp_path / name)
    path = tmp_path / "50% #1?.sqlite".replace("?", "")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (member INTEGER, name TEXT, worth REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, "a", 0.5), (2, None, 2)])
        connection.execute("CREATE TABLE nobody (member INTEGER, name TEXT)")
    connection.close()
    data = opened(path, table="t")
    assert before_noise(data.sum("worth", lower=0, upper=9, places=1)) == 25
    empty = opened(path, table="nobody", dataset="nobody")
    assert before_noise(empty.count()) == {"count": 0}
    with pytest.raises(InvalidInput, match="no table"):
        opened(path, table="nothing")


def test_sources_that_cannot_be_read_leave_nothing_behind(opened, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    mixed = pd.DataFrame({"member": [1, "SECRET"]})
    with pytest.raises(InvalidInput, match="mixes types") as caught:
        opened(mixed)
    assert caught.value.__context__ is None
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no, PAR1")
    with pytest.raises(InvalidInput, match="could not be read") as caught:
        opened(tmp_path / "bad.parquet")
    assert caught.value.__context__ is None
    with pytest.raises(InvalidInput, match="8GB"):
        opened(pa.table({"member": [1]}), memory="much")
    with pytest.raises(InvalidInput, match="the unit must be"):
        opened(pa.table({"member": [1.5]}))
    assert not list(tmp_path.glob("farthing-spill-*"))


@pytest.mark.parametrize(
    "options", [{"candidates": 10**30}, {"contribution_limit": 2**63}, {"per_key_limit": 2**63}]
)
def test_limits_have_limits(opened, options) -> None:
    data = opened(pa.table({"member": [1], "x": ["a"]}))
    with pytest.raises(InvalidInput, match="at most 1000000000"):
        data.top_k("x", k=1, **options).run()
    assert data.remaining() == Price(1000, 100)
