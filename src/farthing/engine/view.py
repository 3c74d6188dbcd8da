"""What a SELECT computes from released numbers: columns, HAVING, ORDER BY and LIMIT.

All of it is post-processing, and costs nothing. Rows that were chosen by their numbers were chosen
by their noise too, so their intervals are those that hold for all rows together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import add, ge, gt, le, lt, mul, sub, truediv
from typing import Any, TypeAlias

from farthing.engine.arithmetic import Number, total
from farthing.engine.where_text.expressions import Call, Expression, Literal, Name

#: The numbers of one row by name, and the parts of its label under their places.
Row: TypeAlias = Mapping[str | int, Any]

#: Functions of released numbers that only a view has: the sum over all rows, a part of the label.
TOTAL, KEY = "total", "key"
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": add,
    "subtract": sub,
    "multiply": mul,
    "divide": truediv,
}
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: bool(a == b),
    "unequal": lambda a, b: bool(a != b),
    "below": lt,
    "at_most": le,
    "above": gt,
    "at_least": ge,
}


@dataclass(frozen=True, slots=True)
class View:
    """Columns by name, each computed from answers of a batch by their names; which rows are shown,
    in which order (each with whether it descends), and how many."""

    columns: Mapping[str, Expression]
    having: Expression | None = None
    order: tuple[tuple[Expression, bool], ...] = ()
    limit: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is nothing but answers under their own names."""
        alone = all(column == Name(name) for name, column in self.columns.items())
        return alone and self.having is None and not self.order and self.limit is None

    @property
    def chooses(self) -> bool:
        """Whether which rows are shown depends on released numbers."""
        ordered = [by for by, _ in self.order] if self.limit is not None else []
        parts = [*ordered, *([] if self.having is None else [self.having])]
        return any(isinstance(inner, Name) for part in parts for inner in _inside(part))

    def chosen(self, rows: Sequence[Row]) -> list[int]:
        """The places of the rows that are shown, in their order."""
        work = Evaluation(rows)
        shown = [i for i in range(len(rows)) if self.having is None or work.holds(self.having, i)]
        for by, descends in reversed(self.order):
            values = {i: _comparable(work.of(by, i)) for i in shown}
            present = sorted(
                (i for i in shown if values[i] is not None),
                key=lambda i: values[i],  # sorted here and now
                reverse=descends,
            )
            shown = [*present, *(i for i in shown if values[i] is None)]
        return shown if self.limit is None else shown[: self.limit]


class Evaluation:
    """Expressions of released numbers, over all rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._totals: dict[Expression, Number] = {}

    def of(self, expression: Expression, row: int) -> Any:
        """A number, a part of the label, or None where there is none."""
        match expression:
            case Name(column):
                return self._rows[row].get(column)
            case Literal(value):
                return value
            case Call("key", (Literal(int(place)),)):
                return self._rows[row].get(place)
            case Call("total", (part,)):
                return self._total(part)
            case Call(function, arguments):
                given = [_number(self.of(part, row)) for part in arguments]
                found = [one for one in given if one is not None]
                return _computed(function, found) if len(found) == len(given) else None
        raise AssertionError(expression)

    def holds(self, condition: Expression, row: int) -> bool:
        """Whether a condition holds; of what is missing it does not."""
        return self._truth(condition, row) is True

    def _truth(self, condition: Expression, row: int) -> bool | None:
        assert isinstance(condition, Call)
        function, arguments = condition.function, condition.arguments
        if function in ("and", "or"):
            truths = [self._truth(part, row) for part in arguments]
            decisive = function == "or"
            return decisive if decisive in truths else (None if None in truths else not decisive)
        if function == "not":
            truth = self._truth(arguments[0], row)
            return None if truth is None else not truth
        values = [_comparable(self.of(part, row)) for part in arguments]
        if function == "missing":
            return values[0] is None
        if None in values:
            return None
        try:
            return _COMPARED[function](*values)
        except TypeError:  # a text and a number
            return None

    def _total(self, part: Expression) -> Number:
        if part not in self._totals:
            found = (_number(self.of(part, row)) for row in range(len(self._rows)))
            self._totals[part] = total(one for one in found if one is not None)
        return self._totals[part]


def _computed(function: str, given: Sequence[Number]) -> Number | None:
    """The functions of released numbers."""
    if function in _ARITHMETIC:
        found: Number | None = _ARITHMETIC[function](*given)
        return found
    first, *others = given
    constants = [int(other.value) for other in others]
    if function == "round":
        places = constants[0] if constants else 0
        return first.mapped(lambda value: _rounded(value, places))
    assert function == "abs"

    def at(confidence: float) -> tuple[float, float]:
        low, high = first.interval(confidence)
        return max(low, -high, 0.0), max(-low, high)

    return Number.ranged(abs(first.value), at, (), first)


def _rounded(value: float, places: int) -> float:
    """Half up, as in a computed column."""
    scale = 10.0**places
    moved = value * scale
    return math.floor(moved + 0.5) / scale if math.isfinite(moved) else value


def _number(value: Any) -> Number | None:
    """A number to compute with; a constant, if it was not released."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Number(float(value))
    return value if isinstance(value, Number) else None


def _comparable(value: Any) -> Any:
    return value.value if isinstance(value, Number) else value


def _inside(expression: Expression) -> Iterator[Expression]:
    """This expression, and all that it is made from."""
    yield expression
    if isinstance(expression, Call):
        for part in expression.arguments:
            yield from _inside(part)
