"""What was asked and run so far: by whom, when, at which price, and how often.

`history` lists reservations and conversations, each with its end. `usage` counts what was run, in
the words of whoever ran it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.guarantees.notation import format_guarantee
from farthing.ledger.entries.charges import Abandon, Charge, Close, Reserve, Settlement
from farthing.ledger.entries.conversations import EndConversation, OpenConversation
from farthing.ledger.entries.data import AddDataset, Declaration, DeclareVersion, Describe
from farthing.ledger.records import SETWISE, TARIFF, Account, Use, use_from_json, written_time
from farthing.ledger.registered_lists import EVERYTHING
from farthing.ledger.roles.reader import Reader

#: Kinds of entries that charge, that settle, and that declare a version of the rows.
_PAID = (Reserve.kind, OpenConversation.kind)
_ENDS = (Close.kind, Abandon.kind, EndConversation.kind)
_DECLARED = (AddDataset.kind, Describe.kind, DeclareVersion.kind)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, or one conversation: `price` is what it cost in the end.

    `outcome` is open, close or abandon, and end for a conversation that has ended. `version` is
    the version of the rows when it was charged, None if they were live; `release` is the answer,
    None if none was kept.
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
    """Every question that was charged, in order: of one analyst, from `since`, before `until`."""
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


NOT_STATED = "not stated"
_USED = (Reserve.kind, Close.kind, OpenConversation.kind)


def usage(reader: Reader, dataset: str) -> list[dict[str, Any]]:
    """One row for each use with the guarantees it was charged for, the commonest first.

    Whatever is open, abandoned, or closed without a `use` is counted with what it reserved.
    """
    known = {book.number: _guarantees(reader, dataset, book) for book in reader.accounts(dataset)}
    uses: dict[int, Use] = {}
    for entry in reader.entries(dataset, *_USED):
        fact = entry.fact
        if isinstance(fact, Charge):
            uses[entry.number] = _reserved(known[fact.account], fact.items)
        if isinstance(fact, OpenConversation) and fact.use is not None:
            uses[entry.number] = use_from_json(fact.use)
        if isinstance(fact, Close) and fact.use is not None:
            uses[fact.settles] = use_from_json(fact.use)
    return [
        {
            "what": use.what,
            "contribution": use.contribution,
            "guarantees": _in_words(use),
            "times": times,
        }
        for use, times in Counter(uses.values()).most_common()
    ]


def bought_items(
    reader: Reader, dataset: str, account: int, analysts: Collection[str] | None
) -> Counter[str]:
    """How often these analysts (None: all) bought each item of a tariff, less what came back."""
    bought: Counter[str] = Counter()
    for fact in (entry.fact for entry in reader.entries(dataset, *_USED)):
        if not isinstance(fact, Charge | Close) or fact.account != account:
            continue
        if analysts is not None and fact.analyst not in analysts:
            continue
        if isinstance(fact, Close):
            bought.subtract(fact.unused)
        else:
            bought.update(fact.items)
    return bought


def conversations_held(reader: Reader, dataset: str) -> list[dict[str, Any]]:
    """Every conversation that was opened, in order, with what it was charged for.

    `asked` is None while it is open: the book has the number when it has ended.
    """
    known = {book.number: _guarantees(reader, dataset, book) for book in reader.accounts(dataset)}
    held: dict[str, dict[str, Any]] = {}
    for entry in reader.entries(dataset, OpenConversation.kind, EndConversation.kind):
        fact = entry.fact
        if isinstance(fact, EndConversation):
            held[fact.conversation] |= {"asked": fact.asked, "outcome": fact.reason}
        elif isinstance(fact, OpenConversation):
            held[fact.conversation] = {
                "analyst": fact.analyst,
                "opened": fact.time,
                "mechanism": next(iter(fact.mechanism)).replace("_", " "),
                "guarantees": _in_words(_reserved(known[fact.account], fact.items)),
                "farthings": fact.farthings,
                "asked": None,
                "outcome": "open",
            }
    return list(held.values())


def _in_words(use: Use) -> str:
    return ", ".join(f"{times} x {one}" for one, times in use.guarantees)


def _reserved(guarantees: Mapping[str, str], items: Mapping[str, int]) -> Use:
    bought = tuple((guarantees[item], times) for item, times in sorted(items.items()))
    return Use(NOT_STATED, NOT_STATED, bought)


def _guarantees(reader: Reader, dataset: str, book: Account) -> dict[str, str]:
    """The guarantee of each item that can be reserved."""
    if book.mode == TARIFF:
        items = reader.tariff(dataset, book.number).items
        return {name: format_guarantee(guarantee) for name, (guarantee, _) in items.items()}
    if book.mode == SETWISE:
        listed = reader.document(dataset, book.number)["list"]
        return {name: guarantee for name, (guarantee, _) in listed}
    return {EVERYTHING: f"list {book.name}"}
