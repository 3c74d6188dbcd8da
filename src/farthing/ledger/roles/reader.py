"""What a reader may see: everything, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, select

from farthing.composition.tariffs.tariff import Tariff
from farthing.ledger.declared_data import Dataset
from farthing.ledger.entries import Entry
from farthing.ledger.records import (
    Account,
    Answered,
    Lot,
    OpenedConversation,
    Purse,
    Reservation,
)
from farthing.ledger.remaining import as_of
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.queries import (
    account_row,
    accounts_of,
    all_declared,
    anything_revoked,
    datasets_beside,
    declared_of,
    document_of,
    entry_at,
    entry_of,
    entry_rows,
    identity_of_ledger,
    purses_of,
    reservation_of,
    row_of_dataset,
    spent_and_revoked,
)
from farthing.ledger.store.tables import datasets, entries, lots
from farthing.ledger.writes.conversations import Talk, opened_conversations


class Reader:
    """A ledger that is only looked at."""

    def __init__(self, book: OpenBook) -> None:
        self._book = book

    def __repr__(self) -> str:
        return f"Reader({self._book.store.name})"

    def identity(self) -> str:
        """Who this ledger is, for a book that is to move here."""
        with self.snapshot() as connection:
            return identity_of_ledger(connection)

    def now(self) -> str:
        """The time by the clock of this process, as entries have it."""
        return self._book.now()

    def datasets(self) -> list[str]:
        """Names of all datasets."""
        with self.snapshot() as connection:
            return list(connection.scalars(select(datasets.c.name).order_by(datasets.c.name)))

    def dataset(self, name: str) -> Dataset:
        """A dataset as its owner declares it."""
        with self.snapshot() as connection:
            return declared_of(connection, row_of_dataset(connection, name)).dataset

    def places(self, dataset: str) -> tuple[str, ...]:
        """Where the data is, and where it was before it was relocated."""
        with self.snapshot() as connection:
            return declared_of(connection, row_of_dataset(connection, dataset)).places

    def beside(self, dataset: str) -> tuple[str, ...]:
        """This dataset and all that share data with it: their budgets compose."""
        with self.snapshot() as connection:
            row_of_dataset(connection, dataset)
            return datasets_beside(all_declared(connection), dataset)

    def is_writable(self, dataset: str) -> bool:
        """Whether this book goes on here: not a copy for reading, and not sealed."""
        with self.snapshot() as connection:
            row = row_of_dataset(connection, dataset)
            return connection.scalar(select(datasets.c.writable).filter_by(id=row)) == 1

    def accounts(self, dataset: str) -> list[Account]:
        """Every account of a dataset, oldest first."""
        with self.snapshot() as connection:
            return accounts_of(connection, row_of_dataset(connection, dataset))

    def lots(self, dataset: str, account: str) -> list[Lot]:
        """The items of a registered list."""
        with self.snapshot() as connection:
            row = row_of_dataset(connection, dataset)
            number = account_row(connection, row, account).number
            rows = connection.execute(
                select(lots).filter_by(dataset_id=row, account=number).order_by("item")
            )
            return [Lot(lot.item, lot.granted, lot.spent) for lot in rows]

    def purses(self, dataset: str) -> list[Purse]:
        """Every purse of a dataset as of this month, of the oldest tariff first."""
        with self.snapshot() as connection:
            row = row_of_dataset(connection, dataset)
            found = purses_of(connection, row)
            if anything_revoked(found, accounts_of(connection, row)):
                found = spent_and_revoked(connection, row, found)
        return [as_of(purse, self._book.this_month()) for purse in found]

    def tariff(self, dataset: str, account: int) -> Tariff:
        """The tariff of an account."""
        with self.snapshot() as connection:
            row = row_of_dataset(connection, dataset)
            return self._book.tariff(connection, dataset, row, account)

    def document(self, dataset: str, account: int) -> dict[str, Any]:
        """What an account was opened with: a certificate, or a registered list with its claims."""
        with self.snapshot() as connection:
            return document_of(connection, row_of_dataset(connection, dataset), account)

    def entry(self, dataset: str, number: int) -> Entry:
        """One entry of the book."""
        with self.snapshot() as connection:
            return entry_at(connection, row_of_dataset(connection, dataset), number)

    def head(self, dataset: str) -> Entry:
        """The last entry of the book."""
        with self.snapshot() as connection:
            row = row_of_dataset(connection, dataset)
            number = connection.scalars(select(datasets.c.number).filter_by(id=row)).one()
            return entry_at(connection, row, number)

    def entries(self, dataset: str, *kinds: str) -> Iterator[Entry]:
        """The whole book of a dataset, or its entries of these kinds, in order."""
        with (
            self.snapshot() as connection,
            entry_rows(connection, row_of_dataset(connection, dataset), kinds) as rows,
        ):
            yield from map(entry_of, rows)

    def open_reservations(self, dataset: str) -> list[Reservation]:
        """What was reserved and neither closed nor abandoned; a crash leaves such entries."""
        later = entries.alias()
        with self.snapshot() as connection:
            row = row_of_dataset(connection, dataset)
            settled = select(later.c.settles).where(
                later.c.dataset_id == row, later.c.settles == entries.c.number
            )
            rows = connection.execute(
                select(entries)
                .filter_by(dataset_id=row, kind="reserve")
                .where(~settled.exists())
                .order_by(entries.c.number)
            )
            return [reservation_of(entry_of(row)) for row in rows]

    def conversations(self, dataset: str) -> list[OpenedConversation]:
        """Every conversation that is kept here, the oldest first; never their noise."""
        with self.snapshot() as connection:
            return opened_conversations(connection, dataset)

    def transcript(self, dataset: str, identity: str) -> list[Answered]:
        """What was asked and answered in a conversation."""
        talk = Talk(self._book, dataset, identity)
        talk.look()
        return talk.transcript()

    def snapshot(self) -> AbstractContextManager[Connection]:
        """All tables at one moment, for what looks at several of them."""
        return self._book.store.read()

    def check_pages(self) -> None:
        """SQLite's own check of the file's structure; PostgreSQL looks after its own."""
        self._book.store.check_pages()
