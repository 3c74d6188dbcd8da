"""Texts that are compared with a column of days or times are what they write, as in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from farthing.engine.filters import AllOf, AnyOf, Between, Equals, Filter, Not, OneOf, Present
from farthing.errors import InvalidInput
from farthing.schema import DATE, TIMESTAMP, Value


def as_declared(where: Filter, kinds: Mapping[str, str]) -> Filter:
    """The filter with every value in the form of its column's kind."""
    match where:
        case AllOf(parts):
            return AllOf(tuple(as_declared(part, kinds) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(as_declared(part, kinds) for part in parts))
        case Not(part):
            return Not(as_declared(part, kinds))
        case Present():
            return where
    read = _READ.get(kinds.get(where.column, ""))
    if read is None:
        return where
    match where:
        case Equals(column, value):
            return Equals(column, read(column, value))
        case OneOf(column, values):
            return OneOf(column, tuple(read(column, value) for value in values))
        case Between(column):
            return Between(column, **{side: read(column, value) for side, value in where.sides})


def _day(column: str, value: Value) -> Value:
    if not isinstance(value, str):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise InvalidInput(f"{column} is date, which is written 2013-01-31") from None


def _time(column: str, value: Value) -> Value:
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInput(f"{column} is timestamp, which is written 2013-01-31 12:30:00") from None


_READ = {DATE: _day, TIMESTAMP: _time}
