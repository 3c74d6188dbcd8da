"""What can be looked up in a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from farthing.canonical import digest
from farthing.composition.certificate import tariff_from_json
from farthing.composition.tariff import Price, Tariff
from farthing.ledger.errors import NotInLedger
from farthing.ledger.facts import (
    TARIFF,
    Account,
    Dataset,
    Entry,
    Lot,
    Purse,
    Reservation,
    require_question,
)
from farthing.ledger.months import month_of
from farthing.ledger.pricing import as_of, left_of
from farthing.ledger.rows import accounts_of, book_of, entry_of, purses_of, reservation_of
from farthing.ledger.schema import accounts, datasets, entries, lots
from farthing.ledger.store import Store


def utc_now() -> datetime:
    """The clock of the process that writes."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Terms:
    """The tariff in force and the number of its account.

    An account's tariff never changes, so terms are safe to remember; whether they are still in
    force, `Ledger.reserve(…, under=terms.account)` checks when it charges.
    """

    account: int
    tariff: Tariff
    identity: int = field(repr=False)  # of the dataset's row


class Reader:
    """A ledger that is only looked at."""

    def __init__(self, store: Store, clock: Callable[[], datetime] = utc_now) -> None:
        self.store = store
        self._clock = clock
        self._terms: dict[str, Terms] = {}
        self._seen: dict[str, int] = {}  # the last entry of each dataset that was seen here
        self._tariffs: dict[tuple[str, int], Tariff] = {}

    def datasets(self) -> list[str]:
        """Names of all datasets."""
        with self.store.read() as connection:
            return list(connection.scalars(select(datasets.c.name).order_by(datasets.c.name)))

    def dataset(self, name: str) -> Dataset:
        """A dataset as it was added."""
        return Dataset(**self.entry(name, 1).fact["description"])

    def accounts(self, dataset: str) -> list[Account]:
        """Every account of a dataset, oldest first."""
        with self.store.read() as connection:
            return accounts_of(connection, self._identity(connection, dataset))

    def lots(self, dataset: str, account: str) -> list[Lot]:
        """The items of a registered list."""
        with self.store.read() as connection:
            identity = self._identity(connection, dataset)
            row = self._account_row(connection, identity, account)
            rows = connection.execute(
                select(lots).filter_by(dataset_id=identity, account=row.number).order_by("item")
            )
            return [Lot(lot.item, lot.granted, lot.spent) for lot in rows]

    def purses(self, dataset: str) -> list[Purse]:
        """Every purse of a dataset as of this month, of the oldest tariff first."""
        with self.store.read() as connection:
            found = purses_of(connection, self._identity(connection, dataset))
        return [as_of(purse, month_of(self._clock())) for purse in found]

    def purse(self, dataset: str, analyst: str) -> Purse:
        """An analyst's purse under the tariff in force, as of this month."""
        with self.store.read() as connection:
            terms = self._current(connection, dataset)
            found = purses_of(connection, terms.identity, terms.account, analyst)
        if not found:
            raise NotInLedger(f"{analyst} has no purse under the tariff in force for {dataset}")
        return as_of(found[0], month_of(self._clock()))

    def remaining(self, dataset: str, analyst: str) -> Price:
        """What an analyst can still spend: what is left of the purse or, if less, of the cap."""
        purse = self.purse(dataset, analyst)
        cap = next(a for a in self.accounts(dataset) if a.number == purse.account)
        return left_of(purse, cap)

    def in_force(self, dataset: str) -> Terms:
        """The tariff in force with the number of its account: what to plan a request with."""
        return self._remember(dataset)

    def tariff(self, dataset: str, account: int | None = None) -> Tariff:
        """The tariff in force, or the one of an earlier account."""
        if account is None:
            return self.in_force(dataset).tariff
        key = dataset, account
        if key not in self._tariffs:
            document = self.document(dataset, account)
            self._tariffs[key] = tariff_from_json(document["tariff"])
        return self._tariffs[key]

    def document(self, dataset: str, account: int) -> dict[str, Any]:
        """What an account was opened with: a certificate, or a registered list with its claims."""
        with self.store.read() as connection:
            identity = self._identity(connection, dataset)
            row = connection.execute(
                select(accounts.c.entry).filter_by(dataset_id=identity, number=account)
            ).one_or_none()
            if row is None:
                raise NotInLedger(f"{dataset} has no account {account}")
            fact = self._entry(connection, dataset, identity, row.entry).fact
        return dict(fact["certificate"] if fact["mode"] == TARIFF else fact["document"])

    def entry(self, dataset: str, number: int) -> Entry:
        """One entry of the book."""
        with self.store.read() as connection:
            identity = self._identity(connection, dataset)
            return self._entry(connection, dataset, identity, number)

    def entries(self, dataset: str, *, kind: str | None = None) -> Iterator[Entry]:
        """The whole book of a dataset, or its entries of one kind, in order."""
        with (
            self.store.read() as connection,
            book_of(connection, self._identity(connection, dataset), kind) as rows,
        ):
            yield from map(entry_of, rows)

    def open_reservations(self, dataset: str) -> list[Reservation]:
        """What was reserved and neither closed nor abandoned; a crash leaves such entries."""
        later = entries.alias()
        with self.store.read() as connection:
            identity = self._identity(connection, dataset)
            settled = select(later.c.settles).where(
                later.c.dataset_id == identity, later.c.settles == entries.c.number
            )
            rows = connection.execute(
                select(entries)
                .filter_by(dataset_id=identity, kind="reserve")
                .where(~settled.exists())
                .order_by(entries.c.number)
            )
            return [reservation_of(entry_of(row)) for row in rows]

    def find_release(self, dataset: str, question: Any, *, analyst: str | None) -> Entry | None:
        """The last release kept for this question, to be given out again at no cost.

        An analyst finds their own. None finds anybody's: giving one analyst what another paid
        for leaves the statements about single analysts without a basis, though not those
        about the dataset.
        """
        asked = digest(require_question(question))
        with self.store.read() as connection:
            rows = connection.execute(
                select(entries)
                .filter_by(dataset_id=self._identity(connection, dataset), released=asked)
                .order_by(entries.c.number.desc())
            )
            found = (entry_of(row) for row in rows)
            return next((e for e in found if analyst in (None, e.fact["analyst"])), None)

    def _identity(self, connection: Connection, dataset: str) -> int:
        found = connection.scalar(select(datasets.c.id).filter_by(name=dataset))
        if found is None:
            raise NotInLedger(f"there is no dataset {dataset!r:.60}")
        return int(found)

    def _account_row(self, connection: Connection, identity: int, name: str) -> Any:
        query = select(accounts).filter_by(dataset_id=identity, name=name)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise NotInLedger(f"there is no account {name!r:.60}")
        return row

    def _entry(self, connection: Connection, dataset: str, identity: int, number: int) -> Entry:
        query = select(entries).filter_by(dataset_id=identity, number=number)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise NotInLedger(f"{dataset} has no entry {number}")
        return entry_of(row)

    def _current(self, connection: Connection, dataset: str) -> Terms:
        """The tariff in force, from the database."""
        identity = self._identity(connection, dataset)
        books = accounts_of(connection, identity)
        book = next((book for book in books if book.mode == TARIFF and book.open), None)
        if book is None:
            raise NotInLedger(f"no tariff is in force for {dataset}; sign one first")
        key = dataset, book.number
        if key not in self._tariffs:
            certificate = self._entry(connection, dataset, identity, book.entry).fact["certificate"]
            self._tariffs[key] = tariff_from_json(certificate["tariff"])
        return Terms(book.number, self._tariffs[key], identity)

    def _remember(self, dataset: str) -> Terms:
        """The tariff in force, to be used until the database says that it is not."""

        def look(connection: Connection) -> tuple[Terms, int]:
            terms = self._current(connection, dataset)
            head = connection.scalar(select(datasets.c.number).filter_by(id=terms.identity))
            return terms, int(head or 0)

        terms, head = self.store.ask(look)
        self._terms[dataset] = terms
        self._seen[dataset] = head
        return terms
