"""What a question is about, in words: what is counted, the filter, every bound and limit."""

from __future__ import annotations

from collections.abc import Iterable

from farthing.engine.filters import (
    AllOf,
    AnyOf,
    Between,
    Equals,
    Filter,
    Not,
    OneOf,
    Present,
    columns_of,
)
from farthing.schema import Bounds, Value

_SIDES = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
#: Longer lists of values are told by their length.
_MOST_VALUES = 5


def caption(subject: str, where: Filter | None, applied: Iterable[str | None]) -> str:
    """One line: "mean of pay where lgID is AL, pay moved into 0 to 9, of each who at most 1 row".

    `applied` says every bound and limit.
    """
    passing = "" if where is None else f" where {in_words(where)}"
    return ", ".join((subject + passing, *(words for words in applied if words is not None)))


def moved_in_words(name: str, bounds: Bounds) -> str:
    """What bounds do to the values of a column."""
    match bounds:
        case (None, upper):
            return f"{name} moved to at most {upper}"
        case (lower, None):
            return f"{name} moved to at least {lower}"
        case (lower, upper):
            return f"{name} moved into {lower} to {upper}"


def beyond_values(where: Filter | None) -> frozenset[str]:
    """The columns of a filter that is not about listed values alone."""
    match where:
        case None | Equals(_, str() | int() | float()):
            return frozenset()
        case OneOf(_, values) if None not in values:
            return frozenset()
        case AllOf(parts) | AnyOf(parts):
            return frozenset().union(*map(beyond_values, parts))
        case _:
            return columns_of(where)


def in_words(where: Filter) -> str:
    """A filter as somebody would say it."""
    match where:
        case Equals(column, None):
            return f"{column} is missing"
        case Equals(column, value):
            return f"{column} is {_said(value)}"
        case OneOf(column, values):
            return f"{column} is {_one_of(values)}"
        case Between(column):
            return f"{column} is {_range(where)}"
        case Present(column):
            return f"{column} is not missing"
        case AllOf(parts):
            return " and ".join(map(_part, parts))
        case AnyOf(parts):
            return " or ".join(map(_part, parts))
        case Not(part):
            return f"not ({in_words(part)})"


def _part(where: Filter) -> str:
    words = in_words(where)
    return f"({words})" if isinstance(where, AllOf | AnyOf) else words


def _one_of(values: tuple[Value, ...]) -> str:
    if len(values) > _MOST_VALUES:
        return f"one of {len(values)} values"
    said = [*map(_said, values)]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"


def _range(where: Between) -> str:
    return " and ".join(f"{_SIDES[name]} {_said(value)}" for name, value in where.sides)


def _said(value: Value) -> str:
    return "missing" if value is None else str(value)
