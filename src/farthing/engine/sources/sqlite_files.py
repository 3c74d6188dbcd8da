"""SQLite files. A column has the type of its affinity; a value of another type is missing.

In a column without a type of its own (DATE, BOOLEAN, DECIMAL and the like are such) every value
is read as text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from farthing.engine.sources.base import LONGEST_TEXT
from farthing.engine.sources.copied import ENCODED, TYPED, UNTYPED, Copied, copied
from farthing.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

SQLITE = (".sqlite", ".sqlite3")
#: So few that no part is larger than Arrow holds, whatever the texts are.
_ROWS = 2000


def sqlite_table(path: str, table: str) -> str:
    """The table as the file spells it: SQLite does not tell case apart."""
    with _connected(path) as connection:
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND "
            "name = ? COLLATE NOCASE",
            (table,),
        ).fetchone()
    if found is None:
        raise InvalidInput(f"there is no table {table!r:.80}")
    return str(found[0])


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
    return copied(names, ways, types, _parts(path, table, names, types))


def _parts(
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
