"""What GROUP BY may hold: a column, DATE_TRUNC('month', column), BINS(column, 0, 10, 20).

BINS is our word: no function of SQL gives a number the label of its range.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import expressions as sge

from farthing.engine.keys import PERIODS, Bins, Key, Period, column_of, key_from
from farthing.engine.where_text.parsing import SqlText
from farthing.engine.where_text.reading import ConditionReader
from farthing.engine.where_text.writing import name_in_sql

_BINS = "BINS"


def key_of(node: sge.Expr, sql: SqlText, reader: ConditionReader) -> Key:
    """The key that an expression says."""
    match node:
        case sge.Paren():
            return key_of(node.this, sql, reader)
        case sge.Column():
            return key_from({"column": reader.column(node)})
        case sge.DateTrunc() | sge.TimestampTrunc():
            column, unit = sql.arguments(node, "this", "unit")
            if unit.name.lower() not in PERIODS:
                raise sql.refused(node, f"the periods are {', '.join(PERIODS)}")
            return Period(reader.column(column), unit.name.lower())
        case sge.Anonymous(this=name, expressions=[column, *edges]) if name.upper() == _BINS:
            return Bins(reader.column(column), tuple(_number(e, sql, reader) for e in edges))
    raise sql.refused(
        node, "groups are columns, DATE_TRUNC('month', column) or BINS(column, 0, 10, 20)"
    )


def is_key(node: sge.Expr) -> bool:
    """Whether this could be a key, so that an error is about keys."""
    ours = isinstance(node, sge.Anonymous) and node.name.upper() == _BINS
    return ours or isinstance(node, sge.Column | sge.DateTrunc | sge.TimestampTrunc)


def key_in_sql(key: Key) -> str:
    """The key as an expression."""
    match key:
        case Period(column, period):
            return f"DATE_TRUNC('{period}', {name_in_sql(column)})"
        case Bins(column, edges):
            numbers = (repr(edge if abs(edge) < 2**53 else float(edge)) for edge in edges)
            return f"{_BINS}({', '.join((name_in_sql(column), *numbers))})"
        case _:
            return name_in_sql(column_of(key))


def _number(node: sge.Expr, sql: SqlText, reader: ConditionReader) -> int | float:
    value = reader.value(node)
    value = float(value) if isinstance(value, Decimal) else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise sql.refused(node, "the edges of BINS are numbers")
    return value
