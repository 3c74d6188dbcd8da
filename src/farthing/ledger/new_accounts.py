"""A new account of a dataset: of a tariff with its cap, or of a list with its lots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, insert, update

from farthing.canonical import digest
from farthing.composition.accounts.account_profiles import HALVING
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.ledger import registered_lists
from farthing.ledger.errors import AlreadyThere
from farthing.ledger.lookups import accounts_of, next_share
from farthing.ledger.new_datasets import one_adds_at_a_time
from farthing.ledger.open_book import OpenBook, lock_dataset
from farthing.ledger.proofs import prove_certificate
from farthing.ledger.records import LARGEST, TARIFF, Account, Entry, require_name
from farthing.ledger.store import statements
from farthing.ledger.store.tables import EVERYBODY, accounts, lots, new_amounts, purses


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account to be opened: what its entry says, and its cap or its lots."""

    what: Mapping[str, Any]
    cap: Price | None = None
    lots: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_name("the account's name", self.what["name"])


def tariff_account(certificate: Certificate, name: str) -> NewAccount:
    """The account of a certificate that is proved here and now."""
    document, tariff = certificate.to_json(), certificate.tariff
    if max(tariff.farthings, tariff.delta_units) > LARGEST:
        raise InvalidInput(f"a tariff in a ledger has at most {LARGEST} farthings")
    prove_certificate(document)
    what = {"mode": TARIFF, "name": name, "certificate": document, "levels": HALVING}
    return NewAccount(what, cap=Price(tariff.farthings, tariff.delta_units))


def list_account(listed: registered_lists.Registered, name: str, analyst: str) -> NewAccount:
    """The account of a list that is fixed in advance, which this analyst may run."""
    require_name("the analyst", analyst)
    document = registered_lists.document(listed)
    signed = {**document, "digest": digest(document)}
    what = {"mode": listed.mode, "name": name, "document": signed, "analyst": analyst}
    return NewAccount(what, lots=listed.lots)


def open_account(book: OpenBook, dataset: str, new: NewAccount) -> Account:
    """Written, and in force from now on."""

    def work(connection: Connection, token: str) -> Entry:
        one_adds_at_a_time(connection)  # nor does another in a dataset beside it
        row = lock_dataset(connection, dataset)
        return write_account(book, connection, token, dataset, row, new)

    opened = book.write(dataset, work)
    book.forget(dataset)
    cap = new.cap or Price(0)
    return Account(
        number=opened.fact["account"],
        mode=new.what["mode"],
        name=new.what["name"],
        entry=opened.number,
        open=True,
        farthings=cap.farthings,
        delta_units=cap.delta_units,
        farthings_spent=0,
        delta_units_spent=0,
        analyst=new.what.get("analyst"),
    )


def write_account(
    book: OpenBook, connection: Connection, token: str, dataset: str, row: int, new: NewAccount
) -> Entry:
    """The entry and the rows of an account, while the book is locked."""
    books, what = accounts_of(connection, row), new.what
    if what["name"] in {one.name for one in books}:
        raise AlreadyThere(f"{dataset} has an account {what['name']}; give this one another name")
    number = len(books) + 1
    share = next_share(connection, dataset)
    fact = book.fact("account", dataset, account=number, share=share, **what)
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
    if new.cap is not None:
        caps = update(purses).filter_by(dataset_id=row, analyst=EVERYBODY)
        connection.execute(caps.values(open=0))
        amounts = new_amounts(new.cap.farthings, new.cap.delta_units)
        connection.execute(insert(purses).values(**key, analyst=EVERYBODY, **amounts))
    for item, granted in new.lots.items():
        connection.execute(insert(lots).values(**key, item=item, granted=granted, spent=0))
    return entry
