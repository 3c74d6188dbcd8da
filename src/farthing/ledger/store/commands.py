"""The SQL that writes: charges, entries, registered lists, and the turns of conversations.

A charge is four commands on SQLite, where a writing transaction has the whole database to itself:
take the price, continue the chain, read its end, write the entry. On PostgreSQL it is one command
with all of them inside. Everything else begins by locking the dataset's row, so the writers of one
dataset take turns. If the server finds two that wait for each other, it undoes one, which is tried
again.

A turn locks the row of its conversation, so those who ask in it take turns too. It writes the new
state, the noise and what was said in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
    Connection,
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
    text,
    update,
)

from farthing.canonical import sha256
from farthing.composition.tariffs.tariff import Price
from farthing.ledger.entries.analyst import Charge
from farthing.ledger.entries.fact import Entry, Fact
from farthing.ledger.entries.owner import Seal
from farthing.ledger.errors import NotInLedger, ReadOnly, Sealed, WrongSchema
from farthing.ledger.records import EVERYBODY
from farthing.ledger.store.connection import link
from farthing.ledger.store.tables import (
    REVISION,
    conversations,
    datasets,
    entries,
    lots,
    purses,
    secrets,
    turns,
    version,
)


class Runs(Protocol):
    """A transaction: SQLAlchemy's connection, or the driver's own (`FastTransaction`)."""

    def execute(self, statement: Any, parameters: Any, /) -> Any: ...


def _whole(name: str) -> Any:
    return bindparam(name, type_=BigInteger)


def _text(name: str) -> Any:
    return bindparam(name, type_=String)


_PRICE, _DELTA, _MONTH, _TIMES = map(_whole, ("price", "units", "this_month", "times"))
# constants are written out, so that a command has no parameters but its own
_ZERO, _ONE, _TWO = (literal_column(str(n), BigInteger) for n in range(3))
_NO_NAME = literal_column(f"'{EVERYBODY}'", String)
_NEW = purses.c.month < _MONTH
_FARTHINGS = case((_NEW, _ZERO), else_=purses.c.farthings_spent) + _PRICE
_UNITS = case((_NEW, _ZERO), else_=purses.c.delta_units_spent) + _DELTA
#: The analyst's purse and the cap.
_BOTH = and_(
    purses.c.dataset_id == _whole("dataset"),
    purses.c.account == _whole("in_account"),
    purses.c.analyst.in_([_NO_NAME, _text("who")]),
)
#: Each with room for the price and not yet in a later month.
_BOTH_FIT = and_(
    _BOTH,
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
            and_(purses.c.analyst == _text("who"), func.coalesce(purses.c.month, _MONTH) == _MONTH),
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
        lots.c.item == _text("what"),
        lots.c.spent + _TIMES <= lots.c.granted,
    )
    .values(spent=lots.c.spent + _TIMES)
)
_KNOWN_SCHEMA = select(version.c.version_num).scalar_subquery() == literal_column(
    f"'{REVISION}'", String
)
_WRITABLE = and_(datasets.c.writable == _ONE, _KNOWN_SCHEMA)
_IS_WRITABLE = (
    select(func.count())
    .select_from(datasets)
    .where(datasets.c.id == _whole("dataset"), _WRITABLE)
    .scalar_subquery()
)
#: Purse and cap, and whether their book can be written (`require_writable` says why not).
READ_BOTH = select(purses, _IS_WRITABLE).where(_BOTH)
#: Every entry begins here, so this is where a book that is closed for writing is guarded.
_NEXT = (
    update(datasets)
    .where(datasets.c.id == _whole("dataset"), _WRITABLE)
    .values(
        number=datasets.c.number + _ONE,
        previous=datasets.c.hash,
        hash=link(datasets.c.hash, _text("content")),
    )
)
_CHAIN_END = (datasets.c.number, datasets.c.previous, datasets.c.hash)
# asked for separately: with a RETURNING, SQLite takes twice the time of both
_HEAD = select(*_CHAIN_END).where(datasets.c.id == _whole("dataset"))
_COLUMNS = {
    "dataset_id": _whole("dataset"),
    "number": _whole("its_number"),
    "fact": bindparam("its_fact", type_=Text),
    "kind": _text("its_kind"),
    "previous": _text("its_previous"),
    "hash": _text("its_hash"),
    "settles": _whole("its_settles"),
    "released": _text("its_released"),
}
_WRITE = insert(entries).values(_COLUMNS)


def _everything_at_once() -> Any:
    """Head, purses and entry in one command of PostgreSQL, which is its own transaction.

    If it sees no room, it touches nothing and gives 0. If it saw room, it fails as a whole, by a
    division by zero, unless the chain was continued and both purses still had room when their rows
    were locked.
    """
    fitting = select(func.count().label("purses")).select_from(purses).where(_BOTH_FIT).cte("room")
    room = select(fitting.c.purses).scalar_subquery()
    head = _NEXT.where(room == _TWO).returning(*_CHAIN_END).cte("head")
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
#: PostgreSQL's code for the division by zero.
NO_ROOM = "22012"
#: Held on PostgreSQL while a dataset or an account is added.
_ADDING = 0x66617275


@dataclass(frozen=True, slots=True)
class Spend:
    """A price to be taken from a purse and from the cap, and the entry that says so.

    Everything is prepared here, before anybody has to wait for it. `month` is the month that is
    charged: a purse that renews starts a new month with nothing spent, and refuses an earlier one.
    """

    fact: Charge
    parameters: dict[str, Any]

    @staticmethod
    def of(fact: Charge, token: str, dataset: int, month: int) -> Spend:
        signed = replace(fact, token=token)
        parameters = {
            **_entry_parameters(signed, dataset),
            "in_account": fact.account,
            "who": fact.analyst,
            "price": fact.farthings,
            "units": fact.delta_units,
            "this_month": month,
        }
        return Spend(signed, parameters)

    def make(self, run: Runs) -> Entry | None:
        """The entry, or None if it does not fit; then undo the transaction."""
        if run.execute(_TAKE, self.parameters).rowcount != 2:
            return None
        return _write_entry(run, self.fact, self.parameters)

    def make_at_once(self, run: Runs) -> Entry | None:
        """The entry, in one command, or None if it does not fit; the driver's error NO_ROOM if
        it fitted when the command began."""
        done, number, previous, hash_ = run.execute(_AT_ONCE, self.parameters).fetchone()
        return Entry(number, self.fact, previous, hash_) if done else None


def append(run: Runs, dataset: int, fact: Fact, token: str) -> Entry:
    """Write the next entry of a dataset. From here to the commit no other writer gets in."""
    signed = replace(fact, token=token)
    return _write_entry(run, signed, _entry_parameters(signed, dataset))


def _entry_parameters(fact: Fact, dataset: int) -> dict[str, Any]:
    written = fact.written()
    columns = {f"its_{name}": value for name, value in repeated_columns(fact).items()}
    return {"dataset": dataset, "content": sha256(written), "its_fact": written, **columns}


def _write_entry(run: Runs, fact: Fact, values: Mapping[str, Any]) -> Entry:
    """Lock the dataset, continue its chain, and write the entry."""
    if run.execute(_NEXT, values).rowcount != 1:
        require_writable(run, values["dataset"])
        raise NotInLedger(f"dataset number {values['dataset']} is gone")
    ((number, previous, hash_),) = run.execute(_HEAD, values).fetchall()
    head = {"its_number": number, "its_previous": previous, "its_hash": hash_}
    run.execute(_WRITE, {**values, **head})
    return Entry(number, fact, previous, hash_)


def lock_for_adding(connection: Connection) -> None:
    """Add one dataset or account at a time, so that no two see the same place free.

    On SQLite every writing transaction is alone.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADDING})


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
    """Return unused farthings to the cap, and to the purse if it has not renewed since."""
    amount = {"price": unused.farthings, "units": unused.delta_units, "this_month": month}
    run.execute(_GIVE_BACK, {"dataset": dataset, "in_account": account, "who": analyst, **amount})


def return_to_lots(run: Runs, dataset: int, account: int, unused: Mapping[str, int]) -> None:
    """Return unused items to a registered list."""
    take_lots(run, dataset, account, {item: -times for item, times in unused.items()})


def repeated_columns(fact: Fact) -> dict[str, Any]:
    """The columns that repeat parts of a fact, so that they can be searched."""
    return {
        "kind": fact.kind,
        "settles": getattr(fact, "settles", None),
        "released": getattr(fact, "released", None),
    }


def new_token() -> str:
    """A random token, by which a write without acknowledgement is found."""
    return token_hex(16)


def require_writable(run: Runs, dataset: int) -> None:
    """Raise why no entry can be added to a dataset's book, if none can.

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
        entries, and_(entries.c.dataset_id == datasets.c.id, entries.c.number == datasets.c.number)
    )
    .where(datasets.c.id == _whole("dataset"))
)


_THIS = conversations.c.id == _text("its_id")
_NOISE = secrets.c.conversation == _text("its_id")
_STATE_OF_NOISE = bindparam("its_state", type_=Text)
_BEGIN = insert(conversations).values(
    id=_text("its_id"),
    dataset_id=_whole("dataset"),
    entry=_whole("its_entry"),
    analyst=_text("who"),
    declared=select(datasets.c.declared)
    .where(datasets.c.id == _whole("dataset"))
    .scalar_subquery(),
    turns=_ZERO,
    asked=_ZERO,
    head=_text("its_head"),
    commitment=_text("its_commitment"),
    open=_ONE,
)
_KEEP_NOISE = insert(secrets).values(conversation=_text("its_id"), state=_STATE_OF_NOISE)
_LOCK = (
    select(*conversations.c, datasets.c.declared, datasets.c.name)
    .join(datasets, datasets.c.id == conversations.c.dataset_id)
    .where(_THIS)
    .with_for_update(of=conversations)
)
_READ_NOISE = select(secrets.c.state).where(_NOISE)
_FACT = select(entries.c.fact).where(
    entries.c.dataset_id == _whole("dataset"), entries.c.number == _whole("its_number")
)
_GO_ON = (
    update(conversations)
    .where(_THIS, conversations.c.open == _ONE, _KNOWN_SCHEMA)
    .values(
        turns=_whole("its_turns"),
        asked=_whole("its_asked"),
        head=_text("its_head"),
        commitment=_text("its_commitment"),
    )
)
_REPLACE_NOISE = update(secrets).where(_NOISE).values(state=_STATE_OF_NOISE)
_SAY = insert(turns).values(
    conversation=_text("its_id"),
    number=_whole("its_turns"),
    said=bindparam("its_words", type_=Text),
    hash=_text("its_head"),
)
_END = update(conversations).where(_THIS).values(open=_ZERO)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a conversation stands, without its noise: its row, and two columns of the dataset.

    `declared` is the entry that described the rows when it was opened, `now` the current one.
    """

    id: str
    dataset: int
    entry: int
    analyst: str
    declared: int
    turns: int
    asked: int
    head: str
    commitment: str
    open: int
    now: int
    dataset_name: str


def begin_conversation(run: Runs, row: Mapping[str, Any]) -> None:
    """Write a new conversation and its noise."""
    run.execute(_BEGIN, row)
    run.execute(_KEEP_NOISE, row)


def lock_conversation(run: Runs, conversation: str) -> Standing | None:
    """Lock a conversation and read where it stands; None if there is none."""
    rows = run.execute(_LOCK, {"its_id": conversation}).fetchall()
    return Standing(*rows[0]) if rows else None


def noise_of(run: Runs, conversation: str) -> str | None:
    """The noise of a conversation; None if its book has moved."""
    rows = run.execute(_READ_NOISE, {"its_id": conversation}).fetchall()
    return str(rows[0][0]) if rows else None


def fact_at(run: Runs, dataset: int, number: int) -> str:
    """The text of an entry's fact."""
    ((fact,),) = run.execute(_FACT, {"dataset": dataset, "its_number": number}).fetchall()
    return str(fact)


def write_turn(run: Runs, after: Standing, noise: str, words: str) -> bool:
    """Write a turn: state, noise and words. False if the conversation has ended."""
    row = {
        "its_id": after.id,
        "its_turns": after.turns,
        "its_asked": after.asked,
        "its_head": after.head,
        "its_commitment": after.commitment,
        "its_state": noise,
        "its_words": words,
    }
    if run.execute(_GO_ON, row).rowcount != 1:
        return False
    run.execute(_REPLACE_NOISE, row)
    run.execute(_SAY, row)
    return True


def close_conversation(run: Runs, conversation: str) -> None:
    """Nothing more can be asked."""
    run.execute(_END, {"its_id": conversation})
