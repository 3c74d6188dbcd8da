"""Entries of analysts: what was reserved, closed or abandoned; conversations and their end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from farthing.canonical import canonical, digest
from farthing.composition.tariffs.tariff import Price
from farthing.interactive import mechanism_from_json, mechanism_to_json, require_paid
from farthing.ledger.entries.fact import (
    Amount,
    Broken,
    Fact,
    Hash,
    Month,
    Name,
    Number,
    Opened,
    Row,
    State,
    Token,
    is_whole,
    kind,
    one_of,
    require,
    start_of,
)
from farthing.ledger.records import (
    BATCH,
    EVERYBODY,
    LARGEST,
    TARIFF,
    month_number,
    month_of,
    require_items,
    use_from_json,
)


def _are_items(value: Any) -> bool:
    return max(require_items(value).values()) <= LARGEST


def _is_use(value: Any) -> bool:
    return canonical(use_from_json(value).to_json()) == canonical(value)


def _is_mechanism(value: Any) -> bool:
    return canonical(mechanism_to_json(mechanism_from_json(value))) == canonical(value)


#: An amount that comes back, written as a negative number.
Returned = Annotated[int, lambda value: is_whole(value, at_least=-LARGEST, at_most=0)]
Nothing = Annotated[int, one_of(0)]
Items = Annotated[dict[str, int], _are_items]
ItemsOrNone = Annotated[dict[str, int], lambda value: value == {} or _are_items(value)]
NoItems = Annotated[dict[str, int], lambda value: value == {} and type(value) is dict]
UseData = Annotated[dict[str, Any], _is_use]
MechanismData = Annotated[dict[str, Any], _is_mechanism]
Anything = Annotated[Any, lambda _: True]


def deduct(row: Row, price: Price, whose: str) -> None:
    """Take a price from a purse, or give one back if it is negative; Broken if it is not there."""
    row["farthings_spent"] += price.farthings
    row["delta_units_spent"] += price.delta_units
    within = row["farthings_spent"] <= row["farthings"]
    within = within and row["delta_units_spent"] <= row["delta_units"]
    require(within, f"{whose} is overspent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge(Fact):
    """Items that an analyst buys. A registered list has no price and no month."""

    account: Number
    analyst: Name
    items: Items
    farthings: Amount
    delta_units: Amount
    month: Month | None
    question: Anything
    question_digest: Hash | None

    @property
    def price(self) -> Price:
        """Its price."""
        return Price(self.farthings, self.delta_units)

    def require_question(self) -> None:
        """The digest must be that of the question."""
        wanted = None if self.question is None else digest(self.question)
        require(self.question_digest == wanted, "its question has another digest")

    def spend(self, state: State) -> None:
        """Take the price from the purse and from the cap; it must be that of the tariff."""
        require(state.account(self.account)["mode"] == TARIFF, "only a tariff has prices")
        price = self.price
        right = price == state.tariffs[self.account].price_of(self.items)
        require(right, "the price is wrong")
        purse, cap = state.purse(self.account, self.analyst), state.purse(self.account, EVERYBODY)
        require(cap["open"] == 1, "the tariff was retired before")
        require(purse["open"] == 1, "the purse was revoked before")
        require(self.month is not None, "what a tariff sells is charged to a month")
        month = month_number(self.month or "")
        if purse["month"] is not None:
            require(month >= purse["month"], "the purse has seen a later month")
            if month > purse["month"]:
                purse.update(month=month, farthings_spent=0, delta_units_spent=0)
        written = month_of(datetime.fromisoformat(self.time))
        require(month >= written, "it was written in a later month")
        deduct(purse, price, f"the purse of {self.analyst}")
        deduct(cap, price, "the cap of the dataset")


@kind("reserve")
class Reserve(Charge):
    """Set aside for one question, before it runs."""

    def apply(self, state: State, number: int) -> None:
        self.require_question()
        account = state.account(self.account)
        if account["mode"] == TARIFF:
            self.spend(state)
        else:
            require(self.price == Price(0), "a registered list costs no farthings")
            require(self.month is None, "a registered list has no months")
            require(account["analyst"] == self.analyst, "not this analyst's list")
            for item, times in self.items.items():
                require((self.account, item) in state.lots, f"the list has no {item}")
                lot = state.lots[self.account, item]
                lot["spent"] += times
                require(lot["spent"] <= lot["granted"], f"{item} is overspent")
        state.held[number] = self


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement(Fact):
    """How a reservation ended."""

    account: Number
    analyst: Name
    question_digest: Hash | None
    settles: Number

    def settle(self, state: State) -> Reserve:
        """The reservation, which can be settled once."""
        held = state.held.pop(self.settles, None)
        if held is None:
            raise Broken("it settles what is not reserved, or was settled before")
        for part in ("account", "analyst", "question_digest"):
            same = getattr(self, part) == getattr(held, part)
            require(same, f"its {part} is not that of the reservation")
        return held


@kind("close")
class Close(Settlement):
    """The mechanism ran. What its output shows was not used comes back.

    `revoked` is the entry that revoked the purse in between: then nothing comes back to the purse.
    """

    later = frozenset({"use", "revoked"})

    unused: ItemsOrNone
    farthings: Returned
    delta_units: Returned
    release_digest: Name
    release: Anything
    use: UseData | None = None
    revoked: Number | None = None

    @property
    def released(self) -> str | None:
        """The digest of the question whose release this entry keeps, if it keeps one."""
        return self.question_digest if self.release is not None else None

    @property
    def back(self) -> Price:
        """The price that comes back."""
        return Price(-self.farthings, -self.delta_units)

    def apply(self, state: State, number: int) -> None:
        held = self.settle(state)
        require(self.settles > state.restored, "what was open in a copy can only be abandoned")
        mode = state.account(held.account)["mode"]
        whole = mode == BATCH and bool(self.unused)
        require(not whole, "a batch runs once and whole; nothing of it is unused")
        for item, times in self.unused.items():
            reserved = times <= held.items.get(item, 0)
            require(reserved, f"more {item} unused than reserved")
        if mode == TARIFF:
            self._return(state, held, self.back)
            return
        require(self.back == Price(0), "a registered list costs no farthings")
        require(self.revoked is None, "a registered list is not revoked")
        for item, times in self.unused.items():
            if (held.account, item) in state.lots:  # else the list was retired
                state.lots[held.account, item]["spent"] -= times

    def _return(self, state: State, held: Reserve, back: Price) -> None:
        """To the cap, and to the purse unless it was revoked or renewed in between."""
        tariff = state.tariffs[held.account]
        expected = tariff.price_of(self.unused) if self.unused else Price(0)
        require(back == expected, "it returns more or less than was unused")
        deduct(state.purses[held.account, EVERYBODY], Price(0) - back, "the cap")
        purse = state.purses[held.account, held.analyst]
        revocations = state.revoked.get((held.account, held.analyst), [])
        since = next((entry for entry in revocations if entry > self.settles), None)
        lost = since if self.unused and purse["month"] is None else None
        if "revoked" not in self.absent:  # earlier formats gave unused farthings back in any case
            require(self.revoked == lost, "it is wrong about whether the purse was revoked")
            if lost is not None:
                return
        if purse["month"] in (None, month_number(held.month or "")):
            deduct(purse, Price(0) - back, "the purse")


@kind("abandon")
class Abandon(Settlement):
    """Nothing was released, or nobody knows. What was reserved stays spent."""

    unused: NoItems
    farthings: Nothing = 0
    delta_units: Nothing = 0
    reason: Name

    def apply(self, state: State, number: int) -> None:
        self.settle(state)


@kind("open")
class OpenConversation(Charge):
    """A conversation is opened, and charged in full for its mechanism."""

    month: Month
    conversation: Token
    mechanism: MechanismData
    commitment: Hash
    use: UseData | None

    def apply(self, state: State, number: int) -> None:
        self.require_question()
        self.spend(state)
        mechanism = mechanism_from_json(self.mechanism)
        require_paid(state.tariffs[self.account], self.items, mechanism.guarantees)
        require(self.conversation not in state.conversations, "it was opened before")
        state.conversations[self.conversation] = Opened(
            number, self.analyst, state.declared, mechanism, self.commitment
        )


@kind("said")
class Said(Fact):
    """How much was asked, and the end of the chain of turns."""

    conversation: Token
    analyst: Name
    asked: Amount
    head: Hash

    def apply(self, state: State, number: int) -> None:
        opened = state.conversation(self.conversation)
        require(opened.open, "the conversation had ended before")
        require(opened.analyst == self.analyst, "it is the conversation of somebody else")
        before, head = opened.marks[-1] if opened.marks else (0, start_of(self.conversation))
        require(self.asked >= before, "less was asked than before")
        same = (self.asked == before) == (self.head == head)
        require(same, "its number of questions and the end of its turns do not agree")
        opened.marks.append((self.asked, self.head))


@kind("end")
class EndConversation(Said):
    """Nothing more can be asked."""

    settles: Number
    reason: Name

    def apply(self, state: State, number: int) -> None:
        Said.apply(self, state, number)
        opened = state.conversation(self.conversation)
        require(self.settles == opened.entry, "it ends another conversation")
        opened.open = False
