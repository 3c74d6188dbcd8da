"""Cause: types inferred from the rows.

One row `500,n/a` turned a column of a CSV file into text, and a plan said so, free and exactly;
a missing age made a pandas column real; the digits of the largest decimal were told. The types
a question is checked against are those of the schema, whatever the rows hold.
"""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine.sources.opening import open_source
from farthing.engine.sql.statement import Texts
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TEXT, Column, Schema
from tests.engine.engines import histogram, on_postgres, on_spark, read

SCHEMA = Schema((Column("member", INTEGER), Column("age", INTEGER)))


def statement(source):
    """What would run, and the types it gives, without running it."""
    table = source.declared(SCHEMA)
    return source.statement(table, Texts()), table.schema()


@pytest.mark.parametrize("odd", ["n/a", "", "3.5", "1e3", "2013-01-01", "true", '"', "99" * 20])
def test_one_row_of_a_csv_file_changes_no_statement(tmp_path, odd) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("member,age\n" + "".join(f"{i},{i % 90}\n" for i in range(100)))
    plain = open_source(path)
    with path.open("a") as file:
        file.write(f"500,{odd}\n")
    strange = open_source(path)
    assert statement(plain) == statement(strange)
    before = histogram(plain, SCHEMA, ["age"])
    after = histogram(strange, SCHEMA, ["age"])
    change = {key: after.get(key, 0) - before.get(key, 0) for key in before.keys() | after.keys()}
    assert sum(change.values()) <= 1
    assert min(change.values()) >= 0
    plain.shut()
    strange.shut()


def test_one_row_of_a_table_in_memory_changes_no_answer_of_others() -> None:
    ages = [i % 90 for i in range(100)]
    frames = [
        pd.DataFrame({"member": range(100), "age": ages}),
        pd.DataFrame({"member": range(101), "age": [*ages, None]}),
        pd.DataFrame({"member": range(101), "age": [*ages, "SECRET"]}),
        pd.DataFrame({"member": range(101), "age": [*ages, 2.5]}),
        pd.DataFrame({"member": range(101), "age": [*ages, 10**40]}),
        polars.DataFrame({"member": range(101), "age": [*ages, None]}),
        pa.table({"member": range(101), "age": pa.array([*map(str, ages), "x"])}),
        pa.table(
            {
                "member": range(101),
                "age": pa.array([decimal.Decimal(a) for a in [*ages, 10**30]], pa.decimal128(38)),
            }
        ),
    ]
    wanted = None
    for frame in frames:
        source = open_source(frame)
        found = histogram(source, SCHEMA, ["age"], where={"age": {"present": True}})
        wanted = wanted or found
        assert found == wanted
        assert statement(source)[1] == statement(open_source(frames[0]))[1]
        source.shut()


def test_the_digits_of_the_largest_number_are_not_told() -> None:
    """Any number can be compared with: beyond what a column holds, none or all of it passes."""
    for largest in (9, 10**15):
        rows = pa.table({"member": [1, 2], "part": [decimal.Decimal(largest), decimal.Decimal(1)]})
        source = open_source(rows)
        schema = Schema((Column("member", INTEGER), Column("part", DECIMAL, places=2)))
        for bound in (100, 10**12, 2**63, 1e300):
            found = histogram(source, schema, ["member"], where={"part": {"below": bound}})
            assert len(found) == sum(value < bound for value in (largest, 1))
        assert histogram(source, schema, ["member"], where={"part": 0.005}) == {}
        assert len(histogram(source, schema, ["member"], where={"part": {"above": 0.005}})) == 2
        source.shut()


def test_a_column_that_is_gone_or_of_another_type_is_missing(tmp_path) -> None:
    for rows in (
        pa.table({"member": [1, 2]}),
        pa.table({"member": [1, 2], "age": pa.array([{"a": 1}, None])}),
        pa.table({"member": [1, 2], "age": [[1], [2]]}),
    ):
        path = tmp_path / "rows.parquet"
        pq.write_table(rows, path)
        source = open_source(path)
        assert histogram(source, SCHEMA, ["age"]) == {"n": 2}
        source.shut()


def test_the_proposal_is_what_the_owner_is_shown(tmp_path) -> None:
    """Declared types where there are some; where not, the narrowest kind that loses nothing."""
    path = tmp_path / "rows.csv"
    path.write_text(
        "n;r;b;d;z;s;empty;mixed\n1;1.5;true;2013-01-05;007;x;;1\n2;2;no;1999-12-31;12;y;;n/a\n"
    )
    source = open_source(path)
    found = {column.name: column.kind for column in source.proposed_schema().columns}
    assert found == {
        "n": INTEGER,
        "r": REAL,
        "b": BOOLEAN,
        "d": DATE,
        "z": TEXT,
        "s": TEXT,
        "empty": TEXT,
        "mixed": TEXT,
    }
    first = read(source, Schema(source.proposed_schema().columns))[0]
    assert first == {
        "n": 1,
        "r": 1.5,
        "b": True,
        "d": date(2013, 1, 5),
        "z": "007",
        "s": "x",
        "empty": None,
        "mixed": "1",
    }
    source.shut()
    typed = pa.table(
        {
            "member": pa.array([1], pa.int16()),
            "price": pa.array([decimal.Decimal("1.50")], pa.decimal128(10, 2)),
            "at": pa.array([0], pa.timestamp("us", "UTC")),
            "list": [[1]],
        }
    )
    source = open_source(typed)
    proposal = source.proposed_schema()
    assert proposal.columns == (
        Column("member", INTEGER),
        Column("price", DECIMAL, places=2),
        Column("at", DATE, time_zone="UTC"),
    )
    assert [name for name, _ in proposal.left_out] == ["list"]
    source.shut()


AFTER_WORK = datetime(2020, 1, 1, 20, tzinfo=UTC)
PLAIN = AFTER_WORK.replace(tzinfo=None)
#: Objects of one type, one more of another, the declared column, and what the first ones are.
OBJECTS = {
    "decimals, one of 40 digits": (Decimal("1.50"), Decimal("1" * 40), DECIMAL, Decimal("1.50")),
    "decimals, one without a number": (Decimal("1.5"), Decimal("sNaN"), DECIMAL, Decimal("1.5")),
    "decimals as text, one finer": (Decimal("1.5"), Decimal("0.001"), TEXT, "1.5"),
    "truth as a number, one text": (True, "x", INTEGER, 1),
    "truth as text, one text": (True, "x", TEXT, "true"),
    "truth as text, one missing": (True, None, TEXT, "true"),
    "whole numbers as text, one real": (1, 0.5, TEXT, "1"),
    "whole numbers as text, one missing": (1, None, TEXT, "1"),
    "large whole numbers, one real": (2**60 + 1, 0.5, INTEGER, 2**60 + 1),
    "whole numbers, one of 5000 digits": (5, 10**5000, INTEGER, 5),
    "NumPy's whole numbers, one text": (np.int64(5), "x", INTEGER, 5),
    "NumPy's truth, one text": (np.bool_(True), "x", BOOLEAN, True),
    "NumPy's days, one text": (np.datetime64("2020-01-01"), "x", DATE, date(2020, 1, 1)),
    "bytes, one text": (b"a", "x", TEXT, "a"),
    "moments, one text": (AFTER_WORK, "x", DATE, date(2020, 1, 2)),
    "moments, one without a zone": (AFTER_WORK, PLAIN, DATE, date(2020, 1, 2)),
    "moments, one at the end of time": (AFTER_WORK, datetime.max, DATE, date(2020, 1, 2)),
    "times of no zone, one with one": (PLAIN, AFTER_WORK, DATE, date(2020, 1, 1)),
    "times are no text, one text": (PLAIN, "x", TEXT, None),
    "text, one that is none": ("a", "\ud800", TEXT, "a"),
    "text, one list": ("a", ["b"], TEXT, "a"),
}


def in_memory(values, column, **how) -> list:
    """A pandas column through a declared one."""
    frame = pd.DataFrame({"member": range(len(values)), "x": pd.Series(values, **how)})
    source = open_source(frame)
    rows = read(source, Schema((Column("member", INTEGER), column)))
    source.shut()
    return [row["x"] for row in rows]


@pytest.mark.parametrize("case", OBJECTS)
def test_one_object_changes_nothing_about_the_others(case) -> None:
    """Arrow chose a type for a column of objects from all of them."""
    one, odd, kind, meant = OBJECTS[case]
    column = Column(
        "x",
        kind,
        places=2 if kind == DECIMAL else None,
        time_zone="Asia/Tokyo" if kind == DATE else None,
    )
    assert in_memory([one] * 3, column, dtype=object) == [meant] * 3
    assert in_memory([one] * 3 + [odd], column, dtype=object)[:3] == [meant] * 3
    assert in_memory([odd] + [one] * 3, column, dtype=object)[1:] == [meant] * 3
    assert in_memory([one] * 3, column) == [meant] * 3  # in the type that pandas chooses


@pytest.mark.parametrize("engine", ["memory", "parquet", "spark", "postgres"])
def test_a_whole_number_is_one_text_in_every_type(engine, request, tmp_path) -> None:
    """A missing value makes whole numbers real in pandas, and a finer one adds decimal places."""
    rows = pa.table(
        {
            "member": [1, 2, 3, 4],
            "whole": [1, -20, 0, 300],
            "real": [1.0, -20.0, -0.0, 300.0],
            "single": pa.array([1.0, -20.0, -0.0, 300.0], pa.float32()),
            "exact": pa.array([Decimal(n) for n in (1, -20, 0, 300)], pa.decimal128(9, 3)),
        }
    )
    if engine == "memory":
        source = open_source(rows)
    elif engine == "parquet":
        pq.write_table(rows, tmp_path / "rows.parquet")
        source = open_source(tmp_path / "rows.parquet")
    elif engine == "spark":
        source = on_spark(request.getfixturevalue("spark"), rows, tmp_path)
    else:
        columns = "member int, whole bigint, real float8, single real, exact numeric(9, 3)"
        values = [list(row.values()) for row in rows.to_pylist()]
        source = on_postgres(request.getfixturevalue("postgres").url(), columns, values)
    names = ("whole", "real", "single", "exact")
    schema = Schema((Column("member", INTEGER), *(Column(name, TEXT) for name in names)))
    found = sorted(read(source, schema), key=lambda row: row["member"])
    for name in names:
        assert [row[name] for row in found] == ["1", "-20", "0", "300"], name
    source.shut()


def test_a_missing_age_leaves_the_others_as_they_are() -> None:
    for kind, meant in ((TEXT, ["1", "2"]), (INTEGER, [1, 2]), (BOOLEAN, [True, None])):
        for ages in ([1, 2], [1, 2, None], [1, 2, "x"], [1, 2, 0.5], [1, 2, 2**63]):
            assert in_memory(ages, Column("x", kind))[:2] == meant


def test_one_category_changes_nothing_about_the_others() -> None:
    for odd in (None, "x", Decimal("0.001"), Decimal("1" * 40)):
        for one, meant in ((True, "true"), (5, "5"), (Decimal("1.5"), "1.5"), ("a", "a")):
            found = in_memory([one, odd, one], Column("x", TEXT), dtype="category")
            assert found[::2] == [meant] * 2


def folder_of(tmp_path, tables):
    for place, table in tables.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, tmp_path / place)
    return open_source(tmp_path)


@pytest.mark.parametrize(
    ("values", "odd", "column", "meant"),
    [
        (pa.array([1, 2]), pa.array([0.5]), Column("x", TEXT), ["1", "2"]),
        (pa.array([True]), pa.array(["x"]), Column("x", INTEGER), [1]),
        (pa.array([2**60 + 1]), pa.array([0.5]), Column("x", INTEGER), [2**60 + 1]),
        (pa.array([2**60 + 1]), pa.array([[1]]), Column("x", INTEGER), [2**60 + 1]),
        (
            pa.array([AFTER_WORK], pa.timestamp("us", "UTC")),
            pa.array(["x"]),
            Column("x", DATE, time_zone="Asia/Tokyo"),
            [date(2020, 1, 2)],
        ),
    ],
)
def test_one_file_changes_nothing_about_the_others(tmp_path, values, odd, column, meant) -> None:
    """DuckDB found a type for all files together."""
    tables = {
        "a.parquet": pa.table({"member": range(len(values)), "x": values}),
        "b.parquet": pa.table({"x": odd, "member": [7]}),
        "c.parquet": pa.table({"member": [8]}),
    }
    source = folder_of(tmp_path, tables)
    found = {
        row["member"]: row["x"] for row in read(source, Schema((Column("member", INTEGER), column)))
    }
    assert [found[i] for i in range(len(values))] == meant
    assert set(found) == {*range(len(values)), 7, 8}
    source.shut()


def test_one_folder_changes_nothing_about_what_other_paths_say(tmp_path) -> None:
    """user=01 was the number 1 until there was user=abc, and nothing once a folder had no name."""
    schema = Schema((Column("user", TEXT), Column("x", INTEGER)))
    table = pa.table({"x": [1]})
    folders = ["user=01", "user=1", "user=abc", "other", "user=7/kind=x"]
    users = ["01", "1", "abc", None, "7"]
    for count in range(1, len(folders) + 1):
        here = tmp_path / str(count)
        source = folder_of(here, {f"{place}/rows.parquet": table for place in folders[:count]})
        found = [row["user"] for row in read(source, schema)]
        assert sorted(map(str, found)) == sorted(map(str, users[:count]))
        source.shut()
    own = pa.table({"x": [1], "User": ["of the file"]})
    source = folder_of(tmp_path / "own", {"user=1/rows.parquet": own})
    assert [row["User"] for row in read(source, Schema((Column("User", TEXT),)))] == ["of the file"]
    source.shut()


def test_on_spark_too_paths_are_text(tmp_path, spark) -> None:
    for user in ("01", "1"):
        (tmp_path / f"user={user}").mkdir()
        pq.write_table(pa.table({"x": [1]}), tmp_path / f"user={user}" / "rows.parquet")
    source = open_source(str(tmp_path), spark=spark)
    found = [row["user"] for row in read(source, Schema((Column("user", TEXT),)))]
    assert sorted(found) == ["01", "1"]
    source.shut()
