"""Computed columns as expressions of Ibis, over a table of declared columns.

Aggregates of a unit's rows come first: one table with a row for each unit, joined to its rows. What
is computed from them row by row comes after. Texts of the question travel as parameters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from farthing.engine.computed.columns import ComputedColumns, with_computed
from farthing.engine.computed.rules import LARGEST_WHOLE, LETTERS, SMALLEST_REAL, SUM_PLACES
from farthing.engine.filters import AllOf, Filter, columns_of
from farthing.engine.keys import column_of, key_from, renamed_key
from farthing.engine.sql.conditions import condition, key_column, moved_into
from farthing.engine.sql.measuring import of_one_row
from farthing.engine.sql.statement import Texts, as_bytes
from farthing.engine.where_text.expressions import (
    Call,
    Case,
    Expression,
    Literal,
    Name,
    PerUnit,
    inside,
)
from farthing.errors import InvalidInput
from farthing.optional import Later
from farthing.schema import DATE, DECIMAL, INTEGER, NUMBERS, REAL, TEXT, TIMESTAMP, Column, Schema

if TYPE_CHECKING:
    import ibis
    import ibis.expr.types as ir
else:
    ibis = Later("ibis")

_WHO = "unit of an aggregate"
_WIDE = "decimal(38, 0)"


def with_columns(
    table: ir.Table,
    schema: Schema,
    unit: str | None,
    names: Mapping[str, str],
    texts: Texts,
    *,
    units: bool,
    most: int | None = None,
) -> ir.Table:
    """The table and these computed columns, under names that engines can tell apart. With `units`,
    one row for each unit: the columns are then all per unit. Without a `unit` each row is one: of
    a text that is split, its different labels count, the first `most` in the order of bytes."""
    computed, wanted = ComputedColumns(schema), list(names)
    _require_free(table, names.values())
    maker = _Maker(table, computed, unit, texts)
    maker.add_per_unit(wanted, one_row=units)
    values = {names[name]: maker.column(name) for name in wanted}
    if units and unit is not None:
        return maker.table.select(**{unit: maker.table[unit]}, **values)
    made = maker.table.mutate(**values)
    for name in filter(computed.splits, wanted):
        if unit is None:
            labels = made[names[name]].unique().sort()
            made = made.mutate(**{names[name]: labels if most is None else labels[:most]})
        made = made.unnest(names[name], keep_empty=True)
    return made


def with_keys(table: ir.Table, own: Schema, names: Mapping[str, str], texts: Texts) -> ir.Table:
    """The rows, and under other names the keys that public tables are looked up by: expressions of
    a row's own columns, as they are stored."""
    _require_free(table, names.values())
    keys = {text: key_from(text) for text in names}
    columns = {column_of(key) for key in keys.values()}
    computed = sorted(name for name in columns if name not in own)
    schema = with_computed(own, computed)
    made = {name: f"key of {i}" for i, name in enumerate(computed)}
    whole = with_columns(table, own, None, made, texts, units=False, most=None)
    kinds = {made.get(name, name): kind for name, kind in schema.kinds.items()}
    values = {}
    for text, key in keys.items():
        renamed = renamed_key(key, lambda name: made.get(name, name))
        values[names[text]] = key_column(whole, renamed, kinds, texts, {})[0]
    return whole.select(*table.columns, **values)


def _require_free(table: ir.Table, names: Iterable[str]) -> None:
    """No column has one of our names, however it is spelled."""
    if clash := {name.casefold() for name in table.columns} & {*names}:
        raise InvalidInput(f"no column can be called {min(clash)}")


class _Maker:
    """Makes values of expressions over one table."""

    def __init__(
        self, table: ir.Table, computed: ComputedColumns, unit: str | None, texts: Texts
    ) -> None:
        self.table = table
        self._computed, self._unit, self._texts = computed, unit, texts
        self._per_unit: dict[PerUnit, str] = {}

    def __getitem__(self, name: str) -> Any:
        """A column by name, for conditions."""
        return self.column(name)

    def column(self, name: str) -> Any:
        """A stored or computed column."""
        expression = self._computed.expression(name)
        if expression is None:
            return self.table[name]
        value, kind = self.value(expression), self._computed.typed(expression).kind
        return as_bytes(value) if kind == TEXT and not self._computed.splits(name) else value

    def add_per_unit(self, names: Iterable[str], *, one_row: bool) -> None:
        """Columns with the aggregates that these need: in the rows, or in one row for each unit.

        Those come first that others are made from. Their table has every unit; the later ones are
        aggregated from the rows that can pass their filters.
        """
        rows, units = self.table, None
        for aggregates in self._levels(names):
            named = {f"per unit {len(self._per_unit) + i}": a for i, a in enumerate(aggregates)}
            _require_free(rows, named)
            self.table = rows
            if units is not None:
                passing = [self._rows_alone(aggregate.where) for aggregate in aggregates]
                if all(passing):
                    conditions = [self.condition(part) for parts in passing for part in parts]
                    self.table = self.table.filter(reduce(or_, conditions))
                self.table = self._beside(self.table, units, how="inner")
            values = {name: self._aggregate(one) for name, one in named.items()}
            if self._unit is None:
                rows = rows.mutate(**{n: of_one_row(value) for n, value in values.items()})
                self._per_unit |= {one: name for name, one in named.items()}
                continue
            group = self.table.group_by(**{_WHO: self.table[self._unit]})
            made = group.aggregate(**values)
            self._per_unit |= {one: name for name, one in named.items()}
            units = made if units is None else self._and_counts(units, made, named)
        self.table = rows
        if units is not None and one_row:
            self.table = units.rename({self._unit: _WHO})
        elif units is not None:
            self.table = self._beside(rows, units, how="left")
        elif one_row and self._unit is not None:
            self.table = rows.select(self._unit).distinct()

    def _levels(self, names: Iterable[str]) -> list[list[PerUnit]]:
        """The aggregates that are needed, those first that others are made from."""
        needed: dict[PerUnit, int] = {}
        waiting: list[Expression] = [Name(name) for name in names]
        while waiting:
            expression = waiting.pop()
            if isinstance(expression, Name):
                computed = self._computed.expression(expression.column)
                waiting += [] if computed is None else [computed]
                continue
            if isinstance(expression, PerUnit):
                needed[expression] = self._computed.levels(expression)
            waiting += inside(expression)
        deepest = max(needed.values(), default=0)
        return [[a for a, own in needed.items() if own == i + 1] for i in range(deepest)]

    def _rows_alone(self, where: Filter | None) -> list[Filter]:
        """The parts of a filter that need no aggregate, as one filter; none if there are none."""
        parts = where.parts if isinstance(where, AllOf) else () if where is None else (where,)
        plain = [p for p in parts if not any(self._computed.levels(Name(c)) for c in columns_of(p))]
        return [AllOf(tuple(plain))] if plain else []

    def _beside(self, rows: ir.Table, units: ir.Table, *, how: Any) -> ir.Table:
        """The rows with what is known of their unit."""
        added = [name for name in units.columns if name != _WHO]
        joined = rows.join(units, rows[self._unit] == units[_WHO], how=how)
        return joined.select(*rows.columns, *added)

    def _and_counts(self, units: ir.Table, more: ir.Table, named: Mapping[str, PerUnit]) -> Any:
        """More columns beside those of each unit; a unit without rows has none, and counts 0."""
        other = more.rename({"other unit": _WHO})
        joined = units.left_join(other, units[_WHO] == other["other unit"])
        counts = ("count", "count_distinct")
        added = {
            name: ibis.coalesce(joined[name], 0) if a.function in counts else joined[name]
            for name, a in named.items()
        }
        return joined.select(*units.columns, **added)

    def _aggregate(self, aggregate: PerUnit) -> Any:
        """An aggregate of rows, with the type of its kind."""
        where = None
        if aggregate.where is not None:
            # a sum of missing truth values is missing on Spark, where others count 0
            where = ibis.coalesce(self.condition(aggregate.where), False)
        if aggregate.of is None:
            return self.table.count(where=where).cast("int64")
        column = self._computed.typed(aggregate.of)
        match aggregate.function:
            case "count":
                return self.value(aggregate.of).count(where=where).cast("int64")
            case "count_distinct":
                return self.value(aggregate.of).nunique(where=where).cast("int64")
            case "min" | "max":
                value = self.value(aggregate.of)
                value = as_bytes(value) if column.kind == TEXT else value
                extreme = getattr(value, aggregate.function)(where=where)
                return as_bytes(extreme) if column.kind == TEXT else extreme
        whole = column.kind == INTEGER
        number = self.bounded(aggregate.of)
        if not whole:
            number = (number * float(10**SUM_PLACES) + 0.5).floor().cast("int64")
        edge = ibis.literal(LARGEST_WHOLE).cast(_WIDE)
        total = number.cast(_WIDE).sum(where=where).cast(_WIDE)
        moved = ibis.least(ibis.greatest(total, (-edge).cast(_WIDE)), edge).cast("int64")
        total = total.isnull().ifelse(ibis.null("int64"), moved)
        if aggregate.function == "sum":
            return total if whole else total.cast("float64") / float(10**SUM_PLACES)
        rows = number.count(where=where).cast("float64")
        mean = total.cast("float64") / (rows > 0.0).ifelse(rows, 1.0)
        return mean if whole else mean / float(10**SUM_PLACES)

    def condition(self, where: Filter) -> Any:
        """A filter over stored and computed columns."""
        kinds = {name: self._computed.column(name).kind for name in columns_of(where)}
        return condition(self, where, kinds, self._texts)

    def value(self, expression: Expression) -> Any:
        """What an expression gives, with the type of its kind."""
        match expression:
            case Name(column):
                return self.column(column)
            case Literal(value):
                return self._literal(value)
            case PerUnit():
                return self.table[self._per_unit[expression]]
            case Case(cases, otherwise):
                return self._case(expression, cases, otherwise)
            case Call():
                return _MAKE[expression.function](self, expression)

    def as_kind(self, expression: Expression, kind: str) -> Any:
        """The value as one of several of this kind."""
        if isinstance(expression, Literal) and expression.value is None:
            return ibis.null(_TYPES[kind])
        return self.real(expression) if kind == REAL else self.value(expression)

    def real(self, expression: Expression) -> Any:
        """A number as a 64-bit float. A decimal is divided, not converted: so it is the nearest
        float on every engine."""
        kind, value = self._computed.typed(expression).kind, self.value(expression)
        if kind != DECIMAL:
            return value if kind == REAL else value.cast("float64")
        places = value.type().scale
        units = (value.cast(f"decimal(36, {places})") * 10**places).cast("int64")
        return units.cast("float64") / float(10**places)

    def bounded(self, expression: Expression, *, real: bool | None = None) -> Any:
        """A number in arithmetic: within its bounds, and 0 if it is tiny."""
        column = self._computed.typed(expression)
        bounds = column.lower, column.upper
        if column.kind == INTEGER:
            value = moved_into(self.value(expression), INTEGER, bounds)
            return value.cast("float64") if real else value
        value = moved_into(self.real(expression), REAL, bounds)
        return (value.abs() < SMALLEST_REAL).ifelse(ibis.literal(0.0, "float64"), value)

    def _literal(self, value: Any) -> Any:
        match value:
            case str():
                return self._texts.literal(value)
            case datetime():
                return ibis.literal(value, "timestamp(6)")
            case date():
                return ibis.date(value.year, value.month, value.day)
            case bool() | None:
                return ibis.literal(value, "boolean")
            case int():
                return ibis.literal(value, "int64")
        return ibis.literal(float(value), "float64")

    def _case(self, expression: Case, cases: Any, otherwise: Expression | None) -> Any:
        kind = self._computed.typed(expression).kind
        made = [(self.condition(where), self.as_kind(value, kind)) for where, value in cases]
        rest = Literal(None) if otherwise is None else otherwise
        return ibis.cases(*made, else_=self.as_kind(rest, kind))

    def typed(self, expression: Expression) -> Column:
        """What an expression gives."""
        return self._computed.typed(expression)


_TYPES = {
    INTEGER: "int64",
    REAL: "float64",
    TEXT: "string",
    DATE: "date",
    TIMESTAMP: "timestamp(6)",
    "boolean": "boolean",
}
Make = Callable[[_Maker, Call], Any]


def _arithmetic(combine: Callable[[Any, Any], Any]) -> Make:
    def make(maker: _Maker, call: Call) -> Any:
        whole = maker.typed(call).kind == INTEGER
        if whole and [maker.typed(part).kind for part in call.arguments] == [DATE, DATE]:
            return _days(maker, call)
        left, right = (maker.bounded(part, real=not whole) for part in call.arguments)
        return combine(left, right)

    return make


def _divide(maker: _Maker, call: Call) -> Any:
    left, right = (maker.bounded(part, real=True) for part in call.arguments)
    none = ibis.null("float64")
    return (right == 0.0).ifelse(none, left / (right == 0.0).ifelse(1.0, right))


def _given(call: Call) -> Any:
    """The value that stands after the column."""
    value = call.arguments[1]
    assert isinstance(value, Literal), "checked with the schema"
    return value.value


def _floor(maker: _Maker, call: Call) -> Any:
    return maker.bounded(call.arguments[0], real=True).floor().cast("int64")


def _round(maker: _Maker, call: Call) -> Any:
    number = maker.bounded(call.arguments[0], real=True)
    if len(call.arguments) == 1:
        return (number + 0.5).floor().cast("int64")
    scale = float(10 ** _given(call))
    return (number * scale + 0.5).floor().cast("float64") / scale


def _extreme(pick: str) -> Make:
    def make(maker: _Maker, call: Call) -> Any:
        kind = maker.typed(call).kind
        values = [maker.as_kind(part, kind) for part in call.arguments]
        missing = values[0].isnull()
        for value in values[1:]:
            missing = missing | value.isnull()
        return missing.ifelse(ibis.null(_TYPES[kind]), getattr(ibis, pick)(*values))

    return make


def _coalesce(maker: _Maker, call: Call) -> Any:
    kind = maker.typed(call).kind
    return ibis.coalesce(*(maker.as_kind(part, kind) for part in call.arguments))


def _compared(compare: Callable[[Any, Any], Any]) -> Make:
    def make(maker: _Maker, call: Call) -> Any:
        kinds = {maker.typed(part).kind for part in call.arguments}
        real = kinds <= set(NUMBERS) and kinds != {INTEGER}
        left, right = (maker.real(part) if real else maker.value(part) for part in call.arguments)
        if kinds == {TEXT}:
            left, right = as_bytes(left), as_bytes(right)
        return compare(left, right)

    return make


def _like(maker: _Maker, call: Call) -> Any:
    return maker.value(call.arguments[0]).like(maker.value(call.arguments[1]))


def _letters(of: str, to: str) -> Make:
    def make(maker: _Maker, call: Call) -> Any:
        return maker.value(call.arguments[0]).translate(of, to)

    return make


def _left(maker: _Maker, call: Call) -> Any:
    return maker.value(call.arguments[0]).left(_given(call))


def _split(maker: _Maker, call: Call) -> Any:
    separator = "".join(f"[{sign}]" for sign in _given(call))
    return maker.value(call.arguments[0]).re_split(separator)


def _part(take: Callable[[Any], Any]) -> Make:
    def make(maker: _Maker, call: Call) -> Any:
        return take(maker.value(call.arguments[0])).cast("int64")

    return make


def _days(maker: _Maker, call: Call) -> Any:
    later, earlier = map(maker.value, call.arguments)
    return later.delta(earlier, unit="day").cast("int64")


def _age(maker: _Maker, call: Call) -> Any:
    birth, at = map(maker.value, call.arguments)
    years = at.year() - birth.year()
    before = at.month() * 100 + at.day() < birth.month() * 100 + birth.day()
    return (years - before.ifelse(1, 0)).cast("int64")


_MAKE: Mapping[str, Make] = {
    "add": _arithmetic(operator.add),
    "subtract": _arithmetic(operator.sub),
    "multiply": _arithmetic(operator.mul),
    "divide": _divide,
    "abs": lambda maker, call: maker.bounded(call.arguments[0]).abs(),
    "floor": _floor,
    "round": _round,
    "least": _extreme("least"),
    "greatest": _extreme("greatest"),
    "coalesce": _coalesce,
    "equal": _compared(operator.eq),
    "unequal": _compared(operator.ne),
    "below": _compared(operator.lt),
    "at_most": _compared(operator.le),
    "above": _compared(operator.gt),
    "at_least": _compared(operator.ge),
    "like": _like,
    "lower": _letters(LETTERS, LETTERS.lower()),
    "upper": _letters(LETTERS.lower(), LETTERS),
    "left": _left,
    "split": _split,
    "weekday": _part(lambda day: day.day_of_week.index() + 1),
    "hour_of_day": _part(lambda time: time.hour()),
    "day_of_month": _part(lambda day: day.day()),
    "month_of_year": _part(lambda day: day.month()),
    "quarter_of_year": _part(lambda day: day.quarter()),
    "calendar_year": _part(lambda day: day.year()),
    "days": _days,
    "age": _age,
}
