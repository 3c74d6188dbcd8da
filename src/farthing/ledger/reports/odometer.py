"""What has been revealed so far, as a guarantee that holds at any moment; for coalitions too.

How much is spent at a moment depends on the answers, so the profile of that amount is not by
itself a guarantee. Levels ℓ_1 < … < ℓ_m are fixed when the tariff is signed; a reading takes the
smallest level not below what is spent. A small share of δ is for the levels below the cap, the rest
belongs to the cap, and a level never reads more than the cap. Then for every event S of the
whole view

    P[S] ≤ Σ_j e^{ε_j} Q[S, level = j] + δ.

For every view the loss is at most the sum of the pure ε's that were bought in it, so a reading is
the smaller of ε_j and that sum. Both are proved, with several accounts and for any coalition, in
docs/theory/odometer.md.

A coalition is several analysts who pool what they see. They are one adversary: their purses add up,
and their conversations, however interleaved, cost what was paid when they were opened
(docs/theory/concurrency.md, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from farthing.composition.accounts.account_profiles import AccountProfile, epsilon_at_levels
from farthing.errors import InvalidInput, require_real
from farthing.guarantees.losses import loss_of
from farthing.ledger.errors import NotInLedger
from farthing.ledger.reports.budget import (
    PLANNED,
    Lifetimes,
    ListAccount,
    TariffAccount,
    accounts_together,
    resting_on,
)
from farthing.ledger.reports.history import bought_items, conversations_held
from farthing.ledger.roles.reader import Reader
from farthing.numerics.rounding import float_up

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
    accounts = accounts_together(reader, dataset)
    if analysts is not None:
        _refuse_strangers(accounts, set(analysts), dataset)
    tariffs = [account for account in accounts if isinstance(account, TariffAccount)]
    shared = analysts is not None and not all(account.purses_are_separate for account in tariffs)
    counted = None if shared else analysts
    reached: list[AccountProfile] = []
    full: list[AccountProfile] = []
    cases, spent, level, cap = 1, 0, 0, 0
    for account in accounts:
        if isinstance(account, TariffAccount):
            mine = account.spent_by(counted)
            at = account.level(mine)
            reached.append(account.profile(at, delta))
            full.append(
                account.whole(delta) if counted is None else account.reached_by(counted, delta)
            )
            cases *= len(account.steps) + 1
            spent, level, cap = spent + mine, level + at, cap + account.record.farthings
        elif counted is None or account.record.analyst in counted:
            whole = account.whole(delta)
            reached.append(whole if account.used else whole.unused)
            full.append(whole)
            cases *= 2
    return Reading(
        dataset=dataset,
        analysts=None if analysts is None else tuple(sorted(analysts)),
        epsilon=min(
            epsilon_at_levels(reached, full, cases, delta), pure_sum(reader, accounts, counted)
        ),
        delta=delta,
        farthings_spent=spent,
        level=level,
        cap=cap,
        shared=shared,
        assuming=resting_on(
            accounts, *([PLANNED] if len(accounts) > 1 or analysts is not None else [])
        ),
    )


def pure_sum(
    reader: Reader,
    accounts: Collection[TariffAccount | ListAccount],
    analysts: Collection[str] | None,
) -> float:
    """The sum of the pure ε's that these analysts (None: all) have bought; infinite if unknown.

    What was reserved counts, except what a release has shown to be unused. A book that was restored
    from a copy does not know what was bought after the copy was made.
    """
    total = Fraction(0)
    for account in accounts:
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


def _refuse_strangers(
    accounts: list[TariffAccount | ListAccount], analysts: set[str], dataset: str
) -> None:
    known = {account.record.analyst for account in accounts if isinstance(account, ListAccount)}
    tariffs = (account for account in accounts if isinstance(account, TariffAccount))
    known |= {purse.analyst for account in tariffs for purse in account.purses}
    if analysts - known:
        raise NotInLedger(f"{min(analysts - known)} has no purse for {dataset}")


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
