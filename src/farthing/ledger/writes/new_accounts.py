"""A new account of a dataset: of a tariff with its cap, or of a list with its lots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection, insert, update

from farthing.canonical import digest
from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.ledger import registered_lists
from farthing.ledger.entries import Entry, OpenList, OpenTariff
from farthing.ledger.errors import AlreadyThere
from farthing.ledger.proofs import prove_certificate
from farthing.ledger.records import EVERYBODY, LARGEST, TARIFF, Account, require_name
from farthing.ledger.store import commands
from farthing.ledger.store.open_book import OpenBook, lock_dataset
from farthing.ledger.store.queries import accounts_of, next_share
from farthing.ledger.store.tables import accounts, lots, new_amounts, purses
from farthing.ledger.writes.data import one_adds_at_a_time


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account to be opened: its entry but for its number, and its cap or its lots."""

    name: str
    mode: str
    entry: Callable[..., OpenTariff | OpenList]
    analyst: str | None = None
    cap: Price | None = None
    lots: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_name("the account's name", self.name)


def tariff_account(certificate: Certificate, name: str) -> NewAccount:
    """The account of a certificate that is proved here and now."""
    document, tariff = certificate.to_json(), certificate.tariff
    if max(tariff.farthings, tariff.delta_units) > LARGEST:
        raise InvalidInput(f"a tariff in a ledger has at most {LARGEST} farthings")
    prove_certificate(document)
    entry = partial(OpenTariff, name=name, certificate=document)
    return NewAccount(name, TARIFF, entry, cap=Price(tariff.farthings, tariff.delta_units))


def list_account(listed: registered_lists.Registered, name: str, analyst: str) -> NewAccount:
    """The account of a list that is fixed in advance, which this analyst may run."""
    require_name("the analyst", analyst)
    document = registered_lists.document(listed)
    signed = {**document, "digest": digest(document)}
    entry = partial(OpenList, name=name, mode=listed.mode, document=signed, analyst=analyst)
    return NewAccount(name, listed.mode, entry, analyst, lots=listed.lots)


def open_account(book: OpenBook, dataset: str, new: NewAccount) -> Account:
    """Written, and in force from now on."""
    opened: list[Account] = []

    def work(connection: Connection, token: str) -> Entry:
        one_adds_at_a_time(connection)  # nor does another in a dataset beside it
        row = lock_dataset(connection, dataset)
        account, entry = write_account(book, connection, token, dataset, row, new)
        opened.append(account)
        return entry

    book.write(dataset, work)
    book.forget(dataset)
    return opened[-1]


def write_account(
    book: OpenBook, connection: Connection, token: str, dataset: str, row: int, new: NewAccount
) -> tuple[Account, Entry]:
    """The rows and the entry of an account, while the book is locked."""
    known = accounts_of(connection, row)
    if new.name in {account.name for account in known}:
        raise AlreadyThere(f"{dataset} has an account {new.name}; give this one another name")
    number = len(known) + 1
    share = next_share(connection, dataset)
    fact = new.entry(**book.stamp(dataset), account=number, share=share)
    entry = commands.append(connection, row, fact, token)
    key = {"dataset_id": row, "account": number}
    connection.execute(
        insert(accounts).values(
            dataset_id=row,
            number=number,
            mode=new.mode,
            name=new.name,
            analyst=new.analyst,
            entry=entry.number,
        )
    )
    cap = new.cap or Price(0)
    if new.cap is not None:
        caps = update(purses).filter_by(dataset_id=row, analyst=EVERYBODY)
        connection.execute(caps.values(open=0))
        amounts = new_amounts(cap.farthings, cap.delta_units)
        connection.execute(insert(purses).values(**key, analyst=EVERYBODY, **amounts))
    for item, granted in new.lots.items():
        connection.execute(insert(lots).values(**key, item=item, granted=granted, spent=0))
    account = Account(
        number=number,
        mode=new.mode,
        name=new.name,
        entry=entry.number,
        open=True,
        farthings=cap.farthings,
        delta_units=cap.delta_units,
        farthings_spent=0,
        delta_units_spent=0,
        analyst=new.analyst,
    )
    return account, entry
