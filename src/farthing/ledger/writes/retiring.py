"""An account that has come to its end: nothing can be spent of it any more."""

from __future__ import annotations

from sqlalchemy import Connection, delete, update

from farthing.errors import InvalidInput
from farthing.ledger.entries import Entry, Retire
from farthing.ledger.errors import AlreadySettled, NotInLedger
from farthing.ledger.records import EVERYBODY, TARIFF, Account
from farthing.ledger.store import commands
from farthing.ledger.store.open_book import OpenBook, lock_dataset
from farthing.ledger.store.queries import accounts_of
from farthing.ledger.store.tables import lots, purses
from farthing.ledger.writes.conversations import Talk, opened_conversations

_REASON = "the dataset was retired"


def retire(book: OpenBook, dataset: str, name: str | None) -> tuple[str, ...]:
    """The account with this name, or everything that is open, with its conversations."""
    retired: list[Account] = []

    def work(connection: Connection, token: str) -> Entry:
        row = lock_dataset(connection, dataset)
        retired[:] = _wanted(accounts_of(connection, row), dataset, name)
        written = [_end(connection, book, dataset, row, one, token) for one in retired]
        return written[0]

    book.write(dataset, work)
    if name is None:
        _end_conversations(book, dataset)
    return tuple(one.name for one in retired)


def _wanted(known: list[Account], dataset: str, name: str | None) -> list[Account]:
    named = [one for one in known if name in (None, one.name)]
    if name is not None and not named:
        raise NotInLedger(f"{dataset} has no account {name!r:.60}")
    going_on = [one for one in named if one.open]
    if not going_on:
        raise InvalidInput(f"{name or dataset} was retired before, or was never opened")
    return going_on


def _end(
    connection: Connection, book: OpenBook, dataset: str, row: int, one: Account, token: str
) -> Entry:
    """A cap that is closed refuses every request; of a list nothing is left to take."""
    fact = Retire(**book.stamp(dataset), account=one.number)
    entry = commands.append(connection, row, fact, token)
    key = {"dataset_id": row, "account": one.number}
    if one.mode == TARIFF:
        connection.execute(update(purses).filter_by(**key, analyst=EVERYBODY).values(open=0))
    else:
        connection.execute(delete(lots).filter_by(**key))
    return entry


def _end_conversations(book: OpenBook, dataset: str) -> None:
    for one in book.store.ask(lambda connection: opened_conversations(connection, dataset)):
        if one.open:
            try:
                Talk(book, dataset, one.id).end(_REASON)
            except AlreadySettled:
                continue  # it ended by itself in between
