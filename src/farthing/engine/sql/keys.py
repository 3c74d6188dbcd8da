"""The one text of a key on every engine.

It decides which keys of a unit are kept, how ties are broken and which bytes leave the engine:

    missing    n
    text       s and the text
    integer    i and its decimal digits
    decimal    m and the decimal digits of the number times 10^18
    boolean    b0 or b1
    date       d and year·10000 + month·100 + day in decimal digits
    timestamp  t, the same, and hour, minute and second in two digits each

Several columns are joined by |; inside their texts ~ is written ~~ and | is written ~p.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Context, Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from farthing.engine.filters import require_value
from farthing.engine.sql.statement import as_bytes
from farthing.schema import BOOLEAN, DATE, DECIMAL, DIGITS, INTEGER, TEXT, TIMESTAMP, Value

if TYPE_CHECKING:
    import ibis.expr.types as ir

#: The label of one row of a histogram: a value, or one value for each column of the key.
Label: TypeAlias = Value | tuple[Value, ...]
JOINT = "|"
#: Digits on both sides of the point of any number that can be a label.
EXACT = Context(prec=3 * DIGITS)


def key_text(columns: Sequence[Any], kinds: Sequence[str]) -> ir.StringValue:
    """The text of a key of one or several columns, compared as bytes."""
    if len(columns) == 1:
        return as_bytes(value_text(columns[0], kinds[0]))
    texts = (
        _escaped(value_text(column, kind)) if kind == TEXT else value_text(column, kind)
        for column, kind in zip(columns, kinds, strict=True)
    )
    return as_bytes(reduce(lambda left, right: left + JOINT + right, texts))


def value_text(column: Any, kind: str) -> ir.StringValue:
    """The text of one value."""
    import ibis

    if kind == TEXT:
        text = ibis.literal("s") + column
    elif kind == INTEGER:
        text = ibis.literal("i") + column.cast("string")
    elif kind == DECIMAL:
        places = column.type().scale
        wide = column.cast(f"decimal({2 * DIGITS}, {places})")  # room for the product on DuckDB too
        units = (wide * 10**places).cast("int64")
        zeros = ibis.literal("0" * (DIGITS - places))
        text = (units == 0).ifelse("m0", ibis.literal("m") + units.cast("string") + zeros)
    elif kind == BOOLEAN:
        text = column.isnull().ifelse(ibis.null("string"), column.ifelse("b1", "b0"))
    else:
        digits = column.year() * 10000 + column.month() * 100 + column.day()
        if kind == TIMESTAMP:
            digits = digits.cast("int32").cast("int64")  # what Ibis takes for 64 bits may be 32
            for part in (column.hour(), column.minute(), column.second()):
                digits = digits * 100 + part.cast("int64")
        text = ibis.literal("d" if kind == DATE else "t") + digits.cast("string")
    return ibis.coalesce(text, "n")


def text_of(label: Label) -> str:
    """The text of a label, as the engines write it."""
    if isinstance(label, tuple):
        return JOINT.join(_escape(_text(part)) for part in label)
    return _text(label)


def labels_of(texts: Sequence[str], width: int) -> tuple[Label, ...]:
    """The labels that have these texts."""
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
        case Decimal():
            return f"m{int(value.scaleb(DIGITS, context=EXACT))}"
        case datetime():
            return f"t{value.year * 10000 + value.month * 100 + value.day}{value:%H%M%S}"
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
        case "m":
            return require_value(Decimal(text[1:]).scaleb(-DIGITS, context=EXACT))
    days, clock = (text[1:], "") if text[0] == "d" else (text[1:-6], text[-6:])
    year, rest = divmod(int(days), 10000)
    month, day = divmod(rest, 100)
    if not clock:
        return date(year, month, day)
    return datetime(year, month, day, int(clock[:2]), int(clock[2:4]), int(clock[4:]))  # of no zone


def _escape(text: str) -> str:
    return text.replace("~", "~~").replace(JOINT, "~p")


def _unescape(text: str) -> str:
    return "~".join(part.replace("~p", JOINT) for part in text.split("~~"))


def _escaped(text: Any) -> Any:
    return text.replace("~", "~~").replace(JOINT, "~p")
