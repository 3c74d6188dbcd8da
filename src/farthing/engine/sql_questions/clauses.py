"""Parts of a SELECT, read from SQL and written as SQL: functions, keys and options.

Functions, and the questions that they are:

    COUNT(DISTINCT unit)                            count; grouped: histogram, top_k
    COUNT(*), COUNT(1)                              the same of rows
    COUNT(column), COUNT_IF(x > 3)                  of rows with a value; of rows that pass
    COUNT(DISTINCT column)                          distinct
    SUM(column)                                     sum
    AVG(column)                                     mean
    SUM(column) / SUM(other)                        ratio; also / NULLIF(SUM(other), 0)
    VARIANCE(column), VAR_SAMP(column)              variance
    STDDEV(column), STDDEV_SAMP(column)             standard_deviation
    COVAR_SAMP(column, other)                       covariance
    CORR(column, other)                             correlation
    REGR_SLOPE(column, other), REGR_INTERCEPT(…)    regression, which has both
    MEDIAN(column)                                  quantile
    PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY column)    quantile; ARRAY[p, q]: several of them
    MIN(column), MAX(column)                        min, max

FILTER (WHERE …) after a function says which rows it looks at.

Keys after GROUP BY: a column, an expression of columns, DATE_TRUNC('month', column),
DATE(column) of times, BINS(column, 0, 10, 20). BINS is our word: no function of SQL gives a number
the label of its range. ROLLUP of keys makes a count a rollup.

Options are fields that SQL has no words for, in a clause of its own at the end:

    SELECT … GROUP BY yearID OPTIONS (contribution_limit = 3, categories = (2014, 2015, NULL))

Values are written as in conditions. A list of labels stands in brackets, and so does a label of
several columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from sqlglot import TokenType
from sqlglot import expressions as sge

from farthing.engine.filters import AllOf, Filter, Present
from farthing.engine.keys import PERIODS, Bins, Key, Period, column_of, key_from
from farthing.engine.sql.bounding import Label
from farthing.engine.where_text.conditions import ConditionReader
from farthing.engine.where_text.expressions import instead_of
from farthing.engine.where_text.parsing import SqlText, shown
from farthing.engine.where_text.writing import name_in_sql, value_in_sql
from farthing.errors import InvalidInput

#: The kind that a function of one column is.
_OF_A_COLUMN: Mapping[type[sge.Expr], str] = {
    sge.Sum: "sum",
    sge.Avg: "mean",
    sge.Variance: "variance",
    sge.Stddev: "standard_deviation",
    sge.StddevSamp: "standard_deviation",
    sge.Median: "quantile",
    sge.Min: "min",
    sge.Max: "max",
}
#: The kind that a function of two columns is.
_OF_COLUMNS: Mapping[type[sge.Expr], str] = {
    sge.CovarSamp: "covariance",
    sge.Corr: "correlation",
    sge.RegrSlope: "regression",
    sge.RegrIntercept: "regression",
}
#: How a kind is written.
_WRITTEN: Mapping[str, str] = {
    "distinct": "COUNT(DISTINCT {column})",
    "sum": "SUM({column})",
    "mean": "AVG({column})",
    "ratio": "SUM({column}) / SUM({per})",
    "variance": "VAR_SAMP({column})",
    "standard_deviation": "STDDEV_SAMP({column})",
    "covariance": "COVAR_SAMP({column}, {on})",
    "correlation": "CORR({column}, {on})",
    "regression": "REGR_SLOPE({column}, {on})",
    "quantile": "PERCENTILE_CONT({probability}) WITHIN GROUP (ORDER BY {column})",
    "min": "MIN({column})",
    "max": "MAX({column})",
}
COUNT = "count"
_BINS, _OPTIONS = "BINS", "OPTIONS"
_OURS = (
    "COUNT(DISTINCT column), COUNT(*), SUM, AVG, VARIANCE, STDDEV, COVAR_SAMP, CORR, REGR_SLOPE, "
    "MIN, MAX, MEDIAN or PERCENTILE_CONT must stand here"
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A kind of question, the fields that the function says, and which rows it looks at."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    where: Filter | None = None

    @property
    def of_rows(self) -> bool:
        """Whether rows are counted, not units."""
        return self.kind == COUNT and "per_key_limit" not in self.fields


def is_aggregate(node: sge.Expr) -> bool:
    """Whether this is a function of several rows, ours or not, and no more than that."""
    if isinstance(node, sge.Div):
        divisor = node.expression
        divisor = divisor.this if isinstance(divisor, sge.Nullif) else divisor
        return all(isinstance(s, sge.Sum) and is_aggregate(s) for s in (node.this, divisor))
    whole = isinstance(node, sge.Sum) and node.this.find(sge.AggFunc) is not None
    return not whole and isinstance(node, sge.AggFunc | sge.WithinGroup | sge.Filter)


def aggregate_of(node: sge.Expr, sql: SqlText, reader: ConditionReader, unit: str) -> Aggregate:
    """The question that a function asks."""
    match node:
        case sge.Count():
            return _count(node, sql, reader, unit)
        case sge.CountIf():
            (condition,) = sql.arguments(node, "this")
            return Aggregate(COUNT, where=reader.filter(condition))
        case sge.Filter():
            this, passing = sql.arguments(node, "this", "expression")
            found, where = aggregate_of(this, sql, reader, unit), reader.filter(passing.this)
            both = where if found.where is None else AllOf((found.where, where))
            return replace(found, where=both)
        case sge.Div(expression=sge.Nullif(this=sge.Sum() as per, expression=zero)) if (
            zero == sge.Literal.number(0)
        ):
            plain = sge.Div(this=node.this.copy(), expression=per.copy())
            return aggregate_of(plain, sql, reader, unit)
        case sge.Div(this=sge.Sum(this=this), expression=sge.Sum(this=per)):
            sql.arguments(node, "this", "expression", "safe", "typed")
            return Aggregate("ratio", {"column": reader.column(this), "per": reader.column(per)})
        case sge.WithinGroup(this=sge.PercentileCont() | sge.PercentileDisc()):
            return _percentile(node, sql, reader)
        case sge.CovarPop():
            raise sql.refused(node, "the covariance is that of a sample: COVAR_SAMP")
    kind = _OF_COLUMNS.get(type(node))
    if kind is not None:
        this, other = sql.arguments(node, "this", "expression")
        return Aggregate(kind, {"column": reader.column(this), "on": [reader.column(other)]})
    kind = _OF_A_COLUMN.get(type(node))
    if kind is None:
        raise sql.refused(node, instead_of(node) if isinstance(node, sge.Window) else _OURS)
    (this,) = sql.arguments(node, "this")
    return Aggregate(kind, {"column": reader.column(this)})


def aggregate_in_sql(kind: str, fields: Mapping[str, Any], unit: str) -> str | None:
    """How a question is written as a function; None if it is not."""
    if kind == COUNT:
        return (
            f"COUNT(DISTINCT {name_in_sql(unit)})" if fields["per_key_limit"] == 1 else "COUNT(*)"
        )
    written, on = _WRITTEN.get(kind), fields.get("on", ())
    if written is None or len(on) > 1:
        return None
    names = {name: name_in_sql(fields[name]) for name in ("column", "per") if name in fields}
    if "probability" in fields:
        which = fields["probability"]
        names["probability"] = f"ARRAY{[*which]}" if isinstance(which, tuple) else repr(which)
    return written.format(**{**fields, **names, "on": ", ".join(map(name_in_sql, on))})


def _count(node: sge.Count, sql: SqlText, reader: ConditionReader, unit: str) -> Aggregate:
    this, _ = sql.arguments(node, "this", "big_int")
    match this:
        case sge.Star() | sge.Literal():
            return Aggregate(COUNT)
        case sge.Distinct(expressions=[one]):
            sql.arguments(this, "expressions")
            column = reader.column(one)
            if column == unit:
                return Aggregate(COUNT, {"per_key_limit": 1})
            return Aggregate("distinct", {"column": column})
        case sge.Distinct():
            raise sql.refused(node, "different values are counted in one column")
    column = reader.column(this)
    return Aggregate(COUNT, where=None if column == unit else Present(column))


def _percentile(node: sge.WithinGroup, sql: SqlText, reader: ConditionReader) -> Aggregate:
    function, order = sql.arguments(node, "this", "expression")
    (probability,) = sql.arguments(function, "this")
    (ordered,) = sql.arguments(order, "expressions")
    if len(ordered) != 1:
        raise sql.refused(node, "WITHIN GROUP orders by one column")
    column, _ = sql.arguments(ordered[0], "this", "nulls_first")
    which: Any = None
    if isinstance(probability, sge.Array):
        which = [reader.value(one) for one in sql.arguments(probability, "expressions")[0]]
    else:
        which = reader.value(probability)
    return Aggregate("quantile", {"column": reader.column(column), "probability": which})


def key_of(node: sge.Expr, sql: SqlText, reader: ConditionReader) -> Key:
    """The key that an expression says."""
    match node:
        case sge.Paren():
            return key_of(node.this, sql, reader)
        case sge.DateTrunc() | sge.TimestampTrunc():
            column, unit = sql.arguments(node, "this", "unit")
            if unit.name.lower() not in PERIODS:
                raise sql.refused(node, f"the periods are {', '.join(PERIODS)}")
            return Period(reader.column(column), unit.name.lower())
        case sge.Anonymous(this=name, expressions=[column, *edges]) if name.upper() == _BINS:
            return Bins(reader.column(column), tuple(_number(e, sql, reader) for e in edges))
        case sge.Date(this=sge.Column() as time):
            sql.arguments(node, "this")
            return Period(reader.column(time), "day")
        case sge.Cast(this=sge.Column() as time, to=sge.DataType(this=sge.DType.DATE)):
            return Period(reader.column(time), "day")
    return key_from({"column": reader.column(node)})


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


def split_options(sql: SqlText) -> tuple[SqlText, dict[str, Any]]:
    """The statement, and the options at its end."""
    place = _opening(sql)
    if place is None:
        return sql, {}
    options: dict[str, Any] = {}
    for first, last in _parts(sql, place + 2, len(sql.tokens) - 1):
        name, value = _option(sql, first, last)
        if name in options:
            raise InvalidInput(f"the option {shown(name)} is given twice")
        options[name] = value
    return sql.part(0, place), options


def options_in_sql(options: Mapping[str, Any]) -> str:
    """The clause, with a space before it; nothing if there are none."""
    if not options:
        return ""
    listed = (f"{name_in_sql(name)} = {_written(value)}" for name, value in options.items())
    return f" {_OPTIONS} ({', '.join(listed)})"


def _opening(sql: SqlText) -> int | None:
    """Where the clause begins: its bracket closes where the text ends."""
    depth = 0
    for place in range(len(sql.tokens) - 1, 0, -1):
        kind = sql.tokens[place].token_type
        depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
        if depth <= 0:
            word = sql.tokens[place - 1]
            ours = word.token_type == TokenType.VAR and word.text.upper() == _OPTIONS
            return place - 1 if ours and kind == TokenType.L_PAREN else None
    return None


def _parts(sql: SqlText, first: int, last: int) -> list[tuple[int, int]]:
    """The places between the commas that are not inside of brackets."""
    parts, depth, start = [], 0, first
    for place in range(first, last):
        kind = sql.tokens[place].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if kind == TokenType.COMMA and depth == 0:
            parts.append((start, place))
            start = place + 1
    return [*parts, (start, last)]


def _option(sql: SqlText, first: int, last: int) -> tuple[str, Any]:
    said = sql.part(first, last)
    if len(said.tokens) < 3 or said.tokens[1].token_type != TokenType.EQ:
        raise InvalidInput(f"an option is written name = value, got {shown(said.text)}")
    value = sql.part(first + 2, last)
    return said.tokens[0].text, _value(value, value.parsed(sge.Condition))


def _value(sql: SqlText, node: sge.Expr) -> Any:
    reader = ConditionReader(sql)

    def value(part: sge.Expr) -> Any:
        return None if isinstance(part, sge.Null) else reader.value(part)

    def label(part: sge.Expr) -> Label:
        return tuple(map(value, part.expressions)) if isinstance(part, sge.Tuple) else value(part)

    match node:
        case sge.Tuple():
            return [label(part) for part in node.expressions]
        case sge.Paren():
            return [label(node.this)]
    return value(node)


def _written(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_written, value))})"
    return value_in_sql(value)
