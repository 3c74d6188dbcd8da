"""Python objects in a column: each is written by itself, with a mark of its own type in front.

What pandas calls an object column has no type but those of its values. So every value carries
its own, and is read as a column of that type would be; no value decides how another is read.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

#: The marks: text, bytes that are text, true or false, exact numbers, floats, days, times of no
#: zone, and times of some zone.
WORDS, ENCODED_WORDS, TRUTH, EXACT, FLOAT, DAYS_MARK, LOCAL, ZONED = "sybnrdtz"
#: Whole numbers have at most this many digits, and exact ones at most this many on each side.
_DIGITS, _PLACES = 40, 200


def written_object(value: object) -> bytes | None:
    """The mark of the value's type and its text; None for what is missing or fits no kind."""
    try:
        found = _marked(_plain(value))
        return None if found is None else (found[0] + found[1]).encode()
    except Exception:  # whatever an object raises when it is asked, it is missing
        return None


def _plain(value: Any) -> object:
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
