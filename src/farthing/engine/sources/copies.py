"""Rows that are copied into DuckDB in parts: CSV and SQLite files, and tables in memory.

Of a CSV file every cell is text, and nothing but the first line decides how it is read. That line
names the columns, and the character that separates them is the one of , ; | and tab that it holds
most often. An empty cell without quotes is missing. A line with another number of cells than the
first is left out.

A column of SQLite has the type of its affinity; a value of another type is missing. In a column
without a type of its own (DATE, BOOLEAN, DECIMAL and the like are such) every value is text.

Types of pandas, Polars and Arrow tables are what somebody inferred, no more. What pandas calls an
object column has no type but those of its values. So every value is written by itself, with a mark
of its own type in front, and read as a column of that type would be: no value decides how another
is read.
"""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import numpy as np

from farthing.engine.sources.tables import BYTES, INSTANT, LONGEST_TEXT
from farthing.errors import InvalidInput
from farthing.optional import Later
from farthing.schema import BOOLEAN, DATE, REAL, TEXT, TIMESTAMP

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = Later("pyarrow")

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
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"two columns are called {twice!r:.60}")
    schema = pa.schema([(f"c{i}", dtype) for i, dtype in enumerate(types)])
    batches = (pa.RecordBatch.from_arrays(list(part), schema=schema) for part in parts)
    return Copied(tuple(names), tuple(ways), schema, batches)


def csv_rows(files: Sequence[str]) -> Copied:
    """The rows of all files; columns are those of the first file, found by name in the others."""
    names = _header(files[0])
    types = [pa.binary()] * len(names)
    parts = (part for file in files for part in _csv_parts(file, names))
    return copied(names, [UNTYPED] * len(names), types, parts)


def _csv_parts(file: str, names: Sequence[str]) -> Iterator[list[pa.Array]]:
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

    with _connected(path) as connection:
        declared = connection.execute(f"PRAGMA table_info({_name(table)})").fetchall()
    names = [column[1] for column in declared]
    affinities = [_affinity((column[2] or "").upper()) for column in declared]
    ways, types = [way for way, _ in affinities], [dtype for _, dtype in affinities]
    return copied(names, ways, types, _sqlite_parts(path, table, names, types))


def _sqlite_parts(
    path: str, table: str, names: Sequence[str], types: Sequence[pa.DataType]
) -> Iterator[list[pa.Array]]:
    """The declared columns by name: * would give generated ones too."""
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


def _affinity(declared: str) -> tuple[str, pa.DataType]:
    """By the rules of SQLite's type affinity, in their order."""
    if "INT" in declared:
        return TYPED, pa.int64()
    if any(word in declared for word in ("CHAR", "CLOB", "TEXT")):
        return ENCODED, pa.binary()
    if any(word in declared for word in ("REAL", "FLOA", "DOUB")):
        return TYPED, pa.float64()
    return UNTYPED, pa.binary()


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


#: The marks: text, bytes that are text, true or false, exact numbers, floats, days, times of no
#: zone, and times of some zone.
_WORDS, _ENCODED, _TRUTH, _EXACT, _FLOAT, _DAY, _LOCAL, _ZONED = "sybnrdtz"
#: The family of what is behind each mark, and how DuckDB reads it.
MARKS = {
    _WORDS: (TEXT, "substr({x}, 2)"),
    _EXACT: (TEXT, "substr({x}, 2)"),
    _ENCODED: (BYTES, "encode(substr({x}, 2))"),
    _TRUTH: (BOOLEAN, "({x} = 'btrue')"),
    _FLOAT: (REAL, "TRY_CAST(substr({x}, 2) AS DOUBLE)"),
    _DAY: (DATE, "TRY_CAST(substr({x}, 2) AS DATE)"),
    _LOCAL: (TIMESTAMP, "TRY_CAST(substr({x}, 2) AS TIMESTAMP)"),
    _ZONED: (INSTANT, "TRY_CAST(substr({x}, 2) AS TIMESTAMPTZ)"),
}
#: Whole numbers have at most this many digits, and exact ones at most this many on each side.
_DIGITS, _PLACES = 40, 200
#: Microseconds that every time of the years 1 to 9999 has, and no time that cannot be a date.
_EDGE = 300_000_000_000_000_000


def frame_rows(frame: Any) -> Copied:
    """The rows of a table in memory."""
    names, columns = _columns(frame)
    ways, arrays = zip(*columns, strict=True) if columns else ((), ())
    table = pa.Table.from_arrays(list(arrays), names=[f"c{i}" for i in range(len(arrays))])
    parts = (batch.columns for batch in table.to_batches())
    return copied(names, ways, [array.type for array in arrays], parts)


def _columns(frame: Any) -> tuple[list[str], list[tuple[str, pa.ChunkedArray]]]:
    module = type(frame).__module__.split(".")[0]
    if module == "polars":
        import polars

        whole = frame.collect() if isinstance(frame, polars.LazyFrame) else frame
        frame = whole.to_arrow()
    if isinstance(frame, pa.Table):
        return list(frame.column_names), [_plain(column) for column in frame.columns]
    if module == "pandas":
        return [str(name) for name in frame.columns], [
            _from_pandas(frame.iloc[:, i]) for i in range(frame.shape[1])
        ]
    raise InvalidInput(
        "data must be a path, an address, or a pandas, Polars or Arrow table, "
        f"got {type(frame).__name__}"
    )


def _from_pandas(series: Any) -> tuple[str, pa.ChunkedArray]:
    """Objects, and categories that may be objects, are written down one by one."""
    import pandas as pd

    if series.dtype != object and not isinstance(series.dtype, pd.CategoricalDtype):
        try:
            array = pa.Array.from_pandas(series)
        except (pa.ArrowException, ValueError, OverflowError, TypeError):
            pass  # a type that Arrow does not have
        else:
            chunked = isinstance(array, pa.ChunkedArray)
            return _plain(array if chunked else pa.chunked_array([array]))
    objects = pa.array(map(_written_object, series.astype(object)), pa.large_binary())
    return OBJECTS, pa.chunked_array([objects])


def _plain(column: pa.ChunkedArray) -> tuple[str, pa.ChunkedArray]:
    """A type that DuckDB takes whatever the values are; what has none is missing everywhere."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if types.is_string(kind):
        return ENCODED, column.cast(pa.binary())
    if types.is_large_string(kind) or types.is_string_view(kind):
        return ENCODED, column.cast(pa.large_binary())
    if types.is_float16(kind):
        return TYPED, column.cast(pa.float32())
    if types.is_timestamp(kind):
        return TYPED, _microseconds(column)
    simple = (
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal128(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_date32(kind)
    )
    if simple:
        return TYPED, column
    if types.is_date64(kind):
        return TYPED, column.cast(pa.date32(), safe=False)
    return TYPED, pa.chunked_array([pa.nulls(len(column))])


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times in microseconds; those too far away to be converted are missing."""
    from pyarrow import compute

    kind = column.type
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    edge = pa.scalar(min(_EDGE * per_second // 10**6, 2**63 - 1), pa.int64())
    number = column.cast(pa.int64())
    inside = compute.and_(
        compute.less_equal(number, edge), compute.greater_equal(number, compute.negate(edge))
    )
    kept = compute.if_else(inside, number, pa.scalar(None, pa.int64()))
    return kept.cast(kind).cast(pa.timestamp("us", kind.tz), safe=False)


def _written_object(value: object) -> bytes | None:
    """The mark of the value's type and its text; None for what is missing or fits no kind."""
    try:
        marked = _marked(_as_python(value))
        return None if marked is None else "".join(marked).encode()
    except Exception:  # whatever an object raises when it is asked, it is missing
        return None


def _as_python(value: Any) -> object:
    """Scalars of NumPy as the Python objects they stand for."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    if isinstance(value, np.timedelta64):
        return None
    if isinstance(value, np.floating):
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def _marked(value: object) -> tuple[str, str] | None:
    if isinstance(value, str):
        return _WORDS, value
    if isinstance(value, UUID):
        return _WORDS, str(value)
    if isinstance(value, bytes):
        return _ENCODED, value.decode()
    if isinstance(value, bool):
        return _TRUTH, "true" if value else "false"
    if isinstance(value, int):
        return (_EXACT, str(value)) if abs(value) < 10**_DIGITS else None
    if isinstance(value, float):
        return (_FLOAT, repr(float(value))) if value == value else None
    if isinstance(value, Decimal):
        return _exact(value)
    if isinstance(value, datetime):
        return _time(value) if value == value else None  # not a time is no time
    return (_DAY, value.isoformat()) if isinstance(value, date) else None


def _exact(value: Decimal) -> tuple[str, str] | None:
    """Digits and a point, without zeros at the end."""
    if not value.is_finite():
        return None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -_PLACES or value.adjusted() >= _PLACES:
        return None
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return _EXACT, text if value else "0"


def _time(value: datetime) -> tuple[str, str]:
    """Without what is finer than microseconds."""
    mark = _LOCAL
    if value.utcoffset() is not None:
        mark, value = _ZONED, value.astimezone(UTC).replace(tzinfo=None)
    text = datetime.isoformat(value, " ", "microseconds")
    return mark, f"{text}+00" if mark == _ZONED else text
