"""Tables in memory: pandas, Polars and Arrow. Their types are what somebody inferred, no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from farthing.engine.sources.copied import ENCODED, OBJECTS, TYPED, Copied, copied
from farthing.engine.sources.objects import written_object
from farthing.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

#: Microseconds that every time of the years 1 to 9999 has, and no time that cannot be a date.
_EDGE = 300_000_000_000_000_000


def frame_rows(frame: Any) -> Copied:
    """The rows of a table in memory."""
    names, columns = _columns(frame)
    ways = [way for way, _ in columns]
    arrays = [column for _, column in columns]
    types = [column.type for column in arrays]
    return copied(names, ways, types, _parts(arrays))


def _parts(columns: Sequence[pa.ChunkedArray]) -> Any:
    import pyarrow as pa

    table = pa.Table.from_arrays(list(columns), names=[f"c{i}" for i in range(len(columns))])
    return (batch.columns for batch in table.to_batches())


def _columns(frame: Any) -> tuple[list[str], list[tuple[str, pa.ChunkedArray]]]:
    import pyarrow as pa

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
    import pyarrow as pa

    if series.dtype != object and not isinstance(series.dtype, pd.CategoricalDtype):
        try:
            found = pa.Array.from_pandas(series)
        except (pa.ArrowException, ValueError, OverflowError, TypeError):
            found = None  # a type that Arrow does not have
        if found is not None:
            return _plain(
                found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
            )
    objects = pa.array(map(written_object, series.astype(object)), pa.large_binary())
    return OBJECTS, pa.chunked_array([objects])


def _plain(column: pa.ChunkedArray) -> tuple[str, pa.ChunkedArray]:
    """A type that DuckDB takes whatever the values are; what has none is missing everywhere."""
    import pyarrow as pa
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
    import pyarrow as pa
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
