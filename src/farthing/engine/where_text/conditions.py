"""A condition in the words of Python or of SQL, read into a filter; and filters written as SQL.

    age >= 18 and country == 'NO'          country in ('NO', 'SE')       18 <= age < 65
    AGE BETWEEN 18 AND 64                  day < DATE '2013-02-01'       company IS NOT NULL
    not (active or "odd name" <> 'x')      price * quantity > 100        shipped > ordered

A column may be computed: `expressions` has the functions. Texts stand in single quotes; double
quotes are for names of columns. Anything else is refused with the part that is the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from types import MappingProxyType

from sqlglot import expressions as sge

from farthing.engine.filters import (
    AllOf,
    AnyOf,
    Between,
    Equals,
    Filter,
    Not,
    OneOf,
    Present,
    columns_of,
    filter_from,
    require_value,
)
from farthing.engine.where_text.constants import combined, is_constant, moved
from farthing.engine.where_text.expressions import (
    AGGREGATES,
    FUNCTIONS,
    OPERATORS,
    OURS,
    PARTS,
    Call,
    Case,
    Expression,
    Literal,
    Name,
    PerUnit,
    clipped_in,
    instead_of,
)
from farthing.engine.where_text.parsing import SqlText, shown
from farthing.engine.where_text.writing import Spelled
from farthing.errors import InvalidInput, within_reason
from farthing.schema import Value

#: A comparison with the column on the left, and with the column on the right.
_SIDES: dict[type[sge.Expr], tuple[str, str]] = {
    sge.GTE: ("at_least", "at_most"),
    sge.GT: ("above", "below"),
    sge.LTE: ("at_most", "at_least"),
    sge.LT: ("below", "above"),
}
#: What DATE '…' and TIMESTAMP '…' say, and how they are written.
_MOMENTS: dict[sge.DType, tuple[type[date], str]] = {
    sge.DType.DATE: (date, "DATE '2013-01-31'"),
    sge.DType.TIMESTAMP: (datetime, "TIMESTAMP '2013-01-31 12:30:00'"),
}
_LONGEST_NUMBER = 400
#: Of the texts up to this length some hundred are kept.
LONGEST_EXPRESSION = 2000
#: The arguments of a function that are read; another one is refused.
_READ = ("this", "expression", "expressions", "decimals", "ignore_nulls", "safe", "typed")


@within_reason
def filter_in(text: str) -> Filter:
    """The filter that a text says."""
    sql = SqlText.of(text)
    return ConditionReader(sql).filter(sql.parsed(sge.Condition))


def where_from(where: object) -> Filter | None:
    """A filter from its nodes, plain data, or text; None keeps everything."""
    return filter_in(where) if isinstance(where, str) else filter_from(where)


@lru_cache(512)
@within_reason
def expression_in(text: str) -> Expression:
    """The expression that a text says."""
    if len(text) > LONGEST_EXPRESSION:
        raise InvalidInput(f"an expression has at most {LONGEST_EXPRESSION} characters, got more")
    sql = SqlText.of(text)
    return ConditionReader(sql).expression(sql.parsed(sge.Condition))


@lru_cache(512)
def is_spelled(text: str) -> bool:
    """Whether a text is an expression of columns in its one spelling, and not just a name."""
    try:
        expression = expression_in(text)
    except InvalidInput:
        return False
    return not isinstance(expression, Name | Literal) and str(expression) == text


def clipped_columns(columns: Collection[str], where: Filter | None) -> frozenset[str]:
    """The columns that a question with this filter clips: those that it measures or groups by, and
    the operands of arithmetic. A filter itself compares what is stored."""
    clipped: set[str] = set()
    for column in {*columns, *columns_of(where)}:
        if is_spelled(column):
            clipped.update(clipped_in(expression_in(column)))
        elif column in columns:
            clipped.add(column)
    return frozenset(clipped)


class ConditionReader:
    """Reads the conditions of one text; `tables` may stand before the name of a column, and `named`
    are expressions that have a name of their own."""

    def __init__(
        self,
        sql: SqlText,
        tables: frozenset[str] = frozenset(),
        named: Mapping[str, Expression] = MappingProxyType({}),
    ) -> None:
        self._sql = sql
        self._tables = tables
        self._named = named

    def filter(self, node: sge.Expr) -> Filter:
        """The filter that a condition says."""
        match node:
            case sge.Paren():
                return self.filter(node.this)
            case sge.And():
                return self.every(operands(node))
            case sge.Or():
                return self._either(operands(node))
            case sge.Not(this=sge.Is(expression=missing)) if self._is_missing(missing):
                return Present(self.column(node.this.this))
            case sge.Not():
                return Not(self.filter(node.this))
            case sge.Is():
                return self._is(node)
            case sge.Like(args={"negate": True}) | sge.ILike(args={"negate": True}):
                plain = type(node)(this=node.this.copy(), expression=node.expression.copy())
                return Not(self.filter(plain))
            case sge.Like() | sge.ILike() | sge.Case() | sge.If() | sge.Anonymous():
                return Equals(Spelled(self.expression(node)), True)
            case sge.EQ() | sge.NEQ() | sge.GTE() | sge.GT() | sge.LTE() | sge.LT() if (
                self._of_two_columns(node)
            ):
                return Equals(Spelled(self.expression(node)), True)
            case sge.EQ() | sge.NEQ():
                column, value, _ = self._compared(node)
                equal = Equals(column, value)
                return equal if isinstance(node, sge.EQ) else Not(equal)
            case sge.GTE() | sge.GT() | sge.LTE() | sge.LT():
                return self._range(node)
            case sge.In():
                return OneOf(self.column(node.this), self.values_of(node))
            case sge.Between():
                this, low, high = self._sql.arguments(node, "this", "low", "high")
                return Between(
                    self.column(this), at_least=self.value(low), at_most=self.value(high)
                )
            case sge.Column():
                return Equals(self.column(node), True)
        raise self._sql.refused(
            node, "a condition compares a column with a value: = <> < <= > >=, in, between, is null"
        )

    def every(self, nodes: Sequence[sge.Expr]) -> Filter:
        """The filter that all of these conditions say together."""
        parts = self._merged(nodes)
        return parts[0] if len(parts) == 1 else AllOf(parts)

    def column(self, node: sge.Expr) -> str:
        """The name of a column, or the one spelling of the expression that computes one."""
        expression = self.expression(node)
        if isinstance(expression, Literal):
            raise self._sql.refused(node, "a column must stand here")
        return expression.column if isinstance(expression, Name) else Spelled(expression)

    def expression(self, node: sge.Expr) -> Expression:
        """The expression that a part of the text says."""
        match node:
            case sge.Paren():
                return self.expression(node.this)
            case sge.Column():
                return self.named(node)
            case sge.Null():
                return Literal(None)
            case sge.Literal() | sge.Neg(this=sge.Literal()) | sge.Boolean():
                return Literal(self.value(node))
            case sge.Cast() | sge.Add() | sge.Sub() if is_constant(node) and (
                isinstance(node, sge.Cast) or node.find(sge.Interval)
            ):
                return Literal(self.value(node))
            case sge.Neg():
                return Call("subtract", (Literal(0), self.expression(node.this)))
            case sge.Case():
                return self._case(node)
            case sge.If():
                condition, value, other = self._sql.arguments(node, "this", "true", "false")
                rest = None if other is None else self.expression(other)
                return Case(((self.filter(condition), self.expression(value)),), rest)
            case sge.Nullif(this=this, expression=other):
                same = self.filter(sge.EQ(this=this.copy(), expression=other.copy()))
                return Case(((same, Literal(None)),), self.expression(this))
            case sge.Extract(this=part, expression=of) if part.name.upper() in PARTS:
                self._sql.arguments(node, "this", "expression")
                return Call(PARTS[part.name.upper()], (self.expression(of),))
            case sge.Substring(args={"start": sge.Literal(this="1"), "length": length}) if length:
                self._sql.arguments(node, "this", "start", "length")
                return Call("left", (self.expression(node.this), self.expression(length)))
            case sge.ILike(this=this, expression=sge.Literal(is_string=True, this=pattern)) if (
                pattern.isascii()
            ):
                return Call(
                    "like", (Call("lower", (self.expression(this),)), Literal(pattern.lower()))
                )
            case sge.Anonymous(this=str(name), expressions=[inner]) if name.lower() == "per_unit":
                return self.per_unit(inner)
            case sge.Anonymous(this=str(name), expressions=given) if name.lower() in OURS:
                return Call(name.lower(), tuple(map(self.expression, given)))
        function = OPERATORS.get(type(node)) or FUNCTIONS.get(type(node))
        if function is None:
            raise self._sql.refused(node, instead_of(node))
        self._sql.arguments(node, *_READ, why={"unit": instead_of(node)})
        given = [node.this, node.args.get("expression"), *(node.args.get("expressions") or ())]
        given.append(node.args.get("decimals"))
        return Call(function, tuple(self.expression(part) for part in given if part is not None))

    def named(self, node: sge.Column) -> Expression:
        """What the name of a column stands for."""
        name = self._stored(node)
        return self._named.get(name, Name(name))

    def _stored(self, node: sge.Column) -> str:
        plain = isinstance(node.this, sge.Identifier)
        if not plain or (node.name.startswith("$") and not node.this.quoted):
            raise self._sql.refused(node, "a column must stand here, by its name alone")
        _, table = self._sql.arguments(node, "this", "table")
        if table is not None and table.name not in self._tables:
            raise self._sql.refused(node, f"there is no table {shown(table.name)} here")
        return node.name

    def _case(self, node: sge.Case) -> Case:
        """Both forms: case when a = 1 then …, and case a when 1 then …"""
        this, ifs, default = self._sql.arguments(node, "this", "ifs", "default")
        cases = []
        for when in ifs:
            condition, value = self._sql.arguments(when, "this", "true")
            if this is not None:
                condition = sge.EQ(this=this.copy(), expression=condition.copy())
            cases.append((self.filter(condition), self.expression(value)))
        return Case(tuple(cases), None if default is None else self.expression(default))

    def per_unit(self, node: sge.Expr, where: Filter | None = None) -> Expression:
        """An aggregate of a unit's rows that pass a filter: min(day) filter (where event = 'b')."""
        if isinstance(node, sge.Filter):
            own = self.filter(node.expression.this)
            where, node = own if where is None else AllOf((where, own)), node.this
        match node:
            case sge.Paren():
                return self.per_unit(node.this, where)
            case sge.LogicalOr() | sge.Any():
                held = self.filter(node.this)
                both = held if where is None else AllOf((held, where))
                return Call("above", (PerUnit("count", None, both), Literal(0)))
            case sge.Count(this=sge.Star() | sge.Literal()):
                return PerUnit("count", None, where)
            case sge.Count(this=sge.Distinct(expressions=[of])):
                return PerUnit("count_distinct", self.expression(of), where)
        function = AGGREGATES.get(type(node))
        if function is None:
            raise self._sql.refused(
                node, f"per_unit takes {', '.join(sorted(AGGREGATES.values()))} or any of rows"
            )
        self._sql.arguments(node, "this", "big_int")
        return PerUnit(function, self.expression(node.this), where)

    def _of_two_columns(self, node: sge.Expr) -> bool:
        """Whether neither side of a comparison is a value, or another comparison."""
        sides = [node.this, node.expression]
        if type(node.this) in _SIDES:  # 18 <= age < 65
            return False
        return not any(is_constant(side) or self._is_missing(side) for side in sides)

    def value(self, node: sge.Expr) -> Value:
        """The value that a literal writes."""
        match node:
            case sge.Paren():
                return self.value(node.this)
            case sge.Literal(is_string=True):
                return require_value(node.this)
            case sge.Literal():
                return self._number(node, node.this)
            case sge.Neg(this=sge.Literal(is_string=False)):
                return self._number(node, "-" + node.this.this)
            case sge.Boolean():
                return bool(node.this)
            case sge.Cast(this=sge.Literal(is_string=True), to=sge.DataType(this=kind)) if (
                kind in _MOMENTS
            ):
                return self._moment(node, node.this.this, kind)
            case sge.Add() | sge.Sub() | sge.Mul() if is_constant(node):
                return self._computed(node)
        if self._is_missing(node):
            raise self._sql.refused(node, "nothing equals a missing value; write IS NULL")
        if isinstance(node, sge.Column):
            raise self._sql.refused(
                node, "a value must stand here; a text is written in single quotes: 'NO'"
            )
        raise self._sql.refused(
            node, "a value must stand here: 18, 1.5, 'NO', TRUE, DATE '…', TIMESTAMP '…'"
        )

    def values_of(self, node: sge.In) -> tuple[Value, ...]:
        """The values of a list, in their order."""
        _, given = self._sql.arguments(node, "this", "expressions")
        if not given:
            raise self._sql.refused(node, "a list of values must follow IN")
        return tuple(self.value(value) for value in given)

    def _is(self, node: sge.Is) -> Filter:
        this, other = self._sql.arguments(node, "this", "expression")
        if self._is_missing(other):
            return Equals(self.column(this), None)
        raise self._sql.refused(node, "IS is for NULL; compare truth values with =")

    def _compared(self, node: sge.Expr) -> tuple[str, Value, bool]:
        """The column, the value, and whether the column stands on the left."""
        left, right = self._sql.arguments(node, "this", "expression")
        if is_constant(left) and not is_constant(right):
            return self.column(right), self.value(left), False
        return self.column(left), self.value(right), True

    def _range(self, node: sge.Expr) -> Filter:
        if type(node.this) in _SIDES:  # 18 <= age < 65
            middle, last = node.this.expression, node.expression
            chain = [node.this, type(node)(this=middle.copy(), expression=last.copy())]
            parts = self._merged(chain)
            if len(parts) == 1:
                return parts[0]
            raise self._sql.refused(node, "a range has one lower and one upper bound")
        column, value, left = self._compared(node)
        return Between(column, **{_SIDES[type(node)][0 if left else 1]: value})

    def _merged(self, nodes: Sequence[sge.Expr]) -> tuple[Filter, ...]:
        """The parts of an "and"; a lower and an upper bound side by side are one range."""
        parts: list[Filter] = []
        joins = False  # whether the last part may be half of a range
        for node in nodes:
            part, bare = self.filter(node), not isinstance(node, sge.Paren)
            together = _one_range(parts[-1], part) if joins and bare else None
            if together is not None:
                parts[-1], joins = together, False
            else:
                parts.append(part)
                joins = bare
        return tuple(parts)

    def _either(self, nodes: Sequence[sge.Expr]) -> Filter:
        """The parts of an "or"; "is null or in (…)" of one column is a list with the missing."""
        parts = tuple(self.filter(node) for node in nodes)
        match parts:
            case (Equals(column, None), OneOf(other, values)) if column == other and isinstance(
                nodes[0], sge.Is
            ):
                return OneOf(column, (*values, None))
        return AnyOf(parts)

    def _is_missing(self, node: sge.Expr) -> bool:
        if isinstance(node, sge.Null):
            return True
        return isinstance(node, sge.Column) and node.sql() == "None"

    def _number(self, node: sge.Expr, text: str) -> Value:
        if len(text) > _LONGEST_NUMBER:
            raise self._sql.refused(node, "this number has too many digits")
        try:
            return require_value(int(text) if text.lstrip("-").isdigit() else _fraction(text))
        except (ValueError, InvalidOperation) as error:  # the latter beyond what decimals can hold
            why = str(error) if isinstance(error, InvalidInput) else "this is no number"
            raise self._sql.refused(node, why) from None

    def _computed(self, node: sge.Expr) -> Value:
        """The value that is computed from values."""
        left, right = (side.unnest() for side in (node.this, node.expression))
        if isinstance(left, sge.Interval) and isinstance(node, sge.Add):
            left, right = right, left
        first, second = (
            side if isinstance(side, sge.Interval) else self.value(side) for side in (left, right)
        )
        try:
            if isinstance(second, sge.Interval):
                return moved(node, first, second)
            digits = combined(node, first, second)
        except InvalidInput as error:
            raise self._sql.refused(node, str(error)) from None
        return self._number(node, digits)

    def _moment(self, node: sge.Expr, text: str, kind: sge.DType) -> Value:
        moment, written = _MOMENTS[kind]
        try:
            return require_value(moment.fromisoformat(text))
        except ValueError as error:
            why = str(error) if isinstance(error, InvalidInput) else f"write {written}"
            raise self._sql.refused(node, why) from None


def _fraction(text: str) -> float | Decimal:
    """A float where it is the number that is written; otherwise exact, if a column can be."""
    value, exact = float(text), Decimal(text)
    if Decimal(repr(value)) == exact:
        return value
    try:
        require_value(exact)
    except InvalidInput:
        return value
    return exact


def operands(node: sge.Expr) -> tuple[sge.Expr, ...]:
    """The operands of a chain of one operator, from left to right."""
    operands_after, joint = [], type(node)
    while isinstance(node, joint):
        operands_after.append(node.expression)
        node = node.this
    return (node, *reversed(operands_after))


def _one_range(one: Filter, other: Filter) -> Between | None:
    """Two ranges of one column that are open on different sides, as one."""
    match one, other:
        case Between(a), Between(b) if a == b and len(one.sides) == len(other.sides) == 1:
            sides = dict(one.sides + other.sides)
            if {"at_least", "above"} & set(sides) and {"at_most", "below"} & set(sides):
                return Between(a, **sides)
    return None
