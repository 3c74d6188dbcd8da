"""Rows that are copied into DuckDB in parts: CSV and SQLite files.

Of a CSV file every cell is text, and nothing but the first line decides how it is read. That line
names the columns, and the character that separates them is the one of , ; | and tab that it holds
most often. An empty cell without quotes is missing. A line with another number of cells than the
first is left out.

A column of SQLite has the type of its affinity; a value of another type is missing. In a column
without a type of its own (DATE, BOOLEAN, DECIMAL and the like are such) every value is text.
"""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from farthing.engine.sources.readers import LONGEST_TEXT
from farthing.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
SQLITE = (".sqlite", ".sqlite3")
#: How a column is copied: as it is, as the bytes of a text, as text because nothing says more, or
#: as texts that start with the mark of their own type.
TYPED, ENCODED, UNTYPED, OBJECTS = "typed", "encoded", "untyped", "objects"
_DELIMITERS = ",;\t|"
#: A row of CSV is at most this long.
_BLOCK = 1 << 25
#: Rows of SQLite at a time: so few that no part is larger than Arrow holds, whatever the texts are.
_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Copied:
    """Columns by name, of Arrow types that DuckDB takes whatever they hold.

    In the parts they are called c0, c1, … Text travels as bytes.
    """

    names: tuple[str, ...]
    ways: tuple[str, ...]
    schema: pa.Schema
    parts: Iterator[pa.RecordBatch]


def copied(
    names: Sequence[str],
    ways: Sequence[str],
    types: Sequence[pa.DataType],
    parts: Iterable[Sequence[pa.Array]],
) -> Copied:
    """Columns of these types, from parts that are lists of arrays."""
    import pyarrow as pa

    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"two columns are called {twice!r:.60}")
    schema = pa.schema([(f"c{i}", dtype) for i, dtype in enumerate(types)])
    batches = (pa.RecordBatch.from_arrays(list(part), schema=schema) for part in parts)
    return Copied(tuple(names), tuple(ways), schema, batches)


def csv_rows(files: Sequence[str]) -> Copied:
    """The rows of all files; columns are those of the first file, found by name in the others."""
    import pyarrow as pa

    names = _header(files[0])
    types = [pa.binary()] * len(names)
    parts = (part for file in files for part in _csv_parts(file, names))
    return copied(names, [UNTYPED] * len(names), types, parts)


def _csv_parts(file: str, names: Sequence[str]) -> Iterator[list[pa.Array]]:
    import pyarrow as pa

    here = _header(file)
    places = [here.index(name) if name in here else None for name in names]
    skip = 1  # the line of names
    for batch in _open_csv(file, len(here)):
        rows = batch.slice(skip)
        skip = 0
        yield [
            pa.nulls(rows.num_rows, pa.binary()) if place is None else rows.column(place)
            for place in places
        ]


def _header(file: str) -> list[str]:
    """The cells of the first line."""
    width = _line(file).count(_delimiter(file)) + 1  # at least as many columns as there are
    first = next(iter(_open_csv(file, width)), None)
    if first is None or first.num_rows == 0:
        raise InvalidInput("a CSV file starts with a line of names, got an empty one")
    cells = [column[0].as_py() or b"" for column in first.columns]
    cells[0] = cells[0].removeprefix(b"\xef\xbb\xbf")
    return [cell.decode("utf-8", "replace") for cell in cells]


def _open_csv(file: str, width: int) -> Any:
    from pyarrow import csv

    return csv.open_csv(
        file,
        read_options=csv.ReadOptions(autogenerate_column_names=True, block_size=_BLOCK),
        parse_options=csv.ParseOptions(
            delimiter=_delimiter(file),
            newlines_in_values=True,
            invalid_row_handler=lambda _: "skip",
        ),
        convert_options=csv.ConvertOptions(
            check_utf8=False,
            column_types={f"f{i}": "binary" for i in range(width)},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _line(file: str) -> str:
    with gzip.open(file) if file.lower().endswith(".gz") else open(file, "rb") as lines:
        return lines.readline(_BLOCK).decode("utf-8", "replace")


def _delimiter(file: str) -> str:
    return max(_DELIMITERS, key=_line(file).count)


def sqlite_table(path: str, table: str) -> str:
    """The table as the file spells it: SQLite does not tell case apart."""
    with _connected(path) as connection:
        named = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND "
            "name = ? COLLATE NOCASE",
            (table,),
        ).fetchone()
    if named is None:
        raise InvalidInput(f"there is no table {table!r:.80}")
    return str(named[0])


def sqlite_rows(path: str, table: str) -> Copied:
    """All rows, a part at a time."""
    import pyarrow as pa

    with _connected(path) as connection:
        declared = connection.execute(f"PRAGMA table_info({_name(table)})").fetchall()
    names = [column[1] for column in declared]
    ways = [_way(column[2] or "") for column in declared]
    types = [
        pa.binary() if way != TYPED else pa.int64() if "INT" in column[2].upper() else pa.float64()
        for way, column in zip(ways, declared, strict=True)
    ]
    return copied(names, ways, types, _sqlite_parts(path, table, names, types))


def _sqlite_parts(
    path: str, table: str, names: Sequence[str], types: Sequence[pa.DataType]
) -> Iterator[list[pa.Array]]:
    """The declared columns by name: * would give generated ones too."""
    import pyarrow as pa

    with _connected(path) as connection:
        connection.text_factory = bytes
        columns = ", ".join(map(_name, names))
        cursor = connection.execute(f"SELECT {columns} FROM {_name(table)}")
        while rows := cursor.fetchmany(_ROWS):
            yield [
                pa.array([_fitting(value, dtype) for value in column], dtype)
                for column, dtype in zip(zip(*rows, strict=True), types, strict=True)
            ]


def _fitting(value: Any, dtype: pa.DataType) -> Any:
    import pyarrow as pa

    if dtype == pa.int64():
        return value if isinstance(value, int) else None
    if dtype == pa.float64():
        return float(value) if isinstance(value, int | float) else None
    if isinstance(value, bytes) and len(value) > LONGEST_TEXT:
        return None
    return str(value).encode() if isinstance(value, int | float) else value


@contextmanager
def _connected(path: str) -> Iterator[sqlite3.Connection]:
    """A connection that can only read, closed at the end."""
    connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, check_same_thread=False)
    try:
        yield connection
    finally:
        connection.close()


def _way(declared: str) -> str:
    """By the rules of SQLite's type affinity, in their order."""
    text = declared.upper()
    if "INT" in text:
        return TYPED
    if any(word in text for word in ("CHAR", "CLOB", "TEXT")):
        return ENCODED
    if any(word in text for word in ("REAL", "FLOA", "DOUB")):
        return TYPED
    return UNTYPED


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
