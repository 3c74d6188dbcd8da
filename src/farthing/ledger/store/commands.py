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
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any, Protocol

import sqlalchemy as sa

from farthing.canonical import sha256
from farthing.composition.tariffs.tariff import Price
from farthing.ledger.entries.analyst import Charge
from farthing.ledger.entries.fact import Entry, Fact
from farthing.ledger.entries.owner import Seal
from farthing.ledger.errors import NotInLedger, ReadOnly, Sealed, WrongSchema
from farthing.ledger.store.tables import REVISION, conversations, datasets, purses


class Runs(Protocol):
    """A transaction: SQLAlchemy's connection, or the driver's own (`FastTransaction`)."""

    def execute(self, statement: Any, parameters: Any, /) -> Any: ...


#: Parameters that are whole numbers; the others are text.
_WHOLE = {"dataset", "in_account", "price", "units", "this_month", "times"}
_WHOLE |= {"its_number", "its_settles", "its_entry", "its_turns", "its_asked"}


def _sql(words: str) -> sa.TextClause:
    """A command. PostgreSQL is told the type of each parameter."""
    made = sa.text(words)
    for name in set(re.findall(r":(\w+)", words)):
        kind = sa.BigInteger if name in _WHOLE else sa.String
        made = made.bindparams(sa.bindparam(name, type_=kind))
    return made


#: The analyst's purse and the cap, which has no name.
_BOTH = "dataset_id = :dataset AND account = :in_account AND analyst IN ('', :who)"
_FARTHINGS = "CASE WHEN month < :this_month THEN 0 ELSE farthings_spent END + :price"
_UNITS = "CASE WHEN month < :this_month THEN 0 ELSE delta_units_spent END + :units"
#: Each with room for the price and not yet in a later month.
_BOTH_FIT = f"""{_BOTH} AND open = 1 AND coalesce(month, :this_month) <= :this_month
    AND farthings >= {_FARTHINGS} AND delta_units >= {_UNITS}"""
_TAKING = f"""UPDATE farthing_purses
    SET farthings_spent = {_FARTHINGS}, delta_units_spent = {_UNITS},
        month = CASE WHEN month < :this_month THEN :this_month ELSE month END
    WHERE {_BOTH_FIT}"""
_TAKE = _sql(_TAKING)
_GIVE_BACK = _sql("""UPDATE farthing_purses
    SET farthings_spent = farthings_spent - :price, delta_units_spent = delta_units_spent - :units
    WHERE dataset_id = :dataset AND account = :in_account
    AND (analyst = '' OR analyst = :who AND coalesce(month, :this_month) = :this_month)""")
_TAKE_LOT = _sql("""UPDATE farthing_lots SET spent = spent + :times
    WHERE dataset_id = :dataset AND account = :in_account AND item = :what
    AND spent + :times <= granted""")
_KNOWN_SCHEMA = f"(SELECT version_num FROM farthing_version) = '{REVISION}'"
_WRITABLE = f"id = :dataset AND writable = 1 AND {_KNOWN_SCHEMA}"
#: Purse and cap, and whether their book can be written (`require_writable` says why not).
READ_BOTH = _sql(f"""SELECT {", ".join(purses.c.keys())},
    (SELECT count(*) FROM farthing_datasets WHERE {_WRITABLE}) AS writable
    FROM farthing_purses WHERE {_BOTH}""")
#: `linked` inside the database, which gives SQLite these functions (store/connection.py).
LINKED = "encode(sha256(convert_to(hash || :content, 'UTF8')), 'hex')"
#: Every entry begins here, so this is where a book that is closed for writing is guarded.
_CONTINUING = f"""UPDATE farthing_datasets SET number = number + 1, previous = hash, hash = {LINKED}
    WHERE {_WRITABLE}"""
_NEXT = _sql(_CONTINUING)
# asked for separately: with a RETURNING, SQLite takes twice the time of both
_HEAD = _sql("SELECT number, previous, hash FROM farthing_datasets WHERE id = :dataset")
_WRITING = """INSERT INTO farthing_entries
    (dataset_id, number, fact, kind, previous, hash, settles, released)"""
_WRITE = _sql(f"""{_WRITING} VALUES (:dataset, :its_number, :its_fact, :its_kind,
    :its_previous, :its_hash, :its_settles, :its_released)""")
#: Head, purses and entry in one command of PostgreSQL, which is its own transaction. If it sees no
#: room, it touches nothing and gives 0. If it saw room, it fails as a whole, by a division by zero,
#: unless the chain was continued and both purses still had room when their rows were locked.
_AT_ONCE = _sql(f"""WITH
    room AS (SELECT count(*) AS purses FROM farthing_purses WHERE {_BOTH_FIT}),
    head AS ({_CONTINUING} AND (SELECT purses FROM room) = 2 RETURNING number, previous, hash),
    taken AS ({_TAKING} AND (SELECT purses FROM room) = 2 RETURNING analyst),
    written AS ({_WRITING}
        SELECT :dataset, number, :its_fact, :its_kind, previous, hash, :its_settles, :its_released
        FROM head RETURNING number)
    SELECT CASE WHEN (SELECT purses FROM room) <> 2 THEN 0 ELSE 1 / CASE
        WHEN (SELECT count(*) FROM head) = 1 AND (SELECT count(*) FROM taken) = 2 THEN 1
        ELSE 0 END END AS done,
        (SELECT number FROM head), (SELECT previous FROM head), (SELECT hash FROM head)""")
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


def append(run: Runs, dataset: int, fact: Fact, token: str | None = None) -> Entry:
    """Write the next entry of a dataset. From here to the commit no other writer gets in."""
    signed = replace(fact, token=token or new_token())
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


def lock_for_adding(connection: sa.Connection) -> None:
    """Add one dataset or account at a time, so that no two see the same place free.

    On SQLite every writing transaction is alone.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADDING})


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


_VERSION = _sql("SELECT version_num FROM farthing_version")
_STATE = _sql("""SELECT name, writable, kind, fact FROM farthing_datasets JOIN farthing_entries
    ON dataset_id = id AND farthing_entries.number = farthing_datasets.number
    WHERE id = :dataset""")

_BEGIN = _sql("""INSERT INTO farthing_conversations
    (id, dataset_id, entry, analyst, declared, turns, asked, head, commitment, open)
    VALUES (:its_id, :dataset, :its_entry, :who,
    (SELECT declared FROM farthing_datasets WHERE id = :dataset),
    0, 0, :its_head, :its_commitment, 1)""")
_KEEP_NOISE = _sql(
    "INSERT INTO farthing_secrets (conversation, state) VALUES (:its_id, :its_state)"
)
#: SQLite has no locks of rows, and needs none: its writers take turns.
_LOCK = (
    sa.select(*conversations.c, datasets.c.declared, datasets.c.name)
    .join(datasets, datasets.c.id == conversations.c.dataset_id)
    .where(conversations.c.id == sa.bindparam("its_id", type_=sa.String))
    .with_for_update(of=conversations)
)
_READ_NOISE = _sql("SELECT state FROM farthing_secrets WHERE conversation = :its_id")
_FACT = _sql(
    "SELECT fact FROM farthing_entries WHERE dataset_id = :dataset AND number = :its_number"
)
_GO_ON = _sql(f"""UPDATE farthing_conversations
    SET turns = :its_turns, asked = :its_asked, head = :its_head, commitment = :its_commitment
    WHERE id = :its_id AND open = 1 AND {_KNOWN_SCHEMA}""")
_REPLACE_NOISE = _sql("UPDATE farthing_secrets SET state = :its_state WHERE conversation = :its_id")
_SAY = _sql("""INSERT INTO farthing_turns (conversation, number, said, hash)
    VALUES (:its_id, :its_turns, :its_words, :its_head)""")
_END = _sql("UPDATE farthing_conversations SET open = 0 WHERE id = :its_id")


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
    new = ("id", "turns", "asked", "head", "commitment")
    row = {f"its_{name}": getattr(after, name) for name in new}
    row |= {"its_state": noise, "its_words": words}
    if run.execute(_GO_ON, row).rowcount != 1:
        return False
    run.execute(_REPLACE_NOISE, row)
    run.execute(_SAY, row)
    return True


def close_conversation(run: Runs, conversation: str) -> None:
    """Nothing more can be asked."""
    run.execute(_END, {"its_id": conversation})
