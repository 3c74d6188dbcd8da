"""What one analyst was told and may see again at no cost.

What others were told is not even read: how long it takes would tell how much it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, select

from farthing.canonical import canonical
from farthing.composition.tariffs.tariff import Price
from farthing.ledger.lookups import entry_at, row_of_dataset
from farthing.ledger.open_book import OpenBook
from farthing.ledger.records import KeptRelease
from farthing.ledger.store.tables import datasets, entries

_OF_DATASET = (
    select(entries.c.fact)
    .join(datasets, entries.c.dataset_id == datasets.c.id)
    .where(datasets.c.name == bindparam("dataset"))
)
_OWN = _OF_DATASET.where(
    entries.c.released.is_not(None), entries.c.fact.like(bindparam("own"), escape="/")
).order_by(entries.c.number.desc())
_OWN_OF_QUESTION = _OWN.where(entries.c.released == bindparam("asked"))
_NUMBERED = _OF_DATASET.where(entries.c.number == bindparam("number"))


def last_release(
    book: OpenBook, dataset: str, analyst: str, question_digest: str
) -> KeptRelease | None:
    """The last one for a question. Entries never change, so two looks are as good as one."""
    given = {"dataset": dataset, "own": _mentions(analyst), "asked": question_digest}
    for row in book.store.look_up(_OWN_OF_QUESTION, given):
        closed = json.loads(row[0])
        if closed["analyst"] == analyst:
            wanted = {"dataset": dataset, "number": closed["settles"]}
            return _kept(closed, json.loads(book.store.look_up(_NUMBERED, wanted)[0][0]))
    return None


def all_releases(book: OpenBook, dataset: str, analyst: str) -> list[KeptRelease]:
    """Everything that was kept, the latest first."""

    def look(connection: Connection) -> list[KeptRelease]:
        number = row_of_dataset(connection, dataset)
        rows = connection.scalars(_OWN, {"dataset": dataset, "own": _mentions(analyst)})
        return [
            _kept(closed, entry_at(connection, number, closed["settles"]).fact)
            for closed in map(json.loads, rows)
            if closed["analyst"] == analyst
        ]

    return book.store.ask(look)


def _mentions(analyst: str) -> str:
    """A pattern for facts that name this analyst; some others may match it too."""
    name = canonical(analyst).replace("/", "//").replace("%", "/%").replace("_", "/_")
    return f'%"analyst":{name}%'


def _kept(closed: Mapping[str, Any], reserved: Mapping[str, Any]) -> KeptRelease:
    return KeptRelease(
        time=closed["time"],
        question=reserved["question"],
        release=closed["release"],
        release_digest=closed["release_digest"],
        price=Price(
            reserved["farthings"] + closed["farthings"],
            reserved["delta_units"] + closed["delta_units"],
        ),
    )
