"""Values that a text computes from values: 0.06 - 0.01, DATE '1998-12-01' - INTERVAL '90' DAY.

Numbers are added, subtracted and multiplied exactly, as decimals. A month after 31 January is the
last day of February, as in every engine.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, Underflow

from sqlglot import expressions as sge

from farthing.errors import InvalidInput

#: Digits of a number on the way; one that needs more is refused, not rounded.
_EXACT = Context(prec=400, traps=[Inexact, InvalidOperation, Overflow, Underflow])
_METHODS: dict[type[sge.Expr], Callable[[Decimal, Decimal], Decimal]] = {
    sge.Add: _EXACT.add,
    sge.Sub: _EXACT.subtract,
    sge.Mul: _EXACT.multiply,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600}
_DAYS = {"DAY": 1, "WEEK": 7}


def is_constant(node: sge.Expr) -> bool:
    """Whether a part of the text is a value, or computed from values alone."""
    node = node.unnest()
    match node:
        case sge.Add() | sge.Sub() | sge.Mul():
            return is_constant(node.this) and is_constant(node.expression)
        case sge.Neg():
            return is_constant(node.this)
        case sge.Cast():
            return isinstance(node.this, sge.Literal)
    return isinstance(node, sge.Literal | sge.Boolean | sge.Null | sge.Interval)


def combined(node: sge.Expr, left: object, right: object) -> str:
    """The digits of what two numbers give; InvalidInput if they are none, or need too many."""
    numbers = [Decimal(str(one)) for one in (left, right) if _is_number(one)]
    if len(numbers) != 2:
        raise InvalidInput("numbers are added to numbers, and intervals to dates")
    try:
        return f"{_METHODS[type(node)](*numbers):f}"
    except ArithmeticError:
        raise InvalidInput("this number has too many digits") from None


def moved(node: sge.Expr, moment: object, interval: sge.Interval) -> date:
    """A date or a time, so much later or earlier."""
    amount, unit = interval.args.get("this"), interval.args.get("unit")
    text = amount.name if isinstance(amount, sge.Literal) else ""
    size, word = text.removeprefix("-"), "" if unit is None else unit.name.upper().removesuffix("S")
    if not isinstance(moment, date) or not isinstance(node, sge.Add | sge.Sub):
        raise InvalidInput("an interval is added to a date: DATE '2024-01-31' + INTERVAL '1' MONTH")
    units = _MONTHS | _DAYS | (_SECONDS if isinstance(moment, datetime) else {})
    if not (size.isascii() and size.isdigit() and len(size) < 13) or word not in units:
        raise InvalidInput(f"an interval is a whole number of {', '.join(units)}")
    number = int(text) if isinstance(node, sge.Add) else -int(text)
    try:
        if word in _MONTHS:
            return _months_later(moment, number * _MONTHS[word])
        if word in _DAYS:
            return moment + timedelta(days=number * _DAYS[word])
        return moment + timedelta(seconds=number * _SECONDS[word])
    except (OverflowError, ValueError):
        raise InvalidInput("dates are in the years 1 to 9999") from None


def _months_later(moment: date, months: int) -> date:
    """So many months later; the last day of a month that is shorter."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = monthrange(year, month + 1)[1] if 1 <= year <= 9999 else 31
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
