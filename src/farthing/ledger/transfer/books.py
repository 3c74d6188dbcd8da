"""Books as JSON Lines, one entry a line: written by `export_lines`, read by `import_lines`.

An import checks the chain and the balances, and writes all books or none. An imported book is a
copy: everything in it can be read and verified, and nothing written. A longer export of the same
chain extends a copy.

A book whose last entry is a seal that names this ledger can be taken over: an entry says so, and it
goes on here. Anybody who has an export can add such a seal to it, so whoever takes a book over
shows the hash of the seal as the source has it. `move` does.

An export holds no noise. When a book moves, what its conversations need goes from store to store in
memory, beside the export, and is then removed where it came from.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, insert, select, update

from farthing.canonical import canonical
from farthing.errors import InvalidInput
from farthing.ledger.entries.analyst import EndConversation
from farthing.ledger.entries.fact import (
    ENTRIES_BETWEEN_NEWS,
    ChainCheck,
    Entry,
    Fact,
    Opened,
    require_company,
    start_of,
)
from farthing.ledger.entries.owner import Resume
from farthing.ledger.errors import AlreadyThere, Damaged
from farthing.ledger.ledger import Ledger
from farthing.ledger.records import require_name
from farthing.ledger.roles.owner import new_dataset, require_place
from farthing.ledger.roles.reader import Reader
from farthing.ledger.store import commands, queries
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.tables import (
    accounts,
    conversations,
    datasets,
    entries,
    lots,
    purses,
    secrets,
    turns,
)
from farthing.progress import tell

FORMAT = "farthing ledger 1"
#: Why a conversation ended whose noise did not come along.
WITHOUT_NOISE = "its book was taken over from an export, which holds no noise"
#: How many entries are inserted at a time.
_CHUNK = 1000
_FIELDS = {"dataset": str, "number": int, "fact": dict, "previous": str, "hash": str}
#: The lines of an export, parsed, by dataset.
Records: TypeAlias = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class CarriedConversation:
    """A conversation on its way to another ledger: its row, its turns and its noise."""

    row: dict[str, Any]
    turns: list[dict[str, Any]] = field(repr=False)
    noise: str | None = field(repr=False)


#: The conversations of each dataset.
Carried: TypeAlias = Mapping[str, list[CarriedConversation]]


def export_lines(reader: Reader, dataset: str | None = None) -> Iterator[str]:
    """Every book at one moment, or this one and those beside it; the first line is the format."""
    yield canonical({"format": FORMAT})
    with reader.snapshot() as connection:
        names: Iterable[str] = queries.dataset_names(connection)
        if dataset is not None:
            queries.row_of_dataset(connection, dataset)
            names = queries.datasets_beside(queries.all_declared(connection), dataset)
        for name in names:
            with queries.entry_rows(connection, queries.row_of_dataset(connection, name)) as rows:
                for entry in map(queries.entry_of, rows):
                    if entry.number % ENTRIES_BETWEEN_NEWS == 0:
                        tell(f"{entry.number} entries of {name}")
                    yield canonical(
                        {
                            "dataset": name,
                            "number": entry.number,
                            "fact": entry.fact.to_json(),
                            "previous": entry.previous,
                            "hash": entry.hash,
                        }
                    )


def import_lines(
    ledger: Ledger,
    lines: Iterable[str],
    carried: Carried | None = None,
    *,
    take_over: Collection[str] = (),
) -> dict[str, int]:
    """Write exported books into a ledger; gives the number of entries of each.

    `take_over` are the heads of the books that go on here, as the source shows them now: the
    hashes of the seals that name this ledger. Every other book is a copy for reading.

    `carried` are the conversations of books that are taken over, with their noise, which is never
    in an export. Open conversations that are not carried end here.
    """
    given, along, heads = parsed(lines), carried or {}, frozenset(take_over)
    counts = ledger.book.store.write(
        lambda connection: _import(connection, ledger.book, given, along, heads)
    )
    assert counts is not None
    return counts


def parsed(lines: Iterable[str]) -> Records:
    """The entries of each dataset in an export, their shape checked."""
    records: Records = {}
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
    connection: Connection, book: OpenBook, given: Records, carried: Carried, heads: frozenset[str]
) -> dict[str, int]:
    commands.lock_for_adding(connection)
    here = queries.identity_of_ledger(connection)
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


def write_books(connection: Connection, given: Records) -> dict[str, ChainCheck]:
    """Write copies of these books, checked; datasets that share data must come together."""
    checked = {name: _write_book(connection, name, records) for name, records in given.items()}
    for walk in checked.values():
        require_company(queries.all_declared(connection), walk)
    return checked


def take_record(walk: ChainCheck, record: dict[str, Any]) -> tuple[str, Fact]:
    """Check one more line of an export; gives its canonical text and its fact."""
    written = canonical(record["fact"])
    fact = walk.take(record["number"], written, record["previous"], record["hash"])
    return written, fact


def _write_book(connection: Connection, name: str, records: list[dict[str, Any]]) -> ChainCheck:
    """One dataset's entries and the balances that follow from them; closed for writing."""
    row, length, head = _place_for(connection, name)
    walk = ChainCheck(name)
    pending: list[dict[str, Any]] = []
    for record in records:
        written, fact = take_record(walk, record)
        if walk.number == length and walk.hash != head:
            raise AlreadyThere(f"the book of {name} here is another one")
        if walk.number > length:
            place = {key: record[key] for key in ("number", "previous", "hash")}
            repeated = commands.repeated_columns(fact)
            pending.append({"dataset_id": row, "fact": written, **place, **repeated})
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
    return walk


def _place_for(connection: Connection, name: str) -> tuple[int, int, str]:
    """The row, length and head of a copy that is there; or of a new one, empty."""
    kept = connection.execute(select(datasets).filter_by(name=name)).one_or_none()
    if kept is None:
        return new_dataset(connection, name), 0, ""
    if kept.writable:
        raise AlreadyThere(f"dataset {name} exists and goes on here; a copy goes elsewhere")
    return kept.id, kept.number, kept.hash


def write_balances(connection: Connection, row: int, walk: ChainCheck) -> None:
    """Write the balances that the entries of a book add up to."""
    for table, rows in (
        (accounts, walk.state.accounts.values()),
        (purses, walk.state.purses.values()),
        (lots, walk.state.lots.values()),
    ):
        connection.execute(delete(table).filter_by(dataset_id=row))
        if rows:
            connection.execute(insert(table), [{"dataset_id": row, **values} for values in rows])


def open_for_writing(connection: Connection, walk: ChainCheck) -> int:
    """Let a copy go on here, if its data is in no other book; gives its row."""
    require_place(queries.all_declared(connection), walk.state.declared_data())
    row = queries.row_of_dataset(connection, walk.dataset)
    connection.execute(update(datasets).filter_by(id=row).values(writable=1))
    return row


def write_entry(connection: Connection, row: int, fact: Fact) -> Entry:
    """Write an entry under a token of its own."""
    return commands.append(connection, row, fact, commands.new_token())


def _take_over(
    connection: Connection, book: OpenBook, walk: ChainCheck, carried: list[CarriedConversation]
) -> None:
    """The seal names this ledger: from here on the book is written here."""
    row = open_for_writing(connection, walk)
    here = queries.identity_of_ledger(connection)
    fact = Resume(**book.stamp(walk.dataset), seal=walk.hash, ledger=here)
    entry = write_entry(connection, row, fact)
    opened = walk.state.conversations
    _unpack(connection, row, carried, opened)
    for identity in opened.keys() - {moved.row["id"] for moved in carried}:
        if opened[identity].open:
            lost = end_without_noise(book, walk.dataset, identity, opened[identity])
            entry = write_entry(connection, row, lost)
    walk.number = entry.number


def pack(connection: Connection, dataset: str) -> list[CarriedConversation]:
    """Everything that the conversations of a dataset need elsewhere."""
    row = queries.row_of_dataset(connection, dataset)
    kept = connection.execute(select(conversations).filter_by(dataset_id=row)).all()
    return [
        CarriedConversation(
            row=conversation._asdict(),
            turns=[
                turn._asdict()
                for turn in connection.execute(
                    select(turns).filter_by(conversation=conversation.id)
                )
            ],
            noise=commands.noise_of(connection, conversation.id),
        )
        for conversation in kept
    ]


def _unpack(
    connection: Connection,
    row: int,
    carried: list[CarriedConversation],
    opened: Mapping[str, Opened],
) -> None:
    """Write conversations under the dataset's row here; those that had not ended go on.

    A book may come back to a ledger that it left: what it left there is replaced.
    """
    here = select(conversations.c.id).filter_by(dataset_id=row)
    for table in (secrets, turns):
        connection.execute(delete(table).where(table.c.conversation.in_(here)))
    connection.execute(delete(conversations).filter_by(dataset_id=row))
    for moved in carried:
        identity = moved.row["id"]
        values = {**moved.row, "dataset_id": row, "open": 1 if opened[identity].open else 0}
        connection.execute(insert(conversations).values(**values))
        if moved.turns:
            connection.execute(insert(turns), moved.turns)
        if moved.noise is not None:
            connection.execute(insert(secrets).values(conversation=identity, state=moved.noise))


def forget_noise(connection: Connection, dataset: str) -> bool:
    """Remove the noise of a book that has moved: it is in the other ledger now."""
    row = queries.row_of_dataset(connection, dataset)
    here = select(conversations.c.id).filter_by(dataset_id=row)
    connection.execute(delete(secrets).where(secrets.c.conversation.in_(here)))
    return True


def end_without_noise(
    book: OpenBook, dataset: str, identity: str, opened: Opened
) -> EndConversation:
    """The fact that ends a conversation whose noise did not come along. It stays spent."""
    asked, head = opened.marks[-1] if opened.marks else (0, start_of(identity))
    return EndConversation(
        **book.stamp(dataset),
        conversation=identity,
        analyst=opened.analyst,
        settles=opened.entry,
        asked=asked,
        head=head,
        reason=WITHOUT_NOISE,
    )
