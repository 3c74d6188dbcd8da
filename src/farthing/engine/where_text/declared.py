"""Texts that are compared with a column of days are the days that they write, as in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from farthing.engine.filters import AllOf, AnyOf, Between, Equals, Filter, Not, OneOf, Present
from farthing.errors import InvalidInput
from farthing.schema import DATE, Value


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
    if kinds.get(where.column) != DATE:
        return where
    match where:
        case Equals(column, value):
            return Equals(column, _day(column, value))
        case OneOf(column, values):
            return OneOf(column, tuple(_day(column, value) for value in values))
        case Between(column):
            return Between(column, **{side: _day(column, value) for side, value in where.sides})


def _day(column: str, value: Value) -> Value:
    if not isinstance(value, str):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise InvalidInput(f"{column} is date, which is written 2013-01-31") from None
