"""Facts from rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, and_, select

from farthing.composition.tariff import Price
from farthing.ledger.facts import MONTHLY, Account, Entry, Purse, Reservation
from farthing.ledger.months import month_name
from farthing.ledger.schema import accounts, entries, purses


def reservation_of(entry: Entry) -> Reservation:
    """The reservation that an entry records."""
    fact = entry.fact
    return Reservation(
        dataset=fact["dataset"],
        entry=entry.number,
        analyst=fact["analyst"],
        account=fact["account"],
        items=fact["items"],
        price=Price(fact["farthings"], fact["delta_units"]),
        question_digest=fact["question_digest"],
    )


def entry_of(row: Any) -> Entry:
    """An entry from its row."""
    return Entry(row.number, json.loads(row.fact), row.previous, row.hash)


@contextmanager
def book_of(connection: Connection, identity: int) -> Iterator[Iterator[Any]]:
    """The rows of every entry of a dataset in order, a thousand at a time."""
    query = select(entries).filter_by(dataset_id=identity).order_by(entries.c.number)
    with connection.execute(query, execution_options={"yield_per": 1000}) as rows:
        yield iter(rows)


def accounts_of(connection: Connection, identity: int) -> list[Account]:
    """The accounts of a dataset, oldest first; number n is at place n − 1."""
    query = select(accounts).filter_by(dataset_id=identity).order_by(accounts.c.number)
    return [_account(row) for row in connection.execute(query)]


def balances_of(
    connection: Connection, identity: int, account: int, analyst: str
) -> tuple[Account, Purse | None]:
    """An account and one of its purses, in one query."""
    own = and_(
        purses.c.dataset_id == accounts.c.dataset_id,
        purses.c.account == accounts.c.number,
        purses.c.analyst == analyst,
    )
    row = connection.execute(
        select(accounts, *(column.label(f"purse_{column.name}") for column in purses.c))
        .outerjoin(purses, own)
        .where(accounts.c.dataset_id == identity, accounts.c.number == account)
    ).one()
    return _account(row), None if row.purse_account is None else _purse(row, "purse_")


def purses_of(
    connection: Connection, identity: int, account: int | None = None, analyst: str | None = None
) -> list[Purse]:
    """The purses of a dataset, by account and analyst."""
    query = select(purses).filter_by(dataset_id=identity)
    if account is not None:
        query = query.filter_by(account=account)
    if analyst is not None:
        query = query.filter_by(analyst=analyst)
    rows = connection.execute(query.order_by(purses.c.account, purses.c.analyst))
    return [_purse(row) for row in rows]


def _account(row: Any) -> Account:
    names = [field.name for field in fields(Account)]
    return Account(**{name: row._mapping[name] for name in names})


def _purse(row: Any, prefix: str = "") -> Purse:
    values = {f.name: row._mapping[prefix + f.name] for f in fields(Purse) if f.name != "renewal"}
    month = values.pop("month")
    if month is None:
        return Purse(**values)
    return Purse(**values, renewal=MONTHLY, month=month_name(month))
