"""Filters and keys as expressions over declared columns, which have the types of their kinds.

What can be checked of a filter without rows is checked here too: that it compares like with like,
and that some row could pass it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from farthing.engine.filters import (
    AllOf,
    AnyOf,
    Between,
    Condition,
    Equals,
    Filter,
    Not,
    OneOf,
    Present,
    conditions_of,
)
from farthing.engine.keys import Bins, Key, Period, column_of
from farthing.engine.sql.bounding import (
    EXACT,
    Bounded,
    Label,
    Owner,
    TypedColumn,
    bounded_histogram,
    key_text,
    text_of,
)
from farthing.engine.sql.statement import Texts, as_bytes
from farthing.errors import InvalidInput
from farthing.optional import Later
from farthing.schema import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DIGITS,
    INTEGER,
    NUMBERS,
    REAL,
    TEXT,
    TIMESTAMP,
    Bounds,
    Column,
    Schema,
    Value,
)

if TYPE_CHECKING:
    import ibis
    import ibis.expr.types as ir
else:
    ibis = Later("ibis")

_FITS: dict[str, tuple[type, ...]] = {
    INTEGER: (int, float, Decimal),
    TEXT: (str,),
    BOOLEAN: (bool,),
    DATE: (date,),
    TIMESTAMP: (date,),
    REAL: (int, float, Decimal),
    DECIMAL: (int, float, Decimal),
}
#: Values beyond this are moved to it before they become whole numbers: doubles are exact here.
_LARGEST_EXACT = 1 << 52
_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
#: How a value and a bound are compared, of Python and of Ibis alike.
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,  # of reals too: 64-bit floats, never NaN
    "at_least": operator.ge,
    "above": operator.gt,
    "at_most": operator.le,
    "below": operator.lt,
}
#: What the column that says whose row it is is called once keys are columns.
WHO = "who"
#: What Ibis calls the periods; weeks begin on Monday on every engine.
_TRUNCATED = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}


def require_fits(name: str, kind: str, value: Value) -> None:
    """A column of this kind can be compared with this value, or InvalidInput."""
    plain = isinstance(value, _FITS[kind]) and (kind == BOOLEAN or not isinstance(value, bool))
    plain = plain and (kind != DATE or not isinstance(value, datetime))
    if value is not None and not plain:
        how = "; as text a date is DATE '2013-01-31'" if kind == DATE else ""
        raise InvalidInput(
            f"{name} is {kind} and cannot be compared with {type(value).__name__}{how}"
        )


def check_filter(where: Filter | None, kinds: Mapping[str, str]) -> None:
    """Every comparison of the filter is between things of one kind. Looks at the schema only."""
    for wanted, _ in conditions_of(where):
        column, kind = wanted.column, kinds[wanted.column]
        if isinstance(wanted, Between) and kind == BOOLEAN:
            raise InvalidInput(f"{column} is boolean and has no ranges")
        for value in _values(wanted):
            require_fits(column, kind, value)


def _values(wanted: Condition) -> tuple[Value, ...]:
    """What a column is compared with."""
    match wanted:
        case Equals(_, value):
            return (value,)
        case OneOf(_, values):
            return values
        case Between():
            return tuple(value for _, value in wanted.sides)
    return ()


def require_possible(where: Filter | None, schema: Schema) -> None:
    """Some row could pass, by the filter and the schema alone; otherwise nobody should pay."""
    column = None if where is None else _contradiction(where, schema)
    if column is not None:
        raise InvalidInput(
            f"no row can pass this filter: nothing that {column} is declared to hold fits what it "
            "says of it. Nothing was charged"
        )


def _contradiction(where: Filter, schema: Schema) -> str | None:
    """The column that rules every row out; None if there is none, or it is not easily seen."""
    match where:
        case AllOf(parts):
            inner = [_contradiction(part, schema) for part in parts]
            own: dict[str, list[Condition]] = {}
            for part in parts:
                if isinstance(part, Condition):
                    own.setdefault(part.column, []).append(part)
            inner += [None if _possible(same, schema[c]) else c for c, same in own.items()]
            return next((column for column in inner if column is not None), None)
        case AnyOf(parts):
            columns = [_contradiction(part, schema) for part in parts]
            return None if None in columns else columns[0]
        case Not():
            return None
        case _:
            return None if _possible([where], schema[where.column]) else where.column


def _possible(conditions: Sequence[Condition], column: Column) -> bool:
    """Whether one value, or a missing one, meets all of these conditions."""
    listed = [_values(wanted) for wanted in conditions if isinstance(wanted, OneOf | Equals)]
    if len(listed) == len(conditions) and all(None in values for values in listed):
        return True
    ranges = [wanted for wanted in conditions if isinstance(wanted, Between)]
    known = [[_comparable(v, column.kind) for v in values if v is not None] for values in listed]
    if column.categories is not None:
        known.append([_comparable(label, column.kind) for label in column.categories])
    bounds = [(name, _comparable(value, column.kind)) for r in ranges for name, value in r.sides]
    if any(value is None for values in known for value in values) or any(
        bound is None for _, bound in bounds
    ):
        return True  # not compared here
    if known:
        values = set(known[0]).intersection(*known[1:])
        return any(
            all(_COMPARE[name](value, bound) for name, bound in bounds)
            and (column.kind != INTEGER or value == int(value))
            for value in values
        )
    lows = [(bound, name == "above") for name, bound in bounds if name in ("at_least", "above")]
    highs = [(bound, name == "below") for name, bound in bounds if name in ("at_most", "below")]
    if column.kind == INTEGER:
        lows = [(math.floor(b) + 1 if strict else math.ceil(b), False) for b, strict in lows]
        highs = [(math.ceil(b) - 1 if strict else math.floor(b), False) for b, strict in highs]
    return all(low < high or (low == high and not (a or b)) for low, a in lows for high, b in highs)


def _comparable(value: Value, kind: str) -> Any:
    """A value as it is compared with a column; None where that is more than a comparison."""
    if kind == REAL:
        return float(value)  # type: ignore[arg-type] # a number: the filter was checked
    if kind in (INTEGER, DECIMAL):
        return Decimal(str(value))
    return None if kind == TIMESTAMP else value


def condition(
    table: ir.Table,
    where: Filter,
    kinds: Mapping[str, str],
    texts: Texts,
    *,
    denied: bool = False,
) -> ir.BooleanValue:
    """A filter as an expression, or its negation in SQL's three-valued logic.

    A comparison that no value can satisfy is never true. Every NOT stands beside one comparison,
    where "not missing, and not" says it, so no engine's own NOT ever meets a missing value. What is
    left are "and" and "or", which are true or not whether a part is missing or false.
    """
    match where:
        case Not(part):
            return condition(table, part, kinds, texts, denied=not denied)
        case AllOf(parts) | AnyOf(parts):
            joint = or_ if isinstance(where, AnyOf) != denied else and_
            inner = (condition(table, part, kinds, texts, denied=denied) for part in parts)
            return reduce(joint, inner)
    column, kind = table[where.column], kinds[where.column]
    match where:
        case Present() | Equals(_, None):
            present = isinstance(where, Present) != denied
            return column.notnull() if present else column.isnull()
        case Equals(_, value):
            holds = _compared("equal", column, kind, value, texts)
        case OneOf(_, values):
            known = tuple(value for value in values if value is not None)
            choices = [_among(column, kind, known, texts)] if known else []
            if None in values:
                choices.append(column.isnull())
            holds = reduce(or_, choices)
        case Between():
            holds = reduce(
                and_, (_compared(side, column, kind, value, texts) for side, value in where.sides)
            )
    return column.notnull() & ~holds if denied else holds


def fixed_point(column: Any, kind: str, places: int) -> Any:
    """A numeric column in whole units of the last decimal place.

    No value can make the conversion fail: numbers are moved into ±2^52 units before it.
    """
    if kind == INTEGER and places == 0:
        return column
    number = column.cast("float64")
    edge = float(_LARGEST_EXACT) / 10**places
    inside = between(number, -edge, edge) * float(10**places)
    whole = (inside + 0.5).floor().cast("int64")
    return number.isnull().ifelse(ibis.null("int64"), whole)


def between(number: Any, lower: Any, upper: Any) -> Any:
    """A number moved to the nearest of two bounds, of which either may be None.

    A missing one stays missing: the largest and smallest of several leave out what is missing.
    """
    moved = number if lower is None else ibis.greatest(number, lower)
    moved = moved if upper is None else ibis.least(moved, upper)
    return number.isnull().ifelse(ibis.null(number.type()), moved)


def moved_into(column: Any, kind: str, bounds: Bounds) -> Any:
    """A number moved to the nearest value of its column within declared bounds."""
    lower, upper = bounds
    return between(
        column,
        _bound(column, kind, lower, ROUND_CEILING),
        _bound(column, kind, upper, ROUND_FLOOR),
    )


def _bound(column: Any, kind: str, bound: float | None, towards: str) -> Any:
    """A bound as a value of the column: the next one inside, or the last there is."""
    if bound is None:
        return None
    if kind == REAL:
        return ibis.literal(float(bound), "float64")
    places, smallest, largest = _reach(column, kind)
    units = int(Decimal(str(bound)).scaleb(places, context=EXACT).to_integral_value(towards))
    return _units(min(max(units, smallest), largest), places, kind)


def within(
    rows: ir.Table,
    by: Sequence[str],
    categories: Sequence[Label],
    kinds: Mapping[str, str],
    texts: Texts,
) -> ir.Table:
    """Rows whose key is in a known domain, so that no unit spends its limit on anything else."""
    if len(by) == 1:
        values = tuple(label for label in categories if not isinstance(label, tuple))
        return rows.filter(condition(rows, OneOf(by[0], values), kinds, texts))
    text = key_text([rows[name] for name in by], [kinds[name] for name in by])
    return rows.filter(texts.one_of(text, [text_of(label) for label in categories]))


def key_column(
    table: ir.Table,
    key: Key,
    kinds: Mapping[str, str],
    texts: Texts,
    bounds: Mapping[str, Bounds],
) -> TypedColumn:
    """The expression of a key, and the kind of its labels. A key is a column like any other."""
    match key:
        case Period(column, "hour"):
            return table[column].truncate("h"), TIMESTAMP
        case Period(column, period):
            return table[column].truncate(_TRUNCATED[period]).cast("date"), DATE
        case Bins():
            declared = bounds.get(key.column, (None, None))
            return _binned(table, key, kinds, texts, declared), TEXT
    name = column_of(key)
    return table[name], kinds[name]


def _binned(
    table: ir.Table, key: Bins, kinds: Mapping[str, str], texts: Texts, bounds: Bounds
) -> Any:
    """The text of the range that holds the value: compared exactly, as a filter would."""
    name = key.column
    ranges = [Between(name, at_least=low, below=high) for low, high in pairwise(key.edges)]
    if key.closed(bounds):
        ranges[-1] = Between(name, at_least=key.edges[-2], at_most=key.edges[-1])
    cases = [
        (condition(table, inside, kinds, texts), ibis.literal(label))
        for inside, label in zip(ranges, key.labels(bounds), strict=True)
    ]
    return as_bytes(ibis.cases(*cases, else_=ibis.null("string")))


def _among(column: Any, kind: str, values: Sequence[Value], texts: Texts) -> Any:
    if kind == TEXT:
        return texts.one_of(column, [value for value in values if isinstance(value, str)])
    if kind == INTEGER:
        numbers = (Decimal(str(value)) for value in values)
        whole = [int(n) for n in numbers if n == n.to_integral_value()]
        inside = [number for number in whole if _SMALLEST <= number <= _LARGEST]
        return texts.one_of(column, inside) if inside else ibis.literal(False)
    return reduce(or_, (_compared("equal", column, kind, value, texts) for value in values))


def _compared(side: str, column: Any, kind: str, value: Value, texts: Texts) -> Any:
    """One comparison. Numbers and dates are literals made from typed numbers and dates."""
    if isinstance(value, str):
        return _COMPARE[side](column, texts.literal(value))
    if kind == TIMESTAMP and isinstance(value, date):
        midnight = datetime(value.year, value.month, value.day)  # of no zone
        moment = value if isinstance(value, datetime) else midnight
        return _COMPARE[side](column, ibis.literal(moment, "timestamp(6)"))
    if isinstance(value, date):
        return _COMPARE[side](column, ibis.date(value.year, value.month, value.day))
    if kind == BOOLEAN:
        return column if value else ~column
    if kind not in NUMBERS or not isinstance(value, int | float | Decimal):
        raise InvalidInput(f"a {kind} column cannot be compared with {type(value).__name__}")
    if kind == REAL:
        return _COMPARE[side](column, ibis.literal(float(value), "float64"))
    return _exact(side, column, kind, Decimal(str(value)))


def _exact(side: str, column: Any, kind: str, value: Decimal) -> Any:
    """A whole or decimal column and any number: compared in units of the column's last place.

    A bound between two of the column's values is moved to the one that keeps the same rows; a
    bound beyond all of them keeps every row, or none.
    """
    places, smallest, largest = _reach(column, kind)
    units = value.scaleb(places, context=EXACT)
    floor, ceiling = (int(units.to_integral_value(to)) for to in (ROUND_FLOOR, ROUND_CEILING))
    first, last = {
        "equal": (ceiling, floor),
        "at_least": (ceiling, largest),
        "above": (floor + 1, largest),
        "at_most": (smallest, floor),
        "below": (smallest, ceiling - 1),
    }[side]
    first, last = max(first, smallest), min(last, largest)
    if first > last:
        return ibis.literal(False)
    if side == "equal":
        return column == _units(first, places, kind)
    if side in ("at_least", "above"):
        return column >= _units(first, places, kind)
    return column <= _units(last, places, kind)


def _reach(column: Any, kind: str) -> tuple[int, int, int]:
    """The decimal places of an exact column, and its least and largest value in the last place."""
    if kind == INTEGER:
        return 0, _SMALLEST, _LARGEST
    return column.type().scale, -(10**DIGITS - 1), 10**DIGITS - 1


def _units(units: int, places: int, kind: str) -> Any:
    if kind == INTEGER:
        return ibis.literal(units, "int64")
    return ibis.literal(Decimal(units).scaleb(-places), f"decimal({DIGITS}, {places})")


@dataclass(frozen=True, slots=True)
class Rows:
    """The declared columns of a table, which of them is the unit, and the texts of a question.

    Without a `unit` each row is one. `kinds` says what each column holds (integer, text, …), and
    `bounds` are those of the schema. They clip numbers, never a unit: two units that were clipped
    to one bound would be limited as one.
    """

    table: ir.Table
    unit: str | None
    kinds: Mapping[str, str]
    secret: str
    texts: Texts = field(compare=False)
    bounds: Mapping[str, Bounds] = field(default_factory=dict)

    def clipped(self) -> Rows:
        """The same with numbers clipped to their declared bounds."""
        moved = {
            name: moved_into(self.table[name], self.kinds[name], pair)
            for name, pair in self.bounds.items()
            if name != self.unit
        }
        return replace(self, table=self.table.mutate(**moved)) if moved else self

    @property
    def owner(self) -> Owner:
        """The column that says whose row it is, and its kind."""
        return None if self.unit is None else (self.table[self.unit], self.kinds[self.unit])

    def histogram(
        self, keys: Sequence[TypedColumn], contribution_limit: int | None, per_key_limit: int = 1
    ) -> Bounded:
        """How many of these rows have each label, each unit limited."""
        return bounded_histogram(
            self.table,
            self.owner,
            keys,
            secret=self.secret,
            contribution_limit=contribution_limit,
            per_key_limit=per_key_limit,
        )

    def keyed(self, keys: Sequence[Key], **more: Any) -> Rows:
        """Whose row it is, the keys as `key0`, `key1`, …, and more columns; nothing else."""
        made = [key_column(self.table, key, self.kinds, self.texts, self.bounds) for key in keys]
        named = {} if self.owner is None else {WHO: self.owner}
        named |= {f"key{i}": typed for i, typed in enumerate(made)}
        columns, kinds = ({name: typed[i] for name, typed in named.items()} for i in (0, 1))
        unit = None if self.unit is None else WHO
        return replace(self, table=self.table.select(**columns, **more), unit=unit, kinds=kinds)
