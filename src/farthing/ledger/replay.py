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
from farthing.ledger import registered_lists
from farthing.ledger.lookups import declared_from
from farthing.ledger.months import month_number
from farthing.ledger.records import TARIFF, Dataset, require_only_more, use_from_json
from farthing.ledger.store.statements import SEAL
from farthing.ledger.store.tables import EVERYBODY

Row: TypeAlias = dict[str, Any]
Fact: TypeAlias = Mapping[str, Any]


class Broken(Exception):
    """An entry that cannot follow from those before it; says why."""


class Replay:
    """The state of one dataset after some of its entries.

    `home` is the ledger in which the book goes on, as far as it says so; `sealed_for` the one
    that may take it over, while it is sealed.
    """

    def __init__(self) -> None:
        self.dataset: Dataset | None = None
        self.beside: tuple[str, ...] = ()
        self.declared = 1
        self.home: str | None = None
        self.sealed_for: str | None = None
        self.accounts: dict[int, Row] = {}
        self.purses: dict[tuple[int, str], Row] = {}
        self.lots: dict[tuple[int, str], Row] = {}
        self.documents: dict[int, Row] = {}
        self.last_hash = ""
        self._tariffs: dict[int, Tariff] = {}
        self._held: dict[int, Fact] = {}

    def take(self, number: int, fact: Fact, previous: str) -> None:
        """One more entry, which follows on the hash `previous`, or Broken."""
        self.last_hash = previous
        rules: dict[str, Callable[[int, Fact], None]] = {
            "dataset": self._dataset,
            "version": self._declare,
            "describe": self._declare,
            "account": self._account,
            "grant": self._grant,
            "revoke": self._revoke,
            "reserve": self._reserve,
            "close": self._settle,
            "abandon": self._settle,
            SEAL: self._seal,
            "resume": self._resume,
        }
        try:
            sealed = self.sealed_for is not None
            _require(sealed == (fact["kind"] == "resume"), "it was sealed before, or never")
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
        declared = declared_from(fact)
        self.dataset, self.beside = declared.dataset, declared.beside
        self.home = fact.get("ledger")

    def _declare(self, number: int, fact: Fact) -> None:
        declared = declared_from(fact)
        assert self.dataset is not None
        require_only_more(self.dataset, declared.dataset)
        _require(set(self.beside) <= set(declared.beside), "what shares data goes on sharing it")
        self.dataset, self.beside = declared.dataset, declared.beside
        self.declared = number

    def _seal(self, _: int, fact: Fact) -> None:
        self.sealed_for = fact["successor"]
        _require(isinstance(self.sealed_for, str), "it does not say where the book went")

    def _resume(self, _: int, fact: Fact) -> None:
        _require(fact["ledger"] == self.sealed_for, "another ledger was named by the seal")
        _require(fact["seal"] == self.last_hash, "it names another seal")
        self.home, self.sealed_for = fact["ledger"], None

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
            for item, granted in registered_lists.from_document(document).lots.items():
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
        purse["open"] = 1

    def _revoke(self, _: int, fact: Fact) -> None:
        _require(fact["analyst"] != EVERYBODY, "the cap is not revoked")
        purse = self.purses[fact["account"], fact["analyst"]]
        _require(purse["open"] == 1, "the purse was revoked before")
        purse["open"] = 0
        if purse["month"] is None:
            left = [purse[name] - purse[f"{name}_spent"] for name in ("farthings", "delta_units")]
            _require([fact["farthings"], fact["delta_units"]] == left, "another amount was left")
            purse.update(farthings_spent=purse["farthings"], delta_units_spent=purse["delta_units"])

    def _reserve(self, number: int, fact: Fact) -> None:
        account = fact["account"]
        price = Price(fact["farthings"], fact["delta_units"])
        if self.accounts[account]["mode"] == TARIFF:
            _require(price == self._tariffs[account].price_of(fact["items"]), "the price is wrong")
            purse, cap = self.purses[account, fact["analyst"]], self.purses[account, EVERYBODY]
            _require(cap["open"] == 1 and purse is not cap, "the tariff was retired before")
            _require(purse["open"] == 1, "the purse was revoked before")
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
        if fact.get("use") is not None:
            use_from_json(fact["use"])
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
