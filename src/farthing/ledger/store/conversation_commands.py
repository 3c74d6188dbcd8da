"""The statements of conversations: open one, look at one, write a turn, end one.

A turn locks the row of its conversation, so whoever talks to it comes one after the other, and
writes the new state, the noise and what was said in one transaction. On SQLite a writing
transaction has the whole database to itself anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, String, Text, bindparam, insert, literal_column, select, update

from farthing.ledger.store.commands import Runs
from farthing.ledger.store.tables import (
    REVISION,
    conversations,
    datasets,
    entries,
    secrets,
    turns,
    version,
)


def _text(name: str) -> Any:
    return bindparam(name, type_=String)


def _whole(name: str) -> Any:
    return bindparam(name, type_=BigInteger)


_ID = conversations.c.id == _text("its_id")
_ONE, _ZERO = (literal_column(str(n), BigInteger) for n in (1, 0))
_HERE = select(version.c.version_num).scalar_subquery() == literal_column(f"'{REVISION}'", String)
_OPEN = insert(conversations).values(
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
_KEEP = insert(secrets).values(
    conversation=_text("its_id"), state=bindparam("its_state", type_=Text)
)
_LOOK = (
    select(
        conversations.c.dataset_id,
        conversations.c.entry,
        conversations.c.analyst,
        conversations.c.declared,
        conversations.c.turns,
        conversations.c.asked,
        conversations.c.head,
        conversations.c.commitment,
        conversations.c.open,
        datasets.c.declared,
        datasets.c.name,
    )
    .join(datasets, datasets.c.id == conversations.c.dataset_id)
    .where(_ID)
    .with_for_update(of=conversations)
)
_NOISE = select(secrets.c.state).where(secrets.c.conversation == _text("its_id"))
_DECLARED = select(entries.c.fact).where(
    entries.c.dataset_id == _whole("dataset"), entries.c.number == _whole("its_number")
)
_GO_ON = (
    update(conversations)
    .where(_ID, conversations.c.open == _ONE, _HERE)
    .values(
        turns=_whole("its_turns"),
        asked=_whole("its_asked"),
        head=_text("its_head"),
        commitment=_text("its_commitment"),
    )
)
_REPLACE = (
    update(secrets)
    .where(secrets.c.conversation == _text("its_id"))
    .values(state=bindparam("its_state", type_=Text))
)
_SAY = insert(turns).values(
    conversation=_text("its_id"),
    number=_whole("its_turns"),
    said=bindparam("its_words", type_=Text),
    hash=_text("its_head"),
)
_END = update(conversations).where(_ID).values(open=_ZERO)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a conversation stands, without its noise.

    `declared` is the entry with what was declared about the rows when it was opened, `now` that of
    today.
    """

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


def begin(run: Runs, row: Mapping[str, Any]) -> None:
    """A conversation, and its noise."""
    run.execute(_OPEN, row)
    run.execute(_KEEP, row)


def standing(run: Runs, conversation: str) -> Standing | None:
    """Lock a conversation and look at it; None if there is none."""
    rows = run.execute(_LOOK, {"its_id": conversation}).fetchall()
    return Standing(*rows[0]) if rows else None


def kept_noise(run: Runs, conversation: str) -> str | None:
    """The secret of a conversation; None where it was taken elsewhere."""
    rows = run.execute(_NOISE, {"its_id": conversation}).fetchall()
    return str(rows[0][0]) if rows else None


def declared_fact(run: Runs, dataset: int, number: int) -> str:
    """What an owner declared in this entry, as it was written."""
    ((fact,),) = run.execute(_DECLARED, {"dataset": dataset, "its_number": number}).fetchall()
    return str(fact)


def write_turn(run: Runs, row: Mapping[str, Any]) -> bool:
    """Write a turn: state, noise and words. False if the conversation takes no more."""
    if run.execute(_GO_ON, row).rowcount != 1:
        return False
    run.execute(_REPLACE, row)
    run.execute(_SAY, row)
    return True


def end(run: Runs, conversation: str) -> None:
    """Nothing more can be said."""
    run.execute(_END, {"its_id": conversation})
