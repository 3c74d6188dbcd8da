"""The releases of one analyst, which they may see again at no cost.

Releases of others are not read: the time that takes would tell how many there are. Only the search
for batches passes over what others reserved, each entry once (docs/known-limits.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import JSON, Connection, Select, Text, and_, bindparam, cast, literal, select

from farthing.canonical import canonical
from farthing.composition.tariffs.tariff import Price
from farthing.ledger.entries.charges import Close, Reserve
from farthing.ledger.entries.fact import written_fact
from farthing.ledger.errors import Damaged, NotInLedger
from farthing.ledger.records import KeptRelease, ReleaseSummary
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.queries import entry_at, head_of
from farthing.ledger.store.tables import entries

#: The entry that keeps the answers of a batch, and its questions by name.
Batch: TypeAlias = tuple[int, Mapping[str, Any]]

#: Latest first.
_OWN = (
    select(entries.c.number, entries.c.fact)
    .where(
        entries.c.dataset_id == bindparam("row"),
        entries.c.released.is_not(None),
        entries.c.released == bindparam("asked"),
        entries.c.fact.like(bindparam("own"), escape="/"),
    )
    .order_by(entries.c.number.desc())
)
_RESERVED = entries.alias()
#: Reservations for several questions together. Their questions have names; a single one has none.
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
_SUMMARY = ("time", "farthings", "delta_units")


@dataclass(frozen=True, slots=True)
class EarlierRelease:
    """An earlier release, or the batches that may hold it.

    `seen` is the entry up to which batches were looked for, so that each is read once.
    """

    release: KeptRelease | None
    batches: list[Batch]
    seen: int


def earlier_release(
    book: OpenBook, dataset: str, analyst: str, question_digest: str, after: int | None
) -> EarlierRelease:
    """The last release for a question; if there is none, the batches that are newer than `after`.

    The question may have been answered in one of them.
    """

    def look(connection: Connection, row: int) -> EarlierRelease:
        given = {"row": row, "own": _mentions(analyst), "asked": question_digest}
        for number, written in connection.execute(_OWN, given):
            closed = written_fact(written)
            if isinstance(closed, Close) and closed.analyst == analyst:
                return EarlierRelease(_kept(connection, row, number, closed), [], after or 0)
        if after is None:
            return EarlierRelease(None, [], 0)
        newer = {"row": row, "own": _mentions(analyst), "after": after}
        facts = ((n, written_fact(fact)) for n, fact in connection.execute(_TOGETHER, newer))
        batches = [
            (n, fact.question)
            for n, fact in facts
            if isinstance(fact, Reserve) and fact.analyst == analyst
        ]
        return EarlierRelease(None, batches, head_of(connection, row))

    return book.ask(dataset, look)


def release_in(book: OpenBook, dataset: str, analyst: str, entry: int) -> KeptRelease | None:
    """The release that this entry keeps, if it is this analyst's."""

    def look(connection: Connection, row: int) -> KeptRelease | None:
        try:
            closed = entry_at(connection, row, entry).fact
        except NotInLedger:
            return None
        if not isinstance(closed, Close) or closed.analyst != analyst or closed.release is None:
            return None
        return _kept(connection, row, entry, closed)

    return book.ask(dataset, look)


def page_of_releases(
    book: OpenBook, dataset: str, analyst: str, before: int | None, limit: int | None
) -> list[ReleaseSummary]:
    """Summaries of the releases before this entry, the latest first.

    The database cuts the page, and reads the summaries out of facts that may hold a hundred
    thousand labels.
    """

    def look(connection: Connection, row: int) -> list[ReleaseSummary]:
        given = {"row": row, "own": _mentions(analyst), "name": canonical(analyst)}
        page = connection.execute(_page(connection, before).limit(limit), given).all()
        summaries = []
        for number, settles, time, farthings, delta_units in page:
            reserved = _reserved(connection, row, settles)
            price = reserved.price + Price(int(farthings), int(delta_units))  # negative: came back
            summaries.append(ReleaseSummary(number, json.loads(time), reserved.question, price))
        return summaries

    return book.ask(dataset, look)


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


def _reserved(connection: Connection, row: int, number: int) -> Reserve:
    """The reservation in this entry."""
    fact = entry_at(connection, row, number).fact
    if not isinstance(fact, Reserve):
        raise Damaged(f"entry {number} reserves nothing", fact.dataset, number)
    return fact


def _kept(connection: Connection, row: int, number: int, closed: Close) -> KeptRelease:
    reserved = _reserved(connection, row, closed.settles)
    return KeptRelease(
        number,
        closed.time,
        reserved.question,
        reserved.price - closed.back,
        release=closed.release,
        release_digest=closed.release_digest,
    )
