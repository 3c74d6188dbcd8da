"""Books that leave one ledger and arrive in another: export, import, move, back up, restore.

At no moment can two ledgers spend from the same budget.

An export is JSON Lines, one entry a line. An import checks the chain and the balances, and writes
all books or none. An imported book is a copy: everything in it can be read and verified, and
nothing written. A longer export of the same chain extends a copy.

A book whose last entry is a seal that names this ledger can be taken over: an entry says so, and it
goes on here. Anybody who has an export can add such a seal to it, so whoever takes a book over
shows the hash of the seal as the source has it. `move` does:

    seal in the source  →  export, and the noise beside it  →  import into the target

Moving is one transaction of the source, the seal, and one of the target, the import. Between them
nobody can spend, and `move` called again continues from there. An export holds no noise: what the
conversations need goes from store to store in memory, and is then removed where it came from.

Restoring is for a ledger that was lost. A copy is older than its book: what was spent in between is
not in it, and selling from it would spend that twice. So `restore` counts every account of the copy
as spent in full, which is the most that can have been spent, and closes it. Then the book can be
written again: its owner signs a tariff for what is still to be given away, and statements compose
it with all of the old ones. That holds even if the lost ledger turns up again and still sells.
Whatever was opened after the copy was made (a tariff, a list, a dataset) is not in the copy, and
no statement can count it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
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
from farthing.ledger.entries.owner import Restore, Resume, Seal
from farthing.ledger.errors import AlreadyThere, Damaged, ReadOnly, Sealed
from farthing.ledger.ledger import Ledger
from farthing.ledger.records import require_name
from farthing.ledger.roles.charges import abandoned
from farthing.ledger.roles.owner import new_dataset, require_place
from farthing.ledger.roles.reader import Reader
from farthing.ledger.store import commands, queries
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.tables import conversations, datasets, entries, secrets, turns
from farthing.progress import tell
from farthing.whole_files import whole_file

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
                    place = {"number": entry.number, "previous": entry.previous, "hash": entry.hash}
                    yield canonical({"dataset": name, "fact": entry.fact.to_json(), **place})


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
    along, heads = carried or {}, frozenset(take_over)

    def go_on(connection: Connection, checked: Collection[ChainCheck]) -> None:
        here = queries.identity_of_ledger(connection)
        wanted = {walk.hash: walk for walk in checked if walk.state.sealed_for == here}
        if heads - wanted.keys():
            raise InvalidInput(
                f"no book that came ends with a seal {min(heads - wanted.keys()):.80} for this "
                "ledger; seal it, and show the head that the source has then"
            )
        for walk in (walk for head, walk in wanted.items() if head in heads):
            _take_over(connection, ledger.book, walk, along.get(walk.dataset, []))

    return _write_books(ledger, lines, go_on)


def restore(ledger: Ledger, lines: Iterable[str]) -> dict[str, int]:
    """Let every book of a copy go on here; gives the entries of each. All or nothing."""

    def go_on(connection: Connection, checked: Collection[ChainCheck]) -> None:
        for walk in checked:
            if walk.state.sealed_for is not None:
                raise Sealed(walk.dataset, walk.state.sealed_for)
        for walk in checked:
            _restore(connection, ledger.book, walk)

    return _write_books(ledger, lines, go_on)


def _write_books(
    ledger: Ledger,
    lines: Iterable[str],
    go_on: Callable[[Connection, Collection[ChainCheck]], None],
) -> dict[str, int]:
    """Write copies of these books, checked, and let some go on, in one transaction.

    Datasets that share data must come together.
    """
    given = _parsed(lines)

    def work(connection: Connection) -> dict[str, int]:
        commands.lock_for_adding(connection)
        checked = {name: _write_book(connection, name, given[name]) for name in given}
        for walk in checked.values():
            require_company(queries.all_declared(connection), walk)
        go_on(connection, checked.values())
        return {name: walk.number for name, walk in checked.items()}

    counts = ledger.book.store.write(work)
    assert counts is not None
    return counts


def _parsed(lines: Iterable[str]) -> Records:
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


def _take_record(walk: ChainCheck, record: dict[str, Any]) -> tuple[str, Fact]:
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
        written, fact = _take_record(walk, record)
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
    end = {"number": walk.number, "previous": walk.previous, "hash": walk.hash}
    copy = update(datasets).filter_by(id=row).values(declared=walk.state.declared, writable=0)
    connection.execute(copy.values(**end))
    _write_balances(connection, row, walk)
    return walk


def _place_for(connection: Connection, name: str) -> tuple[int, int, str]:
    """The row, length and head of a copy that is there; or of a new one, empty."""
    kept = connection.execute(select(datasets).filter_by(name=name)).one_or_none()
    if kept is None:
        return new_dataset(connection, name), 0, ""
    if kept.writable:
        raise AlreadyThere(f"dataset {name} exists and goes on here; a copy goes elsewhere")
    return kept.id, kept.number, kept.hash


def _write_balances(connection: Connection, row: int, walk: ChainCheck) -> None:
    """Write the balances that the entries of a book add up to."""
    for table, rows in queries.balances(walk.state):
        connection.execute(delete(table).filter_by(dataset_id=row))
        if rows:
            connection.execute(insert(table), [{"dataset_id": row, **values} for values in rows])


def _open_for_writing(connection: Connection, walk: ChainCheck) -> int:
    """Let a copy go on here, if its data is in no other book; gives its row."""
    require_place(queries.all_declared(connection), walk.state.declared_data())
    row = queries.row_of_dataset(connection, walk.dataset)
    connection.execute(update(datasets).filter_by(id=row).values(writable=1))
    return row


def _take_over(
    connection: Connection, book: OpenBook, walk: ChainCheck, carried: list[CarriedConversation]
) -> None:
    """The seal names this ledger: from here on the book is written here."""
    row = _open_for_writing(connection, walk)
    here = queries.identity_of_ledger(connection)
    facts: list[Fact] = [Resume(**book.stamp(walk.dataset), seal=walk.hash, ledger=here)]
    _unpack(connection, row, carried, walk.state.conversations)
    facts += _end_without_noise(book, walk, {moved.row["id"] for moved in carried})
    for fact in facts:
        walk.number = commands.append(connection, row, fact).number


def _restore(connection: Connection, book: OpenBook, walk: ChainCheck) -> None:
    """Everything counts as spent, and what was open ends: from here on the book is written here."""
    row, stamp = _open_for_writing(connection, walk), partial(book.stamp, walk.dataset)
    facts: list[Fact] = [Restore(**stamp(), ledger=queries.identity_of_ledger(connection))]
    reason = "its book was restored from a copy"
    facts += [
        abandoned(stamp(), queries.entry_at(connection, row, number), held, reason)
        for number, held in walk.state.held.items()
    ]
    facts += _end_without_noise(book, walk, set())
    for fact in facts:
        entry = commands.append(connection, row, fact)
        walk.take(entry.number, entry.fact.written(), entry.previous, entry.hash)
    _write_balances(connection, row, walk)


def _end_without_noise(book: OpenBook, walk: ChainCheck, carried: set[str]) -> list[Fact]:
    """The facts that end the conversations whose noise did not come along. They stay spent."""
    return [
        EndConversation(
            **book.stamp(walk.dataset),
            conversation=identity,
            analyst=opened.analyst,
            settles=opened.entry,
            asked=opened.marks[-1][0] if opened.marks else 0,
            head=opened.marks[-1][1] if opened.marks else start_of(identity),
            reason=WITHOUT_NOISE,
        )
        for identity, opened in walk.state.conversations.items()
        if opened.open and identity not in carried
    ]


def _pack(connection: Connection, dataset: str) -> list[CarriedConversation]:
    """Everything that the conversations of a dataset need elsewhere."""
    row = queries.row_of_dataset(connection, dataset)
    packed = []
    for kept in connection.execute(select(conversations).filter_by(dataset_id=row)).all():
        said = connection.execute(select(turns).filter_by(conversation=kept.id))
        noise = commands.noise_of(connection, kept.id)
        own = [turn._asdict() for turn in said]
        packed.append(CarriedConversation(kept._asdict(), own, noise))
    return packed


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


def move(source: Ledger, target: Ledger, dataset: str | None = None) -> dict[str, int]:
    """Move a dataset, with those beside it, or all that are written here; gives their entries.

    Open reservations move along and can be settled in the target; so do conversations, with
    their noise, which is removed from the source. What was moved there before is left as it is.
    """
    old, successor = source.reader(), target.reader().identity()
    if old.identity() == successor:
        raise InvalidInput("a book moves to another ledger, not to its own")
    names = [n for n in old.datasets() if _can_move(old, n, successor)]
    if dataset is not None:
        names = list(old.beside(dataset))
    moved: dict[str, int] = {}
    for name in names:
        if name not in moved:
            moved |= _move_together(source, target, old.beside(name), successor)
    return moved


def _move_together(
    source: Ledger, target: Ledger, names: tuple[str, ...], successor: str
) -> dict[str, int]:
    """Datasets that share data are taken over in one transaction: all of them or none."""
    old, new = source.reader(), target.reader()
    for name in names:
        if old.is_writable(name):
            _require_no_other(new, old, name)
            source.owner().seal(name, successor=successor)
    heads = {name: old.head(name) for name in names}
    there = set(new.datasets())
    if all(name in there and _goes_on(new, name, heads[name]) for name in names):
        _forget_noise(source, names)
        return {name: new.head(name).number for name in names}
    for name in names:
        if not _can_move(old, name, successor):
            raise ReadOnly(name, "is not sealed for this ledger: it is a copy, or went elsewhere")
    with old.snapshot() as connection:
        carried = {name: _pack(connection, name) for name in names}
    seals = {head.hash for head in heads.values()}
    moved = import_lines(target, export_lines(old, names[0]), carried, take_over=seals)
    _forget_noise(source, names)
    return moved


def _forget_noise(source: Ledger, names: tuple[str, ...]) -> None:
    """Where a book left, its conversations can be neither answered nor undone any more."""

    def work(connection: Connection) -> bool:
        own = select(conversations.c.id).join(datasets).where(datasets.c.name.in_(names))
        connection.execute(delete(secrets).where(secrets.c.conversation.in_(own)))
        return True

    source.book.store.write(work)


def _can_move(reader: Reader, name: str, successor: str) -> bool:
    """Whether a book is written here, or was sealed for this successor."""
    head = reader.head(name)
    sealed = isinstance(head.fact, Seal) and head.fact.successor == successor
    return sealed or reader.is_writable(name)


def _require_no_other(new: Reader, old: Reader, name: str) -> None:
    """Find out what is in the way in the target before anything is sealed."""
    if name in new.datasets():
        same = new.entry(name, 1).hash == old.entry(name, 1).hash
        if new.is_writable(name) or not same:
            raise AlreadyThere(f"dataset {name} exists in the ledger that it should move to")
    with new.snapshot() as connection:
        others = queries.all_declared(connection)
    with old.snapshot() as connection:
        declared = queries.all_declared(connection)[name]
    family = tuple(sorted(other for other in old.beside(name) if other in others))
    require_place(others, replace(declared, beside=family))


def _goes_on(new: Reader, name: str, seal: Entry) -> bool:
    """Whether the target has taken over after this seal."""
    return seal.hash in (fact.seal for _, fact in new.facts(name, Resume))


def back_up(reader: Reader, file: str | os.PathLike[str]) -> dict[str, ChainCheck]:
    """Write every book to a file, durable and all at once, and check what was written.

    The file is an export: one moment of the ledger, on SQLite and on PostgreSQL, without the noise
    of conversations. Gives the end of each book.
    """
    with whole_file(file) as made:
        made.writelines(f"{line}\n" for line in export_lines(reader))
        made.seek(0)
        walks = {}
        for name, records in _parsed(made).items():
            walk = walks[name] = ChainCheck(name)
            for record in records:
                _take_record(walk, record)
        return walks
