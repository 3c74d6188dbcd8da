"""The state of one dataset after some of its entries: a second, plain model of the whole ledger.

`verify` compares it with the tables, and `import` fills the tables from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.errors import FarthingError
from farthing.interactive.protocol import Part
from farthing.ledger.declared_data import Declared
from farthing.ledger.records import EVERYBODY, TARIFF

if TYPE_CHECKING:
    from farthing.ledger.entries.charges import Reserve

Row: TypeAlias = dict[str, Any]
T = TypeVar("T")


class Broken(Exception):
    """An entry that cannot follow from those before it; says why."""


def require(holds: bool, otherwise: str) -> None:
    """Broken unless it holds."""
    if not holds:
        raise Broken(otherwise)


def understood(read: Callable[[dict[str, Any]], T], document: dict[str, Any]) -> T:
    """What a document says; Broken if it is not one that a ledger writes."""
    try:
        return read(document)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, FarthingError):
            raise
        raise Broken("its document is not one that a ledger writes") from None


@dataclass
class Opened:
    """A conversation as the entries tell of it.

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

    `declared` is the entry that last declared the data. `home` is the ledger in which the book goes
    on, as far as it says so; `sealed_for` the one that may take it over, while it is sealed.
    `restored` is the entry by which it last went on from a copy.
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
