"""What was run on a dataset so far, in the words of who ran it, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from farthing.guarantees.notation import format_guarantee
from farthing.ledger.reader import Reader
from farthing.ledger.records import END, OPEN, SETWISE, TARIFF, Account, Use, use_from_json
from farthing.ledger.registered_lists import EVERYTHING

NOT_STATED = "not stated"


def usage(reader: Reader, dataset: str) -> list[dict[str, Any]]:
    """One row for each use with the guarantees it was charged for, the commonest first.

    What is open, was abandoned, or was closed without a word is counted with what it reserved.
    """
    known = {book.number: _guarantees(reader, dataset, book) for book in reader.accounts(dataset)}
    uses: dict[int, Use] = {}
    for entry in reader.entries(dataset, "reserve", "close", OPEN):
        fact = entry.fact
        if entry.kind != "close":
            uses[entry.number] = _reserved(known[fact["account"]], fact["items"])
        if fact.get("use") is not None:
            uses[fact.get("settles", entry.number)] = use_from_json(fact["use"])
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
    for entry in reader.entries(dataset, "reserve", "close", OPEN):
        fact = entry.fact
        if fact["account"] != account or (analysts is not None and fact["analyst"] not in analysts):
            continue
        if entry.kind == "close":
            bought.subtract(fact["unused"])
        else:
            bought.update(fact["items"])
    return bought


def conversations_held(reader: Reader, dataset: str) -> list[dict[str, Any]]:
    """Every conversation that was opened, in order, with what it was charged for.

    `asked` is None while it is open: the book says it when it has ended.
    """
    known = {book.number: _guarantees(reader, dataset, book) for book in reader.accounts(dataset)}
    held: dict[str, dict[str, Any]] = {}
    for entry in reader.entries(dataset, OPEN, END):
        fact = entry.fact
        if entry.kind == END:
            held[fact["conversation"]] |= {"asked": fact["asked"], "outcome": fact["reason"]}
            continue
        use = _reserved(known[fact["account"]], fact["items"])
        held[fact["conversation"]] = {
            "analyst": fact["analyst"],
            "opened": fact["time"],
            "mechanism": next(iter(fact["mechanism"])).replace("_", " "),
            "guarantees": _in_words(use),
            "farthings": fact["farthings"],
            "asked": None,
            "outcome": OPEN,
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
