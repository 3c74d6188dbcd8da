"""An open ledger as its roles share it: the database, a clock, and what may be remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypedDict

from sqlalchemy import Connection, Update, bindparam, select, update

from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Tariff, tariff_from_json
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.ledger.entries import Entry, Reserve
from farthing.ledger.errors import NotInLedger
from farthing.ledger.months import month_of, written_time
from farthing.ledger.records import TARIFF, Reservation, Terms
from farthing.ledger.store import commands
from farthing.ledger.store.connection import Store
from farthing.ledger.store.queries import (
    accounts_of,
    document_of,
    entry_at,
    entry_of,
    reservation_of,
    row_of_dataset,
)
from farthing.ledger.store.tables import datasets, entries


def utc_now() -> datetime:
    """The clock of the process that writes."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class InForce:
    """The terms in force, with the dataset's row and the last entry when they were looked up."""

    terms: Terms
    row: int
    seen: int


class Stamp(TypedDict):
    """About which dataset, and when."""

    dataset: str
    time: str


class OpenBook:
    """Writes entries, each with a time and a token, and remembers tariffs, which never change."""

    def __init__(self, store: Store, clock: Callable[[], datetime] = utc_now) -> None:
        self.store = store
        self.clock = clock
        self._in_force: dict[str, InForce] = {}
        self._seen: dict[str, int] = {}  # the last entry of each dataset that was seen here
        self._tariffs: dict[tuple[str, int], Tariff] = {}
        self._certificates: dict[tuple[str, int], Certificate] = {}
        self._first_hashes: dict[str, str] = {}

    def this_month(self) -> int:
        """The calendar month in UTC, by the clock of this process."""
        return month_of(self.clock())

    def stamp(self, dataset: str, at: datetime | None = None) -> Stamp:
        """What every fact about a dataset begins with."""
        return {"dataset": dataset, "time": written_time(at or self.clock())}

    def now(self) -> str:
        """The time by the clock of this process, as it is written."""
        return written_time(self.clock())

    def write(self, dataset: str, work: Callable[[Connection, str], Entry]) -> Entry:
        """One write under a token of its own, by which it is found if nobody acknowledges it."""
        entry = self.write_if_it_fits(dataset, work)
        assert entry is not None
        return entry

    def write_if_it_fits(
        self, dataset: str, work: Callable[[Connection, str], Entry | None]
    ) -> Entry | None:
        """The same for a work that may find that it must not write, and then gives None."""
        token = commands.new_token()
        done = self.finder(dataset, token)
        entry = self.store.write(lambda connection: work(connection, token), done=done)
        if entry is not None:
            self._seen[dataset] = entry.number
        return entry

    def noted(self, dataset: str, entry: Entry) -> Entry:
        """An entry that was written by another way."""
        self._seen[dataset] = entry.number
        return entry

    def finder(self, dataset: str, token: str) -> Callable[[Connection], Entry | None]:
        """Looks for the entry that a write about to begin leaves, should nobody acknowledge it.

        It comes after all that were seen before, so the whole book need not be searched; and a
        server that is still at it is waited for. One that has not yet begun cannot be: should
        it run the statement later, there are two entries with this token, both spent.
        """
        seen = self._seen.get(dataset, 0)

        def find(connection: Connection) -> Entry | None:
            connection.execute(_touched(dataset))
            row = connection.execute(
                select(entries)
                .join(datasets)
                .where(
                    datasets.c.name == dataset,
                    entries.c.number > seen,
                    entries.c.fact.contains(token),
                )
                .order_by(entries.c.number)
            ).first()
            return None if row is None else entry_of(row)

        return find

    def remembered(self, dataset: str) -> InForce | None:
        """The terms in force when they were last looked up here."""
        return self._in_force.get(dataset)

    def forget(self, dataset: str) -> None:
        """What was remembered is no longer so."""
        self._in_force.pop(dataset, None)

    def in_force(self, dataset: str) -> InForce:
        """The tariff in force, looked up, and remembered until the database says it is not."""
        found = self.store.ask(lambda connection: self.current(connection, dataset))
        self._in_force[dataset] = found
        self._seen[dataset] = found.seen
        return found

    def current(self, connection: Connection, dataset: str) -> InForce:
        """The tariff in force."""
        row = row_of_dataset(connection, dataset)
        tariffs = [book for book in accounts_of(connection, row) if book.mode == TARIFF]
        book = next((book for book in tariffs if book.open), None)
        if book is None:
            raise NotInLedger(f"no tariff is in force for {dataset}; sign one first")
        head = connection.scalar(_HEAD, {"row": row})
        tariff = self.tariff(connection, dataset, row, book.number)
        return InForce(Terms(book.number, tariff), row, int(head or 0))

    def tariff(self, connection: Connection, dataset: str, row: int, account: int) -> Tariff:
        """The tariff of an account; it never changes."""
        key = dataset, account
        if key not in self._tariffs:
            document = document_of(connection, row, account)
            if "tariff" not in document:
                raise NotInLedger(f"account {account} of {dataset} is not a tariff")
            self._tariffs[key] = tariff_from_json(document["tariff"])
        return self._tariffs[key]

    def certificate(
        self, connection: Connection, dataset: str, row: int, account: int
    ) -> Certificate:
        """The certificate of an account; it never changes."""
        key = dataset, account
        if key not in self._certificates:
            self._certificates[key] = certificate_from_json(document_of(connection, row, account))
        return self._certificates[key]

    def first_hash(self, dataset: str) -> str:
        """The hash of a dataset's first entry; it never changes."""
        if dataset not in self._first_hashes:

            def look(connection: Connection) -> str:
                return entry_at(connection, row_of_dataset(connection, dataset), 1).hash

            self._first_hashes[dataset] = self.store.ask(look)
        return self._first_hashes[dataset]

    @staticmethod
    def held(connection: Connection, row: int, reservation: Reservation) -> tuple[Entry, Reserve]:
        """The entry of a reservation, if it is the one that was made."""
        entry = entry_at(connection, row, reservation.entry)
        if not isinstance(entry.fact, Reserve) or reservation_of(entry) != reservation:
            raise NotInLedger(f"entry {reservation.entry} is not the reservation that was given")
        return entry, entry.fact


def lock_dataset(connection: Connection, dataset: str) -> int:
    """Keep every other writer of a dataset out, and give the number of its row."""
    found = connection.scalar(_touched(dataset).returning(datasets.c.id))
    if found is None:
        raise NotInLedger(f"there is no dataset {dataset!r:.60}")
    return int(found)


def _touched(dataset: str) -> Update:
    """Changes nothing, and waits for whoever is writing."""
    return update(datasets).filter_by(name=dataset).values(number=datasets.c.number)


_HEAD = select(datasets.c.number).where(datasets.c.id == bindparam("row"))
