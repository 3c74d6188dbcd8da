"""What an expression gives: a column with its kind, its bounds and its labels.

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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from farthing.engine.filters import Filter, columns_of
from farthing.engine.sql.conditions import check_filter
from farthing.engine.where_text.conditions import expression_in
from farthing.engine.where_text.expressions import (
    Call,
    Case,
    Expression,
    Literal,
    Name,
    PerUnit,
    inside,
)
from farthing.errors import InvalidInput, did_you_mean
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
    Schema,
)

#: Whole numbers in arithmetic stay within this: every 64-bit float below it is exact.
LARGEST_WHOLE = 1 << 53
#: Real numbers in arithmetic are 0 or between these in size: no engine over- or underflows.
LARGEST_REAL, SMALLEST_REAL = 1e150, 1e-150
#: Sums per unit of real numbers are taken in units of 10^-6, of numbers of at most this size.
SUM_PLACES, LARGEST_SUMMAND = 6, 1e9
#: The parts of one column's expression, and how deep they nest.
MOST_PARTS, DEEPEST = 300, 24
#: Functions of a column and a value.
_OF_A_LITERAL = ("round", "left", "split", "like")
#: Signs that may stand between the labels of a text.
SEPARATORS = "|,;/:&+#~_- "
_YEARS, _DAYS = 9998, 3_652_058
_LONGEST_TEXT, _MOST_PLACES = 1000, 9

#: What NULL gives: missing, of any kind.
_MISSING = Column("NULL", TEXT)

Rule = Callable[[str, Sequence[Column]], Column]


class ComputedColumns:
    """The columns of a schema, and those that expressions of them compute."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._typed: dict[Expression, Column] = {}
        self._parts = 0

    def expression(self, name: str) -> Expression | None:
        """What computes the column; None if it is stored."""
        if name in self.schema:
            text = self.schema[name].expression
            return None if text is None else expression_in(text)
        try:
            expression = expression_in(name)
        except InvalidInput as error:
            expression, why = Name(name), f"; as an expression: {error}"
            if name.isidentifier() or len(name) > 400:
                why = ""
        else:
            why = ""
        if isinstance(expression, Name):
            declared = ", ".join(self.schema.kinds)
            hint = did_you_mean(name, self.schema.kinds)
            written = f"; a text is written in single quotes: '{name:.20}'" if not hint else ""
            raise InvalidInput(
                f"there is no column {name:.60}; there are {declared:.120}{hint or why or written}"
            )
        return expression

    def column(self, name: str) -> Column:
        """The column of this name: declared, or computed by the expression that the name is."""
        if name in self.schema:
            return self.schema[name]
        expression = self.expression(name)
        assert expression is not None, "only declared columns are stored"
        return replace(self.typed(expression), name=name, expression=str(expression))

    def typed(self, expression: Expression, depth: int = 0) -> Column:
        """What an expression gives, or InvalidInput with the part that cannot be."""
        if expression not in self._typed:
            self._parts = self._parts + 1 if depth else 1
            if depth > DEEPEST or self._parts > MOST_PARTS:
                raise InvalidInput(
                    f"an expression has at most {MOST_PARTS} parts and nests at most {DEEPEST} "
                    "times, got more"
                )
            self._typed[expression] = self._type(expression, depth)
        return self._typed[expression]

    def _type(self, expression: Expression, depth: int) -> Column:
        match expression:
            case Name(column):
                computed = self.expression(column)
                if computed is not None and column not in self.schema:
                    return self.typed(computed, depth + 1)
                return self.schema[column]
            case Literal(value):
                return _literal(value)
            case Call(function, arguments):
                rule = RULES.get(function)
                if rule is None:  # the reader knows the functions; this is for plain data
                    raise InvalidInput(f"there is no function {function!r:.60}")
                literal = arguments[1:] if function in _OF_A_LITERAL else ()
                if not all(isinstance(part, Literal) for part in literal):
                    raise _refuse(str(expression), "after the column, a value must stand here")
                return rule(str(expression), [self.typed(part, depth + 1) for part in arguments])
            case Case(cases, otherwise):
                for where, _ in cases:
                    self._check(where)
                values = [value for _, value in cases]
                values += [] if otherwise is None else [otherwise]
                return _one_of(str(expression), [self.typed(part, depth + 1) for part in values])
            case PerUnit(function, of, where):
                self._check(where)
                given = None if of is None else self.typed(of, depth + 1)
                return _per_unit(str(expression), function, given)

    def _check(self, where: Filter | None) -> None:
        check_filter(where, {name: self.column(name).kind for name in columns_of(where)})

    def splits(self, name: str) -> bool:
        """Whether a row has several labels in this column."""
        match self.expression(name):
            case Call("split"):
                return True
            case None:
                return False
            case expression:
                self._require_whole(expression)
                return False

    def _require_whole(self, expression: Expression) -> None:
        """Nothing is computed from labels that were split."""
        for part in inside(expression):
            named = isinstance(part, Name) and self.expression(part.column)
            found = named if named else part
            if isinstance(found, Call) and found.function == "split":
                raise InvalidInput("split(…) gives labels to group or filter by, and nothing else")
            if not isinstance(found, Name):
                self._require_whole(found)

    def is_per_unit(self, name: str) -> bool:
        """Whether the column has one value for each unit, by what computes it."""
        expression = self.expression(name)
        return expression is not None and self._one_value(expression)

    def _one_value(self, expression: Expression) -> bool:
        match expression:
            case PerUnit():
                return True
            case Name(column):
                return self.is_per_unit(column)
        return all(map(self._one_value, inside(expression)))

    def stored(self, names: Iterable[str]) -> frozenset[str]:
        """The stored columns that these are computed from."""
        found: set[str] = set()
        waiting: list[Expression] = [Name(name) for name in names]
        while waiting:
            expression = waiting.pop()
            if isinstance(expression, Name):
                computed = self.expression(expression.column)
                if computed is None:
                    found.add(expression.column)
                else:
                    waiting.append(computed)
            else:
                waiting += inside(expression)
        return frozenset(found)


def spelled(schema: Schema, name: str) -> str:
    """A name, or the one spelling of an expression."""
    if name in schema:
        return name
    expression = ComputedColumns(schema).expression(name)
    return str(expression)


def with_computed(schema: Schema, names: Collection[str]) -> Schema:
    """The schema, and the columns among these names that are expressions."""
    computed = ComputedColumns(schema)
    missing = sorted({name for name in names if name not in schema})
    if sum(map(computed.splits, {*names})) > 1:
        raise InvalidInput("a question splits one text into labels, got several")
    return Schema((*schema.columns, *map(computed.column, missing))) if missing else schema


def _literal(value: object) -> Column:
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


def _refuse(text: str, why: str) -> InvalidInput:
    return InvalidInput(f"{text:.90}: {why}")


def _bounds(text: str, column: Column) -> tuple[float, float]:
    """The declared bounds of a number in arithmetic."""
    if column.kind not in NUMBERS:
        raise _refuse(text, f"arithmetic is for numbers, but {column.name:.60} is {column.kind}")
    if column.lower is None or column.upper is None:
        raise _refuse(
            text,
            f"{column.name:.60} needs bounds: the owner declares lower and upper, or write "
            f"greatest(least({column.name:.60}, 100), 0)",
        )
    largest = LARGEST_WHOLE if column.kind == INTEGER else LARGEST_REAL
    if max(abs(column.lower), abs(column.upper)) > largest:
        raise _refuse(text, f"numbers in arithmetic are at most {largest:g} in size")
    if column.kind == INTEGER:  # what a whole number can be within the bounds
        return math.ceil(column.lower), math.floor(column.upper)
    return column.lower, column.upper


def _number(text: str, whole: bool, bounds: Sequence[float]) -> Column:
    """A number with these bounds; whole if it surely fits."""
    low, high = min(bounds), max(bounds)
    if whole and max(abs(low), abs(high)) <= LARGEST_WHOLE:
        return Column(text, INTEGER, lower=int(low), upper=int(high))
    if max(abs(low), abs(high)) > LARGEST_REAL:
        raise _refuse(text, f"the result could be above {LARGEST_REAL:g} in size")
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
        raise _refuse(text, "this is for numbers of at most 2^52 in size; their bounds are wider")
    return _number(text, True, [low, high])


def _extreme(pick: Callable[[Iterable[float]], float]) -> Rule:
    """The least or the greatest: one argument with a bound on the near side is enough."""

    def bound(of_each: Sequence[float | None], *, every: bool) -> float | None:
        known = [value for value in of_each if value is not None]
        enough = len(known) == len(of_each) if every else known
        return pick(known) if enough else None

    def rule(text: str, given: Sequence[Column]) -> Column:
        joint = _one_of(text, given)
        if joint.kind not in NUMBERS:
            raise _refuse(text, f"this is for numbers, got {joint.kind}")
        lower = bound([column.lower for column in given], every=pick is min)
        upper = bound([column.upper for column in given], every=pick is max)
        return replace(joint, lower=lower, upper=upper)

    return rule


def _one_of(text: str, given: Sequence[Column]) -> Column:
    """One of several: of one kind, with all of their bounds and labels."""
    known = [column for column in given if column is not _MISSING]
    if not known:
        raise _refuse(text, "this is always missing")
    kinds = {column.kind for column in known}
    if kinds <= set(NUMBERS):
        kind = INTEGER if kinds == {INTEGER} else REAL
        lows, highs = [c.lower for c in known], [c.upper for c in known]
        lower = None if None in lows else min(low for low in lows if low is not None)
        upper = None if None in highs else max(high for high in highs if high is not None)
        categories = _labels(known) if kind == INTEGER else None
        return Column(text, kind, lower=lower, upper=upper, categories=categories)
    if len(kinds) > 1:
        raise _refuse(text, f"these are of different kinds: {', '.join(sorted(kinds))}")
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
        raise _refuse(text, f"{left.kind} cannot be compared with {right.kind}")
    return Column(text, BOOLEAN)


def _ordered(text: str, given: Sequence[Column]) -> Column:
    if BOOLEAN in (column.kind for column in given):
        raise _refuse(text, "truth values have no order")
    return _compared(text, given)


def _like(text: str, given: Sequence[Column]) -> Column:
    column, pattern = _two(text, given)
    said = _exact_text(text, pattern)
    _require(text, column, TEXT)
    if "\\" in said or len(said) > _LONGEST_TEXT:
        raise _refuse(text, "a pattern has % and _, no backslash, and at most 1000 characters")
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
        raise _refuse(text, "the length is at least 1")
    return Column(text, TEXT, categories=_changed(column, lambda label: label[:most]))


def _split(text: str, given: Sequence[Column]) -> Column:
    column, separator = _two(text, given)
    _require(text, column, TEXT)
    said = _exact_text(text, separator)
    if not 1 <= len(said) <= 3 or set(said) - set(SEPARATORS):
        raise _refuse(text, f"labels are separated by 1 to 3 of the characters {SEPARATORS!r}")
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


def _per_unit(text: str, function: str, of: Column | None) -> Column:
    if of is None or function in ("count", "count_distinct"):
        if function == "count_distinct" and of is not None:
            _require(text, of, *KEYS)
        return Column(text, INTEGER, lower=0)
    if function in ("min", "max"):
        if of.kind == BOOLEAN:
            raise _refuse(text, "truth values have no order; write per_unit(any(…))")
        return replace(of, name=text, expression=None, parts=None, lookup=None)
    low, high = _bounds(text, of)
    if of.kind != INTEGER and max(abs(low), abs(high)) > LARGEST_SUMMAND:
        raise _refuse(text, f"per unit, numbers of at most {LARGEST_SUMMAND:g} in size are added")
    if function == "avg":
        return Column(text, REAL, lower=float(low), upper=float(high))
    kind = INTEGER if of.kind == INTEGER else REAL
    return Column(text, kind, lower=0 if low >= 0 else None, upper=0 if high <= 0 else None)


def _two(text: str, given: Sequence[Column]) -> tuple[Column, Column]:
    if len(given) != 2:
        raise _refuse(text, f"this takes 2 arguments, got {len(given)}")
    return given[0], given[1]


def _only(text: str, given: Sequence[Column]) -> Column:
    if len(given) != 1:
        raise _refuse(text, f"this takes 1 argument, got {len(given)}")
    return given[0]


def _require(text: str, column: Column, *kinds: str) -> None:
    if column.kind not in kinds:
        raise _refuse(
            text, f"this is for {' or '.join(kinds)}, but {column.name:.60} is {column.kind}"
        )


def _exact_text(text: str, column: Column) -> str:
    if column.kind != TEXT or column.categories is None or len(column.categories) != 1:
        raise _refuse(text, "a text in single quotes must stand here")
    return str(column.categories[0])


def _exact_number(text: str, column: Column, most: int) -> int:
    if column.kind != INTEGER or column.lower != column.upper or column.lower is None:
        raise _refuse(text, "a whole number must stand here")
    if not 0 <= column.lower <= most:
        raise _refuse(text, f"the number is from 0 to {most}")
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
    "coalesce": _one_of,
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
