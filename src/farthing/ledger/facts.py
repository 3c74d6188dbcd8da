"""What the ledger keeps, as frozen facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from farthing.composition.tariff import Price
from farthing.errors import InvalidInput, require_choice, require_count

#: The only neighbouring relation that the theorems here speak about.
RELATION = "add or remove one unit"
#: Amounts stay below this, so that no sum of two leaves 64 bits.
LARGEST = 2**53

TARIFF, BATCH, SETWISE = "tariff", "batch", "setwise"
MONTHLY = "monthly"


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is protected: what one unit is, how much it may contribute, and who owns the data."""

    name: str
    unit: str
    owner: str
    contribution_limits: Mapping[str, int] = field(default_factory=dict)
    relation: str = RELATION

    def __post_init__(self) -> None:
        for name in ("name", "unit", "owner"):
            require_name(f"the dataset's {name}", getattr(self, name))
        require_choice("relation", self.relation, (RELATION,))
        limits = {
            require_name("a contribution limit's name", name): require_count(
                f"contribution limit {name}", limit, at_least=1
            )
            for name, limit in self.contribution_limits.items()
        }
        object.__setattr__(self, "contribution_limits", MappingProxyType(limits))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "owner": self.owner,
            "contribution_limits": dict(self.contribution_limits),
            "relation": self.relation,
        }


@dataclass(frozen=True, slots=True)
class Account:
    """A tariff or a registered list: something with a certified profile that can be spent.

    `entry` is the number of the entry that opened it and holds its certificate. A tariff's
    `farthings` and `delta_units` are the cap of the dataset; a list has lots instead.
    """

    number: int
    mode: str
    name: str
    entry: int
    open: bool
    farthings: int
    delta_units: int
    farthings_spent: int
    delta_units_spent: int
    analyst: str | None = None


@dataclass(frozen=True, slots=True)
class Lot:
    """How much of one item of a registered list there is, and how much was used."""

    item: str
    granted: int
    spent: int


@dataclass(frozen=True, slots=True)
class Purse:
    """What one analyst was granted of a tariff, and what is spent of it.

    With renewal "monthly" it is granted anew each calendar month (UTC), and `month` says which
    one the amounts belong to.
    """

    account: int
    analyst: str
    farthings: int
    delta_units: int
    farthings_spent: int
    delta_units_spent: int
    renewal: str | None = None
    month: str | None = None
    open: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the book: a fact, and its place in the chain."""

    number: int
    fact: Mapping[str, Any]
    previous: str
    hash: str

    @property
    def kind(self) -> str:
        return str(self.fact["kind"])


@dataclass(frozen=True, slots=True)
class Reservation:
    """Farthings set aside for one question. `entry` is for owners, not for analysts: it counts
    what others have asked."""

    dataset: str
    entry: int
    analyst: str
    account: int
    items: Mapping[str, int]
    price: Price
    question_digest: str | None


def require_name(what: str, value: object) -> str:
    """Text of 1 to 200 printable characters."""
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise InvalidInput(f"{what} must be 1 to 200 printable characters, got {value!r:.60}")
    return value


def require_items(items: object) -> dict[str, int]:
    """A non-empty {name: times} with positive whole numbers."""
    if not isinstance(items, Mapping) or not items:
        raise InvalidInput(f"items must be a non-empty {{name: times}}, got {items!r:.60}")
    return {
        require_name("an item's name", name): require_count(f"times of {name}", times, at_least=1)
        for name, times in items.items()
    }


def require_question(question: object) -> object:
    """Anything but None, which means that no question was stated."""
    if question is None:
        raise InvalidInput("a release is found by its question, got None")
    return question
