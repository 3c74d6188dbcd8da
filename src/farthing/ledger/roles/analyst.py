"""What one analyst may do with one dataset: see the terms, spend a purse, see own releases."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from farthing.canonical import digest, sha256
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.interactive import cheapest_items
from farthing.interactive.protocol import Part
from farthing.ledger.declared_data import Dataset
from farthing.ledger.errors import NotInLedger
from farthing.ledger.records import (
    TARIFF,
    Account,
    KeptRelease,
    OpenedConversation,
    Purse,
    ReleaseSummary,
    Reservation,
    Terms,
    Use,
    require_items,
    require_name,
    require_small,
)
from farthing.ledger.registered_lists import Registered, from_document
from farthing.ledger.roles.releases import (
    EarlierRelease,
    earlier_release,
    page_of_releases,
    release_in,
)
from farthing.ledger.store import queries
from farthing.ledger.store.open_book import OpenBook, Writing
from farthing.ledger.writes import charges
from farthing.ledger.writes.charges import Request, charge, no_purse, own_list
from farthing.ledger.writes.conversations import (
    DurableConversation,
    look_at,
    open_conversation,
    opened_conversations,
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an analyst may know at one moment: the declared data, the terms in force, their purse.

    `remaining` is what is left of the purse or, if less, of the cap. `spent_alone` is what this
    analyst has spent, if that is all they were told about this data. It is None if what they are
    told may depend on what others have spent: if there are other accounts (except lists that are
    registered for somebody else), if other datasets share the data, or if the cap can refuse what
    the purses allow.
    """

    about: Dataset
    terms: Terms
    certificate: Certificate
    purse: Purse
    remaining: Price
    spent_alone: int | None


@dataclass(frozen=True, slots=True)
class Settled:
    """The entry that closes a reservation, and what is true after it.

    `after` is None for an analyst without a purse, who ran a registered list.
    """

    entry: int
    after: Snapshot | None


class Analyst:
    """One analyst's access to the budget of one dataset."""

    #: Whether `remaining` may depend on the cap, and so on what others spend.
    sees_the_cap = True

    def __init__(self, book: OpenBook, dataset: str, name: str) -> None:
        self._book = book
        self.dataset = dataset
        self.name = require_name("the analyst", name)

    def __repr__(self) -> str:
        return f"Analyst({self.name!r}, of {self.dataset!r})"

    def about(self) -> Dataset:
        """The dataset as its owner declares it: unit, schema, limits, version. Public."""
        return self._book.ask(self.dataset, queries.declared_of).dataset

    def terms(self) -> Terms:
        """The tariff in force and the number of its account, to plan a request with."""
        return self._book.in_force(self.dataset).terms

    def certificate(self) -> Certificate:
        """What the tariff in force proves, as it was signed. Public."""

        def look(connection: Connection) -> Certificate:
            in_force = self._book.current(connection, self.dataset)
            account = in_force.terms.account
            return self._book.certificate(connection, self.dataset, in_force.row, account)

        return self._book.store.ask(look)

    def snapshot(self) -> Snapshot:
        """Everything that a plan looks at, as of one moment."""
        return self._book.store.ask(self._snapshot)

    def _snapshot(self, connection: Connection) -> Snapshot:
        """NotInLedger if the analyst has no purse."""
        in_force = self._book.current(connection, self.dataset)
        row, number = in_force.row, in_force.terms.account
        accounts = queries.accounts_of(connection, row)
        purses = queries.purses_of(connection, row, number)
        own = next((purse for purse in purses if purse.analyst == self.name), None)
        if own is None:
            raise no_purse(self.name, self.dataset)
        if not own.open:
            (own,) = queries.spent_and_revoked(connection, row, [own])
        purse = own.in_month(self._book.this_month())
        cap, others = accounts[number - 1], accounts[: number - 1] + accounts[number:]
        alone = (
            all(account.mode != TARIFF and account.analyst != self.name for account in others)
            and len(queries.datasets_beside(queries.all_declared(connection), self.dataset)) == 1
            and _are_separate(purses, cap)
        )
        return Snapshot(
            about=queries.declared_of(connection, row).dataset,
            terms=in_force.terms,
            certificate=self._book.certificate(connection, self.dataset, row, number),
            purse=purse,
            remaining=purse.left(cap if self.sees_the_cap else None),
            spent_alone=own.farthings_spent if alone else None,
        )

    def spent_alone(self) -> int | None:
        """What this analyst has spent, if that is all they were told of this data (`Snapshot`)."""
        return self.snapshot().spent_alone

    def secret(self) -> str:
        """The key of the digest that picks which keys of a unit are kept.

        Made from the hash of the dataset's first entry, which holds random bits and never
        changes: the same for everyone who can read the ledger, unknown to analysts who cannot.
        """
        return sha256(f"farthing contribution order {self._book.first_hash(self.dataset)}")[:32]

    def purse(self) -> Purse:
        """The purse under the tariff in force, as of this month."""
        return self.snapshot().purse

    def remaining(self) -> Price:
        """What can still be spent: what is left of the purse or, if less, of the cap."""
        return self.snapshot().remaining

    def reserve(
        self, items: Mapping[str, int], *, question: Any = None, under: int | None = None
    ) -> Reservation:
        """Set aside what these items cost, in one transaction, or raise and change nothing.

        `items` says how often each item of the tariff in force is bought. `under` is the
        account that the request was planned with (`terms`); TariffChanged if another tariff is
        in force by now.
        """
        small = require_small(question)
        wanted = Request(self.dataset, self.name, require_items(items), small, under)
        return queries.reservation_of(charge(self._book, wanted))

    def reserve_list(
        self, name: str, *, question: Any = None, items: Mapping[str, int] | None = None
    ) -> Reservation:
        """Take from a registered list: a batch whole, without `items`; else these items."""
        small = require_small(question)

        def work(writing: Writing) -> None:
            charges.reserve_list(writing, self.name, name, items, small)

        return queries.reservation_of(self._book.write(self.dataset, work)[0])

    def registered(self, name: str) -> Registered:
        """A list that is registered for this analyst."""

        def look(connection: Connection, row: int) -> Registered:
            own = own_list(connection, row, self.dataset, self.name, name)
            return from_document(queries.document_of(connection, row, own.number))

        return self._book.ask(self.dataset, look)

    def close(
        self,
        reservation: Reservation,
        release_digest: str,
        *,
        used: Mapping[str, int] | None = None,
        use: Use | None = None,
        release: Any = None,
    ) -> Settled:
        """The mechanism ran and its output was released. Gives what is true afterwards.

        `used`, at most what was reserved, returns the rest. Give it only where the output
        itself shows what was used (pay-what-you-get); never because something failed. `use`
        says for the statement what was run. With `release` the output is kept and found again
        by its question.
        """
        self._require_own(reservation)
        require_name("release_digest", release_digest)
        outcome = charges.Outcome(release_digest, use, release)

        def work(writing: Writing) -> Snapshot | None:
            charges.close(writing, reservation, used, outcome)
            with suppress(NotInLedger):
                return self._snapshot(writing.connection)
            return None

        entry, after = self._book.write(self.dataset, work)
        return Settled(entry.number, after)

    def abandon(self, reservation: Reservation, *, reason: str) -> None:
        """Nothing was released, or nobody knows. What was reserved stays spent."""
        self._require_own(reservation)
        self._book.write(
            self.dataset, lambda writing: charges.abandon(writing, reservation, reason)
        )

    def _require_own(self, reservation: Reservation) -> None:
        if (reservation.dataset, reservation.analyst) != (self.dataset, self.name):
            raise NotInLedger(f"the reservation is not one of {self.name} for {self.dataset}")

    def open_conversation(
        self,
        mechanism: Part,
        *,
        items: Mapping[str, int] | None = None,
        question: Any = None,
        under: int | None = None,
        use: Use | None = None,
    ) -> DurableConversation:
        """Charge a conversation in full, draw its noise and keep both, in one transaction.

        `items` pay for the mechanism's guarantees, one for each use; without them the cheapest
        are taken. `question` is kept with it; `use` says for the statement what was run. Nothing
        is paid back, whether anything is asked or not.
        """
        if items is None:
            terms = self.terms()
            items = cheapest_items(terms.tariff, mechanism.guarantees)
            under = terms.account if under is None else under
        small = require_small(question)
        request = Request(self.dataset, self.name, require_items(items), small, under)
        return open_conversation(self._book, request, mechanism, use)

    def conversation(self, identity: str) -> DurableConversation:
        """A conversation that this analyst opened, here or in another process."""
        opened = look_at(self._book, self.dataset, identity, self.name)
        return DurableConversation(self._book, opened)

    def conversations(self) -> list[OpenedConversation]:
        """Every conversation that this analyst opened, the oldest first."""
        return self._book.store.ask(
            lambda connection: opened_conversations(connection, self.dataset, analyst=self.name)
        )

    def release_of(self, question: Any) -> KeptRelease | None:
        """The last release this analyst got for this question, to be seen again at no cost."""
        return self.earlier_release(question, None).release

    def earlier_release(self, question: Any, after: int | None) -> EarlierRelease:
        """The last release for a question. If there is none, the batches that were answered since
        an entry: questions by name, and the entry of each batch."""
        if question is None:
            raise InvalidInput("a release is found by its question, got None")
        return earlier_release(self._book, self.dataset, self.name, digest(question), after)

    def release(self, entry: int) -> KeptRelease | None:
        """The release that this entry keeps, if it is this analyst's."""
        return release_in(self._book, self.dataset, self.name, entry)

    def releases(
        self, *, before: int | None = None, limit: int | None = None
    ) -> list[ReleaseSummary]:
        """Releases of this analyst that were kept, the latest first: before an entry, so many."""
        return page_of_releases(self._book, self.dataset, self.name, before, limit)


def _are_separate(purses: list[Purse], cap: Account) -> bool:
    """Whether nobody can be refused because of what others spent."""
    granted = Price(
        sum(purse.farthings for purse in purses), sum(purse.delta_units for purse in purses)
    )
    whole = Price(cap.farthings, cap.delta_units)
    return all(purse.renewal is None for purse in purses) and granted.within(whole)
