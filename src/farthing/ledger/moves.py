"""The statements that move farthings. Each is one guarded UPDATE or one INSERT.

Every transaction takes its rows in the same order: purse or lots, account, dataset. So two of
them never wait for each other, and the dataset's row, on which all writers of a dataset meet,
is held for two statements only.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import BigInteger, Connection, and_, bindparam, case, func, insert, select, update

from farthing.composition.tariff import Price
from farthing.ledger.chain import canonical, sha256
from farthing.ledger.errors import NotInLedger, WrongSchema
from farthing.ledger.facts import Entry
from farthing.ledger.schema import REVISION, accounts, datasets, entries, lots, purses, version
from farthing.ledger.store import link

_PRICE, _DELTA, _TIMES = (bindparam(name, type_=BigInteger) for name in ("price", "units", "times"))
_NEW = purses.c.month < bindparam("this_month")
_PURSE = and_(
    purses.c.dataset_id == bindparam("dataset"),
    purses.c.account == bindparam("in_account"),
    purses.c.analyst == bindparam("who"),
)
_FARTHINGS = case((_NEW, 0), else_=purses.c.farthings_spent) + _PRICE
_UNITS = case((_NEW, 0), else_=purses.c.delta_units_spent) + _DELTA
_ACCOUNT = and_(
    accounts.c.dataset_id == bindparam("dataset"), accounts.c.number == bindparam("in_account")
)
_CAP_FARTHINGS = accounts.c.farthings_spent + _PRICE
_CAP_UNITS = accounts.c.delta_units_spent + _DELTA
_CHARGE_PURSE = (
    update(purses)
    .where(
        _PURSE,
        purses.c.farthings >= _FARTHINGS,
        purses.c.delta_units >= _UNITS,
        # saves writing what the cap, whose own guard decides, would undo
        select(accounts.c.number)
        .where(
            _ACCOUNT,
            accounts.c.open,
            accounts.c.farthings >= _CAP_FARTHINGS,
            accounts.c.delta_units >= _CAP_UNITS,
        )
        .correlate(None)
        .exists(),
    )
    .values(
        farthings_spent=_FARTHINGS,
        delta_units_spent=_UNITS,
        month=case((_NEW, bindparam("this_month")), else_=purses.c.month),
    )
    .returning(purses.c.month)
)
_RETURN_TO_PURSE = (
    update(purses)
    .where(_PURSE, func.coalesce(purses.c.month, -1) == bindparam("this_month"))
    .values(
        farthings_spent=purses.c.farthings_spent - _PRICE,
        delta_units_spent=purses.c.delta_units_spent - _DELTA,
    )
)
_CHARGE_ACCOUNT = (
    update(accounts)
    .where(
        _ACCOUNT,
        accounts.c.open,
        accounts.c.farthings >= _CAP_FARTHINGS,
        accounts.c.delta_units >= _CAP_UNITS,
    )
    .values(farthings_spent=_CAP_FARTHINGS, delta_units_spent=_CAP_UNITS)
)
_RETURN_TO_ACCOUNT = (
    update(accounts)
    .where(_ACCOUNT)
    .values(
        farthings_spent=accounts.c.farthings_spent - _PRICE,
        delta_units_spent=accounts.c.delta_units_spent - _DELTA,
    )
)
_LOT = and_(
    lots.c.dataset_id == bindparam("dataset"),
    lots.c.account == bindparam("in_account"),
    lots.c.item == bindparam("what"),
)
_CHARGE_LOT = (
    update(lots)
    .where(_LOT, lots.c.spent + _TIMES <= lots.c.granted)
    .values(spent=lots.c.spent + _TIMES)
)
_NEXT = (
    update(datasets)
    .where(
        datasets.c.id == bindparam("dataset"),
        select(version.c.version_num).scalar_subquery() == REVISION,
    )
    .values(
        number=datasets.c.number + 1,
        previous=datasets.c.hash,
        hash=link(datasets.c.hash, bindparam("content")),
    )
    .returning(datasets.c.number, datasets.c.previous, datasets.c.hash)
)
_WRITE = insert(entries)


def charge_purse(
    connection: Connection, dataset: int, account: int, analyst: str, price: Price, month: int
) -> tuple[int | None] | None:
    """Take `price` from a purse if it fits. The month it was taken from, in a tuple, or None.

    A purse that renews starts empty in a month later than all it has seen; an earlier month
    counts as the one it is in.
    """
    row = connection.execute(
        _CHARGE_PURSE,
        {**_whose(dataset, account, analyst), **_amount(price), "this_month": month},
    ).one_or_none()
    return None if row is None else (row.month,)


def charge_account(connection: Connection, dataset: int, account: int, price: Price) -> bool:
    """Take `price` from the dataset's cap if it fits and the account is open."""
    values = {"dataset": dataset, "in_account": account, **_amount(price)}
    return connection.execute(_CHARGE_ACCOUNT, values).rowcount == 1


def charge_lots(
    connection: Connection, dataset: int, account: int, items: Mapping[str, int]
) -> bool:
    """Take items from a registered list if all of them are left."""
    key = {"dataset": dataset, "in_account": account}
    return all(
        connection.execute(_CHARGE_LOT, {**key, "what": item, "times": times}).rowcount == 1
        for item, times in sorted(items.items())
    )


def give_back(
    connection: Connection, dataset: int, account: int, analyst: str, unused: Price, month: int
) -> None:
    """Return what an output shows was not used; to a purse only if it has not renewed since."""
    amount = _amount(unused)
    connection.execute(
        _RETURN_TO_PURSE,
        {**_whose(dataset, account, analyst), **amount, "this_month": month},
    )
    connection.execute(_RETURN_TO_ACCOUNT, {"dataset": dataset, "in_account": account, **amount})


def return_to_lots(
    connection: Connection, dataset: int, account: int, unused: Mapping[str, int]
) -> None:
    """Return unused items to a registered list."""
    for item, times in sorted(unused.items()):
        values = {"dataset": dataset, "in_account": account, "what": item, "times": -times}
        connection.execute(_CHARGE_LOT, values)


def append(connection: Connection, dataset: int, fact: Mapping[str, Any], token: str) -> Entry:
    """Write the next entry of a dataset. From here to the commit no other writer gets in."""
    signed = {**fact, "token": token}
    written = canonical(signed)
    head = connection.execute(_NEXT, {"dataset": dataset, "content": sha256(written)}).one_or_none()
    if head is None:
        raise _no_head(connection, dataset)
    connection.execute(
        _WRITE,
        {
            "dataset_id": dataset,
            "number": head.number,
            "fact": written,
            "kind": fact["kind"],
            "previous": head.previous,
            "hash": head.hash,
            "token": token,
            "settles": fact.get("settles"),
            "released": released(fact),
        },
    )
    return Entry(head.number, signed, head.previous, head.hash)


def released(fact: Mapping[str, Any]) -> str | None:
    """The digest of the question whose release this entry keeps, if it keeps one for a question."""
    return fact["question_digest"] if fact.get("release") is not None else None


def new_token() -> str:
    """Unguessable, and increasing in time so that its index grows at one end."""
    return f"{time.time_ns():016x}{secrets.token_hex(8)}"


def _whose(dataset: int, account: int, analyst: str) -> dict[str, Any]:
    return {"dataset": dataset, "in_account": account, "who": analyst}


def _amount(price: Price) -> dict[str, int]:
    return {"price": price.farthings, "units": price.delta_units}


def _no_head(connection: Connection, dataset: int) -> NotInLedger | WrongSchema:
    found = connection.execute(select(version.c.version_num)).scalar()
    if found != REVISION:
        return WrongSchema(found, REVISION, "it was upgraded while open; update this farthing")
    return NotInLedger(f"dataset number {dataset} is gone")
