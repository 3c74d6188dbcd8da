"""What is copied into DuckDB: rows in parts, of Arrow types that it takes whatever they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

#: How a column is copied: as it is, as the bytes of a text, as text because nothing says more, or
#: as texts that start with the mark of their own type.
TYPED, ENCODED, UNTYPED, OBJECTS = "typed", "encoded", "untyped", "objects"


@dataclass(frozen=True, slots=True)
class Copied:
    """Columns by name; in the parts they are called c0, c1, … Text travels as bytes."""

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
