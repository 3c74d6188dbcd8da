"""Exported books written into a ledger: copies for reading, or books that were sealed for it.

The chain and the balances are checked on the way in, and it is all or nothing. What comes in is a
copy: everything in it can be read and verified, and nothing written. A longer export of the same
chain extends a copy.

A book whose last entry is a seal that names this ledger can be taken over: an entry says so, and
it goes on here. Anybody who has an export can add such a seal to it, so whoever takes a book over
shows the seal as it was seen in the source, by its hash. `move` does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from farthing.canonical import canonical
from farthing.errors import InvalidInput
from farthing.ledger.chain_check import ChainCheck, require_company
from farthing.ledger.entries import Fact, Resume
from farthing.ledger.errors import AlreadyThere, Damaged
from farthing.ledger.ledger import Ledger
from farthing.ledger.records import require_name
from farthing.ledger.store import commands
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.queries import all_declared, identity_of_ledger
from farthing.ledger.store.tables import accounts, datasets, entries, lots, purses
from farthing.ledger.transfer.export import FORMAT
from farthing.ledger.transfer.moving_conversations import (
    Carried,
    CarriedConversation,
    end_without_noise,
    unpack,
)
from farthing.ledger.writes.data import new_dataset, one_adds_at_a_time, require_place

#: Entries that are inserted at a time.
_CHUNK = 1000
_FIELDS = {"dataset": str, "number": int, "fact": dict, "previous": str, "hash": str}


def import_lines(
    ledger: Ledger,
    lines: Iterable[str],
    carried: Carried | None = None,
    *,
    take_over: Collection[str] = (),
) -> dict[str, int]:
    """Write exported books into a ledger; gives the number of entries of each.

    `take_over` are the heads of the books that go on here, as the source shows them now: the
    hashes of the seals that name this ledger. Everything else is a copy for reading.

    `carried` are the conversations of books that are taken over, with their noise, which is never
    in an export. Those that are open and do not come along end here.
    """
    given, along, heads = parsed(lines), carried or {}, frozenset(take_over)
    counts = ledger.book.store.write(
        lambda connection: _import(connection, ledger.book, given, along, heads)
    )
    assert counts is not None
    return counts


def parsed(lines: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """The entries of each dataset in an export, their shape checked."""
    records: dict[str, list[dict[str, Any]]] = {}
    for place, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise InvalidInput(f"line {place} must be JSON") from None
        if place == 1:
            if record != {"format": FORMAT}:
                raise InvalidInput(f"the first line must say the format {FORMAT!r}")
            continue
        if not isinstance(record, dict) or {k: type(v) for k, v in record.items()} != _FIELDS:
            raise InvalidInput(f"line {place} must be an entry of a ledger")
        require_name(f"the dataset in line {place}", record["dataset"])
        records.setdefault(record["dataset"], []).append(record)
    return records


def _import(
    connection: Connection,
    book: OpenBook,
    given: dict[str, list[dict[str, Any]]],
    carried: Carried,
    heads: frozenset[str],
) -> dict[str, int]:
    one_adds_at_a_time(connection)
    here = identity_of_ledger(connection)
    checked = write_books(connection, given)
    wanted = {walk.hash: walk for walk in checked.values() if walk.state.sealed_for == here}
    if heads - wanted.keys():
        raise InvalidInput(
            f"no book that came ends with a seal {min(heads - wanted.keys()):.80} for this ledger; "
            "seal it, and show the head that the source has then"
        )
    for head, walk in wanted.items():
        if head in heads:
            _take_over(connection, book, walk, carried.get(walk.dataset, []))
    return {name: walk.number for name, walk in checked.items()}


def write_books(
    connection: Connection, given: dict[str, list[dict[str, Any]]]
) -> dict[str, ChainCheck]:
    """Copies of these books, checked; what shares data comes together."""
    checked = {name: _write_book(connection, name, records) for name, records in given.items()}
    for walk in checked.values():
        require_company(all_declared(connection), walk)
    return checked


def _write_book(connection: Connection, name: str, records: list[dict[str, Any]]) -> ChainCheck:
    """One dataset's entries and the balances that follow from them; closed for writing."""
    row, length, head = _place_for(connection, name)
    walk = ChainCheck(name)
    pending: list[dict[str, Any]] = []
    for record in records:
        written = canonical(record["fact"])
        fact = walk.take(record["number"], written, record["previous"], record["hash"])
        if walk.number == length and walk.hash != head:
            raise AlreadyThere(f"the book of {name} here is another one")
        if walk.number > length:
            pending.append(_entry_row(row, written, fact, record))
        if len(pending) == _CHUNK:
            connection.execute(insert(entries), pending)
            pending = []
    if pending:
        connection.execute(insert(entries), pending)
    if walk.number < length:
        raise AlreadyThere(f"the book of {name} here is longer: {length} entries")
    declared = walk.state.declaration
    if declared is None or declared.dataset.name != name:
        raise Damaged(f"entry 1 does not describe {name}", name, 1)
    _write_head(connection, row, walk)
    return walk


def _place_for(connection: Connection, name: str) -> tuple[int, int, str]:
    """The row of a copy that is there, its length and its head; or of a new one, empty."""
    found = connection.execute(select(datasets).filter_by(name=name)).one_or_none()
    if found is None:
        return new_dataset(connection, name), 0, ""
    if found.writable:
        raise AlreadyThere(f"dataset {name} exists and goes on here; a copy goes elsewhere")
    return found.id, found.number, found.hash


def _entry_row(row: int, written: str, fact: Fact, record: dict[str, Any]) -> dict[str, Any]:
    return {
        "dataset_id": row,
        "number": record["number"],
        "fact": written,
        "previous": record["previous"],
        "hash": record["hash"],
        **commands.repeated_columns(fact),
    }


def _write_head(connection: Connection, row: int, walk: ChainCheck) -> None:
    connection.execute(
        update(datasets)
        .filter_by(id=row)
        .values(
            number=walk.number,
            previous=walk.previous,
            hash=walk.hash,
            declared=walk.state.declared,
            writable=0,
        )
    )
    write_balances(connection, row, walk)


def write_balances(connection: Connection, row: int, walk: ChainCheck) -> None:
    """What the entries of a book add up to."""
    for table, rows in (
        (accounts, walk.state.accounts.values()),
        (purses, walk.state.purses.values()),
        (lots, walk.state.lots.values()),
    ):
        connection.execute(delete(table).filter_by(dataset_id=row))
        if rows:
            connection.execute(insert(table), [{"dataset_id": row, **one} for one in rows])


def _take_over(
    connection: Connection, book: OpenBook, walk: ChainCheck, carried: list[CarriedConversation]
) -> None:
    """The seal names this ledger: from here on the book is written here."""
    require_place(all_declared(connection), walk.state.declared_data())
    row = connection.scalars(select(datasets.c.id).filter_by(name=walk.dataset)).one()
    connection.execute(update(datasets).filter_by(id=row).values(writable=1))
    here = identity_of_ledger(connection)
    fact = Resume(**book.stamp(walk.dataset), seal=walk.hash, ledger=here)
    entry = commands.append(connection, row, fact, commands.new_token())
    opened = walk.state.conversations
    unpack(connection, row, carried, opened)
    for identity in opened.keys() - {one.row["id"] for one in carried}:
        if opened[identity].open:
            lost = end_without_noise(book, walk.dataset, identity, opened[identity])
            entry = commands.append(connection, row, lost, commands.new_token())
    walk.number = entry.number
