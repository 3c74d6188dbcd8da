"""Replaying a book: the state of a dataset after some of its entries, and the check of its chain.

`State` is a second, plain model of the whole ledger. `verify` compares it with the tables, and
`import` fills the tables from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from farthing.canonical import canonical, sha256
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.errors import FarthingError, InvalidInput
from farthing.interactive.protocol import Part
from farthing.ledger.declared_data import Declared
from farthing.ledger.entries.fact import GENESIS, Fact, linked, read_fact
from farthing.ledger.errors import Damaged
from farthing.ledger.records import EVERYBODY, TARIFF
from farthing.progress import tell

if TYPE_CHECKING:
    from farthing.ledger.entries.charges import Reserve

#: How many entries are read between two reports of progress.
ENTRIES_BETWEEN_NEWS = 1000
Row: TypeAlias = dict[str, Any]
T = TypeVar("T")


class Broken(Exception):
    """An entry cannot follow from those before it; says why."""


def require(holds: bool, otherwise: str) -> None:
    """Broken unless it holds."""
    if not holds:
        raise Broken(otherwise)


def understood(read: Callable[[dict[str, Any]], T], document: dict[str, Any]) -> T:
    """What a document says; Broken if no ledger writes such a document."""
    try:
        return read(document)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, FarthingError):
            raise
        raise Broken("its document is not one that a ledger writes") from None


@dataclass
class Opened:
    """A conversation according to the entries.

    `marks` are the ends of its chain of turns that the book holds: how much was asked, the hash.
    """

    entry: int
    analyst: str
    declared: int
    mechanism: Part
    commitment: str
    open: bool = True
    marks: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class State:
    """What the entries so far add up to.

    `declared` is the entry that last declared the data. `home` is the ledger that the book is in,
    if an entry says so; `sealed_for` the one that may take it over, while it is sealed. `restored`
    is the entry that last restored the book from a copy.
    """

    declaration: Declared | None = None
    declared: int = 1
    home: str | None = None
    sealed_for: str | None = None
    restored: int = 0
    last_hash: str = ""
    last_share: int = 0
    accounts: dict[int, Row] = field(default_factory=dict)
    purses: dict[tuple[int, str], Row] = field(default_factory=dict)
    lots: dict[tuple[int, str], Row] = field(default_factory=dict)
    documents: dict[int, Row] = field(default_factory=dict)
    tariffs: dict[int, Tariff] = field(default_factory=dict)
    revoked: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    held: dict[int, Reserve] = field(default_factory=dict)
    conversations: dict[str, Opened] = field(default_factory=dict)

    def take(self, number: int, said: Mapping[str, Any], previous: str) -> Fact:
        """Apply one more entry, which follows the hash `previous`; Broken if it cannot follow."""
        self.last_hash = previous
        try:
            fact = read_fact(said)
            sealed = self.sealed_for is not None
            require(sealed == fact.after_seal, "only a resumption can follow a seal")
            require(number == 1 or self.declaration is not None, "a book begins with its dataset")
            fact.apply(self, number)
            about = self.declared_data().dataset.name
            require(fact.dataset == about, "it belongs to another dataset")
        except FarthingError as error:
            raise Broken(str(error)) from None
        return fact

    def declared_data(self) -> Declared:
        """The data as it is declared; Broken before the first entry."""
        if self.declaration is None:
            raise Broken("a book begins with its dataset")
        return self.declaration

    def account(self, number: int) -> Row:
        """The row of an account; Broken if it was never opened."""
        require(number in self.accounts, f"there is no account {number}")
        return self.accounts[number]

    def purse(self, account: int, analyst: str) -> Row:
        """The row of a purse; Broken if nothing was granted."""
        require((account, analyst) in self.purses, "nothing was granted to this analyst")
        return self.purses[account, analyst]

    def conversation(self, identity: str) -> Opened:
        """A conversation; Broken if it was never opened."""
        require(identity in self.conversations, "there is no such conversation")
        return self.conversations[identity]

    def require_in_force(self, account: int) -> None:
        """Broken unless the account is a tariff that can be spent."""
        require(self.account(account)["mode"] == TARIFF, "only a tariff has purses")
        require(self.purse(account, EVERYBODY)["open"] == 1, "the tariff was retired before")


def new_purse(account: int, analyst: str, granted: Price) -> Row:
    """A purse of which nothing is spent."""
    return {
        "account": account,
        "analyst": analyst,
        "farthings": granted.farthings,
        "delta_units": granted.delta_units,
        "farthings_spent": 0,
        "delta_units_spent": 0,
        "month": None,
        "open": 1,
    }


def deduct(row: Row, price: Price, whose: str) -> None:
    """Take a price from a purse, or Broken."""
    row["farthings_spent"] += price.farthings
    row["delta_units_spent"] += price.delta_units
    within = row["farthings_spent"] <= row["farthings"]
    within = within and row["delta_units_spent"] <= row["delta_units"]
    require(within, f"{whose} is overspent")


def refund(row: Row, price: Price) -> None:
    """Give a price back."""
    row["farthings_spent"] -= price.farthings
    row["delta_units_spent"] -= price.delta_units


class ChainCheck:
    """Takes the entries of a dataset one by one, and names the first that is wrong."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.number = 0
        self.previous = GENESIS
        self.hash = GENESIS
        self.state = State()

    def take(self, number: int, written: str, previous: str, hash_: str) -> Fact:
        """The fact of the next entry, or Damaged."""
        if number != self.number + 1:
            raise self.bad(self.number + 1, f"it is missing; the next one there is {number}")
        if previous != self.hash:
            raise self.bad(number, "it does not continue the entry before it")
        if hash_ != linked(previous, sha256(written)):
            raise self.bad(number, "its hash does not match what it says")
        try:
            said = json.loads(written)
            if not isinstance(said, dict) or canonical(said) != written:
                raise Broken("it is not in canonical form")
            fact = self.state.take(number, said, previous)
        except (ValueError, RecursionError, Broken) as error:
            raise self.bad(number, str(error)) from None
        self.number, self.previous, self.hash = number, previous, hash_
        if number % ENTRIES_BETWEEN_NEWS == 0:
            tell(f"{number} entries of {self.dataset}")
        return fact

    def bad(self, number: int, why: str) -> Damaged:
        return Damaged(f"entry {number} of {self.dataset} is bad: {why}", self.dataset, number)


def require_company(known: Mapping[str, Declared], walk: ChainCheck) -> None:
    """Datasets that share data must be in one ledger and have one unit."""
    declared = walk.state.declared_data()
    for other in declared.beside:
        if other not in known:
            raise InvalidInput(f"{walk.dataset} stands beside {other}, which must come with it")
        if known[other].dataset.unit != declared.dataset.unit:
            raise InvalidInput(f"{walk.dataset} and {other} share data, but not their unit")
