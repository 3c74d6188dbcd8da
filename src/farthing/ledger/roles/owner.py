"""What the owner of the data decides: what exists, what it costs, who may spend how much of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.ledger.declared_data import Dataset, Declared, require_location, require_only_more
from farthing.ledger.entries.data import DeclareVersion, Describe, Relocate
from farthing.ledger.entries.fact import Entry
from farthing.ledger.records import Account, Purse, Reservation, Terms, require_name, require_names
from farthing.ledger.registered_lists import Registered
from farthing.ledger.store.open_book import InForce, OpenBook, Writing
from farthing.ledger.store.queries import all_declared, declared_of
from farthing.ledger.writes import accounts, charges, data
from farthing.ledger.writes.accounts import NewAccount, WantedGrant
from farthing.ledger.writes.conversations import end_all_conversations, end_conversation


class Owner:
    """A ledger in which its owner writes."""

    def __init__(self, book: OpenBook) -> None:
        self._book = book

    def __repr__(self) -> str:
        return f"Owner({self._book.store.name})"

    def add(self, dataset: Dataset, *, beside: str | Iterable[str] | None = None) -> Entry:
        """Add a dataset, with an empty book.

        Its data must not be there already under another name: a budget belongs to the data.
        `beside` names the datasets that share data with it; their budgets then compose in every
        statement and reading.
        """
        declared = Declared(dataset, require_names("beside", beside))
        return self._book.write(
            dataset.name, lambda writing: data.add_dataset(writing, declared), new=True
        )[0]

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
        declared = Declared(dataset, require_names("beside", beside))
        new = accounts.tariff_account(certificate, "tariff")
        wanted = WantedGrant(analyst, farthings, delta_units)

        def work(writing: Writing) -> Purse:
            data.add_dataset(writing, declared)
            account = accounts.open_account(writing, new)
            # not looked up: the cache must not outlive a transaction that is undone
            terms = Terms(account.number, certificate.tariff)
            return accounts.grant(writing, InForce(terms, writing.row, account.entry), wanted)

        _, purse = self._book.write(dataset.name, work, new=True)
        self._book.forget(dataset.name)
        return purse

    def describe(self, dataset: Dataset, *, beside: str | Iterable[str] | None = None) -> Entry:
        """Declare what was not declared when a dataset was added: schema, location, limits.

        What was declared stays as it is, except the version.
        """
        others = require_names("beside", beside)

        def work(writing: Writing) -> None:
            before = declared_of(writing.connection, writing.row)
            require_only_more(before.dataset, dataset)
            together = tuple(dict.fromkeys((*before.beside, *others)))
            declared = Declared(dataset, together, before.former)
            data.require_place(all_declared(writing.connection), declared)
            data.declare(writing, Describe, declared)

        return self._book.write(dataset.name, work, adds=True)[0]

    def relocate(self, dataset: str, location: str) -> Entry:
        """The data has moved to this place. The budget continues.

        The old place still belongs to this dataset: data that is there, now or later, can be added
        only beside it.
        """
        require_location(location)

        def work(writing: Writing) -> None:
            declared = declared_of(writing.connection, writing.row).relocated(location)
            data.require_place(all_declared(writing.connection), declared)
            data.declare(writing, Relocate, declared)

        return self._book.write(dataset, work, adds=True)[0]

    def declare_version(self, dataset: str, version: str | None) -> Entry:
        """The rows are now in this state; None: they are live, and change without notice."""

        def work(writing: Writing) -> None:
            before = declared_of(writing.connection, writing.row)
            after = replace(before.dataset, version=version)
            data.declare(writing, DeclareVersion, replace(before, dataset=after))

        return self._book.write(dataset, work, adds=True)[0]

    def sign(self, dataset: str, certificate: Certificate, *, name: str = "tariff") -> Account:
        """Prove a certificate and put its tariff in force; its farthings become the cap.

        A tariff that was in force is retired: nothing can be reserved under it any more, what
        was spent stays spent, and the two accounts compose. Its purses do not carry over.
        """
        return self._open(dataset, accounts.tariff_account(certificate, name))

    def register(self, dataset: str, name: str, listed: Registered, *, analyst: str) -> Account:
        """Open an account for a list that is fixed in advance, which this analyst may run."""
        return self._open(dataset, accounts.list_account(listed, name, analyst))

    def _open(self, dataset: str, new: NewAccount) -> Account:
        _, account = self._book.write(
            dataset, lambda writing: accounts.open_account(writing, new), adds=True
        )
        self._book.forget(dataset)
        return account

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
        lifetime guarantee of the dataset is still its cap.
        """
        wanted = WantedGrant(analyst, farthings, delta_units, renewal)
        return self._book.write(
            dataset, lambda writing: accounts.grant(writing, writing.in_force(), wanted)
        )[1]

    def revoke(self, dataset: str, analyst: str) -> Price:
        """Take away what is left of an analyst's purse under the tariff in force; says how much.

        The purse stays. Nothing can be spent from it until the analyst is granted something
        again. A purse that renews keeps its rate for then. Of any other purse the rest is gone, and
        counts as spent in the purse, so that statements never forget what was granted.
        """
        return self._book.write(dataset, lambda writing: accounts.revoke(writing, analyst))[1]

    def abandon(self, reservation: Reservation, *, reason: str) -> Entry:
        """Settle a reservation that a crash left open, whoever made it. It stays spent."""
        return self._book.write(
            reservation.dataset, lambda writing: charges.abandon(writing, reservation, reason)
        )[0]

    def retire(self, dataset: str, account: str | None = None) -> tuple[str, ...]:
        """Close this account for spending; without a name, all accounts of the dataset.

        Gives the names of what was retired. With the whole dataset its conversations end too.
        What was spent stays spent, the book stays readable, and the data stays in it: another
        tariff can be signed later, and composes with the earlier ones.
        """
        _, retired = self._book.write(dataset, lambda writing: accounts.retire(writing, account))
        if account is None:
            end_all_conversations(self._book, dataset, "the dataset was retired")
        self._book.forget(dataset)
        return retired

    def end_conversation(self, dataset: str, identity: str, *, reason: str) -> None:
        """End a conversation, whoever opened it. It stays spent."""
        end_conversation(self._book, dataset, identity, reason)

    def seal(self, dataset: str, *, successor: str) -> Entry:
        """End this book here: it goes on in the ledger with this identity, and only there.

        Nothing can be written into it any more. `move` seals a book and takes it over.
        """
        require_name("the successor's identity", successor)
        return self._book.write(dataset, lambda writing: data.seal(writing, successor))[0]
