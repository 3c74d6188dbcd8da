"""Cause: types inferred from the rows.

One row `500,n/a` turned a column of a CSV file into text, and a plan said so, free and exactly;
a missing age made a pandas column real; the digits of the largest decimal were told. The types
a question is checked against are those of the schema, whatever the rows hold.
"""

from __future__ import annotations

import decimal
from datetime import date

import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine.sources.opening import open_source
from farthing.engine.sql.texts import Texts
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TEXT, Column, Schema
from tests.engine.engines import histogram, read

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
