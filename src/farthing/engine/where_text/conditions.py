"""A condition in the words of Python or of SQL, read into a filter; and filters written as SQL.

    age >= 18 and country == 'NO'          country in ('NO', 'SE')       18 <= age < 65
    AGE BETWEEN 18 AND 64                  day < DATE '2013-02-01'       company IS NOT NULL
    not (active or "odd name" <> 'x')

Texts stand in single quotes; double quotes are for names of columns. Anything else is refused
with the part that is the reason. What is written is
read back as the same filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

import sqlglot
from sqlglot import TokenType
from sqlglot import expressions as sge
from sqlglot.errors import SqlglotError

from farthing.engine.filters import (
    AllOf,
    AnyOf,
    Between,
    Equals,
    Filter,
    Not,
    OneOf,
    Present,
    filter_from,
    require_value,
)
from farthing.engine.where_text.parsing import SqlText, shown, within_reason
from farthing.errors import InvalidInput
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


@within_reason
def filter_in(text: str) -> Filter:
    """The filter that a text says."""
    sql = SqlText.of(text)
    return ConditionReader(sql).filter(sql.parsed(sge.Condition))


def where_from(where: object) -> Filter | None:
    """A filter from its nodes, plain data, or text; None keeps everything."""
    return filter_in(where) if isinstance(where, str) else filter_from(where)


class ConditionReader:
    """Reads the conditions of one text; `tables` may stand before the name of a column."""

    def __init__(self, sql: SqlText, tables: frozenset[str] = frozenset()) -> None:
        self._sql = sql
        self._tables = tables

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
        """The name of a column."""
        if isinstance(node, sge.Paren):
            return self.column(node.this)
        if not isinstance(node, sge.Column) or isinstance(node.this, sge.Star):
            raise self._sql.refused(node, "a column must stand here, by its name alone")
        _, table = self._sql.arguments(node, "this", "table")
        if table is not None and table.name not in self._tables:
            raise self._sql.refused(node, f"there is no table {shown(table.name)} here")
        return node.name

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
        if isinstance(right, sge.Column) and isinstance(left, sge.Literal | sge.Neg | sge.Boolean):
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


_SIGNS = {"at_least": ">=", "above": ">", "at_most": "<=", "below": "<"}
#: Words that mean something to us where they stand.
_OUR_WORDS = ("NONE", "OPTIONS")


def condition_in_sql(where: Filter) -> str:
    """The filter as a condition."""
    match where:
        case Equals(column, None):
            return f"{name_in_sql(column)} IS NULL"
        case Equals(column, value):
            return f"{name_in_sql(column)} = {value_in_sql(value)}"
        case Not(Equals(column, value)) if value is not None:
            return f"{name_in_sql(column)} <> {value_in_sql(value)}"
        case Present(column):
            return f"{name_in_sql(column)} IS NOT NULL"
        case OneOf(column, values):
            known = f"{name_in_sql(column)} IN {_listed(values)}"
            return f"{name_in_sql(column)} IS NULL OR {known}" if None in values else known
        case Not(OneOf(column, values)) if None not in values:
            return f"{name_in_sql(column)} NOT IN {_listed(values)}"
        case Between(column, at_least=low, at_most=high) if low is not None and high is not None:
            return f"{name_in_sql(column)} BETWEEN {value_in_sql(low)} AND {value_in_sql(high)}"
        case Between(column):
            sides = (
                f"{name_in_sql(column)} {_SIGNS[side]} {value_in_sql(value)}"
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
