"""The records that a ledger gives to its callers, and the checks of what callers give to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from farthing.canonical import canonical
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.errors import InvalidInput, require_count
from farthing.interactive import Verdict
from farthing.interactive.protocol import Part

#: Amounts stay below this, so that no sum of two leaves 64 bits.
LARGEST = 2**53
#: The most characters of a question as JSON: it is kept for ever.
LARGEST_QUESTION = 1 << 20

TARIFF, BATCH, SETWISE = "tariff", "batch", "setwise"
MONTHLY = "monthly"
#: The analyst of a cap: a purse that everybody spends from.
EVERYBODY = ""
#: How many equal levels the odometer distinguishes in tariffs of earlier books. Tariffs signed now
#: have levels that halve (docs/theory/odometer.md).
LEVELS = 16


def written_time(time: datetime) -> str:
    """A time in UTC, as entries have it."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def month_of(time: datetime) -> int:
    """The calendar month in UTC, as months since year 0."""
    there = time.astimezone(UTC)
    return 12 * there.year + there.month - 1


def month_name(month: int) -> str:
    """A month as text, such as 2026-03."""
    return f"{month // 12:04d}-{month % 12 + 1:02d}"


def month_number(name: str) -> int:
    """Months since year 0, from text such as 2026-03."""
    year, month = name.split("-")
    return 12 * int(year) + int(month) - 1


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

    def __repr__(self) -> str:
        state = "in force" if self.open else "retired"
        spent = f", {_spent(self)}" if self.mode == TARIFF else f" of {self.analyst}"
        return f"<Account {self.number} {self.name}: {self.mode}, {state}{spent}>"


@dataclass(frozen=True, slots=True)
class Terms:
    """The tariff in force and the number of its account.

    An account's tariff never changes, so terms may be cached. `Analyst.reserve` with
    `under=terms.account` checks that they are still in force when it charges.
    """

    account: int
    tariff: Tariff

    def __repr__(self) -> str:
        sold = ", ".join(self.tariff.items)
        return f"<Terms of account {self.account}: {self.tariff.farthings} farthings for {sold}>"


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
    month the amounts belong to. A purse that was revoked is not open, and nothing can be spent from
    it. What was taken back is counted apart from what was spent (`queries.spent_and_revoked`).
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
    farthings_revoked: int = 0
    delta_units_revoked: int = 0

    def left(self, cap: Purse | Account | None = None) -> Price:
        """What is left of the purse or, if that is less, of the cap; nothing if it was revoked."""
        if not self.open:
            return Price(0)
        own = Price(
            self.farthings - self.farthings_spent - self.farthings_revoked,
            self.delta_units - self.delta_units_spent - self.delta_units_revoked,
        )
        if cap is None:
            return own
        return Price(
            min(own.farthings, cap.farthings - cap.farthings_spent),
            min(own.delta_units, cap.delta_units - cap.delta_units_spent),
        )

    def in_month(self, month: int) -> Purse:
        """The purse as a request in this month finds it: renewed if the month is a later one."""
        if self.month is None or month_number(self.month) >= month:
            return self
        return replace(self, farthings_spent=0, delta_units_spent=0, month=month_name(month))

    def __repr__(self) -> str:
        state = "" if self.open else ", revoked"
        month = "" if self.month is None else f" in {self.month}"
        return f"<Purse of {self.analyst}: {_spent(self)}{month}{state}>"


@dataclass(frozen=True, slots=True)
class Reservation:
    """Farthings set aside for one question.

    `entry` is for owners, not for analysts: it counts what others have asked.
    """

    dataset: str
    entry: int
    analyst: str
    account: int
    items: Mapping[str, int]
    price: Price
    question_digest: str | None

    def __repr__(self) -> str:
        bought = ", ".join(f"{times} x {name}" for name, times in self.items.items())
        return f"<Reservation of {self.analyst} on {self.dataset}: {bought}>"


@dataclass(frozen=True, slots=True)
class Use:
    """What was run, in words, for the table of use in the statement.

    `contribution` says how much of a unit counted; `guarantees` what was bought, how often each.
    """

    what: str
    contribution: str
    guarantees: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        require_name("what was run", self.what)
        require_name("the contribution", self.contribution)
        pairs = tuple((text, times) for text, times in self.guarantees)
        for text, times in pairs:
            require_name("a guarantee", text)
            require_count(f"times of {text}", times, at_least=1)
        object.__setattr__(self, "guarantees", pairs)

    def to_json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "contribution": self.contribution,
            "guarantees": [list(pair) for pair in self.guarantees],
        }


def use_from_json(data: Mapping[str, Any]) -> Use:
    """A use from the data of an entry."""
    pairs = tuple((text, times) for text, times in data["guarantees"])
    return Use(data["what"], data["contribution"], pairs)


@dataclass(frozen=True, slots=True)
class ReleaseSummary:
    """An answer that an analyst got: when, for which question, at which price.

    `entry` is its number in the book; the service tells it to nobody.
    """

    entry: int = field(repr=False)
    time: str
    question: Any = field(repr=False)
    price: Price


@dataclass(frozen=True, slots=True)
class KeptRelease(ReleaseSummary):
    """What an analyst got for a question, and may see again."""

    release: Any = field(repr=False)
    release_digest: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class OpenedConversation:
    """The public part of a conversation: never its noise, never an entry number."""

    id: str
    dataset: str
    analyst: str
    time: str
    mechanism: Part
    question: Any = field(repr=False)
    price: Price
    asked: int
    open: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """A question in public words, and its answer."""

    asked: Any
    told: Verdict

    def to_json(self) -> dict[str, Any]:
        return {"asked": self.asked, "positive": self.told.positive, "value": self.told.value}


def answered_from_json(data: Mapping[str, Any]) -> Answered:
    """A question and its answer from the data of a turn."""
    return Answered(data["asked"], Verdict(data["positive"], data["value"]))


def _spent(held: Account | Purse) -> str:
    units = f" and {held.delta_units_spent} of {held.delta_units} δ units"
    return (
        f"{held.farthings_spent} of {held.farthings} farthings"
        f"{units if held.delta_units else ''} spent"
    )


def require_name(what: str, value: object) -> str:
    """Text of 1 to 200 printable characters."""
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise InvalidInput(f"{what} must be 1 to 200 printable characters, got {value!r:.60}")
    return value


def require_names(what: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    """One name or several, in order and without repetition."""
    several = () if given is None else (given,) if isinstance(given, str) else given
    return tuple(dict.fromkeys(require_name(what, name) for name in several))


def require_items(items: object) -> dict[str, int]:
    """A non-empty {name: times} with positive whole numbers."""
    if not isinstance(items, Mapping) or not items:
        raise InvalidInput(f"items must be a non-empty {{name: times}}, got {items!r:.60}")
    return {
        require_name("an item's name", name): require_count(f"times of {name}", times, at_least=1)
        for name, times in items.items()
    }


def require_small(question: object) -> object:
    """A question short enough to be kept for ever."""
    size = len(canonical(question))
    if size > LARGEST_QUESTION:
        raise InvalidInput(
            f"a question must have at most {LARGEST_QUESTION} characters as JSON, got {size}"
        )
    return question
