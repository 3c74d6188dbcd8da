"""What was run on a dataset so far, in the words of who ran it, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from farthing.guarantees.notation import format_guarantee
from farthing.ledger.entries import Charge, Close, EndConversation, OpenConversation, Reserve
from farthing.ledger.records import SETWISE, TARIFF, Account, Use, use_from_json
from farthing.ledger.registered_lists import EVERYTHING
from farthing.ledger.roles.reader import Reader

NOT_STATED = "not stated"
_USED = (Reserve.kind, Close.kind, OpenConversation.kind)


def usage(reader: Reader, dataset: str) -> list[dict[str, Any]]:
    """One row for each use with the guarantees it was charged for, the commonest first.

    What is open, was abandoned, or was closed without a word is counted with what it reserved.
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
    """How often these analysts, or all, have bought each item of a tariff, less what came back."""
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

    `asked` is None while it is open: the book says it when it has ended.
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
    """What each thing that can be reserved guarantees."""
    if book.mode == TARIFF:
        items = reader.tariff(dataset, book.number).items
        return {name: format_guarantee(guarantee) for name, (guarantee, _) in items.items()}
    if book.mode == SETWISE:
        listed = reader.document(dataset, book.number)["list"]
        return {name: guarantee for name, (guarantee, _) in listed}
    return {EVERYTHING: f"list {book.name}"}
