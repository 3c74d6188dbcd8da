"""Does a source read values and limit units as every other source does?

An author of a source runs this in their own tests:

    def test_it_conforms(tmp_path):
        check_source(lambda rows: open_mine(store(rows, tmp_path)))

`store` puts an Arrow table where the source reads it, with the nearest types that it has. What the
source gives is compared with DuckDB, which holds the same rows, and with the types that each
statement says. The tables have missing and extreme values in them, and no rows at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

from farthing.engine.errors import EngineFailure
from farthing.engine.filters import filter_from
from farthing.engine.sources.base import Source, arrow_schema
from farthing.engine.sources.duckdb import open_rows
from farthing.engine.sql.bounding import (
    TypedColumn,
    bounded_histogram,
    counted_rows,
    largest,
)
from farthing.engine.sql.conditions import condition, fixed_point
from farthing.engine.sql.measuring import Grouped, totals, weighted_values
from farthing.engine.sql.statement import Statement, Texts
from farthing.ledger.declared_data import require_location
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TEXT, TIMESTAMP, Column, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

_LARGEST = 2**63 - 1
#: The kind of each column, and what its cells are drawn from. Only `number` is text that is read as
#: something else.
_COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "member": (INTEGER, [None, 1, 2, 3, 4, _LARGEST]),
    "text": (TEXT, [None, "", "a", "A", "á", "a ", "a|b", "~p", "x'y", '"', "\\n", "${x}", "日本"]),
    "whole": (INTEGER, [None, 0, 1, -1, _LARGEST, -_LARGEST - 1]),
    "worth": (REAL, [None, 0.0, -0.5, 1.5, 2.5, 1e300, -1e300, 5e-324, 0.1]),
    "number": (TEXT, [None, "12", " 7 ", "1.50", "-0", "1e3", "9" * 40, "twelve", "", "0x10"]),
    "day": (DATE, [None, date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
    "at": (TIMESTAMP, [None, datetime(1, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999)]),
    "flag": (BOOLEAN, [None, True, False]),
}
_KINDS = {name: kind for name, (kind, _) in _COLUMNS.items()}
#: Other kinds that columns are declared to have: what does not fit is missing.
_OTHERWISE = (
    {"whole": DECIMAL, "worth": INTEGER, "number": INTEGER, "flag": TEXT, "at": DATE},
    {"whole": TEXT, "worth": BOOLEAN, "number": REAL, "flag": INTEGER, "day": TIMESTAMP},
    {"whole": BOOLEAN, "worth": DECIMAL, "number": DECIMAL, "day": TEXT, "text": DATE},
)
_FILTERS: tuple[Any, ...] = (
    None,
    {"text": ["a", "x'y", "${x}", "\\n", None]},
    {"text": {"at_least": "A", "below": "a "}},
    {"whole": {"above": -5, "at_most": _LARGEST}},
    {"not": {"any_of": [{"flag": True}, {"worth": {"below": 1.5}}]}},
    {"day": {"at_least": {"date": "2024-02-29"}}},
    {"text": "nobody has this"},
)
_SECRET = "conformance"


def check_source(place: Callable[[pa.Table], Source]) -> None:
    """Raise AssertionError, with what differs, unless the source of `place` conforms.

    `place` opens a source over the rows that it is given; each is shut when it is done with.
    """
    for count in (60, 0):
        rows = _rows(count)
        source, reference = place(rows), open_rows(rows)
        try:
            _check_itself(source)
            for asked, expected in zip(_questions(source), _questions(reference), strict=True):
                _check_same(_answer(source, *asked), _answer(reference, *expected), asked[0])
        finally:
            source.shut()
            reference.shut()


def _check_itself(source: Source) -> None:
    """It says where its rows are, answers when asked, and says no word when it fails."""
    if source.location is not None:
        require_location(source.location)
    with source.ready():
        pass
    try:
        source.run(Statement("this is no statement 'secret'", arrow_schema([])))
    except EngineFailure as failure:
        quoted = f"{failure} {failure.__cause__} {failure.__context__}"
        assert "secret" not in quoted, "a failure must not quote the statement"
    else:
        raise AssertionError("a statement that the engine cannot read must fail")


def _check_same(given: pa.Table, expected: pa.Table, what: str) -> None:
    """The same rows in any order, of exactly the types that the statement says."""
    assert given.schema == expected.schema, f"{what}: the types are {given.schema}"
    mine, theirs = (sorted(map(_shown, table.to_pylist())) for table in (given, expected))
    differ = [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]]
    assert mine == theirs, f"{what}: {len(mine)} rows for {len(theirs)}, such as {differ[:2]}"


def _shown(row: dict[str, Any]) -> str:
    """A row to be compared; 0 and -0 are one number."""
    return repr({name: x + 0.0 if isinstance(x, float) else x for name, x in row.items()})


def _answer(source: Source, what: str, expression: ir.Table, texts: Texts) -> pa.Table:
    try:
        return source.run(source.statement(expression, texts))
    except EngineFailure:
        raise AssertionError(f"{what}: it fails; the log farthing.engine says why") from None


def _questions(source: Source) -> Iterator[tuple[str, ir.Table, Texts]]:
    """What is compared: casts, categories, filters, and every way to limit a unit."""
    for kinds in ({}, *_OTHERWISE):
        yield f"casts to {kinds}", source.declared(_schema(**kinds)), Texts()
    member = Column("member", INTEGER, categories=(1, 2))
    text = Column("text", TEXT, categories=("a", "A", "\\n", "x'y"))
    yield "declared categories", source.declared(Schema((member, text))), Texts()
    for where in _FILTERS:
        texts = Texts()
        yield f"rows where {where}", _kept(source, texts, where), texts
    for where in (None, _FILTERS[-1]):
        texts = Texts()
        rows = _kept(source, texts, where)
        yield f"a count where {where}", counted_rows(rows, _who(rows), 2).expression, texts
        for by, limit in product((["text"], ["whole", "flag"], ["day", "at"]), (None, 1, 2)):
            yield f"{limit} labels of {by} where {where}", _histogram(rows, by, limit), texts
        grouped = _grouped(rows)
        pairs = grouped.pairs(total=grouped.table.value.sum(), rows=lambda t: t.count())
        amounts = [(pairs.total, 2**62), (pairs["rows"], 3)]
        yield f"totals where {where}", totals(grouped, pairs, amounts), texts
        yield f"weights where {where}", weighted_values(grouped, 2, units=True), texts


def _kept(source: Source, texts: Texts, where: Any) -> Any:
    table, wanted = source.declared(_schema()), filter_from(where)
    return table if wanted is None else table.filter(condition(table, wanted, _KINDS, texts))


def _who(rows: Any) -> TypedColumn:
    return rows.member, INTEGER


def _histogram(rows: Any, by: Sequence[str], limit: int | None) -> ir.Table:
    """The contribution limit keeps the same labels of each unit, ties by the text as bytes."""
    keys = [(rows[name], _KINDS[name]) for name in by]
    bounded = bounded_histogram(
        rows, _who(rows), keys, secret=_SECRET, contribution_limit=limit, per_key_limit=2
    )
    return largest(bounded.expression, 7) if limit == 1 else bounded.expression


def _grouped(rows: Any) -> Grouped:
    value = fixed_point(rows.worth, REAL, 1)
    table = rows.select(who=rows.member, key0=rows.text, value=value)
    table = table.filter(table.who.notnull() & table.value.notnull())
    return Grouped(table, {"who": INTEGER, "key0": TEXT}, _SECRET, 2)


def _schema(**kinds: str) -> Schema:
    return Schema(
        tuple(
            Column(name, kind, places=2) if kind == DECIMAL else Column(name, kind)
            for name, kind in {**_KINDS, **kinds}.items()
        )
    )


def _rows(count: int) -> pa.Table:
    import pyarrow as pa

    draw = random.Random(count)
    drawn = {
        name: [draw.choice(cells) for _ in range(count)] for name, (_, cells) in _COLUMNS.items()
    }
    return pa.table(drawn, schema=arrow_schema(_schema().columns))
