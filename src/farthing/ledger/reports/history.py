"""Who asked what, when, and for how much: reservations and conversations, each with its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.ledger.entries import (
    Abandon,
    AddDataset,
    Charge,
    Close,
    Declaration,
    DeclareVersion,
    Describe,
    EndConversation,
    OpenConversation,
    Reserve,
    Settlement,
)
from farthing.ledger.months import written_time
from farthing.ledger.roles.reader import Reader

#: What was paid for, how it ends, and what declares a version of the rows.
_PAID = (Reserve.kind, OpenConversation.kind)
_ENDS = (Close.kind, Abandon.kind, EndConversation.kind)
_DECLARED = (AddDataset.kind, Describe.kind, DeclareVersion.kind)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, or one conversation: `price` is what it cost in the end.

    `outcome` is open, close or abandon, and end for a conversation that has ended. `version` is
    that of the rows when it was paid for, None if they were live; `release` is what was told, None
    if nothing was kept.
    """

    dataset: str
    entry: int
    time: str
    analyst: str
    account: str
    question: Any = field(repr=False)
    price: Price
    outcome: str
    version: str | None = None
    release: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        cost = f"{self.price.farthings} farthings"
        return f"<Asked of {self.dataset} by {self.analyst} at {self.time[:16]}: {cost}>"

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "entry": self.entry,
            "time": self.time,
            "analyst": self.analyst,
            "account": self.account,
            "question": self.question,
            "farthings": self.price.farthings,
            "delta_units": self.price.delta_units,
            "outcome": self.outcome,
            "version": self.version,
        }


def history(
    reader: Reader,
    dataset: str,
    analyst: str | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Iterator[Asked]:
    """Every question that was paid for, in order: of one analyst, from `since`, before `until`."""
    first = None if since is None else written_time(_in_a_zone("since", since))
    end = None if until is None else written_time(_in_a_zone("until", until))
    names = {account.number: account.name for account in reader.accounts(dataset)}
    book = list(reader.entries(dataset, *_PAID, *_ENDS, *_DECLARED))
    version = None
    ends = {
        fact.settles: fact
        for fact in (entry.fact for entry in book)
        if isinstance(fact, Settlement | EndConversation)
    }
    for entry in book:
        fact = entry.fact
        if isinstance(fact, Declaration):
            version = fact.declared.dataset.version
        if not isinstance(fact, Charge) or analyst not in (None, fact.analyst):
            continue
        if (first or "") > fact.time or (end is not None and fact.time >= end):
            continue
        last = ends.get(entry.number)
        back = last.back if isinstance(last, Close) else Price(0)
        yield Asked(
            dataset=dataset,
            entry=entry.number,
            time=fact.time,
            analyst=fact.analyst,
            account=names[fact.account],
            question=fact.question,
            price=fact.price - back,
            outcome="open" if last is None else last.kind,
            version=version,
            release=last.release if isinstance(last, Close) else None,
        )


def _in_a_zone(name: str, given: datetime) -> datetime:
    if given.tzinfo is None:
        raise InvalidInput(f"{name} must have a time zone, such as tzinfo=UTC, got none")
    return given
