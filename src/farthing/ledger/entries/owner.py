"""Entries of an owner: about the data and the place of its book, accounts and purses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Self, TypeVar

from farthing.canonical import canonical, digest
from farthing.composition.accounts.account_profiles import HALVING
from farthing.composition.tariffs.tariff import Price
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.errors import FarthingError
from farthing.ledger import registered_lists
from farthing.ledger.declared_data import (
    Declared,
    dataset_from_json,
    require_location,
    require_only_more,
)
from farthing.ledger.entries.fact import (
    Amount,
    Broken,
    Fact,
    Hash,
    Month,
    Name,
    Number,
    State,
    is_name,
    kind,
    new_purse,
    one_of,
    require,
)
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

T = TypeVar("T")

#: The largest number that a table can hold.
_LARGEST_LOT = 2**63 - 1


def _are_names(value: Any) -> bool:
    return type(value) is list and all(map(is_name, value)) and len(set(value)) == len(value)


def _are_places(value: Any) -> bool:
    return type(value) is list and bool(value) and all(map(require_location, value))


Names = Annotated[list[str], _are_names]
Places = Annotated[list[str], _are_places]
#: Data that the entry itself checks when it is applied.
Document = Annotated[dict[str, Any], lambda value: type(value) is dict]


def understood(read: Callable[[dict[str, Any]], T], document: dict[str, Any]) -> T:
    """What a document says; Broken if no ledger writes such a document."""
    try:
        return read(document)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, FarthingError):
            raise
        raise Broken("its document is not one that a ledger writes") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(Fact):
    """What an owner declares about a dataset."""

    description: Document
    beside: Names = field(default_factory=list)

    @classmethod
    def of(cls, declared: Declared, **more: Any) -> Self:
        """The entry that declares this; fields without a value are absent."""
        said = {**declared.to_json(), **more}
        return cls(absent=cls.later - said.keys(), **said)

    @property
    def declared(self) -> Declared:
        """The declaration, as a record."""
        former = tuple(getattr(self, "former", ()))
        dataset = understood(dataset_from_json, self.description)
        return Declared(dataset, tuple(self.beside), former)

    def declare(self, state: State, number: int) -> None:
        """Declare this from now on; the description must be exactly what a ledger writes."""
        declared = self.declared
        words = declared.dataset.to_json()
        if "contribution_limits" in self.description:  # the first format
            limit = words["limits"]["contribution_limit"]
            words = {name: words[name] for name in ("name", "unit", "owner", "relation")}
            words["contribution_limits"] = {} if limit is None else {"keys": limit}
        same = canonical(words) == canonical(self.description)
        require(same, "its description has something that no ledger writes")
        state.declaration, state.declared = declared, number


@kind("dataset")
class AddDataset(Declaration):
    """The first entry of a book, and the ledger that it is in."""

    later = frozenset({"beside", "ledger"})

    ledger: Name | None = None

    def apply(self, state: State, number: int) -> None:
        require(number == 1, "a dataset is described once, in entry 1")
        self.declare(state, number)
        state.home = self.ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAgain(Declaration):
    """A later declaration, with the former places of the data."""

    later = frozenset({"former"})

    former: Places = field(default_factory=list)


@kind("describe")
class Describe(DeclaredAgain):
    """More is declared about data that was added before, or other titles for its columns."""

    def apply(self, state: State, number: int) -> None:
        before, after = state.declared_data(), self.declared
        require_only_more(before.dataset, after.dataset)
        goes_on = after.beside[: len(before.beside)] == before.beside
        require(goes_on, "datasets that share data cannot stop sharing it")
        require(after.former == before.former, "the data was in other places before")
        self.declare(state, number)


@kind("version")
class DeclareVersion(DeclaredAgain):
    """The rows are in another state now."""

    def apply(self, state: State, number: int) -> None:
        before, after = state.declared_data(), self.declared
        same = replace(before.dataset, version=after.dataset.version)
        require(after == replace(before, dataset=same), "it declares more than a version")
        self.declare(state, number)


@kind("relocate")
class Relocate(DeclaredAgain):
    """The data is in another place now. The old place stays known."""

    later = frozenset()

    def apply(self, state: State, number: int) -> None:
        after = self.declared
        expected = state.declared_data().relocated(after.dataset.location)
        require(after == expected, "it declares more than a place")
        self.declare(state, number)


@kind("seal")
class Seal(Fact):
    """The book ends here. The ledger that is named may go on with it."""

    successor: Name

    def apply(self, state: State, number: int) -> None:
        require(self.successor != state.home, "a book is sealed for another ledger")
        state.sealed_for = self.successor


@kind("resume")
class Resume(Fact):
    """A sealed book goes on in the ledger that its seal names."""

    after_seal = True

    ledger: Name
    seal: Hash

    def apply(self, state: State, number: int) -> None:
        require(self.ledger == state.sealed_for, "another ledger was named by the seal")
        require(self.seal == state.last_hash, "it names another seal")
        state.home, state.sealed_for = self.ledger, None


@kind("restore")
class Restore(Fact):
    """The book is restored from a copy. Nobody knows what was spent since: everything counts."""

    ledger: Name

    def apply(self, state: State, number: int) -> None:
        require(self.ledger != state.home, "a book is restored in another ledger")
        state.home, state.restored = self.ledger, number
        state.lots.clear()
        for row in state.purses.values():
            spent = {f"{name}_spent": row[name] for name in ("farthings", "delta_units")}
            row.update(open=0, **spent)


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

    def row(self, entry: int) -> dict[str, Any]:
        """Its row in the table, if this is its entry."""
        who = getattr(self, "analyst", None)
        own = {"number": self.account, "mode": self.mode, "name": self.name}
        return {**own, "analyst": who, "entry": entry}

    def enter(self, state: State, number: int, document: dict[str, Any]) -> None:
        """Write its row and its document into the state."""
        require(self.account == len(state.accounts) + 1, "accounts are numbered in order")
        later = self.place > state.last_share
        require(later, "its share of delta is that of an earlier account")
        state.last_share = self.place
        names = {row["name"] for row in state.accounts.values()}
        require(self.name not in names, f"there is an account {self.name} already")
        state.documents[self.account] = document
        state.accounts[self.account] = self.row(number)


@kind("account")
class OpenList(OpenAccount):
    """A registered list, which one analyst may run."""

    told_by = "mode"

    mode: Annotated[str, one_of(BATCH, SETWISE)]
    document: Document
    analyst: Name

    def apply(self, state: State, number: int) -> None:
        self.enter(state, number, self.document)
        body = {key: value for key, value in self.document.items() if key != "digest"}
        same = self.document.get("digest") == digest(body)
        require(same, "the digest of its list does not match")
        listed, _ = understood(registered_lists.stated_in, self.document)
        require(listed.mode == self.mode, "its list is of another mode")
        for item, granted in listed.lots.items():
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
        self.enter(state, number, self.certificate)
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
