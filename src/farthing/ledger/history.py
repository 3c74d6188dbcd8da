"""Who asked what, when, and for how much: the reservations of a book, each with its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from farthing.composition.tariff import Price
from farthing.ledger.reader import Reader

OPEN = "open"


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: `price` is what it cost in the end, `outcome` open, close or abandon."""

    entry: int
    time: str
    analyst: str
    account: str
    question: Any = field(repr=False)
    price: Price
    outcome: str

    def to_json(self) -> dict[str, Any]:
        return {
            "entry": self.entry,
            "time": self.time,
            "analyst": self.analyst,
            "account": self.account,
            "question": self.question,
            "farthings": self.price.farthings,
            "delta_units": self.price.delta_units,
            "outcome": self.outcome,
        }


def history(reader: Reader, dataset: str, analyst: str | None = None) -> Iterator[Asked]:
    """Every question that was paid for, or those of one analyst, in order."""
    names = {account.number: account.name for account in reader.accounts(dataset)}
    book = list(reader.entries(dataset, "reserve", "close", "abandon"))
    ends = {entry.fact["settles"]: entry for entry in book if entry.kind != "reserve"}
    for entry in book:
        fact = entry.fact
        if entry.kind != "reserve" or analyst not in (None, fact["analyst"]):
            continue
        end = ends.get(entry.number)
        returned = (0, 0) if end is None else (end.fact["farthings"], end.fact["delta_units"])
        yield Asked(
            entry=entry.number,
            time=fact["time"],
            analyst=fact["analyst"],
            account=names[fact["account"]],
            question=fact["question"],
            price=Price(fact["farthings"] + returned[0], fact["delta_units"] + returned[1]),
            outcome=OPEN if end is None else end.kind,
        )
