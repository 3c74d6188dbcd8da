"""What each function gives: a column with its kind, its bounds and its labels.

Only the schema is looked at. Bounds follow by interval arithmetic, so that no sum or product leaves
what an engine can hold. In arithmetic a number outside its declared bounds counts as the nearest
bound, and a real number below 10^-150 in size counts as 0.

    + - * /  abs floor round              numbers with bounds; a division by 0 is missing
    = <> < <= > >=                        two columns of one kind
    least greatest coalesce case          of one kind; least and greatest of a missing one: missing
    like lower upper left split           text; lower and upper change the letters A to Z alone
    weekday hour_of_day day_of_month month_of_year quarter_of_year calendar_year
    days(a, b)  age(birth, at)            days from b to a; whole years
    per_unit(count | min | max | sum | avg | any …)    of all rows of the unit
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from farthing.errors import InvalidInput
from farthing.schema import (
    BOOLEAN,
    DATE,
    INTEGER,
    KEYS,
    NUMBERS,
    REAL,
    TEXT,
    TIMESTAMP,
    Column,
)

#: Whole numbers in arithmetic stay within this: every 64-bit float below it is exact.
LARGEST_WHOLE = 1 << 53
#: Real numbers in arithmetic are 0 or between these in size: no engine over- or underflows.
LARGEST_REAL, SMALLEST_REAL = 1e150, 1e-150
#: Sums per unit of real numbers are taken in units of 10^-6, of numbers of at most this size.
SUM_PLACES, LARGEST_SUMMAND = 6, 1e9
#: Signs that may stand between the labels of a text.
SEPARATORS = "|,;/:&+#~_- "
_YEARS, _DAYS = 9998, 3_652_058
_LONGEST_TEXT, _MOST_PLACES = 1000, 9

#: What NULL gives: missing, of any kind.
_MISSING = Column("NULL", TEXT)

Rule = Callable[[str, Sequence[Column]], Column]


def literal(value: object) -> Column:
    match value:
        case None:
            return _MISSING
        case bool():
            return Column("value", BOOLEAN)
        case int():
            return Column("value", INTEGER, lower=value, upper=value)
        case float() | Decimal():
            return Column("value", REAL, lower=float(value), upper=float(value))
        case datetime():
            return Column("value", TIMESTAMP)
        case date():
            return Column("value", DATE)
    return Column("value", TEXT, categories=(str(value),))


def refused(text: str, why: str) -> InvalidInput:
    return InvalidInput(f"{text:.90}: {why}")


def _bounds(text: str, column: Column) -> tuple[float, float]:
    """The declared bounds of a number in arithmetic."""
    if column.kind not in NUMBERS:
        raise refused(text, f"arithmetic is for numbers, but {column.name:.60} is {column.kind}")
    if column.lower is None or column.upper is None:
        raise refused(
            text,
            f"{column.name:.60} needs bounds: the owner declares lower and upper, or write "
            f"greatest(least({column.name:.60}, 100), 0)",
        )
    largest = LARGEST_WHOLE if column.kind == INTEGER else LARGEST_REAL
    if max(abs(column.lower), abs(column.upper)) > largest:
        raise refused(text, f"numbers in arithmetic are at most {largest:g} in size")
    if column.kind == INTEGER:  # what a whole number can be within the bounds
        return math.ceil(column.lower), math.floor(column.upper)
    return column.lower, column.upper


def _number(text: str, whole: bool, bounds: Sequence[float]) -> Column:
    """A number with these bounds; whole if it surely fits."""
    low, high = min(bounds), max(bounds)
    if whole and max(abs(low), abs(high)) <= LARGEST_WHOLE:
        return Column(text, INTEGER, lower=int(low), upper=int(high))
    if max(abs(low), abs(high)) > LARGEST_REAL:
        raise refused(text, f"the result could be above {LARGEST_REAL:g} in size")
    return Column(text, REAL, lower=float(low), upper=float(high))


def _arithmetic(combine: Callable[[float, float], float]) -> Rule:
    def rule(text: str, given: Sequence[Column]) -> Column:
        left, right = _two(text, given)
        (a, b), (c, d) = _bounds(text, left), _bounds(text, right)
        corners = [combine(x, y) for x in (a, b) for y in (c, d)]
        return _number(text, left.kind == right.kind == INTEGER, corners)

    return rule


def _subtract(text: str, given: Sequence[Column]) -> Column:
    if [column.kind for column in given] == [DATE, DATE]:
        return _days(text, given)
    return _arithmetic(lambda x, y: x - y)(text, given)


def _divide(text: str, given: Sequence[Column]) -> Column:
    """Real, and without bounds if the divisor can be near 0."""
    left, right = _two(text, given)
    (a, b), (c, d) = _bounds(text, left), _bounds(text, right)
    if c < SMALLEST_REAL and d > -SMALLEST_REAL:
        return Column(text, REAL)
    return _number(text, False, [float(x) / float(y) for x in (a, b) for y in (c, d)])


def _abs(text: str, given: Sequence[Column]) -> Column:
    low, high = _bounds(text, _only(text, given))
    return _number(text, given[0].kind == INTEGER, [max(low, -high, 0), max(high, -low)])


def _floor(text: str, given: Sequence[Column]) -> Column:
    low, high = _bounds(text, _only(text, given))
    return _whole(text, math.floor(low), math.floor(high))


def _round(text: str, given: Sequence[Column]) -> Column:
    """To the nearest, half up; with one argument a whole number."""
    low, high = _bounds(text, given[0])
    if len(given) == 1:
        return _whole(text, math.floor(low + 0.5), math.floor(high + 0.5))
    places = _exact_number(text, _two(text, given)[1], _MOST_PLACES)
    _whole(text, low * 10**places, high * 10**places)
    return _number(
        text, False, [math.floor(x * 10**places + 0.5) / 10**places for x in (low, high)]
    )


def _whole(text: str, low: float, high: float) -> Column:
    if max(abs(low), abs(high)) > LARGEST_WHOLE // 2:
        raise refused(text, "this is for numbers of at most 2^52 in size; their bounds are wider")
    return _number(text, True, [low, high])


def _extreme(pick: Callable[[Iterable[float]], float]) -> Rule:
    """The least or the greatest: one argument with a bound on the near side is enough."""

    def bound(of_each: Sequence[float | None], *, every: bool) -> float | None:
        known = [value for value in of_each if value is not None]
        enough = len(known) == len(of_each) if every else known
        return pick(known) if enough else None

    def rule(text: str, given: Sequence[Column]) -> Column:
        joint = one_of(text, given)
        if joint.kind not in NUMBERS:
            raise refused(text, f"this is for numbers, got {joint.kind}")
        lower = bound([column.lower for column in given], every=pick is min)
        upper = bound([column.upper for column in given], every=pick is max)
        return replace(joint, lower=lower, upper=upper)

    return rule


def one_of(text: str, given: Sequence[Column]) -> Column:
    """One of several: of one kind, with all of their bounds and labels."""
    known = [column for column in given if column is not _MISSING]
    if not known:
        raise refused(text, "this is always missing")
    kinds = {column.kind for column in known}
    if kinds <= set(NUMBERS):
        kind = INTEGER if kinds == {INTEGER} else REAL
        lows, highs = [c.lower for c in known], [c.upper for c in known]
        lower = None if None in lows else min(low for low in lows if low is not None)
        upper = None if None in highs else max(high for high in highs if high is not None)
        categories = _labels(known) if kind == INTEGER else None
        return Column(text, kind, lower=lower, upper=upper, categories=categories)
    if len(kinds) > 1:
        raise refused(text, f"these are of different kinds: {', '.join(sorted(kinds))}")
    return Column(text, known[0].kind, categories=_labels(known))


def _labels(given: Sequence[Column]) -> tuple[str | int, ...] | None:
    """Every label that one of them has, if all are known."""
    labels: dict[str | int, None] = {}
    for column in given:
        single = column.kind == INTEGER and column.lower == column.upper is not None
        known = column.categories or ((int(column.lower or 0),) if single else None)
        if known is None:
            return None
        labels.update(dict.fromkeys(known))
    return tuple(labels)


def _compared(text: str, given: Sequence[Column]) -> Column:
    left, right = _two(text, given)
    if not (left.kind == right.kind or {left.kind, right.kind} <= set(NUMBERS)):
        raise refused(text, f"{left.kind} cannot be compared with {right.kind}")
    return Column(text, BOOLEAN)


def _ordered(text: str, given: Sequence[Column]) -> Column:
    if BOOLEAN in (column.kind for column in given):
        raise refused(text, "truth values have no order")
    return _compared(text, given)


def _like(text: str, given: Sequence[Column]) -> Column:
    column, pattern = _two(text, given)
    said = _exact_text(text, pattern)
    _require(text, column, TEXT)
    if "\\" in said or len(said) > _LONGEST_TEXT:
        raise refused(text, "a pattern has % and _, no backslash, and at most 1000 characters")
    return Column(text, BOOLEAN)


def _respelled(change: Callable[[str], str]) -> Rule:
    def rule(text: str, given: Sequence[Column]) -> Column:
        column = _only(text, given)
        _require(text, column, TEXT)
        return Column(text, TEXT, categories=_changed(column, change))

    return rule


def _changed(column: Column, change: Callable[[str], str]) -> tuple[str, ...] | None:
    known = column.categories
    return None if known is None else tuple(dict.fromkeys(change(str(label)) for label in known))


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LOWER = str.maketrans(LETTERS, LETTERS.lower())
UPPER = str.maketrans(LETTERS.lower(), LETTERS)


def _left(text: str, given: Sequence[Column]) -> Column:
    column, length = _two(text, given)
    _require(text, column, TEXT)
    most = _exact_number(text, length, _LONGEST_TEXT)
    if most < 1:
        raise refused(text, "the length is at least 1")
    return Column(text, TEXT, categories=_changed(column, lambda label: label[:most]))


def _split(text: str, given: Sequence[Column]) -> Column:
    column, separator = _two(text, given)
    _require(text, column, TEXT)
    said = _exact_text(text, separator)
    if not 1 <= len(said) <= 3 or set(said) - set(SEPARATORS):
        raise refused(text, f"labels are separated by 1 to 3 of the characters {SEPARATORS!r}")
    return Column(text, TEXT)


def _part_of_time(low: int, high: int, *kinds: str) -> Rule:
    def rule(text: str, given: Sequence[Column]) -> Column:
        _require(text, _only(text, given), *kinds)
        few = tuple(range(low, high + 1)) if high < 100 else None
        return Column(text, INTEGER, lower=low, upper=high, categories=few)

    return rule


def _days(text: str, given: Sequence[Column]) -> Column:
    for column in _two(text, given):
        _require(text, column, DATE)
    return Column(text, INTEGER, lower=-_DAYS, upper=_DAYS)


def _age(text: str, given: Sequence[Column]) -> Column:
    return replace(_days(text, given), lower=-_YEARS, upper=_YEARS)


def of_unit(text: str, function: str, of: Column | None) -> Column:
    if of is None or function in ("count", "count_distinct"):
        if function == "count_distinct" and of is not None:
            _require(text, of, *KEYS)
        return Column(text, INTEGER, lower=0)
    if function in ("min", "max"):
        if of.kind == BOOLEAN:
            raise refused(text, "truth values have no order; write per_unit(any(…))")
        return replace(of, name=text, expression=None, parts=None, lookup=None)
    low, high = _bounds(text, of)
    if of.kind != INTEGER and max(abs(low), abs(high)) > LARGEST_SUMMAND:
        raise refused(text, f"per unit, numbers of at most {LARGEST_SUMMAND:g} in size are added")
    if function == "avg":
        return Column(text, REAL, lower=float(low), upper=float(high))
    kind = INTEGER if of.kind == INTEGER else REAL
    return Column(text, kind, lower=0 if low >= 0 else None, upper=0 if high <= 0 else None)


def _two(text: str, given: Sequence[Column]) -> tuple[Column, Column]:
    if len(given) != 2:
        raise refused(text, f"this takes 2 arguments, got {len(given)}")
    return given[0], given[1]


def _only(text: str, given: Sequence[Column]) -> Column:
    if len(given) != 1:
        raise refused(text, f"this takes 1 argument, got {len(given)}")
    return given[0]


def _require(text: str, column: Column, *kinds: str) -> None:
    if column.kind not in kinds:
        raise refused(
            text, f"this is for {' or '.join(kinds)}, but {column.name:.60} is {column.kind}"
        )


def _exact_text(text: str, column: Column) -> str:
    if column.kind != TEXT or column.categories is None or len(column.categories) != 1:
        raise refused(text, "a text in single quotes must stand here")
    return str(column.categories[0])


def _exact_number(text: str, column: Column, most: int) -> int:
    if column.kind != INTEGER or column.lower != column.upper or column.lower is None:
        raise refused(text, "a whole number must stand here")
    if not 0 <= column.lower <= most:
        raise refused(text, f"the number is from 0 to {most}")
    return int(column.lower)


RULES: Mapping[str, Rule] = {
    "add": _arithmetic(lambda x, y: x + y),
    "subtract": _subtract,
    "multiply": _arithmetic(lambda x, y: x * y),
    "divide": _divide,
    "abs": _abs,
    "floor": _floor,
    "round": _round,
    "least": _extreme(min),
    "greatest": _extreme(max),
    "coalesce": one_of,
    "equal": _compared,
    "unequal": _compared,
    "below": _ordered,
    "at_most": _ordered,
    "above": _ordered,
    "at_least": _ordered,
    "like": _like,
    "lower": _respelled(lambda label: label.translate(LOWER)),
    "upper": _respelled(lambda label: label.translate(UPPER)),
    "left": _left,
    "split": _split,
    "weekday": _part_of_time(1, 7, DATE, TIMESTAMP),
    "hour_of_day": _part_of_time(0, 23, TIMESTAMP),
    "day_of_month": _part_of_time(1, 31, DATE, TIMESTAMP),
    "month_of_year": _part_of_time(1, 12, DATE, TIMESTAMP),
    "quarter_of_year": _part_of_time(1, 4, DATE, TIMESTAMP),
    "calendar_year": _part_of_time(1, 9999, DATE, TIMESTAMP),
    "days": _days,
    "age": _age,
}
