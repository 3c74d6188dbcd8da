"""Filters: which rows an analyst may ask about. A closed form, never SQL.

    Equals("country", "NO")             the value, or None for a missing one
    OneOf("country", ("NO", "SE"))
    Between("age", at_least=18, below=65)
    Present("company")                  not missing
    AllOf((…, …)), AnyOf((…, …)), Not(…)

The same as plain data, for JSON and for people:

    {"country": "NO"}    {"country": ["NO", "SE"]}    {"age": {"at_least": 18, "below": 65}}
    {"company": {"present": True}}    {"any_of": [{…}, {…}]}    {"not": {…}}
    several keys mean "and"

A condition on a missing value is never true, and neither is its negation, as in SQL. What says
something about missing values is always true or false: `Present(column)`, `Equals(column, None)`,
`OneOf(column, (…, None))`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

from farthing.errors import InvalidInput
from farthing.schema import DATE, TIMESTAMP, Value

#: Limits on depth and size keep the cost of reading a filter small.
DEEPEST, MOST_CONDITIONS = 24, 300
_SMALLEST_WHOLE, _LARGEST_WHOLE = -(2**63), 2**64 - 1
#: Up to here every whole number is a 64-bit float.
_EXACT = 2**53
_DATE, _TIME, _DECIMAL = "date", "time", "decimal"
#: Values that JSON does not have are marked by their type.
_MARKED: dict[str, Callable[[str], date | Decimal]] = {
    _DATE: date.fromisoformat,
    _TIME: datetime.fromisoformat,
    _DECIMAL: Decimal,
}
#: An exact number has at most this many digits on each side of its point.
_DIGITS = 18
_EXACTLY = Context(prec=3 * _DIGITS)
_TOO_DEEP = f"a filter nests at most {DEEPEST} times, got more"
_RANGE = ("at_least", "above", "at_most", "below")


@dataclass(frozen=True, slots=True)
class Equals:
    """The column has this value; None stands for a missing one."""

    column: str
    value: Value

    def __post_init__(self) -> None:
        require_column(self.column)
        object.__setattr__(self, "value", require_value(self.value))


@dataclass(frozen=True, slots=True)
class OneOf:
    """The column has one of these values."""

    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        require_column(self.column)
        values = tuple(require_value(value) for value in self.values)
        if not values:
            raise InvalidInput(f"a filter on {self.column} needs at least one value, got none")
        unique = {(type(value).__name__, value): value for value in values}
        object.__setattr__(self, "values", tuple(unique[key] for key in sorted(unique, key=repr)))


@dataclass(frozen=True, slots=True)
class Between:
    """The column lies in a range; each side is given at most once."""

    column: str
    at_least: Value = None
    above: Value = None
    at_most: Value = None
    below: Value = None

    def __post_init__(self) -> None:
        require_column(self.column)
        if not self.sides:
            raise InvalidInput(f"a range on {self.column} needs one of {', '.join(_RANGE)}")
        for name, value in self.sides:
            object.__setattr__(self, name, require_value(value))
            if isinstance(value, bool):
                raise InvalidInput(f"a range on {self.column} needs ordered values, got a bool")
        for one, other in (("at_least", "above"), ("at_most", "below")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise InvalidInput(f"a range on {self.column} has both {one} and {other}")

    @property
    def sides(self) -> tuple[tuple[str, Value], ...]:
        """The sides that are given, as (name, value)."""
        pairs = ((name, getattr(self, name)) for name in _RANGE)
        return tuple((name, value) for name, value in pairs if value is not None)


@dataclass(frozen=True, slots=True)
class Present:
    """The column is not missing."""

    column: str

    def __post_init__(self) -> None:
        require_column(self.column)


@dataclass(frozen=True, slots=True)
class _Joint:
    """Several filters together."""

    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _parts(self.parts))
        _require_small(self)  # type: ignore[arg-type] # only AllOf and AnyOf are made


class AllOf(_Joint):
    """Every part holds."""

    __slots__ = ()


class AnyOf(_Joint):
    """At least one part holds."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Not:
    """The part is false. A part that depends on a missing value is neither true nor false."""

    part: Filter

    def __post_init__(self) -> None:
        part = filter_from(self.part)
        if part is None:
            raise InvalidInput("not needs a filter that says something, got an empty one")
        object.__setattr__(self, "part", part)
        _require_small(self)


Condition: TypeAlias = Equals | OneOf | Between | Present
Filter: TypeAlias = Condition | AllOf | AnyOf | Not
_NODES = (Equals, OneOf, Between, Present, AllOf, AnyOf, Not)
_JOINTS: dict[str, type[AllOf] | type[AnyOf]] = {"all_of": AllOf, "any_of": AnyOf}
_NOT = "not"


def filter_from(where: object) -> Filter | None:
    """A filter from nodes or plain data; None keeps everything."""
    if isinstance(where, AllOf | AnyOf) and len(where.parts) == 1:
        return where.parts[0]  # one question has one form
    if isinstance(where, OneOf) and where.values == (None,):
        return Equals(where.column, None)
    if where is None or isinstance(where, _NODES):
        return where
    if not isinstance(where, Mapping):
        raise InvalidInput(f"where must be a table of conditions, got {type(where).__name__}")
    _require_shallow(where)
    if not where:
        return None
    return filter_from(AllOf(tuple(_condition(*condition) for condition in where.items())))


def filter_to_json(where: Filter | None) -> dict[str, Any] | None:
    """Plain data that `filter_from` turns back into the same filter."""
    match where:
        case None:
            return None
        case Equals(column, value):
            return {column: value_to_json(value)}
        case OneOf(column, values):
            return {column: [value_to_json(value) for value in values]}
        case Between(column):
            return {column: {name: value_to_json(value) for name, value in where.sides}}
        case Present(column):
            return {column: {"present": True}}
        case AllOf(parts) | AnyOf(parts):
            joint = "all_of" if isinstance(where, AllOf) else "any_of"
            return {joint: [filter_to_json(part) for part in parts]}
        case Not(part):
            return {_NOT: filter_to_json(part)}


def columns_of(where: Filter | None) -> frozenset[str]:
    """Every column that a filter looks at."""
    return frozenset(condition.column for condition, _ in conditions_of(where))


def conditions_of(where: Filter | None, depth: int = 1) -> Iterator[tuple[Condition, int]]:
    """The conditions on one column each, and how deep they nest."""
    match where:
        case None:
            return
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from conditions_of(part, depth + 1)
        case Not(part):
            yield from conditions_of(part, depth + 1)
        case _:
            yield where, depth


def as_declared(where: Filter, kinds: Mapping[str, str]) -> Filter:
    """The filter with every value in the form of its column's kind."""
    match where:
        case AllOf(parts) | AnyOf(parts):
            return type(where)(tuple(as_declared(part, kinds) for part in parts))
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


def renamed(where: Filter, rename: Callable[[str], str]) -> Filter:
    """The filter with other names for its columns."""
    match where:
        case AllOf(parts) | AnyOf(parts):
            return type(where)(tuple(renamed(part, rename) for part in parts))
        case Not(part):
            return Not(renamed(part, rename))
        case Equals() | OneOf() | Between() | Present():
            return replace(where, column=rename(where.column))


def value_as_declared(column: str, kind: str | None, value: Value) -> Value:
    """A value in the form of its column's kind."""
    if kind not in (DATE, TIMESTAMP) or not isinstance(value, str):
        return value
    try:
        return (date if kind == DATE else datetime).fromisoformat(value)
    except ValueError:
        written = "2013-01-31" if kind == DATE else "2013-01-31 12:30:00"
        raise InvalidInput(f"{column} is {kind}, which is written {written}") from None


def value_to_json(value: Value) -> Any:
    """A value as plain data; dates and times are marked, so that text stays text."""
    if isinstance(value, datetime):
        return {_TIME: value.isoformat()}
    if isinstance(value, Decimal):
        return {_DECIMAL: f"{value:f}"}
    return {_DATE: value.isoformat()} if isinstance(value, date) else value


def value_from_json(value: Any) -> Value:
    """The inverse of `value_to_json`."""
    if isinstance(value, Mapping):
        for mark, read in _MARKED.items():
            if set(value) == {mark} and isinstance(value[mark], str):
                with suppress(ValueError, InvalidOperation):
                    return read(value[mark])
        raise InvalidInput(
            'a date is written {"date": "2013-01-31"}, a time {"time": "2013-01-31T12:30:00"}, '
            'an exact number {"decimal": "1.50"}'
        )
    return value  # type: ignore[no-any-return] # checked where it is used


def require_column(name: object) -> str:
    """A column name: text that is not empty."""
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"a column must be named by text, got {name!r:.60}")
    if name in (*_JOINTS, _NOT):
        raise InvalidInput(f"a column cannot be called {name}: it joins filters")
    return name


def require_value(value: Any) -> Value:
    """Something a column can be compared with; 1e6 and 1000000 are one value."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise InvalidInput("a time has no zone of its own: it is in the zone of the column")
    if isinstance(value, str) and "\0" in value:
        raise InvalidInput("a text to compare with cannot contain the character NUL")
    if value is None or isinstance(value, str | bool | date):
        return value
    if isinstance(value, Decimal) and value.is_finite() and _fits(value):
        exact = value.quantize(Decimal(1).scaleb(-_DIGITS), context=_EXACTLY)
        if exact == value:
            # 1.50 and 1.5 are one value, and so are 0 and -0
            return _EXACTLY.add(value.normalize(_EXACTLY), 0)
    if isinstance(value, int) and _SMALLEST_WHOLE <= value <= _LARGEST_WHOLE:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) <= _EXACT else value
    raise InvalidInput(
        "a value must be text, a whole number of at most 64 bits, a finite number, an exact one of "
        f"at most {_DIGITS} digits and as many decimals, a truth value, a date, a time or None, "
        f"got {value!r:.60}"
    )


def _fits(value: Decimal) -> bool:
    """Whether it has no more digits before the point than a column can have."""
    return not value or value.adjusted() < _DIGITS


def _condition(column: str, wanted: Any) -> Filter:
    if column == _NOT:
        return Not(wanted)
    if column in _JOINTS:
        if not isinstance(wanted, list | tuple):
            raise InvalidInput(f"{column} needs a list of filters, got {type(wanted).__name__}")
        return _JOINTS[column](tuple(wanted))
    if isinstance(wanted, list | tuple | set | frozenset):
        values = sorted(wanted, key=repr) if isinstance(wanted, set | frozenset) else wanted
        return OneOf(column, tuple(value_from_json(value) for value in values))
    if isinstance(wanted, Mapping) and not (len(wanted) == 1 and set(wanted) <= set(_MARKED)):
        if dict(wanted) == {"present": True}:
            return Present(column)
        unknown = set(wanted) - set(_RANGE)
        if unknown or not wanted:
            raise InvalidInput(
                f"a condition on {column} is a value, a list of values, a range "
                f"({', '.join(_RANGE)}) or present, got {', '.join(map(str, wanted)) or 'nothing'}"
            )
        return Between(column, **{name: value_from_json(side) for name, side in wanted.items()})
    return Equals(column, value_from_json(wanted))


def _require_shallow(where: object) -> None:
    """Plain data nests at most twice as deep as a filter: a joint is a table and a list."""
    level: list[Any] = [where]
    depth = 0
    while level:
        depth += 1
        if depth > 2 * DEEPEST + 2:
            raise InvalidInput(_TOO_DEEP)
        nested = [list(x.values()) if isinstance(x, Mapping) else list(x) for x in level]
        level = [y for values in nested for y in values if isinstance(y, Mapping | list | tuple)]


def _require_small(where: Filter) -> None:
    """Parts were checked when they were made, so nothing here nests much deeper than allowed."""
    depths = [depth for _, depth in conditions_of(where)]
    if max(depths) > DEEPEST:
        raise InvalidInput(_TOO_DEEP)
    if len(depths) > MOST_CONDITIONS:
        raise InvalidInput(
            f"a filter has at most {MOST_CONDITIONS} conditions, got {len(depths)}; several values "
            "of one column are one condition: a list of them"
        )


def _parts(parts: object) -> tuple[Filter, ...]:
    if not isinstance(parts, list | tuple) or not parts:
        raise InvalidInput("all_of and any_of need at least one filter each")
    filters = tuple(filter_from(part) for part in parts)
    if any(part is None for part in filters):
        raise InvalidInput("all_of and any_of need filters that say something, got an empty one")
    return tuple(part for part in filters if part is not None)
