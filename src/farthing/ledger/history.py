"""Who asked what, when, and for how much: reservations and conversations, each with its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from farthing.composition.tariff import Price
from farthing.ledger.reader import Reader
from farthing.ledger.records import END, OPEN

#: What was paid for, and how it ends.
_PAID, _ENDS = ("reserve", OPEN), ("close", "abandon", END)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, or one conversation: `price` is what it cost in the end.

    `outcome` is open, close or abandon, and end for a conversation that has ended.
    """

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
    book = list(reader.entries(dataset, *_PAID, *_ENDS))
    ends = {entry.fact["settles"]: entry for entry in book if entry.kind in _ENDS}
    for entry in book:
        fact = entry.fact
        if entry.kind not in _PAID or analyst not in (None, fact["analyst"]):
            continue
        end = ends.get(entry.number)
        said = {} if end is None else end.fact
        returned = (said.get("farthings", 0), said.get("delta_units", 0))
        yield Asked(
            entry=entry.number,
            time=fact["time"],
            analyst=fact["analyst"],
            account=names[fact["account"]],
            question=fact["question"],
            price=Price(fact["farthings"] + returned[0], fact["delta_units"] + returned[1]),
            outcome=OPEN if end is None else end.kind,
        )
