"""Tables in memory: pandas, Polars and Arrow. Their types are what somebody inferred, no more.

What pandas calls an object column has no type but those of its values. So every value is written by
itself, with a mark of its own type in front, and read as a column of that type would be: no value
decides how another is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from farthing.engine.sources.copies import ENCODED, OBJECTS, TYPED, Copied, copied
from farthing.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

#: The marks: text, bytes that are text, true or false, exact numbers, floats, days, times of no
#: zone, and times of some zone.
WORDS, ENCODED_WORDS, TRUTH, EXACT, FLOAT, DAYS_MARK, LOCAL, ZONED = "sybnrdtz"
#: Whole numbers have at most this many digits, and exact ones at most this many on each side.
_DIGITS, _PLACES = 40, 200
#: Microseconds that every time of the years 1 to 9999 has, and no time that cannot be a date.
_EDGE = 300_000_000_000_000_000


def frame_rows(frame: Any) -> Copied:
    """The rows of a table in memory."""
    names, columns = _columns(frame)
    arrays = [column for _, column in columns]
    types = [column.type for column in arrays]
    return copied(names, [way for way, _ in columns], types, _parts(arrays))


def _parts(columns: Sequence[pa.ChunkedArray]) -> Iterator[list[pa.Array]]:
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
        return WORDS, value
    if isinstance(value, UUID):
        return WORDS, str(value)
    if isinstance(value, bytes):
        return ENCODED_WORDS, value.decode()
    if isinstance(value, bool):
        return TRUTH, "true" if value else "false"
    if isinstance(value, int):
        return (EXACT, str(value)) if abs(value) < 10**_DIGITS else None
    if isinstance(value, float):
        return (FLOAT, repr(float(value))) if value == value else None
    if isinstance(value, Decimal):
        return _exact(value)
    if isinstance(value, datetime):
        return _time(value) if value == value else None  # not a time is no time
    return (DAYS_MARK, value.isoformat()) if isinstance(value, date) else None


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
    return EXACT, text if value else "0"


def _time(value: datetime) -> tuple[str, str]:
    """Without what is finer than microseconds."""
    mark = LOCAL
    if value.utcoffset() is not None:
        mark, value = ZONED, value.astimezone(UTC)
    day = f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
    clock = f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}.{value.microsecond:06d}"
    return mark, f"{day} {clock}" + ("+00" if mark == ZONED else "")
