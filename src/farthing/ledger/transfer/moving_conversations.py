"""Conversations on their way from one ledger to another, noise included.

An export holds entries only. When a book moves, what its conversations need goes from store to
store in memory, beside the export, and is then removed where it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, insert, select

from farthing.ledger.chain import start_of
from farthing.ledger.entries import EndConversation, Opened
from farthing.ledger.store import conversation_commands
from farthing.ledger.store.open_book import OpenBook
from farthing.ledger.store.queries import row_of_dataset
from farthing.ledger.store.tables import conversations, secrets, turns
from farthing.ledger.writes.conversations import WITHOUT_NOISE


@dataclass(frozen=True, slots=True)
class CarriedConversation:
    """One conversation: its row, its turns and its noise."""

    row: dict[str, Any]
    turns: list[dict[str, Any]] = field(repr=False)
    noise: str | None = field(repr=False)


#: The conversations of each dataset.
Carried: TypeAlias = Mapping[str, list[CarriedConversation]]


def pack(connection: Connection, dataset: str) -> list[CarriedConversation]:
    """Everything that the conversations of a dataset need."""
    row = row_of_dataset(connection, dataset)
    found = connection.execute(select(conversations).filter_by(dataset_id=row)).all()
    return [
        CarriedConversation(
            row=one._asdict(),
            turns=[
                turn._asdict()
                for turn in connection.execute(select(turns).filter_by(conversation=one.id))
            ],
            noise=conversation_commands.kept_noise(connection, one.id),
        )
        for one in found
    ]


def unpack(
    connection: Connection,
    row: int,
    carried: list[CarriedConversation],
    opened: Mapping[str, Opened],
) -> None:
    """Written under the dataset's row here; those that had not ended go on.

    A book may come back to where it was before: what it left there is replaced.
    """
    here = select(conversations.c.id).filter_by(dataset_id=row)
    for table in (secrets, turns):
        connection.execute(delete(table).where(table.c.conversation.in_(here)))
    connection.execute(delete(conversations).filter_by(dataset_id=row))
    for one in carried:
        goes_on = opened[one.row["id"]].open
        values = {**one.row, "dataset_id": row, "open": 1 if goes_on else 0}
        connection.execute(insert(conversations).values(**values))
        if one.turns:
            connection.execute(insert(turns), one.turns)
        if one.noise is not None:
            connection.execute(insert(secrets).values(conversation=one.row["id"], state=one.noise))


def forget_noise(connection: Connection, dataset: str) -> bool:
    """The noise is elsewhere now, and nowhere else."""
    row = row_of_dataset(connection, dataset)
    here = select(conversations.c.id).filter_by(dataset_id=row)
    connection.execute(delete(secrets).where(secrets.c.conversation.in_(here)))
    return True


def end_without_noise(
    book: OpenBook, dataset: str, identity: str, opened: Opened
) -> EndConversation:
    """The entry that ends a conversation whose noise did not come along. It stays spent."""
    asked, head = opened.marks[-1] if opened.marks else (0, start_of(identity))
    return EndConversation(
        **book.stamp(dataset),
        conversation=identity,
        analyst=opened.analyst,
        settles=opened.entry,
        asked=asked,
        head=head,
        reason=WITHOUT_NOISE,
    )
