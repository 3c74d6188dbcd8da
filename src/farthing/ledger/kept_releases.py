"""What one analyst was told and may see again at no cost.

What others were told is not even read: how long it takes would tell how much it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    JSON,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    literal,
    select,
)

from farthing.canonical import canonical
from farthing.composition.tariffs.tariff import Price
from farthing.ledger.lookups import entry_at, row_of_dataset
from farthing.ledger.open_book import OpenBook
from farthing.ledger.records import KeptRelease, ReleaseSummary
from farthing.ledger.store.tables import datasets, entries

_OF_DATASET = (
    select(entries.c.number, entries.c.fact)
    .join(datasets, entries.c.dataset_id == datasets.c.id)
    .where(datasets.c.name == bindparam("dataset"))
)
_OWN = _OF_DATASET.where(
    entries.c.released.is_not(None), entries.c.fact.like(bindparam("own"), escape="/")
).order_by(entries.c.number.desc())
_OWN_OF_QUESTION = _OWN.where(entries.c.released == bindparam("asked"))
_RESERVED = entries.alias()
#: What was reserved for several questions together. They are kept by name; one alone has no name.
_TOGETHER = (
    select(entries.c.number, _RESERVED.c.fact)
    .join(
        _RESERVED,
        and_(
            _RESERVED.c.dataset_id == entries.c.dataset_id, _RESERVED.c.number == entries.c.settles
        ),
    )
    .where(
        entries.c.dataset_id == bindparam("row"),
        entries.c.released.is_not(None),
        entries.c.number > bindparam("after"),
        _RESERVED.c.fact.like(bindparam("own"), escape="/"),
        _RESERVED.c.fact.not_like('%"question":{"":%'),
    )
    .order_by(entries.c.number)
)
_NUMBERED = _OF_DATASET.where(entries.c.number == bindparam("number"))
_SUMMARY = ("time", "farthings", "delta_units")


def last_release(
    book: OpenBook, dataset: str, analyst: str, question_digest: str
) -> KeptRelease | None:
    """The last one for a question. Entries never change, so two looks are as good as one."""
    given = {"dataset": dataset, "own": _mentions(analyst), "asked": question_digest}
    for number, fact in book.store.look_up(_OWN_OF_QUESTION, given):
        closed = json.loads(fact)
        if closed["analyst"] == analyst:
            return _kept(book, dataset, number, closed)
    return None


def release_in(book: OpenBook, dataset: str, analyst: str, entry: int) -> KeptRelease | None:
    """The one that this entry keeps, if it is this analyst's."""
    for number, fact in book.store.look_up(_NUMBERED, {"dataset": dataset, "number": entry}):
        closed = json.loads(fact)
        if closed.get("analyst") == analyst and closed.get("release") is not None:
            return _kept(book, dataset, number, closed)
    return None


def batches_after(
    book: OpenBook, dataset: str, analyst: str, after: int
) -> list[tuple[int, Mapping[str, Any]]]:
    """Questions by name that were answered together since an entry, and the entry of each."""

    def look(connection: Connection) -> list[tuple[int, Mapping[str, Any]]]:
        row = row_of_dataset(connection, dataset)
        given = {"row": row, "own": _mentions(analyst), "after": after}
        rows = ((n, json.loads(fact)) for n, fact in connection.execute(_TOGETHER, given))
        return [(n, fact["question"]) for n, fact in rows if fact["analyst"] == analyst]

    return book.store.ask(look)


def page_of_releases(
    book: OpenBook, dataset: str, analyst: str, before: int | None, limit: int | None
) -> list[ReleaseSummary]:
    """What was kept before this entry, the latest first, without what was released.

    The database cuts the page, and reads its summaries out of facts that may hold a hundred
    thousand labels.
    """

    def look(connection: Connection) -> list[ReleaseSummary]:
        row = row_of_dataset(connection, dataset)
        given = {"row": row, "own": _mentions(analyst), "name": canonical(analyst)}
        page = _page(connection, before).limit(limit)
        return [
            _summary(
                number,
                dict(zip(_SUMMARY, map(json.loads, parts), strict=True)),
                entry_at(connection, row, settles).fact,
            )
            for number, settles, *parts in connection.execute(page, given).all()
        ]

    return book.store.ask(look)


def _page(connection: Connection, before: int | None) -> Select[Any]:
    """Both databases have the operator `->`, which gives a part of JSON as it is written."""
    fact = entries.c.fact if connection.dialect.name == "sqlite" else cast(entries.c.fact, JSON)
    analyst, *parts = (cast(fact.op("->")(literal(n)), Text) for n in ("analyst", *_SUMMARY))
    page = select(entries.c.number, entries.c.settles, *parts).where(
        entries.c.dataset_id == bindparam("row"),
        entries.c.released.is_not(None),
        entries.c.fact.like(bindparam("own"), escape="/"),
        analyst == bindparam("name"),
    )
    page = page if before is None else page.where(entries.c.number < before)
    return page.order_by(entries.c.number.desc())


def _mentions(analyst: str) -> str:
    """A pattern for facts that name this analyst; some others may match it too."""
    name = canonical(analyst).replace("/", "//").replace("%", "/%").replace("_", "/_")
    return f'%"analyst":{name}%'


def _summary(number: int, closed: Mapping[str, Any], reserved: Mapping[str, Any]) -> ReleaseSummary:
    return ReleaseSummary(
        entry=number,
        time=closed["time"],
        question=reserved["question"],
        price=Price(
            reserved["farthings"] + closed["farthings"],
            reserved["delta_units"] + closed["delta_units"],
        ),
    )


def _kept(book: OpenBook, dataset: str, number: int, closed: Mapping[str, Any]) -> KeptRelease:
    wanted = {"dataset": dataset, "number": closed["settles"]}
    ((_, reserved),) = book.store.look_up(_NUMBERED, wanted)
    summary = _summary(number, closed, json.loads(reserved))
    return KeptRelease(
        summary.entry,
        summary.time,
        summary.question,
        summary.price,
        release=closed["release"],
        release_digest=closed["release_digest"],
    )
