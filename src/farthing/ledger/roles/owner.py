"""What the owner of the data decides: what exists, what it costs, who may spend how much of it.

Each decision is one transaction, and at least one entry of the book.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from farthing.canonical import canonical, digest
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.composition.tariffs.verification import verify_document
from farthing.errors import InvalidInput, require_choice, require_count
from farthing.ledger import registered_lists
from farthing.ledger.declared_data import (
    Dataset,
    Declared,
    overlap,
    require_location,
    require_only_more,
)
from farthing.ledger.entries.fact import GENESIS, Entry, new_purse
from farthing.ledger.entries.owner import (
    AddDataset,
    Declaration,
    DeclareVersion,
    Describe,
    Grant,
    OpenList,
    OpenTariff,
    Relocate,
    Retire,
    Revoke,
    Seal,
)
from farthing.ledger.errors import AlreadyThere, NotInLedger
from farthing.ledger.records import (
    EVERYBODY,
    LARGEST,
    MONTHLY,
    TARIFF,
    Account,
    Purse,
    Reservation,
    Terms,
    month_name,
    month_of,
    require_name,
    require_names,
)
from farthing.ledger.roles import charges
from farthing.ledger.roles.conversations import end_all_conversations, end_conversation
from farthing.ledger.store import queries
from farthing.ledger.store.open_book import OpenBook, Writing
from farthing.ledger.store.tables import accounts, conversations, datasets, lots, purses

#: The entry of a new account, without its number.
NewAccount: TypeAlias = Callable[..., OpenTariff | OpenList]


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
        return self._book.write(dataset.name, lambda writing: _add(writing, declared), new=True)[0]

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
        new, cap = _signed(certificate, "tariff")

        def work(writing: Writing) -> Purse:
            _add(writing, declared)
            account = _open(writing, new, cap)
            # not looked up: the cache must not outlive a transaction that is undone
            terms = Terms(account.number, certificate.tariff)
            return _grant(writing, terms, analyst, farthings, delta_units, None)

        _, purse = self._book.write(dataset.name, work, new=True)
        self._book.forget(dataset.name)
        return purse

    def describe(self, dataset: Dataset, *, beside: str | Iterable[str] | None = None) -> Entry:
        """Declare what was not declared when a dataset was added: schema, location, limits.

        What was declared stays as it is, except titles and the version.
        """
        others = require_names("beside", beside)

        def change(before: Declared) -> Declared:
            require_only_more(before.dataset, dataset)
            together = tuple(dict.fromkeys((*before.beside, *others)))
            return Declared(dataset, together, before.former)

        return self._declare(dataset.name, Describe, change)

    def relocate(self, dataset: str, location: str) -> Entry:
        """The data has moved to this place. The budget continues.

        The old place still belongs to this dataset: data that is there, now or later, can be added
        only beside it.
        """
        require_location(location)
        return self._declare(dataset, Relocate, lambda before: before.relocated(location))

    def declare_version(self, dataset: str, version: str | None) -> Entry:
        """The rows are now in this state; None: they are live, and change without notice."""

        def change(before: Declared) -> Declared:
            return replace(before, dataset=replace(before.dataset, version=version))

        return self._declare(dataset, DeclareVersion, change)

    def _declare(
        self, dataset: str, kind: type[Declaration], change: Callable[[Declared], Declared]
    ) -> Entry:
        """Write what is declared about a dataset from now on."""

        def work(writing: Writing) -> None:
            after = change(queries.declared_of(writing.connection, writing.row))
            if kind is not DeclareVersion:
                require_place(queries.all_declared(writing.connection), after)
            entry = writing.append(kind.of(after, **writing.stamp()))
            here = update(datasets).filter_by(id=writing.row)
            writing.connection.execute(here.values(declared=entry.number))

        return self._book.write(dataset, work, adds=True)[0]

    def sign(self, dataset: str, certificate: Certificate, *, name: str = "tariff") -> Account:
        """Prove a certificate and put its tariff in force; its farthings become the cap.

        A tariff that was in force is retired: nothing can be reserved under it any more, what
        was spent stays spent, and the two accounts compose. Its purses do not carry over.
        """
        return self._new_account(dataset, *_signed(certificate, name))

    def register(
        self, dataset: str, name: str, listed: registered_lists.Registered, *, analyst: str
    ) -> Account:
        """Open an account for a list that is fixed in advance, which this analyst may run."""
        require_name("the account's name", name)
        require_name("the analyst", analyst)
        document = registered_lists.document(listed)
        signed = {**document, "digest": digest(document)}
        entry = partial(OpenList, name=name, mode=listed.mode, document=signed, analyst=analyst)
        return self._new_account(dataset, entry, listed.lots)

    def _new_account(
        self, dataset: str, new: NewAccount, holds: Price | Mapping[str, int]
    ) -> Account:
        _, account = self._book.write(
            dataset, lambda writing: _open(writing, new, holds), adds=True
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

        def work(writing: Writing) -> Purse:
            terms = writing.in_force().terms
            return _grant(writing, terms, analyst, farthings, delta_units, renewal)

        return self._book.write(dataset, work)[1]

    def revoke(self, dataset: str, analyst: str) -> Price:
        """Take away what is left of an analyst's purse under the tariff in force; says how much.

        The purse stays. Nothing can be spent from it until the analyst is granted something
        again. A purse that renews keeps its rate for then. Of any other purse the rest is gone, and
        counts as spent in the purse, so that statements never forget what was granted.
        """

        def work(writing: Writing) -> Price:
            account, now = writing.in_force().terms.account, writing.book.clock()
            own = queries.purses_of(writing.connection, writing.row, account, analyst)
            if not own:
                raise NotInLedger(f"{analyst} has no purse under the tariff in force")
            purse = own[0].in_month(month_of(now))
            if not purse.open:
                raise InvalidInput(f"the purse of {analyst} was revoked before")
            left = purse.left()
            closed: dict[str, Any] = {"open": 0}
            if purse.renewal is None:  # else it keeps its rate
                spent = ("farthings", "delta_units")
                closed |= {f"{name}_spent": purses.c[name] for name in spent}
            key = {"dataset_id": writing.row, "account": account, "analyst": analyst}
            writing.connection.execute(update(purses).filter_by(**key).values(**closed))
            writing.append(
                Revoke(
                    **writing.stamp(now),
                    account=account,
                    analyst=analyst,
                    farthings=left.farthings,
                    delta_units=left.delta_units,
                )
            )
            return left

        return self._book.write(dataset, work)[1]

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

        def work(writing: Writing) -> tuple[str, ...]:
            known = queries.accounts_of(writing.connection, writing.row)
            named = [one for one in known if account in (None, one.name)]
            if account is not None and not named:
                raise NotInLedger(f"{dataset} has no account {account!r:.60}")
            retired = [one for one in named if one.open]
            if not retired:
                raise InvalidInput(f"{account or dataset} was retired before, or was never opened")
            for one in retired:
                writing.append(Retire(**writing.stamp(), account=one.number))
                key = {"dataset_id": writing.row, "account": one.number}
                writing.connection.execute(
                    update(purses).filter_by(**key, analyst=EVERYBODY).values(open=0)
                    if one.mode == TARIFF
                    else delete(lots).filter_by(**key)
                )
            return tuple(one.name for one in retired)

        _, names = self._book.write(dataset, work)
        if account is None:
            end_all_conversations(self._book, dataset, "the dataset was retired")
        self._book.forget(dataset)
        return names

    def end_conversation(self, dataset: str, identity: str, *, reason: str) -> None:
        """End a conversation, whoever opened it. It stays spent."""
        end_conversation(self._book, dataset, identity, reason)

    def seal(self, dataset: str, *, successor: str) -> Entry:
        """End this book here: it goes on in the ledger with this identity, and only there.

        Nothing can be written into it any more. `move` seals a book and takes it over.
        """
        require_name("the successor's identity", successor)

        def work(writing: Writing) -> None:
            if successor == queries.identity_of_ledger(writing.connection):
                raise InvalidInput("a book is sealed for another ledger, not for its own")
            writing.append(Seal(**writing.stamp(), successor=successor))
            run = writing.connection.execute
            run(update(datasets).filter_by(id=writing.row).values(writable=0))
            # waits for whoever is asking in a conversation, and lets nobody begin
            run(update(conversations).filter_by(dataset_id=writing.row).values(open=0))

        return self._book.write(dataset, work)[0]


def _add(writing: Writing, declared: Declared) -> None:
    """Begin the book of a dataset whose data is in no other one."""
    require_place(queries.all_declared(writing.connection), declared)
    ledger = queries.identity_of_ledger(writing.connection)
    writing.row = new_dataset(writing.connection, writing.dataset)
    writing.append(AddDataset.of(declared, **writing.stamp(), ledger=ledger))


def require_place(known: Mapping[str, Declared], new: Declared) -> None:
    """A dataset's data must not be in another dataset, unless that one is declared beside it.

    The places where data was before it was relocated count too.
    """
    dataset, beside = new.dataset, new.beside
    for other in beside:
        if other not in known:
            raise queries.no_dataset(other)
        unit = known[other].dataset.protects
        if unit != dataset.protects:
            raise InvalidInput(
                f"datasets beside each other must have one unit, {other} has {unit}, "
                f"got {dataset.protects}: their guarantees would not be about the same neighbours"
            )
    itself = (dataset.name,) if dataset.name in known else ()
    together = queries.datasets_beside(known, *beside, *itself)
    for name, declared in known.items():
        if name in (dataset.name, *together):
            continue
        for mine, theirs in product(new.places, declared.places):
            if overlap(theirs, mine):
                raise AlreadyThere(
                    f"{mine} is there already, as the dataset {name}; a budget belongs "
                    f"to the data: use {name}, or add this one beside it"
                )


def new_dataset(connection: Connection, name: str) -> int:
    """The row of an empty book."""
    empty = {"number": 0, "previous": GENESIS, "hash": GENESIS, "declared": 1, "writable": 1}
    try:
        made = connection.execute(insert(datasets).values(name=name, **empty))
    except IntegrityError:
        raise AlreadyThere(f"there is a dataset {name} already; choose another name") from None
    assert made.inserted_primary_key is not None
    return int(made.inserted_primary_key[0])


def _signed(certificate: Certificate, name: str) -> tuple[NewAccount, Price]:
    """The account of a certificate, which is proved here and now, and its cap."""
    require_name("the account's name", name)
    document, tariff = certificate.to_json(), certificate.tariff
    if max(tariff.farthings, tariff.delta_units) > LARGEST:
        raise InvalidInput(f"a tariff in a ledger has at most {LARGEST} farthings")
    prove_certificate(document)
    new = partial(OpenTariff, name=name, certificate=document)
    return new, Price(tariff.farthings, tariff.delta_units)


def prove_certificate(document: Mapping[str, Any]) -> None:
    """Prove every claim of a certificate from its tariff, or NotCertified.

    A proof takes seconds, so a document that was proved is cached by its text.
    """
    _prove(canonical(document))


@lru_cache(maxsize=64)
def _prove(written: str) -> None:
    verify_document(json.loads(written))


def _open(writing: Writing, new: NewAccount, holds: Price | Mapping[str, int]) -> Account:
    """Write an account with its cap or its lots; a tariff retires the one before it."""
    run, row = writing.connection.execute, writing.row
    known = queries.accounts_of(writing.connection, row)
    number, share = len(known) + 1, queries.next_share(writing.connection, writing.dataset)
    fact = new(**writing.stamp(), account=number, share=share)
    if fact.name in {account.name for account in known}:
        raise AlreadyThere(
            f"{writing.dataset} has an account {fact.name}; give this one another name"
        )
    run(insert(accounts).values(dataset_id=row, **fact.row(writing.append(fact).number)))
    if isinstance(holds, Price):
        run(update(purses).filter_by(dataset_id=row, analyst=EVERYBODY).values(open=0))
        run(insert(purses).values(dataset_id=row, **new_purse(number, EVERYBODY, holds)))
    else:
        key = {"dataset_id": row, "account": number, "spent": 0}
        run(insert(lots), [{**key, "item": item, "granted": holds[item]} for item in holds])
    return queries.accounts_of(writing.connection, row)[-1]


def _grant(
    writing: Writing,
    terms: Terms,
    analyst: str,
    farthings: int,
    delta_units: int | None,
    renewal: str | None,
) -> Purse:
    """Put farthings into a purse; a second grant adds to the first."""
    require_name("the analyst", analyst)
    if renewal is not None:
        require_choice("renewal", renewal, (MONTHLY,))
    run, now, tariff = writing.connection.execute, writing.book.clock(), terms.tariff
    farthings = require_count("farthings", farthings)
    if delta_units is None:  # as many as in the tariff itself
        delta_units = min(tariff.delta_units, tariff.delta_units * farthings // tariff.farthings)
    units = require_count("delta_units", delta_units)
    if max(farthings, units) > LARGEST:
        raise InvalidInput(f"a grant is at most {LARGEST} farthings, got {farthings}")
    month = None if renewal is None else month_of(now)
    key = {"dataset_id": writing.row, "account": terms.account, "analyst": analyst}
    row = run(select(purses).filter_by(**key)).one_or_none()
    if row is None:
        empty = {**new_purse(terms.account, analyst, Price(0)), "month": month}
        run(insert(purses).values(dataset_id=writing.row, **empty))
    elif (row.month is not None) != (renewal is not None):
        raise InvalidInput("a purse keeps the renewal it was first granted with")
    elif max(row.farthings + farthings, row.delta_units + units) > LARGEST:
        raise InvalidInput(f"a purse holds at most {LARGEST} farthings")
    more = {
        "farthings": purses.c.farthings + farthings,
        "delta_units": purses.c.delta_units + units,
    }
    raised = run(update(purses).filter_by(**key).values(**more, open=1).returning(purses))
    purse = queries.purse_of(raised.one()).in_month(month_of(now))
    writing.append(
        Grant(
            **writing.stamp(now),
            account=terms.account,
            analyst=analyst,
            farthings=farthings,
            delta_units=units,
            renewal=renewal,
            month=None if month is None else month_name(month),
        )
    )
    return purse
