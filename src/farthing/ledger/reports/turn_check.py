"""Along the turns of a conversation: hashes, numbers, noise, and what the book holds of them."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, select

from farthing.canonical import canonical, sha256
from farthing.errors import FarthingError
from farthing.interactive import SealedState, unseal
from farthing.ledger.chain import linked, start_of
from farthing.ledger.entries import Opened
from farthing.ledger.errors import Damaged
from farthing.ledger.records import answered_from_json
from farthing.ledger.store import conversation_commands
from farthing.ledger.store.tables import conversations, turns


def check_turns(connection: Connection, dataset: Any, opened: dict[str, Opened]) -> None:
    """Every conversation of a dataset is what its entries and its turns say, or Damaged."""
    query = select(conversations).filter_by(dataset_id=dataset.id)
    rows: dict[str, Any] = {row.id: row for row in connection.execute(query)}
    if set(rows) - set(opened):
        raise Damaged(f"{dataset.name} has a conversation that nobody opened", dataset.name)
    for identity, one in opened.items():
        if identity in rows:
            _Walk(connection, dataset.name, one).check(rows[identity], bool(dataset.writable))
        elif dataset.writable and one.open:
            raise _bad(dataset.name, one, "it is open, and yet it is not here")


class _Walk:
    """From the first turn of a conversation to its last."""

    def __init__(self, connection: Connection, dataset: str, opened: Opened) -> None:
        self._connection = connection
        self._dataset = dataset
        self._opened = opened
        self.turns, self.asked, self.commitment = 0, 0, opened.commitment

    def check(self, row: Any, goes_on_here: bool) -> None:
        """The row repeats what entries and turns add up to, and the noise is the one committed."""
        opened, head = self._opened, start_of(row.id)
        heads = {0: head}
        query = select(turns).filter_by(conversation=row.id).order_by(turns.c.number)
        with self._connection.execute(query, execution_options={"yield_per": 100}) as said:
            for turn in said:
                head = heads[self.asked] = self._take(row.id, turn, head)
        for asked, marked in opened.marks:
            if heads.get(asked) != marked:
                raise self._bad("its turns are not those that the book tells of")
        if not opened.open and opened.marks[-1][0] != self.asked:
            raise self._bad("something was said after it had ended")
        found = (row.entry, row.analyst, row.declared, row.turns, row.asked, row.head)
        wanted = (opened.entry, opened.analyst, opened.declared, self.turns, self.asked, head)
        if found != wanted or row.commitment != self.commitment:
            raise self._bad("it does not stand where its turns end")
        if goes_on_here:
            if (row.open == 1) != opened.open:
                raise self._bad("the book says otherwise about whether it has ended")
            self._check_noise(row)

    def _take(self, identity: str, turn: Any, head: str) -> str:
        """The hash after one more turn."""
        if turn.number != self.turns + 1 or turn.hash != linked(head, sha256(turn.said)):
            raise self._bad(f"turn {self.turns + 1} is missing or was changed")
        try:
            words = json.loads(turn.said)
            answered = [answered_from_json(one) for one in words["answered"]]
            named = (words["conversation"], words["turn"], words["asked"])
            right = canonical(words) == turn.said and bool(answered)
            self.commitment = words["commitment"]
        except (ValueError, KeyError, TypeError):
            raise self._bad(f"turn {turn.number} is not a turn of a conversation") from None
        if not right or named != (identity, turn.number, self.asked):
            raise self._bad(f"turn {turn.number} belongs elsewhere")
        self.turns, self.asked = turn.number, self.asked + len(answered)
        return str(turn.hash)

    def _check_noise(self, row: Any) -> None:
        secret = conversation_commands.kept_noise(self._connection, row.id)
        try:
            if secret is None:
                raise ValueError
            kept = unseal(SealedState(json.loads(secret), row.commitment))
            same = kept.asked == self.asked and kept.mechanism == self._opened.mechanism
        except (ValueError, FarthingError):
            same = False
        if not same:
            raise self._bad("its noise is not what was committed to")

    def _bad(self, why: str) -> Damaged:
        return _bad(self._dataset, self._opened, why)


def _bad(dataset: str, opened: Opened, why: str) -> Damaged:
    return Damaged(
        f"the conversation of entry {opened.entry} of {dataset} is bad: {why}",
        dataset,
        opened.entry,
    )
