"""Filters as SQL; `conditions.filter_in` reads the same filter back."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import sqlglot
from sqlglot import TokenType
from sqlglot.errors import SqlglotError

from farthing.engine.filters import AllOf, AnyOf, Between, Equals, Filter, Not, OneOf, Present
from farthing.schema import Value

_SIGNS = {"at_least": ">=", "above": ">", "at_most": "<=", "below": "<"}
#: Words that mean something to us where they stand.
_OUR_WORDS = ("NONE", "OPTIONS")


class Spelled(str):
    """The text of an expression in its one spelling: the name of the column that it computes."""

    __slots__ = ()


def condition_in_sql(where: Filter) -> str:
    """The filter as a condition."""
    match where:
        case Equals(column, None):
            return f"{column_in_sql(column)} IS NULL"
        case Equals(Spelled() as column, True):
            return column_in_sql(column)
        case Equals(column, value):
            return f"{column_in_sql(column)} = {value_in_sql(value)}"
        case Not(Equals(column, value)) if value is not None:
            return f"{column_in_sql(column)} <> {value_in_sql(value)}"
        case Present(column):
            return f"{column_in_sql(column)} IS NOT NULL"
        case OneOf(column, values):
            known = f"{column_in_sql(column)} IN {_listed(values)}"
            return f"{column_in_sql(column)} IS NULL OR {known}" if None in values else known
        case Not(OneOf(column, values)) if None not in values:
            return f"{column_in_sql(column)} NOT IN {_listed(values)}"
        case Between(column, at_least=low, at_most=high) if low is not None and high is not None:
            return f"{column_in_sql(column)} BETWEEN {value_in_sql(low)} AND {value_in_sql(high)}"
        case Between(column):
            sides = (
                f"{column_in_sql(column)} {_SIGNS[side]} {value_in_sql(value)}"
                for side, value in where.sides
            )
            return " AND ".join(sides)
        case AllOf(parts):
            return " AND ".join(map(part_in_sql, parts))
        case AnyOf(parts):
            return " OR ".join(map(part_in_sql, parts))
        case Not(part):
            return f"NOT ({condition_in_sql(part)})"


def part_in_sql(where: Filter) -> str:
    """A filter among others: in brackets where it would be read together with its neighbours."""
    match where:
        case AllOf() | AnyOf() | Equals(value=None):
            return f"({condition_in_sql(where)})"
        case OneOf(values=values) if None in values:
            return f"({condition_in_sql(where)})"
        case Between(at_least=low, at_most=high) if low is None or high is None:
            return f"({condition_in_sql(where)})"
    return condition_in_sql(where)


def column_in_sql(column: str) -> str:
    """A column of a filter: its name, or the expression that computes it."""
    return f"({column})" if isinstance(column, Spelled) else name_in_sql(column)


def name_in_sql(name: str) -> str:
    """A name; in double quotes unless it is a plain word."""
    try:
        tokens = sqlglot.tokenize(name)
    except SqlglotError:
        tokens = []
    word = len(tokens) == 1 and tokens[0].token_type == TokenType.VAR and tokens[0].text == name
    if word and name.isidentifier() and name.isascii() and name.upper() not in _OUR_WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def value_in_sql(value: Value) -> str:
    """A value as a literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return repr(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            return f"TIMESTAMP '{value}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return "'" + value.replace("'", "''") + "'"


def _listed(values: tuple[Value, ...]) -> str:
    return f"({', '.join(value_in_sql(value) for value in values if value is not None)})"
