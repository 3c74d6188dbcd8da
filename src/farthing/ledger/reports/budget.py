"""The budget of some data: all accounts of a dataset and of those beside it, with their purses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.composition.accounts.account_profiles import (
    AccountProfile,
    level_reached,
    levels,
    list_profile,
    profiles_when_spent,
)
from farthing.composition.tariffs.tariff import Tariff, tariff_from_json
from farthing.ledger.entries import Grant, OpenList, OpenTariff, Reserve, Restore
from farthing.ledger.errors import Damaged
from farthing.ledger.months import month_number
from farthing.ledger.records import Account, Purse
from farthing.ledger.registered_lists import Registered, from_document
from farthing.ledger.roles.reader import Reader

#: What composing accounts, or counting one analyst alone, rests on.
PLANNED = "the accounts and grants were decided without looking at releases"
#: What a book rests on that went on from a copy.
RESTORED = "nothing was opened after the copy was made from which its book went on"


@dataclass(frozen=True, slots=True)
class TariffAccount:
    """A tariff, the levels fixed when it was signed, and the purses granted of it.

    `share` is the index by which it has its share of δ if releases led to opening it.
    `first_month` is the month of the first grant of each purse that renews. `restored`: the book
    went on from a copy, and what was granted and spent after it was made is not known; then
    everybody counts, with all there is.
    """

    dataset: str
    account: Account
    share: int
    document: Mapping[str, Any]
    tariff: Tariff
    steps: tuple[int, ...]
    purses: tuple[Purse, ...]
    first_month: Mapping[str, int]
    restored: bool

    def spent_by(self, analysts: Collection[str] | None) -> int:
        """What these analysts, or all of them, have spent."""
        if analysts is None:
            return self.account.farthings_spent
        return sum(purse.farthings_spent for purse in self.purses if purse.analyst in analysts)

    def level(self, spent: int) -> int:
        """The level that this much spending has reached."""
        return level_reached(self.steps, spent)

    @property
    def reach(self) -> int:
        """What all analysts together can ever spend, as it is granted."""
        if self.restored or any(purse.renewal is not None for purse in self.purses):
            return self.account.farthings
        return self.reach_in_a_month

    @property
    def reach_in_a_month(self) -> int:
        """What all analysts together can reserve in any one month."""
        if self.restored:
            return self.account.farthings
        return min(sum(purse.farthings for purse in self.purses), self.account.farthings)

    @property
    def purses_are_separate(self) -> bool:
        """Whether the cap can never refuse what a purse allows.

        Then what one analyst is refused depends on their own purse only. Otherwise it may depend
        on what others have spent, which depends on the data, and their spending must be counted.
        """
        return self._cap_suffices() and all(purse.renewal is None for purse in self.purses)

    @property
    def purses_are_separate_by_now(self) -> bool:
        """The same up to the end of this month: whatever anybody was answered, the cap was and
        is large enough for all that the purses have ever held."""
        return self._cap_suffices()

    def _cap_suffices(self) -> bool:
        renewing = [purse.month for purse in self.purses if purse.month is not None]
        now = max(map(month_number, renewing), default=0)
        months = [
            1 if purse.month is None else now - self.first_month[purse.analyst] + 1
            for purse in self.purses
        ]
        if self.restored:
            return False
        farthings = sum(n * p.farthings for n, p in zip(months, self.purses, strict=True))
        units = sum(n * p.delta_units for n, p in zip(months, self.purses, strict=True))
        return farthings <= self.account.farthings and units <= self.account.delta_units

    def own(self, analyst: str) -> list[int]:
        """What one analyst can spend of it in a lifetime or, if it renews, in a month."""
        return [
            min(purse.farthings, self.account.farthings)
            for purse in self.purses
            if purse.analyst == analyst
        ]

    def profile(self, farthings: int, delta: float) -> AccountProfile:
        """What it reveals when this much is spent; what is usually stated is computed at once."""
        own = {min(purse.farthings, self.account.farthings) for purse in self.purses}
        usual = {*self.steps, *own, self.reach, self.reach_in_a_month}
        stated = frozenset({*usual, farthings})
        return profiles_when_spent(self.tariff, stated, delta)[farthings]

    def reached_by(self, analysts: Collection[str], delta: float) -> AccountProfile:
        """What it reveals when these analysts have spent everything they were granted of it."""
        granted = sum(sum(self.own(name)) for name in analysts)
        return self.profile(min(granted, self.account.farthings), delta)

    def whole(self, delta: float) -> AccountProfile:
        """What it reveals when it is spent to its cap."""
        return self.profile(self.account.farthings, delta)


@dataclass(frozen=True, slots=True)
class ListAccount:
    """A list that was registered in advance."""

    dataset: str
    account: Account
    share: int
    document: Mapping[str, Any]
    listed: Registered
    used: bool
    restored: bool

    def whole(self, delta: float) -> AccountProfile:
        """What it reveals when it is run whole."""
        return list_profile(self.listed.items, self.listed.adaptivity, delta)


def resting_on(accounts: Iterable[TariffAccount | ListAccount], *assumed: str) -> str | None:
    """What a number over these accounts assumes besides, in one clause."""
    restored = any(one.restored for one in accounts)
    return " and ".join((*assumed, RESTORED) if restored else assumed) or None


def accounts_together(reader: Reader, dataset: str) -> list[TariffAccount | ListAccount]:
    """Every account of a dataset and of all that are beside it; its own come first."""
    names = sorted(reader.beside(dataset), key=lambda name: (name != dataset, name))
    return [_account(reader, name, account) for name in names for account in reader.accounts(name)]


def _account(reader: Reader, dataset: str, account: Account) -> TariffAccount | ListAccount:
    opened = reader.entry(dataset, account.entry).fact
    restored = any(entry.number > account.entry for entry in reader.entries(dataset, Restore.kind))
    if isinstance(opened, OpenList):
        document = opened.document
        left = reader.lots(dataset, account.name)  # none of a list that was retired
        used = restored or any(lot.spent > 0 for lot in left)
        if not left and not used:
            taken = (entry.fact for entry in reader.entries(dataset, Reserve.kind))
            used = any(isinstance(one, Reserve) and one.account == account.number for one in taken)
        return ListAccount(
            dataset, account, opened.place, document, from_document(document), used, restored
        )
    if not isinstance(opened, OpenTariff):
        raise Damaged(f"entry {account.entry} opens no account", dataset, account.entry)
    certificate = opened.certificate
    first: dict[str, int] = {}
    for grant in (entry.fact for entry in reader.entries(dataset, Grant.kind)):
        if not isinstance(grant, Grant) or grant.account != account.number:
            continue
        if grant.month is not None:
            first.setdefault(grant.analyst, month_number(grant.month))
    return TariffAccount(
        dataset=dataset,
        account=account,
        share=opened.place,
        document=certificate,
        tariff=tariff_from_json(certificate["tariff"]),
        steps=levels(account.farthings, opened.levels),
        purses=tuple(p for p in reader.purses(dataset) if p.account == account.number),
        first_month=first,
        restored=restored,
    )
