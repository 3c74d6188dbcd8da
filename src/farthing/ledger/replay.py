"""The balances that follow from the entries, by the rules that the guarded statements enforce.

A second, plain implementation of the whole ledger: `verify` compares it with the tables, and
`import` fills the tables from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from farthing.canonical import canonical, digest
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.errors import FarthingError
from farthing.interactive import mechanism_from_json, require_paid
from farthing.interactive.composer import Part
from farthing.ledger import registered_lists
from farthing.ledger.chain import start_of
from farthing.ledger.declared_data import Dataset, require_only_more
from farthing.ledger.fact_shapes import require_shape
from farthing.ledger.lookups import Declared, declared_from, relocated, share_of
from farthing.ledger.months import month_number, month_of
from farthing.ledger.records import (
    BATCH,
    END,
    LARGEST,
    OPEN,
    RELOCATE,
    RESTORE,
    RETIRE,
    SAID,
    TARIFF,
)
from farthing.ledger.store.statements import SEAL
from farthing.ledger.store.tables import EVERYBODY

#: What a table can count.
_LARGEST_LOT = 2**63 - 1

Row: TypeAlias = dict[str, Any]
Fact: TypeAlias = Mapping[str, Any]


class Broken(Exception):
    """An entry that cannot follow from those before it; says why."""


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


class Replay:
    """The state of one dataset after some of its entries.

    `home` is the ledger in which the book goes on, as far as it says so; `sealed_for` the one
    that may take it over, while it is sealed. `restored` is the entry by which it last went on
    from a copy.
    """

    def __init__(self) -> None:
        self.dataset: Dataset | None = None
        self.beside: tuple[str, ...] = ()
        self.former: tuple[str, ...] = ()
        self.declared = 1
        self.home: str | None = None
        self.sealed_for: str | None = None
        self.accounts: dict[int, Row] = {}
        self.share = 0
        self.purses: dict[tuple[int, str], Row] = {}
        self.lots: dict[tuple[int, str], Row] = {}
        self.documents: dict[int, Row] = {}
        self.conversations: dict[str, Opened] = {}
        self.restored = 0
        self.last_hash = ""
        self._tariffs: dict[int, Tariff] = {}
        self._revoked: dict[tuple[int, str], list[int]] = {}
        self.held: dict[int, Fact] = {}

    @property
    def declaration(self) -> Declared:
        """What the owner declares by now."""
        assert self.dataset is not None
        return Declared(self.dataset, self.beside, self.former)

    def take(self, number: int, fact: Fact, previous: str) -> None:
        """One more entry, which follows on the hash `previous`, or Broken."""
        self.last_hash = previous
        rules: dict[str, Callable[[int, Fact], None]] = {
            "dataset": self._dataset,
            "version": self._version,
            "describe": self._describe,
            RELOCATE: self._relocate,
            "account": self._account,
            "grant": self._grant,
            "revoke": self._revoke,
            "reserve": self._reserve,
            "close": self._settle,
            "abandon": self._settle,
            OPEN: self._open,
            SAID: self._said,
            END: self._end,
            SEAL: self._seal,
            "resume": self._resume,
            RETIRE: self._retire,
            RESTORE: self._restore,
        }
        try:
            require_shape(fact)
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
        self._declare(number, _declared(fact))
        self.home = fact.get("ledger")

    def _describe(self, number: int, fact: Fact) -> None:
        after = _declared(fact)
        assert self.dataset is not None
        require_only_more(self.dataset, after.dataset)
        goes_on = after.beside[: len(self.beside)] == self.beside
        _require(goes_on, "what shares data goes on sharing it")
        _require(after.former == self.former, "the data was in other places before")
        self._declare(number, after)

    def _version(self, number: int, fact: Fact) -> None:
        after = _declared(fact)
        assert self.dataset is not None
        same = replace(self.dataset, version=after.dataset.version)
        _require(
            after == Declared(same, self.beside, self.former), "it declares more than a version"
        )
        self._declare(number, after)

    def _relocate(self, number: int, fact: Fact) -> None:
        after = _declared(fact)
        expected = relocated(self.declaration, after.dataset.location)
        _require(after == expected, "it declares more than a place")
        self._declare(number, after)

    def _declare(self, number: int, declared: Declared) -> None:
        self.dataset, self.beside, self.former = declared.dataset, declared.beside, declared.former
        self.declared = number

    def _seal(self, _: int, fact: Fact) -> None:
        self.sealed_for = fact["successor"]
        _require(self.sealed_for != self.home, "a book is sealed for another ledger")

    def _resume(self, _: int, fact: Fact) -> None:
        _require(fact["ledger"] == self.sealed_for, "another ledger was named by the seal")
        _require(fact["seal"] == self.last_hash, "it names another seal")
        self.home, self.sealed_for = fact["ledger"], None

    def _restore(self, number: int, fact: Fact) -> None:
        """Nobody knows what was spent after the copy was made: all of every account counts."""
        _require(fact["ledger"] != self.home, "a book is restored in another ledger")
        self.home, self.restored = fact["ledger"], number
        self.lots.clear()
        for row in self.purses.values():
            spent = {f"{name}_spent": row[name] for name in ("farthings", "delta_units")}
            row.update(open=0, **spent)

    def _retire(self, _: int, fact: Fact) -> None:
        account = fact["account"]
        if self.accounts[account]["mode"] == TARIFF:
            self._require_in_force(account)
            self.purses[account, EVERYBODY]["open"] = 0
            return
        own = [key for key in self.lots if key[0] == account]
        _require(bool(own), "the list was retired before")
        for key in own:
            del self.lots[key]

    def _account(self, number: int, fact: Fact) -> None:
        account, mode = fact["account"], fact["mode"]
        _require(account == len(self.accounts) + 1, "accounts are numbered in order")
        _require(share_of(fact) > self.share, "its share of delta is that of an earlier account")
        self.share = share_of(fact)
        names = {row["name"] for row in self.accounts.values()}
        _require(fact["name"] not in names, f"there is an account {fact['name']} already")
        if mode == TARIFF:
            document = fact["certificate"]
            tariff = self._tariffs[account] = certificate_from_json(document).tariff
            cap = Price(tariff.farthings, tariff.delta_units)
            _require(max(cap.farthings, cap.delta_units) <= LARGEST, "it has too many farthings")
            for (_, analyst), row in self.purses.items():
                row["open"] = 0 if analyst == EVERYBODY else row["open"]
            self.purses[account, EVERYBODY] = _purse(account, EVERYBODY, cap)
        else:
            document = fact["document"]
            _check_digest(document)
            stated = registered_lists.stated_in(document)
            _require(stated.listed.mode == mode, "its list is of another mode")
            for item, granted in stated.listed.lots.items():
                _require(granted <= _LARGEST_LOT, f"there is too much of {item}")
                key = {"account": account, "item": item}
                self.lots[account, item] = {**key, "granted": granted, "spent": 0}
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
        self._require_in_force(account)
        month = month_of(_time(fact)) if renews else None
        named = None if fact["month"] is None else month_number(fact["month"])
        _require(named == month, "its month is not the one that it was written in")
        new = {**_purse(account, analyst, Price(0)), "month": month}
        purse = self.purses.setdefault((account, analyst), new)
        _require((purse["month"] is not None) == renews, "a purse keeps its renewal")
        purse["farthings"] += fact["farthings"]
        purse["delta_units"] += fact["delta_units"]
        most = max(purse["farthings"], purse["delta_units"])
        _require(most <= LARGEST, f"a purse holds at most {LARGEST} farthings")
        purse["open"] = 1

    def _revoke(self, number: int, fact: Fact) -> None:
        self._require_in_force(fact["account"])
        purse = self.purses[fact["account"], fact["analyst"]]
        self._revoked.setdefault((fact["account"], fact["analyst"]), []).append(number)
        _require(purse["open"] == 1, "the purse was revoked before")
        purse["open"] = 0
        renewed = purse["month"] is not None and purse["month"] < month_of(_time(fact))
        for name in ("farthings", "delta_units"):
            left = purse[name] - (0 if renewed else purse[f"{name}_spent"])
            _require(fact[name] == left, "another amount was left")
        if purse["month"] is None:
            purse.update(farthings_spent=purse["farthings"], delta_units_spent=purse["delta_units"])

    def _require_in_force(self, account: int) -> None:
        _require(self.accounts[account]["mode"] == TARIFF, "only a tariff has purses")
        _require(self.purses[account, EVERYBODY]["open"] == 1, "the tariff was retired before")

    def _reserve(self, number: int, fact: Fact) -> None:
        account = fact["account"]
        _check_question(fact)
        if self.accounts[account]["mode"] == TARIFF:
            self._spend(fact)
        else:
            price = Price(fact["farthings"], fact["delta_units"])
            _require(price == Price(0), "a registered list costs no farthings")
            _require(fact["month"] is None, "a registered list has no months")
            _require(
                self.accounts[account]["analyst"] == fact["analyst"], "not this analyst's list"
            )
            for item, times in fact["items"].items():
                lot = self.lots[account, item]
                lot["spent"] += times
                _require(lot["spent"] <= lot["granted"], f"{item} is overspent")
        self.held[number] = fact

    def _spend(self, fact: Fact) -> None:
        account, price = fact["account"], Price(fact["farthings"], fact["delta_units"])
        _require(price == self._tariffs[account].price_of(fact["items"]), "the price is wrong")
        purse, cap = self.purses[account, fact["analyst"]], self.purses[account, EVERYBODY]
        _require(cap["open"] == 1, "the tariff was retired before")
        _require(purse["open"] == 1, "the purse was revoked before")
        month = month_number(fact["month"])
        if purse["month"] is not None:
            _require(month >= purse["month"], "the purse has seen a later month")
            if month > purse["month"]:
                purse.update(month=month, farthings_spent=0, delta_units_spent=0)
        _require(month >= month_of(_time(fact)), "it was written in a later month")
        _charge(purse, price, f"the purse of {fact['analyst']}")
        _charge(cap, price, "the cap of the dataset")

    def _open(self, number: int, fact: Fact) -> None:
        """A conversation is charged in full when it is opened, with what its mechanism costs."""
        _check_question(fact)
        self._spend(fact)
        mechanism = mechanism_from_json(fact["mechanism"])
        require_paid(self._tariffs[fact["account"]], fact["items"], mechanism.guarantees)
        _require(fact["conversation"] not in self.conversations, "it was opened before")
        self.conversations[fact["conversation"]] = Opened(
            number, fact["analyst"], self.declared, mechanism, fact["commitment"]
        )

    def _said(self, _: int, fact: Fact) -> None:
        opened = self.conversations[fact["conversation"]]
        _require(opened.open, "the conversation had ended before")
        _require(opened.analyst == fact["analyst"], "it is the conversation of somebody else")
        start = (0, start_of(fact["conversation"]))
        before, head = opened.marks[-1] if opened.marks else start
        _require(fact["asked"] >= before, "less was asked than before")
        same = (fact["asked"] == before) == (fact["head"] == head)
        _require(same, "its turns do not end where as much was asked")
        opened.marks.append((fact["asked"], fact["head"]))

    def _end(self, number: int, fact: Fact) -> None:
        self._said(number, fact)
        opened = self.conversations[fact["conversation"]]
        _require(fact["settles"] == opened.entry, "it ends another conversation")
        opened.open = False

    def _settle(self, _: int, fact: Fact) -> None:
        held = self.held.pop(fact["settles"], None)
        _require(held is not None, "it settles what is not reserved, or was settled before")
        assert held is not None
        for part in ("account", "analyst", "question_digest"):
            _require(fact[part] == held[part], f"its {part} is not that of the reservation")
        account, unused = held["account"], fact["unused"]
        known = fact["settles"] > self.restored or fact["kind"] == "abandon"
        _require(known, "what was open in a copy can only be abandoned")
        whole = self.accounts[account]["mode"] == BATCH
        _require(not (whole and unused), "a batch runs once and whole; nothing of it is unused")
        for item, times in unused.items():
            _require(times <= held["items"][item], f"more {item} unused than reserved")
        back = Price(-fact["farthings"], -fact["delta_units"])
        if self.accounts[account]["mode"] != TARIFF:
            _require(back == Price(0), "a registered list costs no farthings")
            _require(fact.get("revoked") is None, "a registered list is not revoked")
            for item, times in unused.items():
                if (account, item) in self.lots:  # else the list was retired
                    self.lots[account, item]["spent"] -= times
            return
        expected = self._tariffs[account].price_of(unused) if unused else Price(0)
        _require(back == expected, "it returns more or less than was unused")
        _refund(self.purses[account, EVERYBODY], back)
        purse = self.purses[account, held["analyst"]]
        revoked = self._revoked.get((account, held["analyst"]), [])
        since = next((one for one in revoked if one > fact["settles"]), None)
        lost = since if unused and purse["month"] is None else None
        if "revoked" in fact:  # else it was written when what was unused came back all the same
            _require(fact["revoked"] == lost, "it says otherwise whether the purse was revoked")
            if lost is not None:
                return
        if purse["month"] in (None, month_number(held["month"])):
            _refund(purse, back)


def _check_digest(document: Fact) -> None:
    body = {key: value for key, value in document.items() if key != "digest"}
    _require(document["digest"] == digest(body), "the digest of its list does not match")


def _check_question(fact: Fact) -> None:
    asked = fact["question"]
    wanted = None if asked is None else digest(asked)
    _require(fact["question_digest"] == wanted, "its question has another digest")


def _declared(fact: Fact) -> Declared:
    """What an entry declares, in exactly the words in which a ledger writes it."""
    declared, given = declared_from(fact), fact["description"]
    written = declared.dataset.to_json()
    if "contribution_limits" in given:  # the first format
        limit = written["limits"]["contribution_limit"]
        written = {name: written[name] for name in ("name", "unit", "owner", "relation")}
        written["contribution_limits"] = {} if limit is None else {"keys": limit}
    _require(canonical(written) == canonical(given), "it describes something else besides")
    return declared


def _time(fact: Fact) -> datetime:
    return datetime.fromisoformat(fact["time"])


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
