"""What people get wrong is answered with what is right, and never with a traceback."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.errors import InvalidInput
from tests.engine.conftest import TARIFF

ROWS = pa.table({"u": list(range(50)), "salary": [10 * i for i in range(50)]})


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda d: d.count(wher={"salary": 1}), "count has no wher; did you mean where?"),
        (lambda d: d.count(xyzzy=1), "count has no xyzzy; it has where, epsilon"),
        (lambda d: d.ask({"kind": "top_k", "by": "salary", "K": 3}), "did you mean k?"),
        (lambda d: d.ask({"kind": "topk", "by": "salary"}), "got 'topk'; did you mean top_k?"),
        (lambda d: d.sum(), "sum needs column (the column with the numbers)"),
        (lambda d: d.top_k(), "top_k needs by (a column"),
        (lambda d: d.top_k("salary", by="salary"), "by was given twice"),
        (lambda d: d.sum("Salary", lower=0, upper=1).plan(), "did you mean salary?"),
        (lambda d: d.count(where={"salry": 1}).plan(), "did you mean salary?"),
        (lambda d: d.count(*range(40)), "got 40 values"),
    ],
)
def test_the_nearest_right_name_is_named(opened, ask, said: str) -> None:
    with pytest.raises(InvalidInput) as told:
        ask(opened(ROWS, unit="u"))
    assert said in str(told.value)


def test_a_table_of_items_is_no_tariff(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "t.parquet")
    items = {"count": ("dp:0.1", 4)}
    with pytest.raises(InvalidInput, match=r"got dict; fa\.Tariff\(items, farthings=…\) makes one"):
        fa.open(
            tmp_path / "t.parquet", unit="u", ledger=tmp_path / "l.db", tariff=items, farthings=4
        )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    def told(data: Path, table: str | None = None) -> str:
        with pytest.raises(InvalidInput) as error:
            fa.open(
                data, table=table, unit="u", ledger=tmp_path / "l.db", tariff=TARIFF, farthings=4
            )
        return str(error.value)

    pq.write_table(ROWS, tmp_path / "whole.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-20])
    assert "cut could not be read as parquet: the file is damaged" in told(tmp_path / "cut.parquet")
    with closing(sqlite3.connect(tmp_path / "base.sqlite")) as base:
        base.execute("CREATE TABLE t (u INTEGER)")
    assert "say which of its tables to read with table=" in told(tmp_path / "base.sqlite")
    assert "there is no table 'x'" in told(tmp_path / "base.sqlite", "x")
    assert "there is no file" in told(tmp_path / "nothing.parquet")
