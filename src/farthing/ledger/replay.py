"""The balances that follow from the entries, by the rules that the guarded statements enforce.

A second, plain implementation of the whole ledger: `verify` compares it with the tables, and
`import` fills the tables from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from farthing.canonical import digest
from farthing.composition.certificate import tariff_from_json
from farthing.composition.tariff import Price, Tariff
from farthing.errors import FarthingError
from farthing.ledger import lists
from farthing.ledger.facts import TARIFF, Dataset
from farthing.ledger.months import month_number
from farthing.ledger.schema import EVERYBODY

Row: TypeAlias = dict[str, Any]
Fact: TypeAlias = Mapping[str, Any]


class Broken(Exception):
    """An entry that cannot follow from those before it; says why."""


class Replay:
    """The state of one dataset after some of its entries."""

    def __init__(self) -> None:
        self.dataset: Dataset | None = None
        self.accounts: dict[int, Row] = {}
        self.purses: dict[tuple[int, str], Row] = {}
        self.lots: dict[tuple[int, str], Row] = {}
        self.documents: dict[int, Row] = {}
        self._tariffs: dict[int, Tariff] = {}
        self._held: dict[int, Fact] = {}

    def take(self, number: int, fact: Fact) -> None:
        """One more entry, or Broken."""
        rules: dict[str, Callable[[int, Fact], None]] = {
            "dataset": self._dataset,
            "account": self._account,
            "grant": self._grant,
            "reserve": self._reserve,
            "close": self._settle,
            "abandon": self._settle,
        }
        try:
            rules[fact["kind"]](number, fact)
            assert self.dataset is not None
            _require(fact["dataset"] == self.dataset.name, "it belongs to another dataset")
        except FarthingError as error:
            raise Broken(str(error)) from None
        except (KeyError, TypeError, ValueError, AssertionError, AttributeError):
            raise Broken(
                "it is not a fact of a ledger, or one that came before is missing"
            ) from None

    def _dataset(self, number: int, fact: Fact) -> None:
        _require(number == 1, "a dataset is described once, in entry 1")
        self.dataset = Dataset(**fact["description"])

    def _account(self, number: int, fact: Fact) -> None:
        account, mode = fact["account"], fact["mode"]
        _require(account == len(self.accounts) + 1, "accounts are numbered in order")
        names = {row["name"] for row in self.accounts.values()}
        _require(fact["name"] not in names, f"there is an account {fact['name']} already")
        if mode == TARIFF:
            document = fact["certificate"]
            self._tariffs[account] = tariff_from_json(document["tariff"])
            cap = Price(self._tariffs[account].farthings, self._tariffs[account].delta_units)
            for (_, analyst), row in self.purses.items():
                row["open"] = 0 if analyst == EVERYBODY else row["open"]
            self.purses[account, EVERYBODY] = _purse(account, EVERYBODY, cap)
        else:
            document = fact["document"]
            for item, granted in lists.from_document(document).lots.items():
                key = {"account": account, "item": item}
                self.lots[account, item] = {**key, "granted": granted, "spent": 0}
        self._check_digest(document)
        self.documents[account] = document
        self.accounts[account] = {
            "number": account,
            "mode": mode,
            "name": fact["name"],
            "analyst": fact.get("analyst"),
            "entry": number,
        }

    def _grant(self, _: int, fact: Fact) -> None:
        account, analyst, renews = fact["account"], fact["analyst"], fact["renewal"] is not None
        _require(self.accounts[account]["mode"] == TARIFF, "only a tariff has purses")
        month = month_number(fact["month"]) if renews else None
        new = {**_purse(account, analyst, Price(0)), "month": month}
        purse = self.purses.setdefault((account, analyst), new)
        _require(analyst != EVERYBODY, "the cap is not granted")
        _require((purse["month"] is not None) == renews, "a purse keeps its renewal")
        _require(min(fact["farthings"], fact["delta_units"]) >= 0, "a grant is never negative")
        purse["farthings"] += fact["farthings"]
        purse["delta_units"] += fact["delta_units"]

    def _reserve(self, number: int, fact: Fact) -> None:
        account = fact["account"]
        price = Price(fact["farthings"], fact["delta_units"])
        if self.accounts[account]["mode"] == TARIFF:
            _require(price == self._tariffs[account].price_of(fact["items"]), "the price is wrong")
            purse, cap = self.purses[account, fact["analyst"]], self.purses[account, EVERYBODY]
            _require(cap["open"] == 1 and purse is not cap, "the tariff was retired before")
            month = month_number(fact["month"])
            if purse["month"] is not None:
                _require(month >= purse["month"], "the purse has seen a later month")
                if month > purse["month"]:
                    purse.update(month=month, farthings_spent=0, delta_units_spent=0)
            _charge(purse, price, f"the purse of {fact['analyst']}")
            _charge(cap, price, "the cap of the dataset")
        else:
            _require(price == Price(0), "a registered list costs no farthings")
            _require(
                self.accounts[account]["analyst"] == fact["analyst"], "not this analyst's list"
            )
            for item, times in fact["items"].items():
                lot = self.lots[account, item]
                lot["spent"] += times
                _require(times > 0 and lot["spent"] <= lot["granted"], f"{item} is overspent")
        self._held[number] = fact

    def _settle(self, _: int, fact: Fact) -> None:
        held = self._held.pop(fact["settles"], None)
        _require(held is not None, "it settles what is not reserved, or was settled before")
        assert held is not None
        for part in ("account", "analyst", "question_digest"):
            _require(fact[part] == held[part], f"its {part} is not that of the reservation")
        account, unused = held["account"], fact["unused"]
        _require(fact["kind"] == "close" or not unused, "what is abandoned stays spent")
        for item, times in unused.items():
            _require(0 < times <= held["items"][item], f"more {item} unused than reserved")
        back = Price(-fact["farthings"], -fact["delta_units"])
        if self.accounts[account]["mode"] != TARIFF:
            _require(back == Price(0), "a registered list costs no farthings")
            for item, times in unused.items():
                self.lots[account, item]["spent"] -= times
            return
        expected = self._tariffs[account].price_of(unused) if unused else Price(0)
        _require(back == expected, "it returns more or less than was unused")
        _refund(self.purses[account, EVERYBODY], back)
        purse = self.purses[account, held["analyst"]]
        if purse["month"] in (None, month_number(held["month"])):
            _refund(purse, back)

    def _check_digest(self, document: Fact) -> None:
        body = {key: value for key, value in document.items() if key != "digest"}
        _require(document["digest"] == digest(body), "the certificate's digest does not match")


def _purse(account: int, analyst: str, granted: Price) -> Row:
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


def _charge(row: Row, price: Price, whose: str) -> None:
    row["farthings_spent"] += price.farthings
    row["delta_units_spent"] += price.delta_units
    within = row["farthings_spent"] <= row["farthings"]
    within = within and row["delta_units_spent"] <= row["delta_units"]
    _require(within, f"{whose} is overspent")


def _refund(row: Row, price: Price) -> None:
    row["farthings_spent"] -= price.farthings
    row["delta_units_spent"] -= price.delta_units


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)
