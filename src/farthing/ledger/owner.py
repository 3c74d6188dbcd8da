"""What the owner of the data decides: what exists, what it costs, who may spend how much of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, insert, select, update

from farthing.canonical import digest
from farthing.composition.account_profiles import HALVING
from farthing.composition.certificate import Certificate
from farthing.composition.tariff import Price
from farthing.errors import InvalidInput, require_choice, require_count
from farthing.ledger import registered_lists, retiring, settling
from farthing.ledger.conversations import Talk
from farthing.ledger.errors import AlreadyThere, NotInLedger
from farthing.ledger.lookups import (
    Declared,
    accounts_of,
    all_declared,
    declared_of,
    identity_of_ledger,
    purse_of,
    purses_of,
)
from farthing.ledger.months import month_name, month_of
from farthing.ledger.new_datasets import new_dataset, one_adds_at_a_time, require_place
from farthing.ledger.open_book import InForce, OpenBook, lock_dataset
from farthing.ledger.proofs import prove_certificate
from farthing.ledger.records import (
    LARGEST,
    MONTHLY,
    TARIFF,
    Account,
    Dataset,
    Entry,
    Purse,
    Reservation,
    Terms,
    require_name,
    require_names,
    require_only_more,
)
from farthing.ledger.remaining import as_of, in_proportion, left_of
from farthing.ledger.store import statements
from farthing.ledger.store.tables import (
    EVERYBODY,
    accounts,
    conversations,
    datasets,
    lots,
    purses,
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
        opening = _tariff_account(certificate, "tariff")
        grant = _Grant.of(analyst, farthings, delta_units, None)
        granted: list[Purse] = []

        def work(connection: Connection, token: str) -> Entry:
            row, entry = self._add(connection, token, dataset, others)
            opened = self._account(connection, token, dataset.name, row, opening)
            # not looked up: what is remembered must not outlive a transaction that is undone
            found = InForce(Terms(opened.fact["account"], certificate.tariff), row, opened.number)
            granted.append(self._grant(connection, token, dataset.name, found, grant)[0])
            return entry

        self._book.write(dataset.name, work)
        self._book.forget(dataset.name)
        return granted[-1]

    def _add(
        self, connection: Connection, token: str, dataset: Dataset, others: tuple[str, ...]
    ) -> tuple[int, Entry]:
        one_adds_at_a_time(connection)
        require_place(all_declared(connection), dataset, others)
        fact = self._book.fact(
            "dataset",
            dataset.name,
            description=dataset.to_json(),
            beside=list(others),
            ledger=identity_of_ledger(connection),
        )
        row = new_dataset(connection, dataset.name)
        return row, statements.append(connection, row, fact, token)

    def describe(self, dataset: Dataset, *, beside: str | Iterable[str] | None = None) -> Entry:
        """Declare what was not declared when a dataset was added: schema, location, limits.

        What was declared stays as it is, all but the version.
        """
        others = require_names("beside", beside)

        def after(connection: Connection, before: Declared) -> Declared:
            require_only_more(before.dataset, dataset)
            together = tuple(dict.fromkeys((*before.beside, *others)))
            require_place(all_declared(connection), dataset, together)
            return Declared(dataset, together)

        return self._declare("describe", dataset.name, after)

    def declare_version(self, dataset: str, version: str | None) -> Entry:
        """The rows are now in this state; None: they are live, and change without notice."""

        def after(_: Connection, before: Declared) -> Declared:
            return replace(before, dataset=replace(before.dataset, version=version))

        return self._declare("version", dataset, after)

    def _declare(
        self, kind: str, dataset: str, after: Callable[[Connection, Declared], Declared]
    ) -> Entry:
        """An entry with everything that is declared from now on."""

        def work(connection: Connection, token: str) -> Entry:
            one_adds_at_a_time(connection)
            row = lock_dataset(connection, dataset)
            new = after(connection, declared_of(connection, row))
            fact = self._book.fact(
                kind, dataset, description=new.dataset.to_json(), beside=list(new.beside)
            )
            entry = statements.append(connection, row, fact, token)
            connection.execute(update(datasets).filter_by(id=row).values(declared=entry.number))
            return entry

        return self._book.write(dataset, work)

    def sign(self, dataset: str, certificate: Certificate, *, name: str = "tariff") -> Account:
        """Prove a certificate and put its tariff in force; its farthings become the cap.

        A tariff that was in force is retired: nothing can be reserved under it any more, what
        was spent stays spent, and the two accounts compose. Its purses do not carry over.
        """
        return self._open_account(dataset, _tariff_account(certificate, name))

    def register(
        self, dataset: str, name: str, listed: registered_lists.Registered, *, analyst: str
    ) -> Account:
        """An account for a list that is fixed in advance, which this analyst may run."""
        require_name("the analyst", analyst)
        document = registered_lists.document(listed)
        signed = {**document, "digest": digest(document)}
        what = {"mode": listed.mode, "name": name, "document": signed, "analyst": analyst}
        return self._open_account(dataset, _Opening(what, lots=listed.lots))

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
        wanted = _Grant.of(analyst, farthings, delta_units, renewal)
        granted: list[Purse] = []

        def work(connection: Connection, token: str) -> Entry:
            lock_dataset(connection, dataset)
            found = self._book.current(connection, dataset)
            purse, entry = self._grant(connection, token, dataset, found, wanted)
            granted.append(purse)
            return entry

        self._book.write(dataset, work)
        return granted[-1]

    def _grant(
        self, connection: Connection, token: str, dataset: str, found: InForce, wanted: _Grant
    ) -> tuple[Purse, Entry]:
        now = self._book.clock()
        units = wanted.delta_units
        if units is None:
            units = in_proportion(found.terms.tariff, wanted.farthings)
        month = None if wanted.renewal is None else month_of(now)
        account, analyst = found.terms.account, wanted.analyst
        key = {"dataset_id": found.row, "account": account, "analyst": analyst}
        row = connection.execute(select(purses).filter_by(**key)).one_or_none()
        if row is None:
            connection.execute(insert(purses).values(**key, **_amounts(0, 0), month=month))
        elif (row.month is not None) != (wanted.renewal is not None):
            raise InvalidInput("a purse keeps the renewal it was first granted with")
        elif max(row.farthings + wanted.farthings, row.delta_units + units) > LARGEST:
            raise InvalidInput(f"a purse holds at most {LARGEST} farthings")
        raised = connection.execute(
            update(purses)
            .filter_by(**key)
            .values(
                farthings=purses.c.farthings + wanted.farthings,
                delta_units=purses.c.delta_units + units,
                open=1,
            )
            .returning(purses)
        )
        purse = as_of(purse_of(raised.one()), month_of(now))
        fact = self._book.fact(
            "grant",
            dataset,
            at=now,
            account=account,
            analyst=analyst,
            farthings=wanted.farthings,
            delta_units=units,
            renewal=wanted.renewal,
            month=None if month is None else month_name(month),
        )
        return purse, statements.append(connection, found.row, fact, token)

    def revoke(self, dataset: str, analyst: str) -> Price:
        """Take away what is left of an analyst's purse under the tariff in force; says how much.

        The purse stays. Nothing can be spent of it until the analyst is granted something
        again. One that renews keeps its rate for then; of another one what was left is gone,
        and counts as spent in the purse, so that statements never forget what was granted.
        """
        taken: list[Price] = []

        def work(connection: Connection, token: str) -> Entry:
            lock_dataset(connection, dataset)
            found = self._book.current(connection, dataset)
            account = found.terms.account
            own = purses_of(connection, found.row, account, analyst)
            if not own:
                raise NotInLedger(f"{analyst} has no purse under the tariff in force")
            now = self._book.clock()
            purse = as_of(own[0], month_of(now))
            if not purse.open:
                raise InvalidInput(f"the purse of {analyst} was revoked before")
            taken.append(left_of(purse, purse))
            key = {"dataset_id": found.row, "account": account, "analyst": analyst}
            gone = {} if purse.renewal is not None else {
                "farthings_spent": purses.c.farthings,
                "delta_units_spent": purses.c.delta_units,
            }  # fmt: skip # one choice
            connection.execute(update(purses).filter_by(**key).values(open=0, **gone))
            fact = self._book.fact(
                "revoke",
                dataset,
                at=now,
                account=account,
                analyst=analyst,
                farthings=taken[-1].farthings,
                delta_units=taken[-1].delta_units,
            )
            return statements.append(connection, found.row, fact, token)

        self._book.write(dataset, work)
        return taken[-1]

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
            fact = self._book.fact(statements.SEAL, dataset, successor=successor)
            entry = statements.append(connection, row, fact, token)
            connection.execute(update(datasets).filter_by(id=row).values(writable=0))
            # waits for whoever is talking, and lets nobody begin
            connection.execute(update(conversations).filter_by(dataset_id=row).values(open=0))
            return entry

        return self._book.write(dataset, work)

    def _open_account(self, dataset: str, opening: _Opening) -> Account:
        def work(connection: Connection, token: str) -> Entry:
            row = lock_dataset(connection, dataset)
            return self._account(connection, token, dataset, row, opening)

        opened = self._book.write(dataset, work)
        self._book.forget(dataset)
        cap = opening.cap or Price(0)
        return Account(
            number=opened.fact["account"],
            mode=opening.what["mode"],
            name=opening.what["name"],
            entry=opened.number,
            open=True,
            farthings=cap.farthings,
            delta_units=cap.delta_units,
            farthings_spent=0,
            delta_units_spent=0,
            analyst=opening.what.get("analyst"),
        )

    def _account(
        self, connection: Connection, token: str, dataset: str, row: int, opening: _Opening
    ) -> Entry:
        books, what = accounts_of(connection, row), opening.what
        if what["name"] in {book.name for book in books}:
            raise AlreadyThere(
                f"{dataset} has an account {what['name']}; give this one another name"
            )
        number = len(books) + 1
        fact = self._book.fact("account", dataset, account=number, **what)
        entry = statements.append(connection, row, fact, token)
        key = {"dataset_id": row, "account": number}
        connection.execute(
            insert(accounts).values(
                dataset_id=row,
                number=number,
                mode=what["mode"],
                name=what["name"],
                analyst=what.get("analyst"),
                entry=entry.number,
            )
        )
        if opening.cap is not None:
            caps = update(purses).filter_by(dataset_id=row, analyst=EVERYBODY)
            connection.execute(caps.values(open=0))
            amounts = _amounts(opening.cap.farthings, opening.cap.delta_units)
            connection.execute(insert(purses).values(**key, analyst=EVERYBODY, **amounts))
        for item, granted in opening.lots.items():
            connection.execute(insert(lots).values(**key, item=item, granted=granted, spent=0))
        return entry


@dataclass(frozen=True, slots=True)
class _Opening:
    """An account to be opened: what its entry says, and its cap or its lots."""

    what: Mapping[str, Any]
    cap: Price | None = None
    lots: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_name("the account's name", self.what["name"])


def _tariff_account(certificate: Certificate, name: str) -> _Opening:
    """The account of a certificate that is proved here and now."""
    document, tariff = certificate.to_json(), certificate.tariff
    if max(tariff.farthings, tariff.delta_units) > LARGEST:
        raise InvalidInput(f"a tariff in a ledger has at most {LARGEST} farthings")
    prove_certificate(document)
    what = {"mode": TARIFF, "name": name, "certificate": document, "levels": HALVING}
    return _Opening(what, cap=Price(tariff.farthings, tariff.delta_units))


@dataclass(frozen=True, slots=True)
class _Grant:
    """Farthings for an analyst; None for δ units: in proportion."""

    analyst: str
    farthings: int
    delta_units: int | None
    renewal: str | None

    @staticmethod
    def of(analyst: str, farthings: int, delta_units: int | None, renewal: str | None) -> _Grant:
        """Checked before anything is locked."""
        require_name("the analyst", analyst)
        farthings = require_count("farthings", farthings)
        units = None if delta_units is None else require_count("delta_units", delta_units)
        if max(farthings, units or 0) > LARGEST:
            raise InvalidInput(f"a grant is at most {LARGEST} farthings, got {farthings}")
        if renewal is not None:
            require_choice("renewal", renewal, (MONTHLY,))
        return _Grant(analyst, farthings, units, renewal)


def _amounts(farthings: int, delta_units: int) -> dict[str, int]:
    granted = {"farthings": farthings, "delta_units": delta_units}
    return {**granted, "farthings_spent": 0, "delta_units_spent": 0, "open": 1}
