"""The functions of SQL that are questions of ours, a line each.

COUNT(DISTINCT unit)                            count; grouped: histogram, top_k
COUNT(*)                                        the same of rows
COUNT(DISTINCT column)                          distinct
SUM(column)                                     sum
AVG(column)                                     mean
VARIANCE(column), VAR_SAMP(column)              variance
STDDEV(column), STDDEV_SAMP(column)             standard_deviation
MEDIAN(column)                                  quantile
PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY column)    quantile
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import expressions as sge

from farthing.engine.where_text.parsing import SqlText
from farthing.engine.where_text.reading import ConditionReader
from farthing.engine.where_text.writing import name_in_sql

#: The kind that a function of one column is.
_OF_A_COLUMN: Mapping[type[sge.Expr], str] = {
    sge.Sum: "sum",
    sge.Avg: "mean",
    sge.Variance: "variance",
    sge.Stddev: "standard_deviation",
    sge.StddevSamp: "standard_deviation",
    sge.Median: "quantile",
}
#: How a kind is written.
_WRITTEN: Mapping[str, str] = {
    "distinct": "COUNT(DISTINCT {column})",
    "sum": "SUM({column})",
    "mean": "AVG({column})",
    "variance": "VAR_SAMP({column})",
    "standard_deviation": "STDDEV_SAMP({column})",
    "quantile": "PERCENTILE_CONT({probability!r}) WITHIN GROUP (ORDER BY {column})",
}
COUNT = "count"
_OURS = (
    "COUNT(DISTINCT column), COUNT(*), SUM, AVG, VARIANCE, STDDEV, MEDIAN or PERCENTILE_CONT "
    "must stand here"
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A kind of question, and the fields that the function says."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_rows(self) -> bool:
        """Whether rows are counted, not units."""
        return self.kind == COUNT and not self.fields


def is_aggregate(node: sge.Expr) -> bool:
    """Whether this is a function of several rows, ours or not."""
    return isinstance(node, sge.AggFunc | sge.WithinGroup | sge.Filter | sge.Window)


def aggregate_of(node: sge.Expr, sql: SqlText, reader: ConditionReader, unit: str) -> Aggregate:
    """The question that a function asks."""
    match node:
        case sge.Count():
            return _count(node, sql, reader, unit)
        case sge.WithinGroup(this=sge.PercentileCont() | sge.PercentileDisc()):
            return _percentile(node, sql, reader)
    kind = _OF_A_COLUMN.get(type(node))
    if kind is None:
        raise sql.refused(node, _OURS)
    (this,) = sql.arguments(node, "this")
    return Aggregate(kind, {"column": reader.column(this)})


def aggregate_in_sql(kind: str, fields: Mapping[str, Any], unit: str) -> str | None:
    """How a question is written as a function; None if it is not."""
    if kind == COUNT:
        return (
            f"COUNT(DISTINCT {name_in_sql(unit)})" if fields["per_key_limit"] == 1 else "COUNT(*)"
        )
    written = _WRITTEN.get(kind)
    if written is None:
        return None
    return written.format(**{**fields, "column": name_in_sql(fields["column"])})


def _count(node: sge.Count, sql: SqlText, reader: ConditionReader, unit: str) -> Aggregate:
    this, _ = sql.arguments(node, "this", "big_int")
    match this:
        case sge.Star():
            return Aggregate(COUNT)
        case sge.Distinct(expressions=[one]):
            sql.arguments(this, "expressions")
            column = reader.column(one)
            if column == unit:
                return Aggregate(COUNT, {"per_key_limit": 1})
            return Aggregate("distinct", {"column": column})
    raise sql.refused(
        node, f"COUNT(*) counts rows, COUNT(DISTINCT {unit}) counts {unit}; IS NOT NULL is a filter"
    )


def _percentile(node: sge.WithinGroup, sql: SqlText, reader: ConditionReader) -> Aggregate:
    function, order = sql.arguments(node, "this", "expression")
    (probability,) = sql.arguments(function, "this")
    (ordered,) = sql.arguments(order, "expressions")
    if len(ordered) != 1:
        raise sql.refused(node, "WITHIN GROUP orders by one column")
    column, _ = sql.arguments(ordered[0], "this", "nulls_first")
    return Aggregate(
        "quantile", {"column": reader.column(column), "probability": reader.value(probability)}
    )
