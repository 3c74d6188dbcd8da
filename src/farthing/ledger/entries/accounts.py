"""Entries about accounts and purses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from farthing.canonical import digest
from farthing.composition.accounts.account_profiles import HALVING
from farthing.composition.tariffs.tariff import Price
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.ledger import registered_lists
from farthing.ledger.entries.fact import Amount, Document, Fact, Month, Name, Number, kind, one_of
from farthing.ledger.entries.replay import State, new_purse, require, understood
from farthing.ledger.records import (
    BATCH,
    EVERYBODY,
    LARGEST,
    LEVELS,
    MONTHLY,
    SETWISE,
    TARIFF,
    month_number,
    month_of,
)

#: The largest number that a table can hold.
_LARGEST_LOT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAccount(Fact):
    """A new account of a dataset.

    `share` is the index that gives its share of δ, counted over all datasets beside it.
    """

    later = frozenset({"share"})

    account: Number
    name: Name
    mode: str
    share: Number = 0

    @property
    def place(self) -> int:
        """The index of its share. Version 1.0.0 wrote none: then it is the account's number."""
        return self.account if "share" in self.absent else self.share

    def enter(self, state: State, number: int, document: dict[str, Any], whose: str | None) -> None:
        """Write its row and its document into the state."""
        require(self.account == len(state.accounts) + 1, "accounts are numbered in order")
        later = self.place > state.last_share
        require(later, "its share of delta is that of an earlier account")
        state.last_share = self.place
        names = {row["name"] for row in state.accounts.values()}
        require(self.name not in names, f"there is an account {self.name} already")
        state.documents[self.account] = document
        state.accounts[self.account] = {
            "number": self.account,
            "mode": self.mode,
            "name": self.name,
            "analyst": whose,
            "entry": number,
        }


@kind("account")
class OpenList(OpenAccount):
    """A registered list, which one analyst may run."""

    told_by = "mode"

    mode: Annotated[str, one_of(BATCH, SETWISE)]
    document: Document
    analyst: Name

    def apply(self, state: State, number: int) -> None:
        self.enter(state, number, self.document, self.analyst)
        body = {key: value for key, value in self.document.items() if key != "digest"}
        same = self.document.get("digest") == digest(body)
        require(same, "the digest of its list does not match")
        stated = understood(registered_lists.stated_in, self.document)
        require(stated.listed.mode == self.mode, "its list is of another mode")
        for item, granted in stated.listed.lots.items():
            require(granted <= _LARGEST_LOT, f"there is too much of {item}")
            key = {"account": self.account, "item": item}
            state.lots[self.account, item] = {**key, "granted": granted, "spent": 0}


@kind("account")
class OpenTariff(OpenAccount):
    """A tariff with its certificate. The tariff that was in force before is retired."""

    mode: Annotated[str, one_of(TARIFF)] = TARIFF
    certificate: Document
    levels: Annotated[int | str, one_of(LEVELS, HALVING)] = HALVING

    def apply(self, state: State, number: int) -> None:
        self.enter(state, number, self.certificate, None)
        tariff = understood(certificate_from_json, self.certificate).tariff
        state.tariffs[self.account] = tariff
        cap = Price(tariff.farthings, tariff.delta_units)
        require(max(cap.farthings, cap.delta_units) <= LARGEST, "it has too many farthings")
        for (_, analyst), row in state.purses.items():
            row["open"] = 0 if analyst == EVERYBODY else row["open"]
        state.purses[self.account, EVERYBODY] = new_purse(self.account, EVERYBODY, cap)


@kind("retire")
class Retire(Fact):
    """An account ends: nothing more can be spent of it."""

    account: Number

    def apply(self, state: State, number: int) -> None:
        if state.account(self.account)["mode"] == TARIFF:
            state.require_in_force(self.account)
            state.purses[self.account, EVERYBODY]["open"] = 0
            return
        own = [key for key in state.lots if key[0] == self.account]
        require(bool(own), "the list was retired before")
        for key in own:
            del state.lots[key]


@kind("grant")
class Grant(Fact):
    """Farthings for an analyst."""

    account: Number
    analyst: Name
    farthings: Amount
    delta_units: Amount
    renewal: Annotated[str | None, one_of(None, MONTHLY)]
    month: Month | None

    def apply(self, state: State, number: int) -> None:
        state.require_in_force(self.account)
        renews = self.renewal is not None
        month = month_of(datetime.fromisoformat(self.time)) if renews else None
        named = None if self.month is None else month_number(self.month)
        require(named == month, "its month is not the one that it was written in")
        new = {**new_purse(self.account, self.analyst, Price(0)), "month": month}
        purse = state.purses.setdefault((self.account, self.analyst), new)
        require((purse["month"] is not None) == renews, "a purse keeps its renewal")
        purse["farthings"] += self.farthings
        purse["delta_units"] += self.delta_units
        most = max(purse["farthings"], purse["delta_units"])
        require(most <= LARGEST, f"a purse holds at most {LARGEST} farthings")
        purse["open"] = 1


@kind("revoke")
class Revoke(Fact):
    """What is left of a purse is taken away."""

    account: Number
    analyst: Name
    farthings: Amount
    delta_units: Amount

    @property
    def price(self) -> Price:
        """What was taken away."""
        return Price(self.farthings, self.delta_units)

    def is_of(self, account: int, analyst: str) -> bool:
        """Whether it is about this purse."""
        return (self.account, self.analyst) == (account, analyst)

    def apply(self, state: State, number: int) -> None:
        state.require_in_force(self.account)
        purse = state.purse(self.account, self.analyst)
        state.revoked.setdefault((self.account, self.analyst), []).append(number)
        require(purse["open"] == 1, "the purse was revoked before")
        purse["open"] = 0
        now = month_of(datetime.fromisoformat(self.time))
        renewed = purse["month"] is not None and purse["month"] < now
        for name, amount in (("farthings", self.farthings), ("delta_units", self.delta_units)):
            left = purse[name] - (0 if renewed else purse[f"{name}_spent"])
            require(amount == left, "another amount was left")
        if purse["month"] is None:
            purse.update(farthings_spent=purse["farthings"], delta_units_spent=purse["delta_units"])
