"""A book goes on from a copy after the ledger that it was in was lost.

A copy is older than the book it was made of: what was spent in between is not in it, and if it
were sold from, that would be spent twice. So restoring counts every account of the copy as spent
in full, which is the most that can have been spent of it, and closes it. From then on the book
can be written: its owner signs a tariff for what is still to be given away, and statements
compose it with all of the old ones. Whether the lost ledger turns up again, and still sells, makes
no difference to that: nothing is ever sold from both.

What was opened after the copy was made (a tariff, a list, a dataset) is not in the copy, and no
statement can count it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, select, update

from farthing.canonical import canonical
from farthing.ledger.chain_check import ChainCheck
from farthing.ledger.entries import Fact, Restore
from farthing.ledger.errors import Sealed
from farthing.ledger.ledger import Ledger
from farthing.ledger.roles.reader import Reader
from farthing.ledger.store import commands
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.queries import all_declared, entry_at, identity_of_ledger
from farthing.ledger.store.tables import datasets
from farthing.ledger.transfer.books import parsed, write_balances, write_books
from farthing.ledger.transfer.export import export_lines
from farthing.ledger.transfer.moving_conversations import end_without_noise
from farthing.ledger.writes.data import one_adds_at_a_time, require_place
from farthing.ledger.writes.settling import abandoned
from farthing.whole_files import whole_file

_REASON = "its book was restored from a copy"


def back_up(reader: Reader, file: str | os.PathLike[str]) -> dict[str, ChainCheck]:
    """Write every book to a file, durable and all at once, and check what was written.

    It is an export: one moment of the ledger, on SQLite and on PostgreSQL, without the noise of
    conversations. Gives where each book ended.
    """
    with whole_file(file) as made:
        made.writelines(f"{line}\n" for line in export_lines(reader))
        made.seek(0)
        return _checked(parsed(made))


def restore(ledger: Ledger, lines: Iterable[str]) -> dict[str, int]:
    """Go on here with every book of a copy; gives the entries of each. All or nothing."""
    given = parsed(lines)
    counts = ledger.book.store.write(lambda connection: _restore(connection, ledger.book, given))
    assert counts is not None
    return counts


def _restore(
    connection: Connection, book: OpenBook, given: dict[str, list[dict[str, Any]]]
) -> dict[str, int]:
    one_adds_at_a_time(connection)
    checked = write_books(connection, given)
    for walk in checked.values():
        if walk.state.sealed_for is not None:
            raise Sealed(walk.dataset, walk.state.sealed_for)
    for walk in checked.values():
        _go_on(connection, book, walk)
    return {name: walk.number for name, walk in checked.items()}


def _go_on(connection: Connection, book: OpenBook, walk: ChainCheck) -> None:
    require_place(all_declared(connection), walk.state.declared_data())
    row = connection.scalars(select(datasets.c.id).filter_by(name=walk.dataset)).one()
    connection.execute(update(datasets).filter_by(id=row).values(writable=1))
    here = identity_of_ledger(connection)
    facts: list[Fact] = [Restore(**book.stamp(walk.dataset), ledger=here)]
    facts += [
        abandoned(book, entry_at(connection, row, number), held, _REASON)
        for number, held in walk.state.held.items()
    ]
    facts += [
        end_without_noise(book, walk.dataset, identity, opened)
        for identity, opened in walk.state.conversations.items()
        if opened.open
    ]
    for fact in facts:
        entry = commands.append(connection, row, fact, commands.new_token())
        walk.take(entry.number, entry.fact.written(), entry.previous, entry.hash)
    write_balances(connection, row, walk)


def _checked(given: dict[str, list[dict[str, Any]]]) -> dict[str, ChainCheck]:
    walks = {}
    for name, records in given.items():
        walk = walks[name] = ChainCheck(name)
        for record in records:
            written = canonical(record["fact"])
            walk.take(record["number"], written, record["previous"], record["hash"])
    return walks
