"""What is looked up over a connection, by whichever role asks.

Statements are made once: making one takes longer than running it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, select

from farthing.composition.tariffs.tariff import Price
from farthing.ledger.declared_data import Dataset, dataset_from_json
from farthing.ledger.errors import Damaged, NotInLedger
from farthing.ledger.months import month_name
from farthing.ledger.records import MONTHLY, TARIFF, Account, Entry, Purse, Reservation
from farthing.ledger.store.tables import (
    EVERYBODY,
    accounts,
    datasets,
    entries,
    ledgers,
    lots,
    purses,
)


def identity_of_ledger(connection: Connection) -> str:
    """Who this ledger is."""
    return str(connection.scalars(select(ledgers.c.identity)).one())


def row_of_dataset(connection: Connection, dataset: str) -> int:
    """The number of a dataset's row, by which everything else refers to it."""
    found = connection.scalar(_ROW, {"name": dataset})
    if found is None:
        raise NotInLedger(f"there is no dataset {dataset!r:.60}")
    return int(found)


@dataclass(frozen=True, slots=True)
class Declared:
    """What an owner declares about a dataset, and which others are on the same data."""

    dataset: Dataset
    beside: tuple[str, ...]


def declared_of(connection: Connection, row: int) -> Declared:
    """A dataset as its owner declares it now."""
    fact = connection.scalars(_DECLARED_OF, {"row": row}).one()
    return declared_from(json.loads(fact))


def all_declared(connection: Connection) -> dict[str, Declared]:
    """Every dataset as it is declared now, by name."""
    rows = connection.execute(_DECLARED.add_columns(datasets.c.name).order_by(datasets.c.name))
    return {row.name: declared_from(json.loads(row.fact)) for row in rows}


def declared_from(fact: Mapping[str, Any]) -> Declared:
    """What an entry declares; the first format knew of no others."""
    return Declared(dataset_from_json(fact["description"]), tuple(fact.get("beside", ())))


_DECLARED = select(entries.c.fact).join(
    datasets,
    and_(entries.c.dataset_id == datasets.c.id, entries.c.number == datasets.c.declared),
)
_DECLARED_OF = _DECLARED.where(datasets.c.id == bindparam("row"))
_ROW = select(datasets.c.id).where(datasets.c.name == bindparam("name"))


def datasets_beside(known: Mapping[str, Declared], *names: str) -> tuple[str, ...]:
    """These datasets and all that share data with them, through however many others."""
    found, new = set(names), set(names)
    while new:
        linked = {other for name in new for other in known[name].beside}
        linked |= {name for name, declared in known.items() if new & set(declared.beside)}
        new = (linked & set(known)) - found
        found |= new
    return tuple(sorted(found))


def account_row(connection: Connection, row: int, name: str) -> Any:
    """The row of an account, by its name."""
    query = select(accounts).filter_by(dataset_id=row, name=name)
    found = connection.execute(query).one_or_none()
    if found is None:
        raise NotInLedger(f"there is no account {name!r:.60}")
    return found


def document_of(connection: Connection, row: int, account: int) -> dict[str, Any]:
    """What an account was opened with: a certificate, or a registered list with its claims."""
    number = connection.scalar(select(accounts.c.entry).filter_by(dataset_id=row, number=account))
    if number is None:
        raise NotInLedger(f"there is no account {account}")
    fact = entry_at(connection, row, number).fact
    return dict(fact["certificate"] if fact["mode"] == TARIFF else fact["document"])


def entry_at(connection: Connection, row: int, number: int) -> Entry:
    """One entry of a dataset's book."""
    found = connection.execute(_ENTRY, {"row": row, "number": number}).one_or_none()
    if found is None:
        raise NotInLedger(f"there is no entry {number}")
    return entry_of(found)


_ENTRY = select(entries).where(
    entries.c.dataset_id == bindparam("row"), entries.c.number == bindparam("number")
)


def entry_of(row: Any) -> Entry:
    """An entry from its row."""
    return Entry(row.number, json.loads(row.fact), row.previous, row.hash)


@contextmanager
def entry_rows(
    connection: Connection, row: int, kinds: tuple[str, ...] = ()
) -> Iterator[Iterator[Any]]:
    """The rows of every entry of a dataset, or of these kinds, in order, a thousand at a time."""
    query = select(entries).filter_by(dataset_id=row).order_by(entries.c.number)
    if kinds:
        query = query.where(entries.c.kind.in_(kinds))
    with connection.execute(query, execution_options={"yield_per": 1000}) as rows:
        yield iter(rows)


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


def accounts_of(connection: Connection, row: int) -> list[Account]:
    """The accounts of a dataset, oldest first; number n is at place n − 1."""
    rows = connection.execute(_ACCOUNTS, {"row": row})
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
        open=row.open != 0 if row.mode == TARIFF else bool(row.has_lots),
        **{name: row._mapping[name] or 0 for name in _AMOUNTS},
    )


def no_cap(account: int) -> Damaged:
    """A tariff without its cap could be spent without end, or look as if nothing were spent."""
    return Damaged(f"account {account} has lost its cap; see `farthing ledger verify`")


def purses_of(
    connection: Connection, row: int, account: int | None = None, analyst: str | None = None
) -> list[Purse]:
    """The purses of analysts, by account and name."""
    wanted = {"row": row, "account": account, "analyst": analyst}
    rows = connection.execute(_purses(account is not None, analyst is not None), wanted)
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


def _accounts() -> Select[Any]:
    """Accounts with their caps, and whether they are lists of which something is left."""
    cap = and_(
        purses.c.dataset_id == accounts.c.dataset_id,
        purses.c.account == accounts.c.number,
        purses.c.analyst == EVERYBODY,
    )
    amounts = (purses.c[name] for name in (*_AMOUNTS, "open"))
    own = and_(lots.c.dataset_id == accounts.c.dataset_id, lots.c.account == accounts.c.number)
    return (
        select(accounts, *amounts, select(lots.c.item).where(own).exists().label("has_lots"))
        .outerjoin(purses, cap)
        .where(accounts.c.dataset_id == bindparam("row"))
        .order_by(accounts.c.number)
    )


_ACCOUNTS = _accounts()


@cache
def _purses(of_account: bool, of_analyst: bool) -> Select[Any]:
    query = select(purses).where(
        purses.c.dataset_id == bindparam("row"), purses.c.analyst != EVERYBODY
    )
    if of_account:
        query = query.where(purses.c.account == bindparam("account"))
    if of_analyst:
        query = query.where(purses.c.analyst == bindparam("analyst"))
    return query.order_by(purses.c.account, purses.c.analyst)
