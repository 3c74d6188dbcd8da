"""What one analyst may do with one dataset: see the terms, spend a purse, see own releases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from farthing.canonical import digest, sha256
from farthing.composition.tariff import Price
from farthing.ledger import reserving, settling
from farthing.ledger.errors import NotInLedger
from farthing.ledger.lookups import (
    accounts_of,
    declared_of,
    document_of,
    entry_at,
    entry_of,
    purses_of,
    row_of_dataset,
)
from farthing.ledger.open_book import OpenBook
from farthing.ledger.records import (
    Dataset,
    Entry,
    Purse,
    Release,
    Reservation,
    Terms,
    Use,
    require_name,
    require_question,
)
from farthing.ledger.registered_lists import Registered, from_document
from farthing.ledger.remaining import as_of, left_of
from farthing.ledger.store.tables import entries


class Analyst:
    """One analyst's way into the budget of one dataset."""

    def __init__(self, book: OpenBook, dataset: str, name: str) -> None:
        self._book = book
        self.dataset = dataset
        self.name = require_name("the analyst", name)

    def __repr__(self) -> str:
        return f"Analyst({self.name!r}, of {self.dataset!r})"

    def about(self) -> Dataset:
        """The dataset as its owner declares it: unit, schema, limits, version. Public."""

        def look(connection: Connection) -> Dataset:
            return declared_of(connection, row_of_dataset(connection, self.dataset)).dataset

        return self._book.store.ask(look)

    def terms(self) -> Terms:
        """The tariff in force and the number of its account: what to plan a request with."""
        return self._book.in_force(self.dataset).terms

    def secret(self) -> str:
        """The key of the digest that picks which keys of a unit are kept.

        Made from the hash of the dataset's first entry, which holds random bits and never
        changes: the same for everyone who can read the ledger, unknown to analysts who cannot.
        """

        def look(connection: Connection) -> str:
            return entry_at(connection, row_of_dataset(connection, self.dataset), 1).hash

        return sha256(f"farthing contribution order {self._book.store.ask(look)}")[:32]

    def purse(self) -> Purse:
        """The purse under the tariff in force, as of this month."""
        return self._purse_and_left()[0]

    def remaining(self) -> Price:
        """What can still be spent: what is left of the purse or, if less, of the cap."""
        return self._purse_and_left()[1]

    def _purse_and_left(self) -> tuple[Purse, Price]:
        def look(connection: Connection) -> tuple[Purse, Price]:
            found = self._book.current(connection, self.dataset)
            account = found.terms.account
            own = purses_of(connection, found.row, account, self.name)
            if not own:
                raise reserving.no_purse(self.name, self.dataset)
            purse = as_of(own[0], self._book.this_month())
            return purse, left_of(purse, accounts_of(connection, found.row)[account - 1])

        return self._book.store.ask(look)

    def reserve(
        self, items: Mapping[str, int], *, question: Any = None, under: int | None = None
    ) -> Reservation:
        """Set aside what these items cost, in one transaction, or raise and change nothing.

        `items` says how often each item of the tariff in force is bought. `under` is the
        account that the request was planned with (`terms`); TariffChanged if another tariff is
        in force by now.
        """
        return reserving.reserve(self._book, self._request(items, question), under)

    def reserve_list(
        self, name: str, *, question: Any = None, items: Mapping[str, int] | None = None
    ) -> Reservation:
        """Take from a registered list: a batch whole, without `items`; else these items."""
        return reserving.reserve_list(self._book, self._request(items, question), name)

    def _request(self, items: Mapping[str, int] | None, question: Any) -> reserving.Request:
        return reserving.Request(self.dataset, self.name, items, question)

    def registered(self, name: str) -> Registered:
        """A list that is registered for this analyst."""

        def look(connection: Connection) -> Registered:
            row = row_of_dataset(connection, self.dataset)
            own = reserving.own_list(connection, row, self.name, name)
            return from_document(document_of(connection, row, own.number))

        return self._book.store.ask(look)

    def close(
        self,
        reservation: Reservation,
        release_digest: str,
        *,
        used: Mapping[str, int] | None = None,
        use: Use | None = None,
        release: Any = None,
    ) -> None:
        """The mechanism ran and its output was released.

        `used`, at most what was reserved, returns the rest. Give it only where the output
        itself shows what was used (pay-what-you-get); never because something failed. `use`
        says for the statement what was run. With `release` the output is kept and found again
        by its question.
        """
        require_name("release_digest", release_digest)
        kept = {
            "release_digest": release_digest,
            "use": None if use is None else use.to_json(),
            "release": release,
        }
        settling.close(self._book, self._own(reservation), used, kept)

    def abandon(self, reservation: Reservation, *, reason: str) -> None:
        """Nothing was released, or nobody knows. What was reserved stays spent."""
        settling.abandon(self._book, self._own(reservation), reason)

    def _own(self, reservation: Reservation) -> Reservation:
        if (reservation.dataset, reservation.analyst) != (self.dataset, self.name):
            raise NotInLedger(f"the reservation is not one of {self.name} for {self.dataset}")
        return reservation

    def release_of(self, question: Any) -> Release | None:
        """The last release this analyst got for this question, to be seen again at no cost."""
        asked = digest(require_question(question))
        return next(iter(self._releases(asked)), None)

    def releases(self) -> list[Release]:
        """Everything this analyst got that was kept, the latest first."""
        return self._releases(None)

    def _releases(self, question_digest: str | None) -> list[Release]:
        def look(connection: Connection) -> list[Release]:
            row = row_of_dataset(connection, self.dataset)
            query = select(entries).where(
                entries.c.dataset_id == row, entries.c.released.is_not(None)
            )
            if question_digest is not None:
                query = query.filter_by(released=question_digest)
            rows = connection.execute(query.order_by(entries.c.number.desc()))
            found = (entry_of(row) for row in rows)
            return [
                _release(entry, entry_at(connection, row, entry.fact["settles"]))
                for entry in found
                if entry.fact["analyst"] == self.name
            ]

        return self._book.store.ask(look)


def _release(closed: Entry, reserved: Entry) -> Release:
    return Release(
        time=closed.fact["time"],
        question=reserved.fact["question"],
        release=closed.fact["release"],
        release_digest=closed.fact["release_digest"],
        price=Price(
            reserved.fact["farthings"] + closed.fact["farthings"],
            reserved.fact["delta_units"] + closed.fact["delta_units"],
        ),
    )
