"""Keys as columns of a table: whatever they are made from, they have a kind like any column."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from farthing.engine.filters import Between
from farthing.engine.keys import Bins, Key, Period, column_of
from farthing.engine.sql.bounding import TypedColumn
from farthing.engine.sql.conditions import condition
from farthing.engine.sql.functions import as_bytes
from farthing.schema import DATE, TEXT, TIMESTAMP, Bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ibis.expr.types as ir

    from farthing.engine.sql.texts import Texts

#: What Ibis calls the periods; weeks begin on Monday on every engine.
_TRUNCATED = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}


def key_column(
    table: ir.Table,
    key: Key,
    kinds: Mapping[str, str],
    texts: Texts,
    bounds: Mapping[str, Bounds],
) -> TypedColumn:
    """The expression of a key, and the kind of its labels."""
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
    import ibis

    name = key.column
    ranges = [Between(name, at_least=low, below=high) for low, high in pairwise(key.edges)]
    if key.closed(bounds):
        ranges[-1] = Between(name, at_least=key.edges[-2], at_most=key.edges[-1])
    cases = [
        (condition(table, inside, kinds, texts), ibis.literal(label))
        for inside, label in zip(ranges, key.labels(bounds), strict=True)
    ]
    return as_bytes(ibis.cases(*cases, else_=ibis.null("string")))
