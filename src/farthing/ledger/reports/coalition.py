"""Several analysts who pool what they see, as one statement.

They are one adversary: their purses add up, and their conversations, however interleaved, cost
what was paid when they were opened (docs/theory/concurrency.md, section 4).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from farthing.errors import InvalidInput
from farthing.ledger.reports.budget import PLANNED
from farthing.ledger.reports.lifetime import Lifetimes
from farthing.ledger.reports.odometer import Reading, odometer
from farthing.ledger.reports.usage import conversations_held
from farthing.ledger.roles.reader import Reader


@dataclass(frozen=True, slots=True)
class Coalition:
    """What some analysts together have learned so far, and can ever learn.

    `epsilon` is over their lifetimes, None if it is not proved. `conversations` are those that they
    opened; they are part of what was spent, and so of both numbers.
    """

    analysts: tuple[str, ...]
    so_far: Reading
    epsilon: float | None
    delta: float
    conversations: tuple[dict[str, Any], ...] = field(repr=False)
    assuming: str = PLANNED

    def to_json(self) -> dict[str, Any]:
        return {
            "analysts": list(self.analysts),
            "so_far": self.so_far.to_json(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "conversations": list(self.conversations),
            "if": self.assuming,
        }


def coalition(
    reader: Reader, dataset: str, analysts: Collection[str], *, delta: float = 1e-6
) -> Coalition:
    """These analysts as one, over this dataset and all that are beside it."""
    names = tuple(sorted(set(analysts)))
    if not names:
        raise InvalidInput("a coalition needs at least one analyst, got none")
    reading = odometer(reader, dataset, delta=delta, analysts=names)
    held = [
        {"dataset": beside, **one}
        for beside in reader.beside(dataset)
        for one in conversations_held(reader, beside)
        if one["analyst"] in names
    ]
    epsilon = Lifetimes(reader, dataset, delta).together(names)
    return Coalition(names, reading, epsilon, delta, tuple(held))
