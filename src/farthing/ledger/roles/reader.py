"""What a reader may do: see everything, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, select, text

from farthing.composition.tariffs.tariff import Tariff
from farthing.ledger.declared_data import Dataset
from farthing.ledger.entries.fact import Entry, Fact, kinds_of
from farthing.ledger.errors import NotInLedger
from farthing.ledger.records import Account, Answered, Lot, OpenedConversation, Purse, Reservation
from farthing.ledger.roles.conversations import look_at, opened_conversations, transcript_of
from farthing.ledger.store import queries
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.tables import datasets

F = TypeVar("F", bound=Fact)
_OPEN_RESERVATIONS = text("""SELECT number, fact, previous, hash FROM farthing_entries
    WHERE dataset_id = :row AND kind = 'reserve' AND NOT EXISTS (
        SELECT 1 FROM farthing_entries AS later
        WHERE later.dataset_id = :row AND later.settles = farthing_entries.number)
    ORDER BY number""")


class Reader:
    """A ledger that is only read."""

    def __init__(self, book: OpenBook) -> None:
        self._book = book

    def __repr__(self) -> str:
        return f"Reader({self._book.store.name})"

    def identity(self) -> str:
        """The identity of this ledger, for a book that is to move here."""
        with self.snapshot() as connection:
            return queries.identity_of_ledger(connection)

    def now(self) -> str:
        """The time by the clock of this process, as entries have it."""
        return self._book.now()

    def datasets(self) -> list[str]:
        """Names of all datasets."""
        with self.snapshot() as connection:
            return queries.dataset_names(connection)

    def dataset(self, name: str) -> Dataset:
        """A dataset as its owner declares it."""
        with self._of(name) as (connection, row):
            return queries.declared_of(connection, row).dataset

    def places(self, dataset: str) -> tuple[str, ...]:
        """Where the data is, and where it was before it was relocated."""
        with self._of(dataset) as (connection, row):
            return queries.declared_of(connection, row).places

    def beside(self, dataset: str) -> tuple[str, ...]:
        """This dataset and all that share data with it: their budgets compose."""
        with self._of(dataset) as (connection, _):
            return queries.datasets_beside(queries.all_declared(connection), dataset)

    def is_writable(self, dataset: str) -> bool:
        """Whether entries can be added to this book here: it is neither a copy nor sealed."""
        with self._of(dataset) as (connection, row):
            return connection.scalar(select(datasets.c.writable).filter_by(id=row)) == 1

    def accounts(self, dataset: str) -> list[Account]:
        """Every account of a dataset, oldest first."""
        with self._of(dataset) as (connection, row):
            return queries.accounts_of(connection, row)

    def lots(self, dataset: str, account: str) -> list[Lot]:
        """The items of a registered list."""
        with self._of(dataset) as (connection, row):
            for known in queries.accounts_of(connection, row):
                if known.name == account:
                    return queries.lots_of(connection, row, known.number)
        raise NotInLedger(f"there is no account {account!r:.60}")

    def purses(self, dataset: str) -> list[Purse]:
        """Every purse of a dataset as of this month, of the oldest tariff first."""
        with self._of(dataset) as (connection, row):
            purses = queries.purses_of(connection, row)
            if queries.anything_revoked(purses, queries.accounts_of(connection, row)):
                purses = queries.spent_and_revoked(connection, row, purses)
        return [purse.in_month(self._book.this_month()) for purse in purses]

    def tariff(self, dataset: str, account: int) -> Tariff:
        """The tariff of an account."""
        with self._of(dataset) as (connection, row):
            return self._book.certificate(connection, dataset, row, account).tariff

    def document(self, dataset: str, account: int) -> dict[str, Any]:
        """What an account was opened with: a certificate, or a registered list with its claims."""
        with self._of(dataset) as (connection, row):
            return queries.document_of(connection, row, account)

    def entry(self, dataset: str, number: int) -> Entry:
        """One entry of the book."""
        with self._of(dataset) as (connection, row):
            return queries.entry_at(connection, row, number)

    def head(self, dataset: str) -> Entry:
        """The last entry of the book."""
        with self._of(dataset) as (connection, row):
            return queries.entry_at(connection, row, queries.head_of(connection, row))

    def entries(self, dataset: str, *kinds: str) -> Iterator[Entry]:
        """The whole book of a dataset, or its entries of these kinds, in order."""
        with (
            self._of(dataset) as (connection, row),
            queries.entry_rows(connection, row, kinds) as rows,
        ):
            yield from map(queries.entry_of, rows)

    def facts(self, dataset: str, *classes: type[F]) -> Iterator[tuple[int, F]]:
        """The facts of these classes in a book, each with the number of its entry."""
        for entry in self.entries(dataset, *kinds_of(*classes)):
            if isinstance(entry.fact, classes):
                yield entry.number, entry.fact

    def open_reservations(self, dataset: str) -> list[Reservation]:
        """What was reserved and neither closed nor abandoned; a crash leaves such entries."""
        with self._of(dataset) as (connection, row):
            rows = connection.execute(_OPEN_RESERVATIONS, {"row": row})
            return [queries.reservation_of(queries.entry_of(row)) for row in rows]

    def conversations(self, dataset: str) -> list[OpenedConversation]:
        """Every conversation that is kept here, the oldest first; never their noise."""
        with self.snapshot() as connection:
            return opened_conversations(connection, dataset)

    def transcript(self, dataset: str, identity: str) -> list[Answered]:
        """What was asked and answered in a conversation."""
        return transcript_of(self._book, look_at(self._book, dataset, identity).id)

    def snapshot(self) -> AbstractContextManager[Connection]:
        """All tables at one moment, for several queries."""
        return self._book.store.read()

    @contextmanager
    def _of(self, dataset: str) -> Iterator[tuple[Connection, int]]:
        """All tables at one moment, and the row of a dataset."""
        with self.snapshot() as connection:
            yield connection, queries.row_of_dataset(connection, dataset)

    def check_pages(self) -> None:
        """Run SQLite's own check of the file; PostgreSQL checks its own files."""
        self._book.store.check_pages()
