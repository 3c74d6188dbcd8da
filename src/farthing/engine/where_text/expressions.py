"""Expressions: what a column is computed from, as a closed form with one spelling.

An expression is written as text wherever a column can be named:

    price * quantity                             hour_of_day(started)        lower(name)
    case when age < 18 then 'minor' else 'adult' end
    per_unit(count(*))                           how many rows the unit has
    per_unit(min(day) filter (where event = 'buy'))

`conditions` reads the text; `engine.computed` says what kind of column it is and makes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import expressions as sge

from farthing.engine.filters import Filter, columns_of
from farthing.engine.where_text.writing import condition_in_sql, name_in_sql, value_in_sql
from farthing.schema import Value

#: Operators after which others of these are read from left to right, without brackets.
_SUMS, _PRODUCTS = ("add", "subtract"), ("multiply", "divide")
_CHAINS = {**dict.fromkeys(_SUMS, _SUMS), **dict.fromkeys(_PRODUCTS, _PRODUCTS)}
#: Functions that are written with a sign between their arguments.
SIGNS: Mapping[str, str] = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "equal": "=",
    "unequal": "<>",
    "below": "<",
    "at_most": "<=",
    "above": ">",
    "at_least": ">=",
    "like": "like",
}
#: Operators of two expressions, and functions that SQL has under other names.
OPERATORS: dict[type[sge.Expr], str] = {
    sge.Add: "add",
    sge.Sub: "subtract",
    sge.Mul: "multiply",
    sge.Div: "divide",
    sge.EQ: "equal",
    sge.NEQ: "unequal",
    sge.LT: "below",
    sge.LTE: "at_most",
    sge.GT: "above",
    sge.GTE: "at_least",
    sge.Like: "like",
}
FUNCTIONS: dict[type[sge.Expr], str] = {
    sge.Abs: "abs",
    sge.Floor: "floor",
    sge.Round: "round",
    sge.Least: "least",
    sge.Greatest: "greatest",
    sge.Coalesce: "coalesce",
    sge.Lower: "lower",
    sge.Upper: "upper",
    sge.Left: "left",
    sge.Split: "split",
    sge.DateDiff: "days",
    sge.DayOfWeekIso: "weekday",
    sge.Hour: "hour_of_day",
    sge.Day: "day_of_month",
    sge.DayOfMonth: "day_of_month",
    sge.Month: "month_of_year",
    sge.Quarter: "quarter_of_year",
    sge.Year: "calendar_year",
}
#: What EXTRACT(… FROM x) gives.
PARTS = {
    "ISODOW": "weekday",
    "HOUR": "hour_of_day",
    "DAY": "day_of_month",
    "MONTH": "month_of_year",
    "QUARTER": "quarter_of_year",
    "YEAR": "calendar_year",
}
#: Functions that SQL does not have.
OURS = ("weekday", "days", "age", *sorted({*FUNCTIONS.values()} - {"days"}))
AGGREGATES: dict[type[sge.Expr], str] = {
    sge.Min: "min",
    sge.Max: "max",
    sge.Sum: "sum",
    sge.Avg: "avg",
    sge.Count: "count",
}


#: What can be said in the place of something that people write and that is not read.
_INSTEAD: dict[type[sge.Expr], str] = {
    sge.Interval: "an interval is added to a date that is written out; with columns, compare "
    "days(later, earlier) with a number",
    sge.DateAdd: "compare days(later, earlier) with a number",
    sge.DateDiff: "write days(later, earlier)",
    sge.CurrentDate: "a question means the same every day: write the date, DATE '2024-01-31'",
    sge.CurrentTimestamp: "a question means the same every day: write the time, TIMESTAMP '…'",
    sge.Subquery: "ask the sub-select first and write its number here; or group it by the unit",
    sge.Cast: "a column is of the kind that its owner declared; there is no CAST",
    sge.ToChar: "GROUP BY DATE_TRUNC('month', day), or compare EXTRACT(MONTH FROM day)",
    sge.TimeToStr: "GROUP BY DATE_TRUNC('month', day), or compare EXTRACT(MONTH FROM day)",
    sge.DateTrunc: "this is for GROUP BY; in a condition write a range of dates",
    sge.TimestampTrunc: "this is for GROUP BY; in a condition write a range of dates",
    sge.Extract: f"the parts of a date are {', '.join(PARTS)}",
    sge.Substring: "the beginning of a text is LEFT(column, 3); parts inside of it, LIKE '%x%'",
    sge.ILike: "ILIKE is followed by a text of ASCII characters",
    sge.StartsWith: "write LIKE 'x%'",
    sge.Star: "name the columns",
    sge.Window: "there are no windows; a sub-select that groups by the unit has its own aggregates",
}
#: Functions that the parser does not know, and what can be said instead.
_UNKNOWN = {
    "NOW": _INSTEAD[sge.CurrentTimestamp],
    "STRFTIME": _INSTEAD[sge.ToChar],
    "DATE_PART": "write EXTRACT(MONTH FROM day)",
}


def instead_of(node: sge.Expr) -> str:
    """Why a part of a text is not an expression, and the nearest that is."""
    if isinstance(node, sge.Anonymous) and str(node.this).upper() in _UNKNOWN:
        return _UNKNOWN[str(node.this).upper()]
    return _INSTEAD.get(
        type(node), "a column must stand here, by its name, or an expression of columns"
    )


@dataclass(frozen=True, slots=True)
class Name:
    """A column, by its name."""

    column: str

    def __str__(self) -> str:
        return name_in_sql(self.column)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value; None is missing. 1 and True are two."""

    value: Value
    type: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", type(self.value).__name__)

    def __str__(self) -> str:
        return value_in_sql(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of other expressions."""

    function: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        sign = SIGNS.get(self.function)
        if sign is None:
            return f"{self.function}({', '.join(map(str, self.arguments))})"
        first, *others = self.arguments
        flat = isinstance(first, Call) and first.function in _CHAINS.get(self.function, ())
        parts = [str(first) if flat else _operand(first), *map(_operand, others)]
        return f" {sign} ".join(parts)


@dataclass(frozen=True, slots=True)
class Case:
    """The value beside the first condition that holds; if none does, `otherwise` or missing."""

    cases: tuple[tuple[Filter, Expression], ...]
    otherwise: Expression | None = None

    def __str__(self) -> str:
        whens = (f"when {condition_in_sql(where)} then {value}" for where, value in self.cases)
        rest = "" if self.otherwise is None else f" else {self.otherwise}"
        return f"case {' '.join(whens)}{rest} end"


@dataclass(frozen=True, slots=True)
class PerUnit:
    """An aggregate of a unit's own rows that pass `where`: one value for the whole unit.

    The functions are count (of rows, or of values that are not missing), count_distinct, min, max,
    sum and avg.
    """

    function: str
    of: Expression | None = None
    where: Filter | None = None

    def __str__(self) -> str:
        of = "*" if self.of is None else str(self.of)
        distinct = self.function == "count_distinct"
        aggregate = f"count(distinct {of})" if distinct else f"{self.function}({of})"
        rest = "" if self.where is None else f" filter (where {condition_in_sql(self.where)})"
        return f"per_unit({aggregate}{rest})"


Expression: TypeAlias = Name | Literal | Call | Case | PerUnit


def inside(expression: Expression) -> Iterator[Expression]:
    """The expressions that this one is made from; a column of a filter is a name."""
    match expression:
        case Call(_, arguments):
            yield from arguments
        case Case(cases, otherwise):
            for where, value in cases:
                yield from map(Name, sorted(columns_of(where)))
                yield value
            if otherwise is not None:
                yield otherwise
        case PerUnit(_, of, where):
            if of is not None:
                yield of
            yield from map(Name, sorted(columns_of(where)))


#: Functions that clip numbers to their declared bounds.
_PASSED_ON = ("least", "greatest", "coalesce")
ARITHMETIC = ("add", "subtract", "multiply", "divide", "abs", "floor", "round")


def clipped_in(expression: Expression, *, clips: bool = False) -> Iterator[str]:
    """The columns that are clipped to their bounds before this is computed."""
    match expression:
        case Name(column) if clips:
            yield column
        case Call(function, arguments):
            clips = function in ARITHMETIC or (clips and function in _PASSED_ON)
            for part in arguments:
                yield from clipped_in(part, clips=clips)
        case Case(cases, otherwise):
            for _, value in cases:
                yield from clipped_in(value, clips=clips)
            if otherwise is not None:
                yield from clipped_in(otherwise, clips=clips)
        case PerUnit(function, of, _) if of is not None:
            clips = function in ("sum", "avg") or (clips and function in ("min", "max"))
            yield from clipped_in(of, clips=clips)


def _operand(expression: Expression) -> str:
    nested = isinstance(expression, Call) and expression.function in SIGNS
    return f"({expression})" if nested else str(expression)
