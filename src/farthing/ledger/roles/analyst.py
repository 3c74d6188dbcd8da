"""What one analyst may do with one dataset: see the terms, spend a purse, see own releases.

Releases of others are not read: the time that takes would tell how many there are. Only the search
for batches passes over what others reserved, each entry once (docs/known-limits.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import JSON, Connection, Select, Text, bindparam, cast, literal, select, text

from farthing.canonical import canonical, digest, sha256
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.interactive import cheapest_items
from farthing.interactive.protocol import Part
from farthing.ledger.declared_data import Dataset
from farthing.ledger.entries.analyst import Close, Reserve
from farthing.ledger.entries.fact import written_fact
from farthing.ledger.errors import Damaged, NotInLedger
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
    require_name,
    require_small,
)
from farthing.ledger.registered_lists import Registered, from_document
from farthing.ledger.roles import charges
from farthing.ledger.roles.charges import Request, charge, no_purse, own_list
from farthing.ledger.roles.conversations import (
    DurableConversation,
    look_at,
    open_conversation,
    opened_conversations,
)
from farthing.ledger.store import queries
from farthing.ledger.store.open_book import OpenBook, Writing
from farthing.ledger.store.tables import entries

#: The entry that keeps the answers of a batch, and its questions by name.
Batch: TypeAlias = tuple[int, Mapping[str, Any]]

#: Latest first.
_OWN = text("""SELECT number, fact FROM farthing_entries
    WHERE dataset_id = :row AND released IS NOT NULL AND released = :asked
    AND fact LIKE :own ESCAPE '/'
    ORDER BY number DESC""")
#: Reservations for several questions together. Their questions have names; a single one has none.
_TOGETHER = text("""SELECT closed.number, reserved.fact
    FROM farthing_entries AS closed JOIN farthing_entries AS reserved
    ON reserved.dataset_id = closed.dataset_id AND reserved.number = closed.settles
    WHERE closed.dataset_id = :row AND closed.released IS NOT NULL AND closed.number > :after
    AND reserved.fact LIKE :own ESCAPE '/' AND reserved.fact NOT LIKE '%"question":{"":%'
    ORDER BY closed.number""")
_SUMMARY = ("time", "farthings", "delta_units")


@dataclass(frozen=True, slots=True)
class EarlierRelease:
    """An earlier release, or the batches that may hold it.

    `seen` is the entry up to which batches were looked for, so that each is read once.
    """

    release: KeptRelease | None
    batches: list[Batch]
    seen: int


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
        return self._book.in_force(self.dataset).certificate

    def snapshot(self) -> Snapshot:
        """Everything that a plan looks at, as of one moment."""
        return self._book.store.ask(self._snapshot)

    def _snapshot(self, connection: Connection) -> Snapshot:
        """NotInLedger if the analyst has no purse."""
        in_force = self._book.current(connection, self.dataset)
        row, number, accounts = in_force.row, in_force.terms.account, in_force.accounts
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
            certificate=in_force.certificate,
            purse=purse,
            remaining=purse.left(cap if self.sees_the_cap else None),
            spent_alone=own.farthings_spent if alone else None,
        )

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
        wanted = Request(self.dataset, self.name, items, question, under)
        return queries.reservation_of(charge(self._book, wanted))

    def reserve_list(
        self, name: str, *, question: Any = None, items: Mapping[str, int] | None = None
    ) -> Reservation:
        """Take from a registered list: a batch whole, without `items`; else these items."""
        require_small(question)
        entry, _ = self._book.write(
            self.dataset,
            lambda writing: charges.reserve_list(writing, self.name, name, items, question),
        )
        return queries.reservation_of(entry)

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
        kept: dict[str, Any] = {"release_digest": release_digest, "use": use, "release": release}

        def work(writing: Writing) -> Snapshot | None:
            charges.close(writing, reservation, used, **kept)
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
        request = Request(self.dataset, self.name, items, question, under)
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
        entry `after`: the question may have been answered in one of them."""
        if question is None:
            raise InvalidInput("a release is found by its question, got None")
        asked = digest(question)

        def look(connection: Connection, row: int) -> EarlierRelease:
            given = {"row": row, "own": _mentions(self.name), "asked": asked}
            for number, written in connection.execute(_OWN, given):
                closed = written_fact(written)
                if isinstance(closed, Close) and closed.analyst == self.name:
                    return EarlierRelease(_kept(connection, row, number, closed), [], after or 0)
            if after is None:
                return EarlierRelease(None, [], 0)
            newer = connection.execute(_TOGETHER, {**given, "after": after})
            facts = ((number, written_fact(written)) for number, written in newer)
            batches = [
                (number, fact.question)
                for number, fact in facts
                if isinstance(fact, Reserve) and fact.analyst == self.name
            ]
            return EarlierRelease(None, batches, queries.head_of(connection, row))

        return self._book.ask(self.dataset, look)

    def release(self, entry: int) -> KeptRelease | None:
        """The release that this entry keeps, if it is this analyst's."""

        def look(connection: Connection, row: int) -> KeptRelease | None:
            with suppress(NotInLedger):
                fact = queries.entry_at(connection, row, entry).fact
                own = isinstance(fact, Close) and fact.analyst == self.name
                if isinstance(fact, Close) and own and fact.release is not None:
                    return _kept(connection, row, entry, fact)
            return None

        return self._book.ask(self.dataset, look)

    def releases(
        self, *, before: int | None = None, limit: int | None = None
    ) -> list[ReleaseSummary]:
        """Releases of this analyst that were kept, the latest first: before an entry, so many.

        The database cuts the page, and reads the summaries out of facts that may hold a hundred
        thousand labels.
        """

        def look(connection: Connection, row: int) -> list[ReleaseSummary]:
            given = {"row": row, "own": _mentions(self.name), "name": canonical(self.name)}
            page = connection.execute(_page(connection, before).limit(limit), given).all()
            summaries = []
            for number, settles, time, farthings, delta_units in page:
                reserved = _reserved(connection, row, settles)
                back = Price(int(farthings), int(delta_units))  # negative: came back
                price = reserved.price + back
                summaries.append(ReleaseSummary(number, json.loads(time), reserved.question, price))
            return summaries

        return self._book.ask(self.dataset, look)


def _are_separate(purses: list[Purse], cap: Account) -> bool:
    """Whether nobody can be refused because of what others spent."""
    granted = Price(
        sum(purse.farthings for purse in purses), sum(purse.delta_units for purse in purses)
    )
    whole = Price(cap.farthings, cap.delta_units)
    return all(purse.renewal is None for purse in purses) and granted.within(whole)


def _page(connection: Connection, before: int | None) -> Select[Any]:
    """Both databases have the operator `->`, which gives a part of JSON as it is written."""
    fact = entries.c.fact if connection.dialect.name == "sqlite" else cast(entries.c.fact, JSON)
    analyst, *parts = (cast(fact.op("->")(literal(n)), Text) for n in ("analyst", *_SUMMARY))
    page = select(entries.c.number, entries.c.settles, *parts).where(
        entries.c.dataset_id == bindparam("row"),
        entries.c.released.is_not(None),
        entries.c.fact.like(bindparam("own"), escape="/"),
        analyst == bindparam("name"),
    )
    page = page if before is None else page.where(entries.c.number < before)
    return page.order_by(entries.c.number.desc())


def _mentions(analyst: str) -> str:
    """A pattern for facts that name this analyst; some others may match it too."""
    name = canonical(analyst).replace("/", "//").replace("%", "/%").replace("_", "/_")
    return f'%"analyst":{name}%'


def _reserved(connection: Connection, row: int, number: int) -> Reserve:
    """The reservation in this entry."""
    fact = queries.entry_at(connection, row, number).fact
    if not isinstance(fact, Reserve):
        raise Damaged(f"entry {number} reserves nothing", fact.dataset, number)
    return fact


def _kept(connection: Connection, row: int, number: int, closed: Close) -> KeptRelease:
    reserved = _reserved(connection, row, closed.settles)
    return KeptRelease(
        number,
        closed.time,
        reserved.question,
        reserved.price - closed.back,
        release=closed.release,
        release_digest=closed.release_digest,
    )
