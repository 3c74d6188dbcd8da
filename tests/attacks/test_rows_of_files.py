"""What a row of a CSV or SQLite file holds changes how no other row is read, and fails nothing."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from farthing.engine.sources import copies as sqlite_files
from farthing.engine.sources.opening import open_source
from farthing.engine.sources.tables import LONGEST_TEXT
from farthing.schema import DECIMAL, INTEGER, KINDS, REAL, TEXT, Column, Schema
from tests.engine.engines import read

CSV_SCHEMA = Schema((Column("member", INTEGER), Column("text", TEXT)))
LINES = [b"%d,t%d\n" % (i, i) for i in range(50)]
#: Rows as somebody might write them. One quotation mark without a partner is docs/known-limits.md.
ROWS = {
    "a quotation mark inside": b'500,a"b\n',
    "text after a quotation": b'500,"a"b\n',
    "NUL": b"500,a\0b\n",
    "NUL alone": b"\0,\0\n",
    "a carriage return": b"500,a\rb\n",
    "other ends of lines": "500,a\u2028b\x85c\x0cd\x1ae\n".encode(),
    "a byte order mark": b"\xef\xbb\xbf500,a\n",
    "no text": b"500,\xff\xfe\xc3\n",
    "cells too many": b"500" + 1000 * b",a" + b"\n",
    "a cell too few": b"500\n",
    "nothing": b"\n",
    "other delimiters": b"5;5;5;5\t5\t5\t5\t5|5|5|5|5\n",
    "an escape": b'500,\\"a\\\n',
    "lines inside": b'500,"a\n9,b\n\r\n7,c"\n',
    "another type": b"n/a,2013-01-01\n",
    "very long": b"500," + (2 * LONGEST_TEXT) * b"x" + b"\n",
}


def csv_rows(path: Any, lines: list[bytes]) -> list[str]:
    path.write_bytes(b"member,text\n" + b"".join(lines))
    source = open_source(path)
    found = sorted(str(row) for row in read(source, CSV_SCHEMA))
    proposed = source.proposed_schema().columns
    source.shut()
    assert [column.name for column in proposed] == ["member", "text"]
    return found


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_a_csv_file(tmp_path, name) -> None:
    before = csv_rows(tmp_path / "rows.csv", LINES)
    for place in (0, 25, 50):
        after = csv_rows(tmp_path / "rows.csv", [*LINES[:place], ROWS[name], *LINES[place:]])
        assert set(before) <= set(after)
        assert len(after) - len(before) in (0, 1)


SQLITE_SCHEMA = Schema(
    (
        Column("member", INTEGER),
        *(Column("k", TEXT), Column("n", INTEGER), Column("r", REAL), Column("x", TEXT)),
    )
)
VALUES = [
    "99, X'00ff', 'n/a', 'n/a', X'ff'",
    "'abc', 1, 2, 3, 4",
    "X'00', zeroblob(3000000), X'31', X'31', zeroblob(3000000)",
    "NULL, NULL, NULL, NULL, NULL",
    "99, CAST(X'ff' AS TEXT), 9e999, -9e999, CAST(X'c3' AS TEXT)",
    "9223372036854775807, 'a' || char(0), -9223372036854775808, 1e308, char(0)",
    "1.5, char(55296), 1.5, '1.5', 1e400",
    "'5', 5, '5', '5', 9007199254740993",
]


def sqlite_table(path: Any, *values: str) -> Any:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (member INTEGER, k TEXT, n INT, r REAL, x)")
    for i in range(20):
        row = (i, f"k{i}", i, i / 2, f"x{i}")
        connection.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", row)
    for one in values:
        connection.execute(f"INSERT INTO t VALUES ({one})")
    connection.commit()
    connection.close()
    return open_source(path, table="t")


@pytest.mark.parametrize("values", VALUES)
def test_a_row_of_a_sqlite_file(tmp_path, values) -> None:
    found = []
    for rows in ((), (values,)):
        source = sqlite_table(tmp_path / "rows.sqlite", *rows)
        found.append({str(row) for row in read(source, SQLITE_SCHEMA)})
        for name in ("k", "n", "r", "x"):
            for kind in KINDS:
                column = Column(name, kind, places=2 if kind == DECIMAL else None)
                read(source, Schema((Column("member", INTEGER), column)))
        source.shut()
    assert found[0] <= found[1]
    assert len(found[1]) == len(found[0]) + 1


def test_no_part_of_a_sqlite_file_is_larger_than_arrow_holds(tmp_path) -> None:
    """Texts of 100 000 rows in one array could be more than two gigabytes: the file did not open.

    What is too long is missing before it is put together with others.
    """
    assert sqlite_files._ROWS * LONGEST_TEXT < 2**31
    source = sqlite_table(tmp_path / "rows.sqlite", VALUES[2])
    parts = sqlite_files.sqlite_rows(str(tmp_path / "rows.sqlite"), "t").parts
    assert max(part.nbytes for part in parts) < LONGEST_TEXT
    source.shut()
