"""What was asked and run so far: by whom, when, at which price, and how often.

`history` lists reservations and conversations, each with its end. `usage` counts what was run, in
the words of whoever ran it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from farthing.composition.tariffs.tariff import Price
from farthing.errors import InvalidInput
from farthing.guarantees.notation import format_guarantee
from farthing.ledger.entries.analyst import (
    Charge,
    Close,
    EndConversation,
    OpenConversation,
    Settlement,
)
from farthing.ledger.entries.owner import Declaration
from farthing.ledger.records import SETWISE, TARIFF, Use, use_from_json, written_time
from farthing.ledger.registered_lists import EVERYTHING
from farthing.ledger.roles.reader import Reader

NOT_STATED = "not stated"


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
        first = ("dataset", "entry", "time", "analyst", "account", "question")
        said = {name: getattr(self, name) for name in first} | asdict(self.price)
        return {**said, "outcome": self.outcome, "version": self.version}


def history(
    reader: Reader,
    dataset: str,
    analyst: str | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Iterator[Asked]:
    """Every question that was charged, in order: of one analyst, from `since`, before `until`."""
    first, end = _written("since", since) or "", _written("until", until)
    names = {account.number: account.name for account in reader.accounts(dataset)}
    book = list(reader.facts(dataset, Charge, Settlement, EndConversation, Declaration))
    ends = {
        fact.settles: fact for _, fact in book if isinstance(fact, Settlement | EndConversation)
    }
    version = None
    for number, fact in book:
        if isinstance(fact, Declaration):
            version = fact.declared.dataset.version
        if not isinstance(fact, Charge) or analyst not in (None, fact.analyst):
            continue
        if fact.time < first or (end is not None and fact.time >= end):
            continue
        last = ends.get(number)
        closed = last if isinstance(last, Close) else None
        yield Asked(
            dataset=dataset,
            entry=number,
            time=fact.time,
            analyst=fact.analyst,
            account=names[fact.account],
            question=fact.question,
            price=fact.price if closed is None else fact.price - closed.back,
            outcome="open" if last is None else last.kind,
            version=version,
            release=None if closed is None else closed.release,
        )


def _written(name: str, given: datetime | None) -> str | None:
    if given is not None and given.tzinfo is None:
        raise InvalidInput(f"{name} must have a time zone, such as tzinfo=UTC, got none")
    return None if given is None else written_time(given)


def usage(reader: Reader, dataset: str) -> list[dict[str, Any]]:
    """One row for each use with the guarantees it was charged for, the commonest first.

    Whatever is open, abandoned, or closed without a `use` is counted with what it reserved.
    """
    known = _guarantees(reader, dataset)
    uses: dict[int, Use] = {}
    for number, fact in reader.facts(dataset, Charge, Close):
        if isinstance(fact, Charge):
            uses[number] = _reserved(known[fact.account], fact.items)
        if isinstance(fact, OpenConversation | Close) and fact.use is not None:
            uses[fact.settles if isinstance(fact, Close) else number] = use_from_json(fact.use)
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
    for _, fact in reader.facts(dataset, Charge, Close):
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
    known = _guarantees(reader, dataset)
    held: dict[str, dict[str, Any]] = {}
    for _, fact in reader.facts(dataset, OpenConversation, EndConversation):
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


def _guarantees(reader: Reader, dataset: str) -> dict[int, dict[str, str]]:
    """By account: the guarantee of each item that can be reserved."""
    known: dict[int, dict[str, str]] = {}
    for account in reader.accounts(dataset):
        known[account.number] = {EVERYTHING: f"list {account.name}"}
        if account.mode == TARIFF:
            items = reader.tariff(dataset, account.number).items
            known[account.number] = {name: format_guarantee(items[name][0]) for name in items}
        if account.mode == SETWISE:
            listed = reader.document(dataset, account.number)["list"]
            known[account.number] = {name: guarantee for name, (guarantee, _) in listed}
    return known
