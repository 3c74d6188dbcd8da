"""Queries that several roles, writes and reports share. Each takes a connection.

Queries are built once where they run often: building one takes longer than running it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import Connection, Select, Table, and_, bindparam, select, text

from farthing.composition.tariffs.tariff import Price
from farthing.ledger.declared_data import Declared
from farthing.ledger.entries.analyst import Charge, Close
from farthing.ledger.entries.fact import Entry, State, written_fact
from farthing.ledger.entries.owner import (
    Declaration,
    OpenAccount,
    OpenList,
    OpenTariff,
    Restore,
    Revoke,
)
from farthing.ledger.errors import Damaged, NotInLedger
from farthing.ledger.records import (
    EVERYBODY,
    MONTHLY,
    TARIFF,
    Account,
    Lot,
    Purse,
    Reservation,
    month_name,
)
from farthing.ledger.store.tables import accounts, datasets, entries, ledgers, lots, purses

_ROW = select(datasets.c.id).where(datasets.c.name == bindparam("name"))
_HEAD = select(datasets.c.number).where(datasets.c.id == bindparam("row"))
_ENTRY = select(entries).where(
    entries.c.dataset_id == bindparam("row"), entries.c.number == bindparam("number")
)
_DECLARED = select(entries.c.fact).join(
    datasets, and_(entries.c.dataset_id == datasets.c.id, entries.c.number == datasets.c.declared)
)
_DECLARED_OF = _DECLARED.where(datasets.c.id == bindparam("row"))
_OPENED = (
    select(entries.c.fact)
    .join(datasets)
    .join(
        accounts,
        and_(entries.c.dataset_id == accounts.c.dataset_id, entries.c.number == accounts.c.entry),
    )
)
_AMOUNTS = ("farthings", "delta_units", "farthings_spent", "delta_units_spent")
#: Accounts with their caps, and whether they are lists of which something is left.
_ACCOUNTS = text(f"""SELECT number, mode, name, farthing_accounts.analyst, entry,
    {", ".join(_AMOUNTS)}, open, EXISTS (SELECT 1 FROM farthing_lots AS lots
        WHERE lots.dataset_id = farthing_accounts.dataset_id AND lots.account = number) AS has_lots
    FROM farthing_accounts LEFT JOIN farthing_purses AS cap
    ON cap.dataset_id = farthing_accounts.dataset_id AND account = number AND cap.analyst = ''
    WHERE farthing_accounts.dataset_id = :row ORDER BY number""")


def identity_of_ledger(connection: Connection) -> str:
    """The identity of this ledger."""
    return str(connection.scalars(select(ledgers.c.identity)).one())


def row_of_dataset(connection: Connection, dataset: str) -> int:
    """The number of a dataset's row, by which everything else refers to it."""
    row = connection.scalar(_ROW, {"name": dataset})
    if row is None:
        raise no_dataset(dataset)
    return int(row)


def no_dataset(name: str) -> NotInLedger:
    return NotInLedger(f"there is no dataset {name!r:.60}")


def dataset_names(connection: Connection) -> list[str]:
    """The names of all datasets, sorted."""
    return list(connection.scalars(select(datasets.c.name).order_by(datasets.c.name)))


def head_of(connection: Connection, row: int) -> int:
    """The number of the last entry."""
    return int(connection.scalars(_HEAD, {"row": row}).one())


def declared_of(connection: Connection, row: int) -> Declared:
    """A dataset as its owner declares it now."""
    return declared_in(connection.scalars(_DECLARED_OF, {"row": row}).one())


def all_declared(connection: Connection) -> dict[str, Declared]:
    """Every dataset as it is declared now, by name."""
    rows = connection.execute(_DECLARED.add_columns(datasets.c.name).order_by(datasets.c.name))
    return {row.name: declared_in(row.fact) for row in rows}


@lru_cache(maxsize=256)
def declared_in(written: str) -> Declared:
    """What the entry with this text declares. Every run asks, and the text seldom changes."""
    fact = written_fact(written)
    if not isinstance(fact, Declaration):
        raise Damaged(f"an entry of kind {fact.kind} declares nothing", fact.dataset)
    return fact.declared


def datasets_beside(known: Mapping[str, Declared], *names: str) -> tuple[str, ...]:
    """These datasets and all that share data with them, directly or through others."""
    together, new = set(names), set(names)
    while new:
        linked = {other for name in new for other in known[name].beside}
        linked |= {name for name, declared in known.items() if new & set(declared.beside)}
        new = (linked & set(known)) - together
        together |= new
    return tuple(sorted(together))


def entry_at(connection: Connection, row: int, number: int) -> Entry:
    """One entry of a dataset's book."""
    found = connection.execute(_ENTRY, {"row": row, "number": number}).one_or_none()
    if found is None:
        raise NotInLedger(f"there is no entry {number}")
    return entry_of(found)


def entry_of(row: Any) -> Entry:
    """An entry from its row."""
    return Entry(row.number, written_fact(row.fact), row.previous, row.hash)


@contextmanager
def entry_rows(
    connection: Connection, row: int, kinds: tuple[str, ...] = (), *, after: int = 0
) -> Iterator[Iterator[Any]]:
    """The rows of a dataset's entries in order, perhaps only of some kinds or after a number.

    They are fetched a thousand at a time.
    """
    query = select(entries).filter_by(dataset_id=row).order_by(entries.c.number)
    if kinds:
        query = query.where(entries.c.kind.in_(kinds))
    if after:
        query = query.where(entries.c.number > after)
    with connection.execute(query, execution_options={"yield_per": 1000}) as rows:
        yield iter(rows)


def balances(state: State) -> tuple[tuple[Table, Collection[dict[str, Any]]], ...]:
    """The tables of balances, each with the rows that the entries of a dataset add up to."""
    return (
        (accounts, state.accounts.values()),
        (purses, state.purses.values()),
        (lots, state.lots.values()),
    )


def reservation_of(entry: Entry) -> Reservation:
    """The reservation that an entry records."""
    fact = entry.fact
    if not isinstance(fact, Charge):
        raise Damaged(f"entry {entry.number} reserves nothing", fact.dataset, entry.number)
    return Reservation(
        dataset=fact.dataset,
        entry=entry.number,
        analyst=fact.analyst,
        account=fact.account,
        items=fact.items,
        price=fact.price,
        question_digest=fact.question_digest,
    )


def document_of(connection: Connection, row: int, account: int) -> dict[str, Any]:
    """What an account was opened with: a certificate, or a registered list with its claims."""
    number = connection.scalar(select(accounts.c.entry).filter_by(dataset_id=row, number=account))
    if number is None:
        raise NotInLedger(f"there is no account {account}")
    entry = entry_at(connection, row, number)
    match entry.fact:
        case OpenTariff(certificate=document) | OpenList(document=document):
            return document
    raise Damaged(f"entry {number} opens no account", entry.fact.dataset, number)


def next_share(connection: Connection, dataset: str) -> int:
    """The share of the next account: above all of this dataset and of those beside it."""
    beside = datasets_beside(all_declared(connection), dataset)
    opened = map(written_fact, connection.scalars(_OPENED.where(datasets.c.name.in_(beside))))
    return 1 + max((fact.place for fact in opened if isinstance(fact, OpenAccount)), default=0)


def accounts_of(connection: Connection, row: int) -> list[Account]:
    """The accounts of a dataset, oldest first; account n is at index n − 1."""
    return [_account_of(account) for account in connection.execute(_ACCOUNTS, {"row": row})]


def _account_of(row: Any) -> Account:
    if row.mode == TARIFF and row.open is None:
        raise no_cap(row.number)
    given: dict[str, Any] = {name: getattr(row, name) or 0 for name in _AMOUNTS}
    given |= {name: getattr(row, name) for name in ("number", "mode", "name", "entry", "analyst")}
    return Account(**given, open=row.open != 0 if row.mode == TARIFF else bool(row.has_lots))


def no_cap(account: int) -> Damaged:
    """Without its cap a tariff could be spent without end, or look unspent."""
    return Damaged(f"account {account} has lost its cap; see `farthing ledger verify`")


def lots_of(connection: Connection, row: int, account: int) -> list[Lot]:
    """The items of a registered list, by name; none if it was retired."""
    query = select(lots).filter_by(dataset_id=row, account=account).order_by("item")
    return [Lot(lot.item, lot.granted, lot.spent) for lot in connection.execute(query)]


def purses_of(
    connection: Connection, row: int, account: int | None = None, analyst: str | None = None
) -> list[Purse]:
    """The purses of analysts, by account and name."""
    wanted = {"row": row, "account": account, "analyst": analyst}
    rows = connection.execute(_purses(account is not None, analyst is not None), wanted)
    return [purse_of(row) for row in rows]


def purse_of(row: Any) -> Purse:
    """A purse from its row."""
    given = {name: getattr(row, name) for name in ("account", "analyst", *_AMOUNTS)}
    if row.month is not None:
        given |= {"renewal": MONTHLY, "month": month_name(row.month)}
    return Purse(**given, open=row.open != 0)


def spent_and_revoked(connection: Connection, row: int, held: list[Purse]) -> list[Purse]:
    """These purses with the revoked amounts separated from the spent ones.

    The table counts both as gone, so that one guarded command decides; the entries know which.
    """
    revoked: dict[tuple[int, str], Price] = {}
    with entry_rows(connection, row, (Revoke.kind, Close.kind, Restore.kind)) as rows:
        for fact in (entry_of(row).fact for row in rows):
            if isinstance(fact, Restore):  # from here on all of every purse counts as spent
                revoked.clear()
            elif isinstance(fact, Revoke) or (isinstance(fact, Close) and fact.revoked is not None):
                key = fact.account, fact.analyst
                taken = fact.price if isinstance(fact, Revoke) else fact.back
                revoked[key] = revoked.get(key, Price(0)) + taken
    return [
        _without(purse, revoked.get((purse.account, purse.analyst), Price(0))) for purse in held
    ]


def _without(purse: Purse, revoked: Price) -> Purse:
    if purse.renewal is not None:  # it keeps its rate
        return purse
    return replace(
        purse,
        farthings_spent=purse.farthings_spent - revoked.farthings,
        delta_units_spent=purse.delta_units_spent - revoked.delta_units,
        farthings_revoked=revoked.farthings,
        delta_units_revoked=revoked.delta_units,
    )


def anything_revoked(held: list[Purse], caps: list[Account]) -> bool:
    """False if the purses have lost no more than the caps: then the entries need not be read."""
    renewing = sum(purse.renewal is not None for purse in held)
    if renewing:
        return renewing < len(held)
    return any(
        sum(getattr(purse, name) for purse in held) != sum(getattr(cap, name) for cap in caps)
        for name in ("farthings_spent", "delta_units_spent")
    )


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
