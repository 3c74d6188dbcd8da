"""What a SELECT computes from released numbers, read into a view.

    SELECT region, SUM(x) / COUNT(*) AS each, 100 * COUNT(*) / SUM(COUNT(*)) AS part FROM …
    GROUP BY region HAVING COUNT(*) > 100 ORDER BY part DESC LIMIT 5

SUM of a function that is told, with OVER () or without, is the sum over all groups.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import expressions as sge

from farthing.engine.sql_questions.clauses import is_aggregate
from farthing.engine.view import KEY, TOTAL
from farthing.engine.where_text.conditions import ConditionReader, operands
from farthing.engine.where_text.expressions import (
    OPERATORS,
    Call,
    Expression,
    Literal,
    Name,
    instead_of,
)
from farthing.engine.where_text.parsing import SqlText

#: What is computed is small; names of entries that stand for each other could make it large.
DEEPEST, LARGEST = 40, 400
_LARGEST = 1e30
_ARITHMETIC = (sge.Add, sge.Sub, sge.Mul, sge.Div)
_NUMBERS = (sge.DType.FLOAT, sge.DType.DOUBLE, sge.DType.DECIMAL)
_COMPARED = (sge.EQ, sge.NEQ, sge.LT, sge.LTE, sge.GT, sge.GTE)
_WHY = (
    "of released numbers there are + - * /, comparisons, ROUND, ABS, NULLIF(…, 0) and "
    "SUM(…) OVER (), the sum over all groups"
)


class ViewReader:
    """Reads expressions of released numbers.

    `member` gives the name of the question that a function asks, `key` the place of a key or None,
    and `entry` what a name of an entry after SELECT stands for.
    """

    def __init__(
        self,
        sql: SqlText,
        reader: ConditionReader,
        member: Callable[[sge.Expr], str],
        key: Callable[[sge.Expr], int | None],
        entry: Callable[[sge.Expr], sge.Expr],
    ) -> None:
        self._sql, self._reader = sql, reader
        self._member, self._key, self._entry = member, key, entry
        self._depth = self._size = 0

    def expression(self, node: sge.Expr) -> Expression:
        """What is computed."""
        self._depth, self._size = self._depth + 1, self._size + 1
        if self._depth > DEEPEST or self._size > LARGEST:
            raise self._sql.refused(
                node, f"a SELECT computes at most {LARGEST} numbers, not so deep"
            )
        found = self._read(self._entry(node.unnest()))
        self._depth -= 1
        return found

    def _read(self, node: sge.Expr) -> Expression:
        match node:
            case _ if is_aggregate(node):
                return Name(self._member(node))
            case sge.Cast(this=inner, to=sge.DataType(this=kind, expressions=[])) if (
                kind in _NUMBERS and not isinstance(inner, sge.Literal)
            ):
                return self.expression(inner)
            case (
                sge.Literal()
                | sge.Boolean()
                | sge.Neg(this=sge.Literal())
                | sge.Cast(this=sge.Literal())
            ):
                value = self._reader.value(node)
                if isinstance(value, int | float | Decimal) and abs(float(value)) > _LARGEST:
                    raise self._sql.refused(node, "this number is too large to compute with")
                return Literal(value)
            case sge.Neg():
                return Call("multiply", (Literal(-1), self.expression(node.this)))
            case sge.Sum(this=inner) | sge.Window(this=sge.Sum(this=inner)):
                if isinstance(node, sge.Window):
                    self._sql.arguments(node, "this", "over", "spec")
                return Call(TOTAL, (self.expression(inner),))
            case sge.Nullif(this=inner, expression=sge.Literal(this="0")):
                return self.expression(inner)
            case sge.Abs():
                return Call("abs", (self.expression(node.this),))
            case sge.Round():
                this, decimals = self._sql.arguments(node, "this", "decimals")
                places = () if decimals is None else (Literal(self._places(decimals)),)
                return Call("round", (self.expression(this), *places))
        if isinstance(node, _ARITHMETIC):
            self._sql.arguments(node, "this", "expression", "safe", "typed")
            sides = self.expression(node.this), self.expression(node.expression)
            return Call(OPERATORS[type(node)], sides)
        place = self._key(node)
        if place is None:
            window = isinstance(node, sge.Window)
            raise self._sql.refused(node, instead_of(node) if window else _WHY)
        return Call(KEY, (Literal(place),))

    def condition(self, node: sge.Expr) -> Expression:
        """Which rows are shown."""
        match node:
            case sge.Paren():
                return self.condition(node.this)
            case sge.And() | sge.Or():
                function = "and" if isinstance(node, sge.And) else "or"
                return Call(function, tuple(map(self.condition, operands(node))))
            case sge.Not():
                return Call("not", (self.condition(node.this),))
            case sge.Is(this=this, expression=sge.Null()):
                return Call("missing", (self.expression(this),))
            case sge.Between(this=this):
                low, high = node.args["low"], node.args["high"]
                ends = (("at_least", low), ("at_most", high))
                made = [Call(f, (self.expression(this), self.expression(end))) for f, end in ends]
                return Call("and", tuple(made))
            case sge.In(this=this, expressions=[_, *_] as values):
                one = self.expression(this)
                made = [Call("equal", (one, self.expression(value))) for value in values]
                return Call("or", tuple(made))
        if not isinstance(node, _COMPARED):
            raise self._sql.refused(node, "HAVING compares released numbers: = <> < <= > >=")
        sides = self.expression(node.this), self.expression(node.expression)
        return Call(OPERATORS[type(node)], sides)

    def _places(self, node: sge.Expr) -> int:
        value = self._reader.value(node)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 15:
            raise self._sql.refused(node, "ROUND takes whole decimals, up to 15")
        return value
