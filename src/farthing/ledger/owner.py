"""What the owner of the data decides: what exists, what it costs, who may spend how much of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from sqlalchemy import Connection, update

from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.ledger import granting, registered_lists, retiring, settling
from farthing.ledger.conversations import Talk
from farthing.ledger.declared_data import Dataset, Declared, require_only_more
from farthing.ledger.entries import (
    AddDataset,
    Declaration,
    DeclareVersion,
    Describe,
    Entry,
    Relocate,
    Seal,
)
from farthing.ledger.granting import WantedGrant, write_grant
from farthing.ledger.locations import require_location
from farthing.ledger.lookups import (
    all_declared,
    declared_of,
    identity_of_ledger,
)
from farthing.ledger.new_accounts import list_account, open_account, tariff_account, write_account
from farthing.ledger.new_datasets import new_dataset, one_adds_at_a_time, require_place
from farthing.ledger.open_book import InForce, OpenBook, lock_dataset
from farthing.ledger.records import (
    Account,
    Purse,
    Reservation,
    Terms,
    require_name,
    require_names,
)
from farthing.ledger.store import statements
from farthing.ledger.store.tables import (
    conversations,
    datasets,
)


class Owner:
    """A ledger in which its owner writes."""

    def __init__(self, book: OpenBook) -> None:
        self._book = book

    def __repr__(self) -> str:
        return f"Owner({self._book.store.name})"

    def add(self, dataset: Dataset, *, beside: str | Iterable[str] | None = None) -> Entry:
        """A new dataset, with an empty book.

        Its data must not be there already under another name: a budget belongs to the data.
        `beside` names the datasets that share data with it; their budgets then compose in every
        statement and reading.
        """
        others = require_names("beside", beside)
        return self._book.write(
            dataset.name,
            lambda connection, token: self._add(connection, token, dataset, others)[1],
        )

    def begin(
        self,
        dataset: Dataset,
        certificate: Certificate,
        *,
        analyst: str,
        farthings: int,
        delta_units: int | None = None,
        beside: str | Iterable[str] | None = None,
    ) -> Purse:
        """Add a dataset, put a tariff in force and grant a first purse: all of it, or nothing.

        As `add`, `sign` and `grant` one after the other, in one transaction.
        """
        others = require_names("beside", beside)
        opening = tariff_account(certificate, "tariff")
        grant = WantedGrant.of(analyst, farthings, delta_units, None)
        granted: list[Purse] = []

        def work(connection: Connection, token: str) -> Entry:
            row, entry = self._add(connection, token, dataset, others)
            opened, _ = write_account(self._book, connection, token, dataset.name, row, opening)
            # not looked up: what is remembered must not outlive a transaction that is undone
            found = InForce(Terms(opened.number, certificate.tariff), row, opened.entry)
            granted.append(
                write_grant(self._book, connection, token, dataset.name, found, grant)[0]
            )
            return entry

        self._book.write(dataset.name, work)
        self._book.forget(dataset.name)
        return granted[-1]

    def _add(
        self, connection: Connection, token: str, dataset: Dataset, others: tuple[str, ...]
    ) -> tuple[int, Entry]:
        one_adds_at_a_time(connection)
        declared = Declared(dataset, others)
        require_place(all_declared(connection), declared)
        fact = AddDataset.of(
            declared,
            **self._book.stamp(dataset.name),
            ledger=identity_of_ledger(connection),
        )
        row = new_dataset(connection, dataset.name)
        return row, statements.append(connection, row, fact, token)

    def describe(self, dataset: Dataset, *, beside: str | Iterable[str] | None = None) -> Entry:
        """Declare what was not declared when a dataset was added: schema, location, limits.

        What was declared stays as it is, all but titles and the version.
        """
        others = require_names("beside", beside)

        def after(connection: Connection, before: Declared) -> Declared:
            require_only_more(before.dataset, dataset)
            together = tuple(dict.fromkeys((*before.beside, *others)))
            declared = Declared(dataset, together, before.former)
            require_place(all_declared(connection), declared)
            return declared

        return self._declare(Describe, dataset.name, after)

    def relocate(self, dataset: str, location: str) -> Entry:
        """The data moved: it is in this place now. The budget goes on.

        The place where it was stays this dataset's: nothing that is still there, or comes there,
        can be added as other data, unless beside it.
        """

        def after(connection: Connection, before: Declared) -> Declared:
            declared = before.relocated(require_location(location))
            require_place(all_declared(connection), declared)
            return declared

        return self._declare(Relocate, dataset, after)

    def declare_version(self, dataset: str, version: str | None) -> Entry:
        """The rows are now in this state; None: they are live, and change without notice."""

        def after(_: Connection, before: Declared) -> Declared:
            return replace(before, dataset=replace(before.dataset, version=version))

        return self._declare(DeclareVersion, dataset, after)

    def _declare(
        self,
        kind: type[Declaration],
        dataset: str,
        after: Callable[[Connection, Declared], Declared],
    ) -> Entry:
        """An entry with everything that is declared from now on."""

        def work(connection: Connection, token: str) -> Entry:
            one_adds_at_a_time(connection)
            row = lock_dataset(connection, dataset)
            new = after(connection, declared_of(connection, row))
            fact = kind.of(new, **self._book.stamp(dataset))
            entry = statements.append(connection, row, fact, token)
            connection.execute(update(datasets).filter_by(id=row).values(declared=entry.number))
            return entry

        return self._book.write(dataset, work)

    def sign(self, dataset: str, certificate: Certificate, *, name: str = "tariff") -> Account:
        """Prove a certificate and put its tariff in force; its farthings become the cap.

        A tariff that was in force is retired: nothing can be reserved under it any more, what
        was spent stays spent, and the two accounts compose. Its purses do not carry over.
        """
        return open_account(self._book, dataset, tariff_account(certificate, name))

    def register(
        self, dataset: str, name: str, listed: registered_lists.Registered, *, analyst: str
    ) -> Account:
        """An account for a list that is fixed in advance, which this analyst may run."""
        return open_account(self._book, dataset, list_account(listed, name, analyst))

    def grant(
        self,
        dataset: str,
        analyst: str,
        *,
        farthings: int,
        delta_units: int | None = None,
        renewal: str | None = None,
    ) -> Purse:
        """Give an analyst farthings of the tariff in force; a second grant adds to the first.

        Without `delta_units` as many come along as in the tariff itself, in proportion. With
        renewal "monthly" the purse holds that much anew in each calendar month (UTC). The
        lifetime guarantee of the dataset stays its cap.
        """
        wanted = WantedGrant.of(analyst, farthings, delta_units, renewal)
        granted: list[Purse] = []

        def work(connection: Connection, token: str) -> Entry:
            lock_dataset(connection, dataset)
            found = self._book.current(connection, dataset)
            purse, entry = write_grant(self._book, connection, token, dataset, found, wanted)
            granted.append(purse)
            return entry

        self._book.write(dataset, work)
        return granted[-1]

    def revoke(self, dataset: str, analyst: str) -> Price:
        """Take away what is left of an analyst's purse under the tariff in force; says how much.

        The purse stays. Nothing can be spent of it until the analyst is granted something
        again. One that renews keeps its rate for then; of another one what was left is gone,
        and counts as spent in the purse, so that statements never forget what was granted.
        """
        return granting.revoke(self._book, dataset, analyst)

    def abandon(self, reservation: Reservation, *, reason: str) -> Entry:
        """Settle a reservation that a crash left open, whoever made it. It stays spent."""
        return settling.abandon(self._book, reservation, reason)

    def retire(self, dataset: str, account: str | None = None) -> tuple[str, ...]:
        """Nothing can be spent of this account any more; without a name, of the whole dataset.

        Gives the names of what was retired. With the whole dataset its conversations end too.
        What was spent stays spent, the book stays readable, and the data stays in it: another
        tariff can be signed later, and composes with what was before.
        """
        retired = retiring.retire(self._book, dataset, account)
        self._book.forget(dataset)
        return retired

    def end_conversation(self, dataset: str, identity: str, *, reason: str) -> None:
        """Nothing can be asked in it any more, whoever opened it. It stays spent."""
        Talk(self._book, dataset, identity).end(reason)

    def seal(self, dataset: str, *, successor: str) -> Entry:
        """End this book here: it goes on in the ledger with this identity, and only there.

        From here on nothing can be written into it. See `move`, which does all of it.
        """
        require_name("the successor's identity", successor)

        def work(connection: Connection, token: str) -> Entry:
            row = lock_dataset(connection, dataset)
            if successor == identity_of_ledger(connection):
                raise InvalidInput("a book is sealed for another ledger, not for its own")
            fact = Seal(**self._book.stamp(dataset), successor=successor)
            entry = statements.append(connection, row, fact, token)
            connection.execute(update(datasets).filter_by(id=row).values(writable=0))
            # waits for whoever is talking, and lets nobody begin
            connection.execute(update(conversations).filter_by(dataset_id=row).values(open=0))
            return entry

        return self._book.write(dataset, work)
