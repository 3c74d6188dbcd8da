"""A book goes on in another ledger: moved there, or restored there from a copy.

    seal in the source  →  export, and the noise beside it  →  import into the target

Moving is one transaction of the source, the seal, and one of the target, the import. Between them
nobody can spend, and `move` called again continues from there. So two ledgers never spend from one
budget, wherever a move is interrupted.

Restoring is for a ledger that was lost. A copy is older than its book: what was spent in between is
not in it, and selling from it would spend that twice. So `restore` counts every account of the copy
as spent in full, which is the most that can have been spent, and closes it. Then the book can be
written again: its owner signs a tariff for what is still to be given away, and statements compose
it with all of the old ones. That holds even if the lost ledger turns up again and still sells.
Whatever was opened after the copy was made (a tariff, a list, a dataset) is not in the copy, and
no statement can count it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from farthing.errors import InvalidInput
from farthing.ledger.entries.fact import ChainCheck, Entry, Fact
from farthing.ledger.entries.owner import Restore, Resume, Seal
from farthing.ledger.errors import AlreadyThere, ReadOnly, Sealed
from farthing.ledger.ledger import Ledger
from farthing.ledger.roles.charges import abandoned
from farthing.ledger.roles.owner import require_place
from farthing.ledger.roles.reader import Reader
from farthing.ledger.store.commands import lock_for_adding
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.queries import all_declared, entry_at, identity_of_ledger
from farthing.ledger.transfer.books import (
    Records,
    end_without_noise,
    export_lines,
    forget_noise,
    import_lines,
    open_for_writing,
    pack,
    parsed,
    take_record,
    write_balances,
    write_books,
    write_entry,
)
from farthing.whole_files import whole_file


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
        carried = {name: pack(connection, name) for name in names}
    seals = {head.hash for head in heads.values()}
    moved = import_lines(target, export_lines(old, names[0]), carried, take_over=seals)
    _forget_noise(source, names)
    return moved


def _forget_noise(source: Ledger, names: tuple[str, ...]) -> None:
    """Where a book left, its conversations can be neither answered nor undone any more."""
    for name in names:
        source.book.store.write(partial(forget_noise, dataset=name))


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
        others = all_declared(connection)
    with old.snapshot() as connection:
        declared = all_declared(connection)[name]
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
        for name, records in parsed(made).items():
            walk = walks[name] = ChainCheck(name)
            for record in records:
                take_record(walk, record)
        return walks


def restore(ledger: Ledger, lines: Iterable[str]) -> dict[str, int]:
    """Let every book of a copy go on here; gives the entries of each. All or nothing."""
    given = parsed(lines)
    counts = ledger.book.store.write(lambda connection: _restore(connection, ledger.book, given))
    assert counts is not None
    return counts


def _restore(connection: Connection, book: OpenBook, given: Records) -> dict[str, int]:
    lock_for_adding(connection)
    checked = write_books(connection, given)
    for walk in checked.values():
        if walk.state.sealed_for is not None:
            raise Sealed(walk.dataset, walk.state.sealed_for)
    for walk in checked.values():
        _go_on(connection, book, walk)
    return {name: walk.number for name, walk in checked.items()}


def _go_on(connection: Connection, book: OpenBook, walk: ChainCheck) -> None:
    row, stamp = open_for_writing(connection, walk), partial(book.stamp, walk.dataset)
    facts: list[Fact] = [Restore(**stamp(), ledger=identity_of_ledger(connection))]
    facts += [
        abandoned(
            stamp(), entry_at(connection, row, number), held, "its book was restored from a copy"
        )
        for number, held in walk.state.held.items()
    ]
    facts += [
        end_without_noise(book, walk.dataset, identity, opened)
        for identity, opened in walk.state.conversations.items()
        if opened.open
    ]
    for fact in facts:
        entry = write_entry(connection, row, fact)
        walk.take(entry.number, entry.fact.written(), entry.previous, entry.hash)
    write_balances(connection, row, walk)
