"""What one analyst was told and may see again at no cost.

What others were told is not read: how long it takes would tell how much it is. Only the search for
batches passes over what others reserved, each entry once (docs/known-limits.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

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
from farthing.ledger.entries import Close, Reserve, written_fact
from farthing.ledger.errors import Damaged
from farthing.ledger.records import KeptRelease, ReleaseSummary
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.queries import entry_at, row_of_dataset
from farthing.ledger.store.tables import datasets, entries

#: Questions by name that were answered together, and the entry that keeps the answers.
Batch: TypeAlias = tuple[int, Mapping[str, Any]]

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


@dataclass(frozen=True, slots=True)
class EarlierRelease:
    """What was told before: a release, or the batches in which it may be.

    `seen` is the entry up to which batches were looked for, so that each is read once.
    """

    release: KeptRelease | None
    batches: list[Batch]
    seen: int


def last_release(
    book: OpenBook, dataset: str, analyst: str, question_digest: str
) -> KeptRelease | None:
    """The last one for a question."""
    return earlier_release(book, dataset, analyst, question_digest, None).release


def earlier_release(
    book: OpenBook, dataset: str, analyst: str, question_digest: str, after: int | None
) -> EarlierRelease:
    """The last release for a question; if there is none, the batches that are newer than `after`.

    A question may have been answered in one of them.
    """

    def look(connection: Connection) -> EarlierRelease:
        row = row_of_dataset(connection, dataset)
        given = {"dataset": dataset, "own": _mentions(analyst), "asked": question_digest}
        for number, written in connection.execute(_OWN_OF_QUESTION, given):
            closed = written_fact(written)
            if isinstance(closed, Close) and closed.analyst == analyst:
                reserved = _reserved(connection, row, closed.settles)
                return EarlierRelease(_kept(number, closed, reserved), [], after or 0)
        if after is None:
            return EarlierRelease(None, [], 0)
        head = connection.scalars(select(datasets.c.number).filter_by(id=row)).one()
        newer = {"row": row, "own": _mentions(analyst), "after": after}
        facts = ((n, written_fact(fact)) for n, fact in connection.execute(_TOGETHER, newer))
        batches = [
            (n, fact.question)
            for n, fact in facts
            if isinstance(fact, Reserve) and fact.analyst == analyst
        ]
        return EarlierRelease(None, batches, head)

    return book.store.ask(look)


def release_in(book: OpenBook, dataset: str, analyst: str, entry: int) -> KeptRelease | None:
    """The one that this entry keeps, if it is this analyst's."""

    def look(connection: Connection) -> KeptRelease | None:
        row = row_of_dataset(connection, dataset)
        written = connection.execute(_NUMBERED, {"dataset": dataset, "number": entry}).one_or_none()
        closed = None if written is None else written_fact(written.fact)
        if not isinstance(closed, Close) or closed.analyst != analyst or closed.release is None:
            return None
        return _kept(entry, closed, _reserved(connection, row, closed.settles))

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
            ReleaseSummary(number, time, reserved.question, reserved.price - back)
            for number, time, back, reserved in (
                (number, json.loads(time), Price(-int(f), -int(d)), _reserved(connection, row, n))
                for number, n, time, f, d in connection.execute(page, given).all()
            )
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


def _reserved(connection: Connection, row: int, number: int) -> Reserve:
    """What was reserved in this entry."""
    fact = entry_at(connection, row, number).fact
    if not isinstance(fact, Reserve):
        raise Damaged(f"entry {number} reserves nothing", fact.dataset, number)
    return fact


def _kept(number: int, closed: Close, reserved: Reserve) -> KeptRelease:
    return KeptRelease(
        number,
        closed.time,
        reserved.question,
        reserved.price - closed.back,
        release=closed.release,
        release_digest=closed.release_digest,
    )
