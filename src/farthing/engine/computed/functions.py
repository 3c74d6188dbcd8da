"""Aggregates of a unit's own rows: `data.per_unit(visits=fa.rows(), first=fa.min("day"))`.

A column in them is a name or an expression; `where` is a condition on the rows, as text or plain
data. They are texts, and can stand wherever a column can.
"""

from __future__ import annotations

from typing import Any

from farthing.engine.where_text.conditions import expression_in, where_from
from farthing.engine.where_text.expressions import Expression, Literal, PerUnit
from farthing.engine.where_text.writing import name_in_sql


def rows(where: Any = None) -> str:
    """How many rows the unit has."""
    return str(PerUnit("count", None, where_from(where)))


def min(column: str, where: Any = None) -> str:  # noqa: A001 # `fa.min` is meant
    """The least value of the unit: its first day, its smallest order."""
    return _of("min", column, where)


def max(column: str, where: Any = None) -> str:  # noqa: A001 # `fa.max` is meant
    """The largest value of the unit."""
    return _of("max", column, where)


def sum(column: str, where: Any = None) -> str:  # noqa: A001 # `fa.sum` is meant
    """The sum of the unit's values."""
    return _of("sum", column, where)


def mean(column: str, where: Any = None) -> str:
    """The mean of the unit's values."""
    return _of("avg", column, where)


def distinct(column: str, where: Any = None) -> str:
    """How many different values the unit has."""
    return _of("count_distinct", column, where)


def any(where: Any) -> str:  # noqa: A001 # `fa.any` is meant
    """Whether a condition held in one of the unit's rows."""
    return f"{rows(where)} > 0"


def _of(function: str, column: str, where: Any) -> str:
    return str(PerUnit(function, _column(column), where_from(where)))


def _column(text: str) -> Expression:
    """A name that is no expression is the name of a column."""
    try:
        expression = expression_in(text)
    except ValueError:
        expression = None
    if expression is None or isinstance(expression, Literal):
        return expression_in(name_in_sql(text))
    return expression
