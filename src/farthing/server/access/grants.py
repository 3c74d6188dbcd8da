"""Which datasets an analyst knows of: those of the token for which the ledger has a purse.

One statement finds all of them, whichever is asked for: that a dataset does not exist takes as
long to find out as that it is somebody else's.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, bindparam, case, literal_column, select

from farthing.ledger import Ledger
from farthing.ledger.store.tables import datasets, purses
from farthing.server.access.callers import AnalystCaller

_OWN = (
    select(datasets.c.name)
    .join(purses, purses.c.dataset_id == datasets.c.id)
    .where(purses.c.analyst == bindparam("analyst"))
    .distinct()
    .order_by(datasets.c.name)
)
_ONE: ColumnElement[int] = literal_column("1")
_NONE: ColumnElement[int] = literal_column("0")
_IS_OWN = purses.c.analyst == bindparam("analyst")
#: Of each purse what was granted, and of the own ones what is spent: never what others spent.
_STANDING = (
    select(
        datasets.c.declared,
        purses.c.account,
        case((_IS_OWN, _ONE), else_=_NONE),
        purses.c.farthings,
        purses.c.delta_units,
        case((_IS_OWN, purses.c.farthings_spent), else_=_NONE),
        case((_IS_OWN, purses.c.delta_units_spent), else_=_NONE),
        case((_IS_OWN, purses.c.month), else_=_NONE),
        purses.c.open,
    )
    .join(purses, purses.c.dataset_id == datasets.c.id)
    .where(datasets.c.name == bindparam("dataset"))
    .order_by(purses.c.account, purses.c.analyst)
)

#: What an analyst may be told of a dataset depends on this, and on nothing that others spend.
CallerStanding: TypeAlias = tuple[Any, ...]


def granted(ledger: Ledger, caller: AnalystCaller) -> list[str]:
    """Names of the datasets that this caller may know of, in order."""
    rows = ledger.book.store.look_up(_OWN, {"analyst": caller.name})
    return [name for (name,) in rows if caller.may_see(name)]


def standing_of(ledger: Ledger, caller: AnalystCaller, dataset: str) -> CallerStanding | None:
    """What is declared, granted and spent by the caller; None if there is nothing of theirs."""
    wanted = {"analyst": caller.name, "dataset": dataset}
    rows = ledger.book.store.look_up(_STANDING, wanted)
    known = caller.may_see(dataset) and any(row[2] for row in rows)
    return tuple(map(tuple, rows)) if known else None
