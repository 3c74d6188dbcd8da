"""Columns by what can be done with them, and the one text of a value on every engine.

The text of a key decides which keys of a unit are kept, how ties are broken and which bytes
leave the engine, so it must be the same everywhere:

    missing    n
    text       s and the text
    integer    i and its decimal digits
    boolean    b0 or b1
    date       d and year·10000 + month·100 + day in decimal digits; d+ and d- for infinite ones

Several columns are joined by |; inside their texts ~ is written ~~ and | is written ~p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from farthing.engine.filters import AllOf, AnyOf, Between, Equals, Filter, OneOf, Present, Value
from farthing.engine.queries import Label
from farthing.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.types as ir

INTEGER, TEXT, BOOLEAN, DATE, REAL, DECIMAL = (
    "integer",
    "text",
    "boolean",
    "date",
    "real",
    "decimal",
)
KEYS = (INTEGER, TEXT, BOOLEAN, DATE)
NUMBERS = (INTEGER, REAL, DECIMAL)
JOINT = "|"
INFINITE = {"d+": "infinity", "d-": "-infinity"}

_FITS: dict[str, tuple[type, ...]] = {
    INTEGER: (int,),
    TEXT: (str,),
    BOOLEAN: (bool,),
    DATE: (date,),
    REAL: (int, float),
    DECIMAL: (int, float),
}


def kind_of(dtype: Any) -> str:
    """What a column of this Ibis type holds, in one word; the type's own name if nothing fits."""
    tests = (
        ("is_boolean", BOOLEAN),
        ("is_integer", INTEGER),
        ("is_string", TEXT),
        ("is_date", DATE),
        ("is_floating", REAL),
        ("is_decimal", DECIMAL),
    )
    found = next((kind for test, kind in tests if getattr(dtype, test)()), None)
    return found or str(dtype)


def require_kind(name: str, kind: str, allowed: Sequence[str], what: str) -> None:
    """The column can be used like this, or InvalidInput."""
    if kind not in allowed:
        raise InvalidInput(f"{what} must be {' or '.join(allowed)}, but {name} is {kind}")


def require_fits(name: str, kind: str, value: Value) -> None:
    """A column of this kind can be compared with this value."""
    if kind not in _FITS:
        raise InvalidInput(f"{name} is {kind}, which cannot be compared")
    plain = isinstance(value, _FITS[kind]) and (kind == BOOLEAN or not isinstance(value, bool))
    if value is not None and not plain:
        raise InvalidInput(f"{name} is {kind} and cannot be compared with {type(value).__name__}")


def check_filter(where: Filter | None, kinds: Mapping[str, str]) -> None:
    """Every comparison of the filter is between things of one kind."""
    match where:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                check_filter(part, kinds)
        case Equals(column, value):
            if kinds[column] == REAL and value is not None:
                raise InvalidInput(f"{column} is real: use a range, not equality")
            require_fits(column, kinds[column], value)
        case OneOf(column, values):
            require_kind(column, kinds[column], (*KEYS, DECIMAL), "a column filtered by values")
            for value in values:
                require_fits(column, kinds[column], value)
        case Between(column):
            if kinds[column] == BOOLEAN:
                raise InvalidInput(f"{column} is boolean and has no ranges")
            for _, value in where.sides:
                require_fits(column, kinds[column], value)
        case _:
            return


def condition(table: ir.Table, where: Filter) -> ir.BooleanValue:
    """A filter as an expression."""
    match where:
        case Equals(column, None):
            return table[column].isnull()
        case Equals(column, value):
            return table[column] == _literal(table[column], value)
        case OneOf(column, values):
            known = [_literal(table[column], value) for value in values if value is not None]
            parts = [table[column].isin(known)] if known else []
            if None in values:
                parts.append(table[column].isnull())
            return reduce(or_, parts)
        case Between(column):
            return reduce(and_, (_side(table[column], *side) for side in where.sides))
        case Present(column):
            return table[column].notnull()
        case AllOf(parts):
            return reduce(and_, (condition(table, part) for part in parts))
        case AnyOf(parts):
            return reduce(or_, (condition(table, part) for part in parts))


def key_text(columns: Sequence[ir.Value], kinds: Sequence[str]) -> ir.StringValue:
    """The text of a key of one or several columns."""
    if len(columns) == 1:
        return value_text(columns[0], kinds[0])
    texts = (
        _escaped(value_text(column, kind)) if kind == TEXT else value_text(column, kind)
        for column, kind in zip(columns, kinds, strict=True)
    )
    return reduce(lambda left, right: left + JOINT + right, texts)


def value_text(column: Any, kind: str) -> ir.StringValue:
    """The text of one value."""
    import ibis

    match kind:
        case "text":
            text = ibis.literal("s") + column
        case "integer":
            text = ibis.literal("i") + column.cast("string")
        case "boolean":
            text = column.isnull().ifelse(ibis.null("string"), column.ifelse("b1", "b0"))
        case _:
            day = column.year() * 10000 + column.month() * 100 + column.day()
            infinite = (column > ibis.date(2000, 1, 1)).ifelse("d+", "d-")  # they have no year
            known = ibis.coalesce(ibis.literal("d") + day.cast("string"), infinite)
            text = column.isnull().ifelse(ibis.null("string"), known)
    return ibis.coalesce(text, "n")


def text_of(label: Label) -> str:
    """The text of a label, as the engines write it."""
    if isinstance(label, tuple):
        return JOINT.join(_escape(_text(part)) for part in label)
    return _text(label)


def labels_of(texts: Sequence[str], width: int) -> tuple[Label, ...]:
    """The labels that have these texts; a date that Python cannot hold stays text."""
    if width == 1:
        kinds = {text[0] for text in texts}
        if kinds == {"s"}:
            return tuple([text[1:] for text in texts])
        if kinds == {"i"}:
            return tuple([int(text[1:]) for text in texts])
        return tuple(map(_value, texts))
    return tuple(tuple(_value(_unescape(p)) for p in t.split(JOINT)) for t in texts)


def _text(value: Value) -> str:
    match value:
        case None:
            return "n"
        case bool():
            return "b1" if value else "b0"
        case int():
            return f"i{value}"
        case date():
            return f"d{value.year * 10000 + value.month * 100 + value.day}"
        case _:
            return f"s{value}"


def _value(text: str) -> Value:
    match text[:1]:
        case "n":
            return None
        case "s":
            return text[1:]
        case "i":
            return int(text[1:])
        case "b":
            return text == "b1"
    if text in INFINITE:
        return INFINITE[text]
    year, rest = divmod(int(text[1:]), 10000)
    try:
        return date(year, *divmod(rest, 100))
    except ValueError:
        return text[1:]


def _escape(text: str) -> str:
    return text.replace("~", "~~").replace(JOINT, "~p")


def _unescape(text: str) -> str:
    return "~".join(part.replace("~p", JOINT) for part in text.split("~~"))


def _escaped(text: Any) -> Any:
    return text.replace("~", "~~").replace(JOINT, "~p")


def _literal(column: Any, value: Value) -> Any:
    """A value that the engine can compare with this column, whatever it is."""
    import ibis

    if isinstance(value, date):
        return ibis.date(value.year, value.month, value.day)
    dtype = column.type()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if dtype.is_decimal():
        exact = Decimal(str(value))
        if dtype.precision is None:
            return ibis.literal(exact, "decimal(38, 12)")
        if abs(exact) >= 10 ** (dtype.precision - dtype.scale):
            raise InvalidInput(f"{column.get_name()} holds no numbers as large as {value}")
        if exact != round(exact, dtype.scale):
            raise InvalidInput(f"{column.get_name()} has {dtype.scale} decimal places, got {value}")
        return ibis.literal(exact, dtype)
    if dtype.is_integer() and not dtype.bounds.lower <= value <= dtype.bounds.upper:
        raise InvalidInput(f"{column.get_name()} holds no numbers as large as {value}")
    return ibis.literal(value, dtype) if dtype.is_unsigned_integer() else value


def _side(column: Any, name: str, value: Value) -> Any:
    bound = _literal(column, value)
    match name:
        case "at_least":
            kept = column >= bound
        case "above":
            kept = column > bound
        case "at_most":
            kept = column <= bound
        case _:
            kept = column < bound
    return kept & ~column.isnan() if column.type().is_floating() else kept
