"""The budget of some data: all accounts of a dataset and of those beside it, with their purses.

`Lifetimes` says what can ever be learned from them: by each analyst, by all of them, from the data
as a whole. Each is a composition of accounts, where a tariff counts with the farthings that can be
spent of it (docs/theory/odometer.md, "Several accounts"). The share of δ is that of the cap in a
reading, so nobody reads more so far than ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from farthing.composition.accounts.account_profiles import (
    CAP_SHARE,
    AccountProfile,
    epsilon_if_opened_by_releases,
    epsilon_of,
    level_reached,
    levels,
    list_profile,
    profiles_when_spent,
    proved,
)
from farthing.composition.tariffs.tariff import Tariff, tariff_from_json
from farthing.ledger.entries.analyst import Reserve
from farthing.ledger.entries.owner import Grant, OpenList, OpenTariff, Restore
from farthing.ledger.errors import Damaged
from farthing.ledger.records import Account, Purse, month_number
from farthing.ledger.registered_lists import Registered, from_document
from farthing.ledger.roles.reader import Reader

#: What composing accounts, or counting one analyst alone, assumes.
PLANNED = "the accounts and grants were decided without looking at releases"
#: The other case: no assumption about how accounts came to be opened.
UNPLANNED = "whatever led to opening these accounts (sum of their epsilons, an ex-post statement)"
#: What a book that was restored from a copy assumes.
RESTORED = "nothing was opened after the copy was made from which its book went on"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAccount:
    """What tariffs and lists have in common.

    `share` is the index that gives its share of δ if releases led to opening it. If the book was
    `restored` from a copy, nobody knows what was granted and spent after the copy was made: then
    everybody counts, with everything.
    """

    dataset: str
    record: Account
    share: int
    document: Mapping[str, Any]
    restored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffAccount(BudgetAccount):
    """A tariff, the levels fixed when it was signed, and the purses granted of it.

    `first_month` is the month of the first grant of each purse that renews.
    """

    tariff: Tariff
    steps: tuple[int, ...]
    purses: tuple[Purse, ...]
    first_month: Mapping[str, int]

    def spent_by(self, analysts: Collection[str] | None) -> int:
        """What these analysts (None: all) have spent."""
        if analysts is None:
            return self.record.farthings_spent
        return sum(purse.farthings_spent for purse in self.purses if purse.analyst in analysts)

    def level(self, spent: int) -> int:
        """The level that this much spending has reached."""
        return level_reached(self.steps, spent)

    @property
    def cap(self) -> int:
        """What can ever be spent of it, whoever is granted what."""
        return self.record.farthings

    @property
    def reach(self) -> int:
        """What all analysts together can ever spend of what they were granted."""
        if self.restored or any(purse.renewal is not None for purse in self.purses):
            return self.cap
        return self.reach_in_a_month

    @property
    def reach_in_a_month(self) -> int:
        """What all analysts together can reserve in any one month."""
        if self.restored:
            return self.cap
        return min(sum(purse.farthings for purse in self.purses), self.cap)

    @property
    def purses_are_separate(self) -> bool:
        """Whether the cap can never refuse what a purse allows.

        Then an analyst's refusals depend on their own purse only. Otherwise they may depend on what
        others have spent, which depends on the data, and that spending must be counted.
        """
        return self._cap_suffices() and all(purse.renewal is None for purse in self.purses)

    @property
    def purses_are_separate_by_now(self) -> bool:
        """The same until the end of this month: the cap suffices for all that the purses have ever
        held."""
        return self._cap_suffices()

    def _cap_suffices(self) -> bool:
        if self.restored:
            return False
        renewing = [purse.month for purse in self.purses if purse.month is not None]
        now = max(map(month_number, renewing), default=0)
        farthings = units = 0
        for purse in self.purses:
            months = 1 if purse.month is None else now - self.first_month[purse.analyst] + 1
            farthings += months * purse.farthings
            units += months * purse.delta_units
        return farthings <= self.cap and units <= self.record.delta_units

    def own(self, analyst: str) -> list[int]:
        """What one analyst can spend of it in a lifetime or, if the purse renews, in a month."""
        return [min(purse.farthings, self.cap) for purse in self.purses if purse.analyst == analyst]

    def profile(self, farthings: int, delta: float) -> AccountProfile:
        """What it reveals when this much is spent; the usual amounts are computed together."""
        own = {min(purse.farthings, self.cap) for purse in self.purses}
        usual = {*self.steps, *own, self.reach, self.reach_in_a_month}
        stated = frozenset({*usual, farthings})
        return profiles_when_spent(self.tariff, stated, delta)[farthings]

    def reached_by(self, analysts: Collection[str], delta: float) -> AccountProfile:
        """What it reveals when these analysts have spent all they were granted of it."""
        granted = sum(sum(self.own(name)) for name in analysts)
        return self.profile(min(granted, self.cap), delta)

    def whole(self, delta: float) -> AccountProfile:
        """What it reveals when it is spent to its cap."""
        return self.profile(self.cap, delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAccount(BudgetAccount):
    """A list that was registered in advance."""

    cap = reach = None  # it has no farthings

    listed: Registered
    used: bool

    def whole(self, delta: float) -> AccountProfile:
        """What it reveals when it is run whole."""
        return list_profile(self.listed.items, self.listed.adaptivity, delta)


def resting_on(accounts: Iterable[TariffAccount | ListAccount], *assumed: str) -> str | None:
    """The assumptions of a number over these accounts, in one clause."""
    restored = any(account.restored for account in accounts)
    return " and ".join((*assumed, RESTORED) if restored else assumed) or None


def accounts_together(reader: Reader, dataset: str) -> list[TariffAccount | ListAccount]:
    """Every account of a dataset and of all that are beside it; its own come first."""
    names = sorted(reader.beside(dataset), key=lambda name: (name != dataset, name))
    return [_account(reader, name, record) for name in names for record in reader.accounts(name)]


def _account(reader: Reader, dataset: str, record: Account) -> TariffAccount | ListAccount:
    opened = reader.entry(dataset, record.entry).fact
    restored = any(number > record.entry for number, _ in reader.facts(dataset, Restore))
    if isinstance(opened, OpenList):
        left = reader.lots(dataset, record.name)  # none of a list that was retired
        used = restored or any(lot.spent > 0 for lot in left)
        if not left and not used:
            taken = reader.facts(dataset, Reserve)
            used = any(fact.account == record.number for _, fact in taken)
        return ListAccount(
            dataset=dataset,
            record=record,
            share=opened.place,
            document=opened.document,
            restored=restored,
            listed=from_document(opened.document),
            used=used,
        )
    if not isinstance(opened, OpenTariff):
        raise Damaged(f"entry {record.entry} opens no account", dataset, record.entry)
    first: dict[str, int] = {}
    for _, grant in reader.facts(dataset, Grant):
        if grant.account == record.number and grant.month is not None:
            first.setdefault(grant.analyst, month_number(grant.month))
    return TariffAccount(
        dataset=dataset,
        record=record,
        share=opened.place,
        document=opened.certificate,
        restored=restored,
        tariff=tariff_from_json(opened.certificate["tariff"]),
        steps=levels(record.farthings, opened.levels),
        purses=tuple(p for p in reader.purses(dataset) if p.account == record.number),
        first_month=first,
    )


#: An account, and how many farthings of it count; None for a list, which counts whole.
AccountPart: TypeAlias = tuple[TariffAccount | ListAccount, int | None]


class Lifetimes:
    """The accounts of a dataset and of those beside it, each spent to the end."""

    def __init__(self, reader: Reader, dataset: str, delta: float) -> None:
        self.dataset = dataset
        self.delta = delta
        self.accounts = accounts_together(reader, dataset)
        self.tariffs = [account for account in self.accounts if isinstance(account, TariffAccount)]
        self.planned = resting_on(self.accounts, PLANNED)
        self._known: dict[tuple[tuple[str, int, int | None], ...], float | None] = {}

    def whole(self) -> list[dict[str, Any]]:
        """All accounts, whatever is granted of them, under two assumptions."""
        if not self.accounts:
            nothing = "no account was opened; nothing is released"
            return [{"epsilon": 0.0, "delta": 0.0, "if": nothing}]
        return [
            {
                **self._row([(account, account.cap) for account in self.accounts]),
                "if": self.planned,
            },
            {
                "epsilon": self.whatever_led_to_them(),
                "delta": self.delta,
                "if": resting_on(self.accounts, UNPLANNED),
            },
        ]

    def whatever_led_to_them(self) -> float | None:
        """ε of all accounts if releases led to opening them. None if not proved."""
        return proved(
            lambda: epsilon_if_opened_by_releases(
                [(account.share, account.whole(self.delta)) for account in self.accounts],
                self.delta,
            )
        )

    def per_analyst(self) -> list[dict[str, Any]]:
        """Every analyst with all of their accounts; all analysts where the cap can refuse them."""
        separate = all(account.purses_are_separate for account in self.tariffs)
        names = {purse.analyst for account in self.tariffs for purse in account.purses}
        names |= {account.record.analyst for account in self.accounts if account.record.analyst}
        return [
            {
                "analyst": name,
                **self._row(self._held_by(name) if separate else self._held_by_all()),
                "if": self.planned,
            }
            for name in sorted(names)
        ]

    def colluding(self) -> dict[str, Any]:
        """All analysts together, with everything that their purses hold."""
        return {**self._row(self._held_by_all()), "if": self.planned}

    def together(self, analysts: Collection[str]) -> float | None:
        """ε of these analysts as one; of all analysts where the cap can refuse them."""
        if not all(account.purses_are_separate for account in self.tariffs):
            return self.of(self._held_by_all())
        granted: list[AccountPart] = [
            (account, sum(sum(account.own(name)) for name in analysts)) for account in self.tariffs
        ]
        listed: list[AccountPart] = [
            (account, None) for account in self.accounts if account.record.analyst in analysts
        ]
        return self.of([part for part in granted if part[1]] + listed)

    def of(self, parts: Sequence[AccountPart]) -> float | None:
        """ε of these accounts together, cached. None if not proved."""
        key = tuple((account.dataset, account.record.number, spent) for account, spent in parts)
        if key not in self._known:
            self._known[key] = proved(
                lambda: epsilon_of(
                    [self._profile(*part) for part in parts], self.delta, share=CAP_SHARE
                )
            )
        return self._known[key]

    def _profile(self, account: TariffAccount | ListAccount, spent: int | None) -> AccountProfile:
        if isinstance(account, TariffAccount) and spent is not None:
            return account.profile(spent, self.delta)
        return account.whole(self.delta)

    def _held_by(self, analyst: str) -> list[AccountPart]:
        purses: list[AccountPart] = [
            (account, own) for account in self.tariffs for own in account.own(analyst)
        ]
        return purses + [
            (account, None) for account in self.accounts if account.record.analyst == analyst
        ]

    def _held_by_all(self) -> list[AccountPart]:
        return [(account, account.reach) for account in self.accounts]

    def _row(self, parts: Sequence[AccountPart]) -> dict[str, Any]:
        return {
            "epsilon": self.of(parts),
            "delta": self.delta,
            "accounts": [self.label(account) for account, _ in parts],
        }

    def label(self, account: TariffAccount | ListAccount) -> str:
        """The name of an account in a statement: its number, and the dataset if it is another."""
        number = str(account.record.number)
        return number if account.dataset == self.dataset else f"{number} of {account.dataset}"
