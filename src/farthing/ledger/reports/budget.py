"""The budget of some data: all accounts of a dataset and of those beside it, with their purses.

`Lifetimes` says what can ever be learned from them: by each analyst, by all of them, from the data
as a whole. Each is a composition of accounts, where a tariff counts with the farthings that can be
spent of it (docs/theory/odometer.md, "Several accounts"). The share of δ is that of the cap in a
reading, so nobody reads more so far than ever.

`odometer` says what was revealed so far, as a guarantee that holds at any moment. How much is spent
at a moment depends on the answers, so the profile of that amount is not by itself a guarantee.
Levels ℓ_1 < … < ℓ_m are fixed when the tariff is signed; a reading takes the smallest level not
below what is spent. A small share of δ is for the levels below the cap, the rest belongs to the
cap, and a level never reads more than the cap. Then for every event S of the whole view

    P[S] ≤ Σ_j e^{ε_j} Q[S, level = j] + δ.

For every view the loss is at most the sum of the pure ε's that were bought in it, so a reading is
the smaller of ε_j and that sum. Both are proved, with several accounts and for any coalition, in
docs/theory/odometer.md. A coalition is several analysts who pool what they see. They are one
adversary: their purses add up, and their conversations, however interleaved, cost what was paid
when they were opened (docs/theory/concurrency.md, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from farthing.composition.accounts.account_profiles import (
    CAP_SHARE,
    AccountProfile,
    epsilon_at_levels,
    epsilon_if_opened_by_releases,
    epsilon_of,
    level_reached,
    levels,
    list_profile,
    profiles_when_spent,
    proved,
)
from farthing.composition.tariffs.tariff import Tariff, tariff_from_json
from farthing.errors import InvalidInput, require_real
from farthing.guarantees.losses import loss_of
from farthing.ledger.entries.analyst import Reserve
from farthing.ledger.entries.owner import Grant, OpenList, OpenTariff, Restore
from farthing.ledger.errors import Damaged, NotInLedger
from farthing.ledger.records import Account, Purse, month_number
from farthing.ledger.registered_lists import Registered, from_document
from farthing.ledger.reports.history import bought_items, conversations_held
from farthing.ledger.roles.reader import Reader
from farthing.numerics.rounding import float_up

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
    everybody counts, with everything. `analysts` are those who may spend of it.
    """

    dataset: str
    record: Account
    share: int
    document: Mapping[str, Any]
    restored: bool
    analysts: frozenset[str]


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

    def held_by(self, analysts: Collection[str] | None) -> int:
        """What these analysts (None: all that it can hold) can spend of it in a lifetime or, if
        their purses renew, in a month."""
        if analysts is None:
            return self.cap
        granted = (purse.farthings for purse in self.purses if purse.analyst in analysts)
        return min(sum(granted), self.cap)

    @property
    def cap(self) -> int:
        """What can ever be spent of it, whoever is granted what."""
        return self.record.farthings

    @property
    def reach(self) -> int:
        """What all analysts together can ever spend of what they were granted."""
        renews = any(purse.renewal is not None for purse in self.purses)
        return self.cap if renews else self.reach_in_a_month

    @property
    def reach_in_a_month(self) -> int:
        """What all analysts together can reserve in any one month."""
        return self.cap if self.restored else self.held_by(self.analysts)

    @property
    def purses_are_separate(self) -> bool:
        """Whether the cap can never refuse what a purse allows.

        Then an analyst's refusals depend on their own purse only. Otherwise they may depend on what
        others have spent, which depends on the data, and that spending must be counted.
        """
        renews = any(purse.renewal is not None for purse in self.purses)
        return self.purses_are_separate_by_now and not renews

    @property
    def purses_are_separate_by_now(self) -> bool:
        """The same until the end of this month: the cap suffices for all that the purses have ever
        held."""
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

    def profile(self, spent: int, delta: float) -> AccountProfile:
        """What it reveals when this much is spent; the usual amounts are computed together."""
        own = {min(purse.farthings, self.cap) for purse in self.purses}
        usual = {*self.steps, *own, self.reach, self.reach_in_a_month}
        stated = frozenset({*usual, spent})
        return profiles_when_spent(self.tariff, stated, delta)[spent]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAccount(BudgetAccount):
    """A list that was registered in advance; it has no farthings, and counts whole."""

    cap = reach = 0
    purses_are_separate = True

    listed: Registered
    used: bool

    def held_by(self, analysts: Collection[str] | None) -> int:  # noqa: ARG002 # as a tariff
        return 0

    def profile(self, spent: int, delta: float) -> AccountProfile:  # noqa: ARG002 # as a tariff
        """What it reveals when it is run whole."""
        return list_profile(self.listed.items, self.listed.adaptivity, delta)


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
            analysts=frozenset({opened.analyst}),
            listed=from_document(opened.document),
            used=used,
        )
    if not isinstance(opened, OpenTariff):
        raise Damaged(f"entry {record.entry} opens no account", dataset, record.entry)
    first: dict[str, int] = {}
    for _, grant in reader.facts(dataset, Grant):
        if grant.account == record.number and grant.month is not None:
            first.setdefault(grant.analyst, month_number(grant.month))
    purses = tuple(purse for purse in reader.purses(dataset) if purse.account == record.number)
    return TariffAccount(
        dataset=dataset,
        record=record,
        share=opened.place,
        document=opened.certificate,
        restored=restored,
        analysts=frozenset(purse.analyst for purse in purses),
        tariff=tariff_from_json(opened.certificate["tariff"]),
        steps=levels(record.farthings, opened.levels),
        purses=purses,
        first_month=first,
    )


#: An account, and how many farthings of it count; a list counts whole.
AccountPart: TypeAlias = tuple[TariffAccount | ListAccount, int]


class Lifetimes:
    """The accounts of a dataset and of those beside it, its own first, each spent to the end.

    `separate` says whether nobody's refusals depend on what others have spent. If it is False,
    every analyst counts as all of them.
    """

    def __init__(self, reader: Reader, dataset: str, delta: float) -> None:
        self.dataset = dataset
        self.delta = delta
        names = sorted(reader.beside(dataset), key=lambda name: (name != dataset, name))
        self.accounts = [
            _account(reader, name, record) for name in names for record in reader.accounts(name)
        ]
        self.analysts = {name for account in self.accounts for name in account.analysts}
        self.separate = all(account.purses_are_separate for account in self.accounts)
        self._known: dict[tuple[tuple[str, int, int], ...], float | None] = {}

    def whole(self) -> list[dict[str, Any]]:
        """All accounts, whatever is granted of them, under two assumptions."""
        if not self.accounts:
            nothing = "no account was opened; nothing is released"
            return [{"epsilon": 0.0, "delta": 0.0, "if": nothing}]
        return [
            self._row([(account, account.cap) for account in self.accounts]),
            {
                "epsilon": self.whatever_led_to_them(),
                "delta": self.delta,
                "if": self.resting_on(UNPLANNED),
            },
        ]

    def resting_on(self, *assumed: str) -> str | None:
        """The assumptions of a number over these accounts, in one clause."""
        restored = any(account.restored for account in self.accounts)
        return " and ".join((*assumed, RESTORED) if restored else assumed) or None

    def whatever_led_to_them(self) -> float | None:
        """ε of all accounts if releases led to opening them. None if not proved."""

        def whole() -> float:
            caps = [(one.share, one.profile(one.cap, self.delta)) for one in self.accounts]
            return epsilon_if_opened_by_releases(caps, self.delta)

        return proved(whole)

    def per_analyst(self) -> list[dict[str, Any]]:
        """Every analyst with all of their accounts; all analysts where the cap can refuse them."""
        names = sorted(self.analysts)
        return [{"analyst": name, **self._row(self._held_by({name}))} for name in names]

    def colluding(self) -> dict[str, Any]:
        """All analysts together, with everything that their purses hold."""
        return self._row(self._held_by_all())

    def together(self, analysts: Collection[str]) -> float | None:
        """ε of these analysts as one; of all analysts where the cap can refuse them."""
        return self.of(self._held_by(analysts))

    def of(self, parts: Sequence[AccountPart]) -> float | None:
        """ε of these accounts together, cached. None if not proved."""
        key = tuple((account.dataset, account.record.number, spent) for account, spent in parts)
        if key not in self._known:
            profiles = (account.profile(spent, self.delta) for account, spent in parts)
            self._known[key] = proved(
                lambda: epsilon_of(list(profiles), self.delta, share=CAP_SHARE)
            )
        return self._known[key]

    def _held_by(self, analysts: Collection[str]) -> list[AccountPart]:
        if not self.separate:
            return self._held_by_all()
        own = [account for account in self.accounts if not account.analysts.isdisjoint(analysts)]
        return [(account, account.held_by(analysts)) for account in own]

    def _held_by_all(self) -> list[AccountPart]:
        return [(account, account.reach) for account in self.accounts]

    def _row(self, parts: Sequence[AccountPart]) -> dict[str, Any]:
        return {
            "epsilon": self.of(parts),
            "delta": self.delta,
            "accounts": [self.label(account) for account, _ in parts],
            "if": self.resting_on(PLANNED),
        }

    def label(self, account: TariffAccount | ListAccount) -> str:
        """The name of an account in a statement: its number, and the dataset if it is another."""
        number = str(account.record.number)
        return number if account.dataset == self.dataset else f"{number} of {account.dataset}"


THEOREM = "odometer by levels of the tariff filter (docs/theory/odometer.md)"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a coalition has learned up to now is within (ε, δ), at the level it has reached.

    `analysts` is None for everybody together. `shared` means that the reading counts what everybody
    spent, because one analyst's refusals can depend on another's answers. `assuming` is what else
    the reading assumes; None for everybody over a single account.
    """

    dataset: str
    analysts: tuple[str, ...] | None
    epsilon: float
    delta: float
    farthings_spent: int
    level: int
    cap: int
    shared: bool
    assuming: str | None = None
    theorem: str = THEOREM

    def to_json(self) -> dict[str, Any]:
        analysts = None if self.analysts is None else list(self.analysts)
        return {**asdict(self), "analysts": analysts}


def odometer(
    reader: Reader, dataset: str, *, delta: float = 1e-6, analysts: Collection[str] | None = None
) -> Reading:
    """What these analysts together (None: all) have learned so far.

    A tariff counts with the level it has reached, a registered list whole if it was used, in this
    dataset and in all that are beside it.
    """
    delta = require_real("delta", delta, above=0, below=1)
    budget = Lifetimes(reader, dataset, delta)
    strangers = set(analysts or ()) - budget.analysts
    if strangers:
        raise NotInLedger(f"{min(strangers)} has no purse for {dataset}")
    shared = analysts is not None and not budget.separate
    counted = None if shared else analysts
    reached: list[AccountProfile] = []
    full: list[AccountProfile] = []
    cases, spent, level, cap = 1, 0, 0, 0
    for account in budget.accounts:
        if isinstance(account, TariffAccount):
            mine = account.spent_by(counted)
            at = level_reached(account.steps, mine)
            reached.append(account.profile(at, delta))
            full.append(account.profile(account.held_by(counted), delta))
            cases *= len(account.steps) + 1
            spent, level, cap = spent + mine, level + at, cap + account.cap
        elif counted is None or account.record.analyst in counted:
            whole = account.profile(0, delta)
            reached.append(whole if account.used else whole.unused)
            full.append(whole)
            cases *= 2
    at_levels = epsilon_at_levels(reached, full, cases, delta)
    planned = [PLANNED] if len(budget.accounts) > 1 or analysts is not None else []
    return Reading(
        dataset=dataset,
        analysts=None if analysts is None else tuple(sorted(analysts)),
        epsilon=min(at_levels, _pure_sum(reader, budget, counted)),
        delta=delta,
        farthings_spent=spent,
        level=level,
        cap=cap,
        shared=shared,
        assuming=budget.resting_on(*planned),
    )


def _pure_sum(reader: Reader, budget: Lifetimes, analysts: Collection[str] | None) -> float:
    """The sum of the pure ε's that these analysts (None: all) have bought; infinite if unknown.

    What was reserved counts, except what a release has shown to be unused. A book that was restored
    from a copy does not know what was bought after the copy was made.
    """
    total = Fraction(0)
    for account in budget.accounts:
        if account.restored:
            return math.inf
        if isinstance(account, TariffAccount):
            bought = bought_items(reader, account.dataset, account.record.number, analysts)
            uses = [(account.tariff.items[name][0], times) for name, times in bought.items()]
        elif account.used and (analysts is None or account.record.analyst in analysts):
            uses = list(account.listed.items)
        else:
            continue
        for guarantee, times in uses:
            epsilon = loss_of(guarantee).without_leak().pure_epsilon if times else 0.0
            if epsilon is None:
                return math.inf
            total += times * Fraction(epsilon)
    return float_up(total)


@dataclass(frozen=True, slots=True)
class Coalition:
    """What some analysts together have learned so far, and can ever learn.

    `epsilon` is over their lifetimes, None if it is not proved. `conversations` are those that they
    opened; both numbers count them.
    """

    analysts: tuple[str, ...]
    so_far: Reading
    epsilon: float | None
    delta: float
    conversations: tuple[dict[str, Any], ...] = field(repr=False)
    assuming: str = PLANNED

    def to_json(self) -> dict[str, Any]:
        return {
            "analysts": list(self.analysts),
            "so_far": self.so_far.to_json(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "conversations": list(self.conversations),
            "if": self.assuming,
        }


def coalition(
    reader: Reader, dataset: str, analysts: Collection[str], *, delta: float = 1e-6
) -> Coalition:
    """What these analysts learn as one, from this dataset and all that are beside it."""
    names = tuple(sorted(set(analysts)))
    if not names:
        raise InvalidInput("a coalition needs at least one analyst, got none")
    reading = odometer(reader, dataset, delta=delta, analysts=names)
    held = [
        {"dataset": beside, **conversation}
        for beside in reader.beside(dataset)
        for conversation in conversations_held(reader, beside)
        if conversation["analyst"] in names
    ]
    epsilon = Lifetimes(reader, dataset, delta).together(names)
    return Coalition(names, reading, epsilon, delta, tuple(held))
