"""Facts from rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, and_, select

from farthing.composition.tariff import Price
from farthing.ledger.errors import Damaged
from farthing.ledger.facts import MONTHLY, TARIFF, Account, Entry, Purse, Reservation
from farthing.ledger.months import month_name
from farthing.ledger.schema import EVERYBODY, accounts, entries, purses


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
def book_of(
    connection: Connection, identity: int, kind: str | None = None
) -> Iterator[Iterator[Any]]:
    """The rows of every entry of a dataset, or those of a kind, in order, a thousand at a time."""
    query = select(entries).filter_by(dataset_id=identity).order_by(entries.c.number)
    if kind is not None:
        query = query.filter_by(kind=kind)
    with connection.execute(query, execution_options={"yield_per": 1000}) as rows:
        yield iter(rows)


def accounts_of(connection: Connection, identity: int) -> list[Account]:
    """The accounts of a dataset, oldest first; number n is at place n − 1."""
    cap = and_(
        purses.c.dataset_id == accounts.c.dataset_id,
        purses.c.account == accounts.c.number,
        purses.c.analyst == EVERYBODY,
    )
    amounts = (purses.c[name] for name in (*_AMOUNTS, "open"))
    rows = connection.execute(
        select(accounts, *amounts)
        .outerjoin(purses, cap)
        .where(accounts.c.dataset_id == identity)
        .order_by(accounts.c.number)
    )
    return [_account_of(row) for row in rows]


def _account_of(row: Any) -> Account:
    if row.mode == TARIFF and row.open is None:
        raise no_cap(row.number)
    return Account(
        number=row.number,
        mode=row.mode,
        name=row.name,
        entry=row.entry,
        analyst=row.analyst,
        open=row.open != 0,
        **{name: row._mapping[name] or 0 for name in _AMOUNTS},
    )


def no_cap(account: int) -> Damaged:
    """A tariff without its cap could be spent without end, or look as if nothing were spent."""
    return Damaged(f"account {account} has lost its cap; see `farthing ledger verify`")


def purses_of(
    connection: Connection, identity: int, account: int | None = None, analyst: str | None = None
) -> list[Purse]:
    """The purses of analysts, by account and name."""
    query = select(purses).where(purses.c.dataset_id == identity, purses.c.analyst != EVERYBODY)
    if account is not None:
        query = query.filter_by(account=account)
    if analyst is not None:
        query = query.filter_by(analyst=analyst)
    rows = connection.execute(query.order_by(purses.c.account, purses.c.analyst))
    return [purse_of(row) for row in rows]


def purse_of(row: Any) -> Purse:
    """A purse, or a cap, from its row."""
    return Purse(
        account=row.account,
        analyst=row.analyst,
        farthings=row.farthings,
        delta_units=row.delta_units,
        farthings_spent=row.farthings_spent,
        delta_units_spent=row.delta_units_spent,
        renewal=None if row.month is None else MONTHLY,
        month=None if row.month is None else month_name(row.month),
        open=row.open != 0,
    )


_AMOUNTS = ("farthings", "delta_units", "farthings_spent", "delta_units_spent")
