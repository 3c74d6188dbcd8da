"""What one analyst may do with one dataset: see the terms, spend a purse, see own releases."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, select

from farthing.canonical import digest, sha256
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.interactive import cheapest_items
from farthing.interactive.protocol import Part
from farthing.ledger import settling
from farthing.ledger.charging import Request, charge, question_digest
from farthing.ledger.conversations import (
    Talk,
    open_conversation,
    opened_conversations,
)
from farthing.ledger.declared_data import Dataset
from farthing.ledger.durable_conversation import DurableConversation
from farthing.ledger.entries import Entry, Reserve
from farthing.ledger.errors import DoesNotFit, NotInLedger
from farthing.ledger.kept_releases import (
    EarlierRelease,
    earlier_release,
    last_release,
    page_of_releases,
    release_in,
)
from farthing.ledger.lookups import (
    declared_of,
    document_of,
    reservation_of,
    row_of_dataset,
)
from farthing.ledger.open_book import OpenBook
from farthing.ledger.records import (
    BATCH,
    LARGEST,
    TARIFF,
    KeptRelease,
    OpenedConversation,
    Purse,
    ReleaseSummary,
    Reservation,
    Terms,
    Use,
    require_items,
    require_name,
    require_question,
    require_small,
)
from farthing.ledger.registered_lists import EVERYTHING, Registered, from_document
from farthing.ledger.snapshot import Settled, Snapshot, snapshot_of
from farthing.ledger.store import statements
from farthing.ledger.store.tables import accounts, lots


class Analyst:
    """One analyst's way into the budget of one dataset."""

    #: Whether what remains may tell of the cap, and so of what others spend.
    sees_the_cap = True

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

    def certificate(self) -> Certificate:
        """What the tariff in force proves, as it was signed. Public."""

        def look(connection: Connection) -> Certificate:
            found = self._book.current(connection, self.dataset)
            account = found.terms.account
            return self._book.certificate(connection, self.dataset, found.row, account)

        return self._book.store.ask(look)

    def snapshot(self) -> Snapshot:
        """Everything that a plan looks at, as of one moment."""
        return self._book.store.ask(self._snapshot)

    def _snapshot(self, connection: Connection) -> Snapshot:
        return snapshot_of(
            self._book, connection, self.dataset, self.name, capped=self.sees_the_cap
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
        return reservation_of(charge(self._book, wanted))

    def reserve_list(
        self, name: str, *, question: Any = None, items: Mapping[str, int] | None = None
    ) -> Reservation:
        """Take from a registered list: a batch whole, without `items`; else these items."""

        def look(connection: Connection) -> tuple[int, Any]:
            row = row_of_dataset(connection, self.dataset)
            return row, self._own_list(connection, row, name)

        row, account = self._book.store.ask(look)
        if account.mode == BATCH and items is not None:
            raise InvalidInput("a batch is reserved whole; leave the items out")
        wanted = {EVERYTHING: 1} if account.mode == BATCH else require_items(items)
        fact = Reserve(
            **self._book.stamp(self.dataset),
            account=account.number,
            analyst=self.name,
            items=wanted,
            farthings=0,
            delta_units=0,
            month=None,
            question=require_small(question),
            question_digest=question_digest(question),
        )

        def work(connection: Connection, token: str) -> Entry | None:
            entry = statements.append(connection, row, fact, token)
            fits = max(wanted.values()) <= LARGEST
            taken = fits and statements.take_lots(connection, row, account.number, wanted)
            return entry if taken else None

        entry = self._book.write_if_it_fits(self.dataset, work)
        if entry is None:
            raise self._list_refusal(row, account, wanted)
        return reservation_of(entry)

    def _own_list(self, connection: Connection, row: int, name: str) -> Any:
        """The same refusal for what is a tariff, what is somebody else's, and what is not."""
        found = connection.execute(
            select(accounts).filter_by(dataset_id=row, name=name, analyst=self.name)
        ).one_or_none()
        if found is None or found.mode == TARIFF:
            raise NotInLedger(f"{self.name} has no list {name!r:.60} for {self.dataset}")
        return found

    def _list_refusal(
        self, row: int, account: Any, wanted: Mapping[str, int]
    ) -> DoesNotFit | InvalidInput:
        def look(connection: Connection) -> dict[str, int]:
            rows = connection.execute(
                select(lots).filter_by(dataset_id=row, account=account.number).order_by("item")
            )
            return {lot.item: lot.granted - lot.spent for lot in rows}

        left = self._book.store.ask(look)
        if not left:
            return InvalidInput(f"the list {account.name} was retired; nothing is left of it")
        unknown = set(wanted) - set(left)
        if unknown:
            return InvalidInput(
                f"the list {account.name} has {', '.join(left)}, not {min(unknown)}"
            )
        fits = {item: min(times, left[item]) for item, times in wanted.items() if left[item] > 0}
        return DoesNotFit(wanted, left, fits)

    def registered(self, name: str) -> Registered:
        """A list that is registered for this analyst."""

        def look(connection: Connection) -> Registered:
            row = row_of_dataset(connection, self.dataset)
            own = self._own_list(connection, row, name)
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
    ) -> Settled:
        """The mechanism ran and its output was released. Gives what is true afterwards.

        `used`, at most what was reserved, returns the rest. Give it only where the output
        itself shows what was used (pay-what-you-get); never because something failed. `use`
        says for the statement what was run. With `release` the output is kept and found again
        by its question.
        """
        require_name("release_digest", release_digest)
        outcome = settling.Outcome(release_digest, use, release)
        after: list[Snapshot] = []

        def alongside(connection: Connection) -> None:
            with suppress(NotInLedger):
                after[:] = [self._snapshot(connection)]

        entry = settling.close(self._book, self._own(reservation), used, outcome, alongside)
        return Settled(entry.number, after[0] if after else None)

    def abandon(self, reservation: Reservation, *, reason: str) -> None:
        """Nothing was released, or nobody knows. What was reserved stays spent."""
        settling.abandon(self._book, self._own(reservation), reason)

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
        are taken. `question` is what is kept about it, `use` what the statement says. Nothing is
        paid back, whether anything is asked or not.
        """
        if items is None:
            terms = self.terms()
            items = cheapest_items(terms.tariff, mechanism.guarantees)
            under = terms.account if under is None else under
        small = require_small(question)
        request = Request(self.dataset, self.name, require_items(items), small, under)
        opened = open_conversation(self._book, request, mechanism, use)
        return DurableConversation(Talk(self._book, self.dataset, opened.id), opened)

    def conversation(self, identity: str) -> DurableConversation:
        """A conversation that this analyst opened, wherever that was."""
        talk = Talk(self._book, self.dataset, identity)
        return DurableConversation(talk, talk.look(self.name))

    def conversations(self) -> list[OpenedConversation]:
        """Every conversation that this analyst opened, the oldest first."""
        return self._book.store.ask(
            lambda connection: opened_conversations(connection, self.dataset, analyst=self.name)
        )

    def _own(self, reservation: Reservation) -> Reservation:
        if (reservation.dataset, reservation.analyst) != (self.dataset, self.name):
            raise NotInLedger(f"the reservation is not one of {self.name} for {self.dataset}")
        return reservation

    def release_of(self, question: Any) -> KeptRelease | None:
        """The last release this analyst got for this question, to be seen again at no cost."""
        asked = digest(require_question(question))
        return last_release(self._book, self.dataset, self.name, asked)

    def earlier_release(self, question: Any, after: int) -> EarlierRelease:
        """The last release for a question; if there is none, what was answered together since an
        entry: questions by name, and the entry of each batch."""
        asked = digest(require_question(question))
        return earlier_release(self._book, self.dataset, self.name, asked, after)

    def release(self, entry: int) -> KeptRelease | None:
        """The release that this entry keeps, if it is this analyst's."""
        return release_in(self._book, self.dataset, self.name, entry)

    def releases(
        self, *, before: int | None = None, limit: int | None = None
    ) -> list[ReleaseSummary]:
        """What this analyst got that was kept, the latest first: before an entry, so many."""
        return page_of_releases(self._book, self.dataset, self.name, before, limit)
