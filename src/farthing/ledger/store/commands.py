"""The statements that write.

Spending is four of them on SQLite, where a writing transaction has the whole database to
itself: take the price, continue the chain, see its end, write the entry. On PostgreSQL it is
one statement with all of them inside. Everything else begins by locking the dataset's row, so
writers of one dataset come one after the other; should the server find two that wait for each
other, it undoes one, which is tried again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
    String,
    Text,
    and_,
    bindparam,
    case,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from farthing.canonical import sha256
from farthing.composition.tariffs.tariff import Price
from farthing.ledger.entries import Charge, Entry, Fact, Seal
from farthing.ledger.errors import NotInLedger, ReadOnly, Sealed, WrongSchema
from farthing.ledger.records import EVERYBODY
from farthing.ledger.store.connection import link
from farthing.ledger.store.tables import (
    REVISION,
    datasets,
    entries,
    lots,
    purses,
    version,
)


class Runs(Protocol):
    """A transaction: SQLAlchemy's connection, or the driver's own (`FastTransaction`)."""

    def execute(self, statement: Any, parameters: Any, /) -> Any: ...


def _whole(name: str) -> Any:
    return bindparam(name, type_=BigInteger)


_PRICE, _DELTA, _MONTH, _TIMES = map(_whole, ("price", "units", "this_month", "times"))
# constants are written out, so that a statement has no parameters but its own
_ZERO, _ONE, _TWO = (literal_column(str(n), BigInteger) for n in range(3))
_NO_NAME = literal_column(f"'{EVERYBODY}'", String)
_NEW = purses.c.month < _MONTH
_FARTHINGS = case((_NEW, _ZERO), else_=purses.c.farthings_spent) + _PRICE
_UNITS = case((_NEW, _ZERO), else_=purses.c.delta_units_spent) + _DELTA
#: The analyst's purse and everybody's, each with room for the price and not yet in a later month.
_BOTH_FIT = and_(
    purses.c.dataset_id == _whole("dataset"),
    purses.c.account == _whole("in_account"),
    purses.c.analyst.in_([_NO_NAME, bindparam("who", type_=String)]),
    purses.c.open == _ONE,
    func.coalesce(purses.c.month, _MONTH) <= _MONTH,
    purses.c.farthings >= _FARTHINGS,
    purses.c.delta_units >= _UNITS,
)
_TAKE = (
    update(purses)
    .where(_BOTH_FIT)
    .values(
        farthings_spent=_FARTHINGS,
        delta_units_spent=_UNITS,
        month=case((_NEW, _MONTH), else_=purses.c.month),
    )
)
_GIVE_BACK = (
    update(purses)
    .where(
        purses.c.dataset_id == _whole("dataset"),
        purses.c.account == _whole("in_account"),
        or_(
            purses.c.analyst == _NO_NAME,
            and_(
                purses.c.analyst == bindparam("who", type_=String),
                func.coalesce(purses.c.month, _MONTH) == _MONTH,
            ),
        ),
    )
    .values(
        farthings_spent=purses.c.farthings_spent - _PRICE,
        delta_units_spent=purses.c.delta_units_spent - _DELTA,
    )
)
_TAKE_LOT = (
    update(lots)
    .where(
        lots.c.dataset_id == _whole("dataset"),
        lots.c.account == _whole("in_account"),
        lots.c.item == bindparam("what"),
        lots.c.spent + _TIMES <= lots.c.granted,
    )
    .values(spent=lots.c.spent + _TIMES)
)
_WRITABLE = and_(
    datasets.c.writable == _ONE,
    select(version.c.version_num).scalar_subquery() == literal_column(f"'{REVISION}'", String),
)
#: Whether an entry can be added; if not, `require_writable` says why.
IS_WRITABLE = (
    select(func.count())
    .select_from(datasets)
    .where(datasets.c.id == _whole("dataset"), _WRITABLE)
    .scalar_subquery()
)
#: Every entry begins here, so this is where a book that is closed for writing is guarded.
_NEXT = (
    update(datasets)
    .where(datasets.c.id == _whole("dataset"), _WRITABLE)
    .values(
        number=datasets.c.number + _ONE,
        previous=datasets.c.hash,
        hash=link(datasets.c.hash, bindparam("content", type_=String)),
    )
)
_END = (datasets.c.number, datasets.c.previous, datasets.c.hash)
# asked for separately: with a RETURNING, SQLite takes twice the time of both
_HEAD = select(*_END).where(datasets.c.id == _whole("dataset"))
_COLUMNS = {
    "dataset_id": _whole("dataset"),
    "number": _whole("its_number"),
    "fact": bindparam("its_fact", type_=Text),
    "kind": bindparam("its_kind", type_=String),
    "previous": bindparam("its_previous", type_=String),
    "hash": bindparam("its_hash", type_=String),
    "settles": _whole("its_settles"),
    "released": bindparam("its_released", type_=String),
}
_WRITE = insert(entries).values(_COLUMNS)


def _everything_at_once() -> Any:
    """Head, purses and entry in one statement of PostgreSQL, which is its own transaction.

    Where it sees no room it touches nothing and says 0. Where it saw room it fails as a whole, by
    a division by zero, unless the chain was continued and both purses still had room when their
    rows were locked.
    """
    fitting = select(func.count().label("purses")).select_from(purses).where(_BOTH_FIT).cte("room")
    room = select(fitting.c.purses).scalar_subquery()
    head = _NEXT.where(room == _TWO).returning(*_END).cte("head")
    taken = _TAKE.where(room == _TWO).returning(purses.c.analyst).cte("taken")
    known = {**_COLUMNS, "number": head.c.number, "previous": head.c.previous, "hash": head.c.hash}
    entry = select(*known.values()).select_from(head)
    written = insert(entries).from_select(list(known), entry).returning(entries.c.number)
    done = and_(_count(head) == _ONE, _count(taken) == _TWO)
    return select(
        case((room != _TWO, _ZERO), else_=_ONE / case((done, _ONE), else_=_ZERO)).label("done"),
        *(select(column).scalar_subquery() for column in head.c),
    ).add_cte(written.cte("written"))


def _count(rows: Any) -> Any:
    return select(func.count()).select_from(rows).scalar_subquery()


_AT_ONCE = _everything_at_once()
#: PostgreSQL's word for the division.
NO_ROOM = "22012"


@dataclass(frozen=True, slots=True)
class Spend:
    """A price to be taken from a purse and from the cap, and the entry that says so.

    All that can be prepared is prepared here, before anybody has to wait for it. `month` is the
    one that is charged: a purse that renews begins it empty if it is new to it, and does not
    fit if it has seen a later one.
    """

    fact: Charge
    parameters: dict[str, Any]

    @staticmethod
    def of(fact: Charge, token: str, dataset: int, month: int) -> Spend:
        signed = fact.signed(token)
        written = signed.written()
        parameters = {
            "dataset": dataset,
            "in_account": fact.account,
            "who": fact.analyst,
            "price": fact.farthings,
            "units": fact.delta_units,
            "this_month": month,
            "content": sha256(written),
            "its_fact": written,
            "its_kind": fact.kind,
            "its_settles": None,
            "its_released": None,
        }
        return Spend(signed, parameters)

    def make(self, run: Runs) -> Entry | None:
        """The entry, or None if it does not fit; then the transaction must be undone."""
        values = self.parameters
        if run.execute(_TAKE, values).rowcount != 2:
            return None
        head = _continue(run, values)
        run.execute(_WRITE, {**values, **head})
        return self._entry(*head.values())

    def make_at_once(self, run: Runs) -> Entry | None:
        """The entry, in one statement, or None if it does not fit; the driver's error NO_ROOM if
        it fitted when the statement began."""
        done, *head = run.execute(_AT_ONCE, self.parameters).fetchone()
        return self._entry(*head) if done else None

    def _entry(self, number: int, previous: str, hash_: str) -> Entry:
        return Entry(number, self.fact, previous, hash_)


def append(run: Runs, dataset: int, fact: Fact, token: str) -> Entry:
    """Write the next entry of a dataset. From here to the commit no other writer gets in."""
    signed = fact.signed(token)
    written = signed.written()
    head = _continue(run, {"dataset": dataset, "content": sha256(written)})
    columns = {f"its_{name}": value for name, value in repeated_columns(signed).items()}
    run.execute(_WRITE, {"dataset": dataset, "its_fact": written, **columns, **head})
    return Entry(head["its_number"], signed, head["its_previous"], head["its_hash"])


def _continue(run: Runs, values: Mapping[str, Any]) -> dict[str, Any]:
    """Lock the dataset and continue its chain."""
    if run.execute(_NEXT, values).rowcount != 1:
        require_writable(run, values["dataset"])
        raise NotInLedger(f"dataset number {values['dataset']} is gone")
    ((number, previous, hash_),) = run.execute(_HEAD, values).fetchall()
    return {"its_number": number, "its_previous": previous, "its_hash": hash_}


def take_lots(run: Runs, dataset: int, account: int, items: Mapping[str, int]) -> bool:
    """Take items from a registered list if all of them are left."""
    key = {"dataset": dataset, "in_account": account}
    return all(
        run.execute(_TAKE_LOT, {**key, "what": item, "times": times}).rowcount == 1
        for item, times in items.items()
    )


def give_back(
    run: Runs, dataset: int, account: int, analyst: str, unused: Price, month: int
) -> None:
    """Return what an output shows was not used; to a purse only if it has not renewed since."""
    amount = {"price": unused.farthings, "units": unused.delta_units, "this_month": month}
    run.execute(_GIVE_BACK, {"dataset": dataset, "in_account": account, "who": analyst, **amount})


def return_to_lots(run: Runs, dataset: int, account: int, unused: Mapping[str, int]) -> None:
    """Return unused items to a registered list."""
    take_lots(run, dataset, account, {item: -times for item, times in unused.items()})


def repeated_columns(fact: Fact) -> dict[str, Any]:
    """What the row of an entry repeats of its fact, to be searched by."""
    return {
        "kind": fact.kind,
        "settles": getattr(fact, "settles", None),
        "released": getattr(fact, "released", None),
    }


def new_token() -> str:
    """Unguessable; by it a write that nobody acknowledged is recognised."""
    return secrets.token_hex(16)


def require_writable(run: Runs, dataset: int) -> None:
    """Says why no entry can be added to a dataset's book, if none can.

    A process that was open while another farthing upgraded the ledger stops writing.
    """
    rows = run.execute(_VERSION, {}).fetchall()
    found = rows[0][0] if rows else None
    if found != REVISION:
        raise WrongSchema(found, REVISION, "it was upgraded while open; update this farthing")
    rows = run.execute(_STATE, {"dataset": dataset}).fetchall()
    if rows and rows[0][1] == 0:
        name, _, kind, fact = rows[0]
        raise Sealed(name, json.loads(fact)["successor"]) if kind == Seal.kind else ReadOnly(name)


_VERSION = select(version.c.version_num)
_STATE = (
    select(datasets.c.name, datasets.c.writable, entries.c.kind, entries.c.fact)
    .join(
        entries,
        and_(entries.c.dataset_id == datasets.c.id, entries.c.number == datasets.c.number),
    )
    .where(datasets.c.id == _whole("dataset"))
)
