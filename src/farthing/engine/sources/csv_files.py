"""CSV files: every cell is text, and nothing but the first line decides how it is read.

The first line names the columns, and the character that separates them is the one of , ; | and
tab that it holds most often. An empty cell without quotes is missing. A line with another number
of cells than the first is left out.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from farthing.engine.sources.copied import UNTYPED, Copied, copied
from farthing.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_DELIMITERS = ",;\t|"
#: A row is at most this long.
_BLOCK = 1 << 25


def csv_rows(files: Sequence[str]) -> Copied:
    """The rows of all files; columns are those of the first file, found by name in the others."""
    import pyarrow as pa

    names = [name.decode("utf-8", "replace") for name in _header(files[0])]
    types = [pa.binary()] * len(names)
    parts = (part for file in files for part in _parts(file, names))
    return copied(names, [UNTYPED] * len(names), types, parts)


def _parts(file: str, names: Sequence[str]) -> Iterator[list[pa.Array]]:
    import pyarrow as pa

    here = [name.decode("utf-8", "replace") for name in _header(file)]
    places = [here.index(name) if name in here else None for name in names]
    skip = 1  # the line of names
    for batch in _open(file, len(here)):
        rows = batch.slice(skip)
        skip = 0
        yield [
            pa.nulls(rows.num_rows, pa.binary()) if place is None else rows.column(place)
            for place in places
        ]


def _header(file: str) -> list[bytes]:
    """The cells of the first line."""
    first = next(iter(_open(file, _width(file))), None)
    if first is None or first.num_rows == 0:
        raise InvalidInput("a CSV file starts with a line of names, got an empty one")
    cells = [column[0].as_py() or b"" for column in first.columns]
    cells[0] = cells[0].removeprefix(b"\xef\xbb\xbf")
    return cells


def _open(file: str, width: int) -> Any:
    from pyarrow import csv

    return csv.open_csv(
        file,
        read_options=csv.ReadOptions(autogenerate_column_names=True, block_size=_BLOCK),
        parse_options=csv.ParseOptions(
            delimiter=_delimiter(file), newlines_in_values=True, invalid_row_handler=_skip
        ),
        convert_options=csv.ConvertOptions(
            check_utf8=False,
            column_types={f"f{i}": "binary" for i in range(width)},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _skip(row: object) -> str:  # noqa: ARG001 # Arrow hands over the row
    return "skip"


def _line(file: str) -> str:
    with gzip.open(file) if file.lower().endswith(".gz") else open(file, "rb") as lines:
        return lines.readline(_BLOCK).decode("utf-8", "replace")


def _delimiter(file: str) -> str:
    line = _line(file)
    return max(_DELIMITERS, key=line.count)


def _width(file: str) -> int:
    """At least as many columns as there are."""
    return _line(file).count(_delimiter(file)) + 1
