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
    kind = kinds.get(where.column)
    match where:
        case Equals(column, value):
            return Equals(column, value_as_declared(column, kind, value))
        case OneOf(column, values):
            return OneOf(column, tuple(value_as_declared(column, kind, value) for value in values))
        case Between(column):
            return Between(
                column,
                **{side: value_as_declared(column, kind, value) for side, value in where.sides},
            )


def value_as_declared(column: str, kind: str | None, value: Value) -> Value:
    """A value in the form of its column's kind."""
    if kind not in (DATE, TIMESTAMP) or not isinstance(value, str):
        return value
    try:
        return (date if kind == DATE else datetime).fromisoformat(value)
    except ValueError:
        written = "2013-01-31" if kind == DATE else "2013-01-31 12:30:00"
        raise InvalidInput(f"{column} is {kind}, which is written {written}") from None
