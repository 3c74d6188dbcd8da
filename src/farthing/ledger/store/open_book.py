"""An open ledger as its roles share it: the database, a clock, a cache of what never changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypedDict, TypeVar

from sqlalchemy import Connection, Update, select, update

from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.ledger.entries.fact import Entry, Fact
from farthing.ledger.errors import NotInLedger
from farthing.ledger.records import TARIFF, Account, Terms, month_of, written_time
from farthing.ledger.store import commands, queries
from farthing.ledger.store.connection import Store
from farthing.ledger.store.tables import datasets, entries

T = TypeVar("T")


def utc_now() -> datetime:
    """The clock of the process that writes."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class InForce:
    """The terms in force, with what proves them, and the dataset as it was when they were looked
    up: its row, its accounts, its last entry."""

    terms: Terms
    certificate: Certificate
    row: int
    accounts: list[Account]
    seen: int


class Stamp(TypedDict):
    """The fields that every fact begins with."""

    dataset: str
    time: str


@dataclass
class Writing:
    """One transaction that writes into the book of a dataset; every entry has its token.

    `row` is the dataset's row, locked against other writers.
    """

    book: OpenBook
    connection: Connection
    dataset: str
    token: str
    row: int = 0
    entries: list[Entry] = field(default_factory=list)

    def append(self, fact: Fact) -> Entry:
        """Write the next entry."""
        self.entries.append(commands.append(self.connection, self.row, fact, self.token))
        return self.entries[-1]

    def stamp(self, at: datetime | None = None) -> Stamp:
        """The dataset and the time, for a fact."""
        return self.book.stamp(self.dataset, at)

    def in_force(self) -> InForce:
        """The tariff in force."""
        return self.book.current(self.connection, self.dataset)


class OpenBook:
    """Runs the writes of all roles, and caches tariffs and certificates, which never change."""

    def __init__(self, store: Store, clock: Callable[[], datetime] = utc_now) -> None:
        self.store = store
        self.clock = clock
        self._in_force: dict[str, InForce] = {}
        self._seen: dict[str, int] = {}  # the last entry of each dataset that was seen here
        self._certificates: dict[tuple[str, int], Certificate] = {}
        self._first_hashes: dict[str, str] = {}

    def this_month(self) -> int:
        """The calendar month in UTC, by the clock of this process."""
        return month_of(self.clock())

    def now(self) -> str:
        """The time by the clock of this process, as it is written."""
        return written_time(self.clock())

    def stamp(self, dataset: str, at: datetime | None = None) -> Stamp:
        """The fields that every fact about a dataset begins with."""
        return {"dataset": dataset, "time": written_time(at or self.clock())}

    def ask(self, dataset: str, look: Callable[[Connection, int], T]) -> T:
        """The result of `look` at one moment; it is given the row of the dataset."""
        return self.store.ask(lambda c: look(c, queries.row_of_dataset(c, dataset)))

    def write(
        self, dataset: str, work: Callable[[Writing], T], *, adds: bool = False, new: bool = False
    ) -> tuple[Entry, T]:
        """Run `work` in one transaction; gives its first entry and its result.

        The dataset is locked first, unless it is `new`. With `adds` no other dataset or account is
        added at the same time. Should the commit not be acknowledged, the entry is found by its
        token.
        """
        token = commands.new_token()
        results: list[T] = []

        def attempt(connection: Connection) -> Entry:
            writing = Writing(self, connection, dataset, token)
            if adds or new:
                commands.lock_for_adding(connection)
            if not new:
                writing.row = lock_dataset(connection, dataset)
            results[:] = [work(writing)]
            return writing.entries[0]

        entry = self.store.write(attempt, done=self.finder(dataset, token))
        assert entry is not None
        return self.noted(dataset, entry), results[0]

    def noted(self, dataset: str, entry: Entry) -> Entry:
        """Remember how far the book was seen."""
        self._seen[dataset] = entry.number
        return entry

    def finder(self, dataset: str, token: str) -> Callable[[Connection], Entry | None]:
        """A search for the entry that a write left although its commit was not acknowledged.

        The entry comes after all that were seen before, so the whole book need not be searched. A
        server that is still writing is waited for. A server that has not begun cannot be waited
        for: if it runs the command later, there are two entries with this token, both spent.
        """
        seen = self._seen.get(dataset, 0)

        def find(connection: Connection) -> Entry | None:
            connection.execute(_touched(dataset))
            own = select(entries).join(datasets).where(datasets.c.name == dataset)
            later = own.where(entries.c.number > seen, entries.c.fact.contains(token))
            row = connection.execute(later.order_by(entries.c.number)).first()
            return None if row is None else queries.entry_of(row)

        return find

    def remembered(self, dataset: str) -> InForce | None:
        """The terms in force when they were last looked up here."""
        return self._in_force.get(dataset)

    def forget(self, dataset: str) -> None:
        """Look the terms in force up again the next time."""
        self._in_force.pop(dataset, None)

    def in_force(self, dataset: str) -> InForce:
        """The tariff in force, looked up and remembered until the database says otherwise."""
        in_force = self.store.ask(lambda connection: self.current(connection, dataset))
        self._in_force[dataset] = in_force
        self._seen[dataset] = in_force.seen
        return in_force

    def current(self, connection: Connection, dataset: str) -> InForce:
        """The tariff in force, looked up."""
        row = queries.row_of_dataset(connection, dataset)
        known = queries.accounts_of(connection, row)
        number = next((a.number for a in known if a.mode == TARIFF and a.open), None)
        if number is None:
            raise NotInLedger(f"no tariff is in force for {dataset}; sign one first")
        signed = self.certificate(connection, dataset, row, number)
        terms = Terms(number, signed.tariff)
        return InForce(terms, signed, row, known, queries.head_of(connection, row))

    def certificate(
        self, connection: Connection, dataset: str, row: int, account: int
    ) -> Certificate:
        """The certificate of an account; it never changes."""
        key = dataset, account
        if key not in self._certificates:
            document = queries.document_of(connection, row, account)
            if "tariff" not in document:
                raise NotInLedger(f"account {account} of {dataset} is not a tariff")
            self._certificates[key] = certificate_from_json(document)
        return self._certificates[key]

    def first_hash(self, dataset: str) -> str:
        """The hash of a dataset's first entry; it never changes."""
        if dataset not in self._first_hashes:
            first = self.ask(dataset, lambda connection, row: queries.entry_at(connection, row, 1))
            self._first_hashes[dataset] = first.hash
        return self._first_hashes[dataset]


def lock_dataset(connection: Connection, dataset: str) -> int:
    """Keep every other writer of a dataset out, and give the number of its row."""
    row = connection.scalar(_touched(dataset).returning(datasets.c.id))
    if row is None:
        raise queries.no_dataset(dataset)
    return int(row)


def _touched(dataset: str) -> Update:
    """Changes nothing, and waits for other writers."""
    return update(datasets).filter_by(name=dataset).values(number=datasets.c.number)
