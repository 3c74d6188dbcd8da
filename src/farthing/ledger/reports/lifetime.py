"""What can ever be learned: by each analyst, by all of them, from the data as a whole.

Each is the composition of accounts, of which a tariff counts with the farthings that can be
spent of it (docs/theory/odometer.md, "Several accounts"). The share of δ is that of the cap in a
reading, so that nobody reads more so far than ever.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from farthing.composition.accounts.account_profiles import (
    CAP_SHARE,
    AccountProfile,
    epsilon_if_opened_by_releases,
    epsilon_of,
    proved,
)
from farthing.ledger.reports.budget import (
    PLANNED,
    ListAccount,
    TariffAccount,
    accounts_together,
    resting_on,
)
from farthing.ledger.roles.reader import Reader

UNPLANNED = "whatever led to opening these accounts (sum of their epsilons, an ex-post statement)"

#: An account, and how many farthings of it count; None for a list, which counts whole.
AccountPart: TypeAlias = tuple[TariffAccount | ListAccount, int | None]


class Lifetimes:
    """The accounts of a dataset and of those beside it, each spent to the end."""

    def __init__(self, reader: Reader, dataset: str, delta: float) -> None:
        self.dataset = dataset
        self.delta = delta
        self.accounts = accounts_together(reader, dataset)
        self.tariffs = [one for one in self.accounts if isinstance(one, TariffAccount)]
        self.planned = resting_on(self.accounts, PLANNED)
        self._known: dict[tuple[tuple[str, int, int | None], ...], float | None] = {}

    def whole(self) -> list[dict[str, Any]]:
        """All accounts, whoever is granted what of them, under two assumptions."""
        if not self.accounts:
            nothing = "no account was opened; nothing is released"
            return [{"epsilon": 0.0, "delta": 0.0, "if": nothing}]
        return [
            {**self._row([(one, _cap(one)) for one in self.accounts]), "if": self.planned},
            {
                "epsilon": self.whatever_led_to_them(),
                "delta": self.delta,
                "if": resting_on(self.accounts, UNPLANNED),
            },
        ]

    def whatever_led_to_them(self) -> float | None:
        """ε of all accounts, should releases have led to opening them. None if not proved."""
        return proved(
            lambda: epsilon_if_opened_by_releases(
                [(one.share, one.whole(self.delta)) for one in self.accounts], self.delta
            )
        )

    def per_analyst(self) -> list[dict[str, Any]]:
        """Every analyst with all of their accounts; all together where the cap can refuse them."""
        separate = all(one.purses_are_separate for one in self.tariffs)
        names = {purse.analyst for one in self.tariffs for purse in one.purses}
        names |= {one.account.analyst for one in self.accounts if one.account.analyst}
        return [
            {
                "analyst": name,
                **self._row(self._held_by(name) if separate else self._held_by_all()),
                "if": self.planned,
            }
            for name in sorted(names)
        ]

    def colluding(self) -> dict[str, Any]:
        """All analysts who pool what they see, as far as their purses reach."""
        return {**self._row(self._held_by_all()), "if": self.planned}

    def together(self, analysts: Collection[str]) -> float | None:
        """ε of these analysts as one; of all of them where the cap can refuse them."""
        if not all(one.purses_are_separate for one in self.tariffs):
            return self.of(self._held_by_all())
        granted: list[AccountPart] = [
            (one, sum(sum(one.own(name)) for name in analysts)) for one in self.tariffs
        ]
        listed: list[AccountPart] = [
            (one, None) for one in self.accounts if one.account.analyst in analysts
        ]
        return self.of([part for part in granted if part[1]] + listed)

    def of(self, parts: Sequence[AccountPart]) -> float | None:
        """ε of these accounts together; the same are composed once. None if not proved."""
        key = tuple((one.dataset, one.account.number, spent) for one, spent in parts)
        if key not in self._known:
            self._known[key] = proved(
                lambda: epsilon_of(
                    [self._profile(*part) for part in parts], self.delta, share=CAP_SHARE
                )
            )
        return self._known[key]

    def _profile(self, one: TariffAccount | ListAccount, spent: int | None) -> AccountProfile:
        if isinstance(one, TariffAccount) and spent is not None:
            return one.profile(spent, self.delta)
        return one.whole(self.delta)

    def _held_by(self, analyst: str) -> list[AccountPart]:
        purses: list[AccountPart] = [(one, own) for one in self.tariffs for own in one.own(analyst)]
        return purses + [(one, None) for one in self.accounts if one.account.analyst == analyst]

    def _held_by_all(self) -> list[AccountPart]:
        return [
            (one, one.reach if isinstance(one, TariffAccount) else None) for one in self.accounts
        ]

    def _row(self, parts: Sequence[AccountPart]) -> dict[str, Any]:
        return {
            "epsilon": self.of(parts),
            "delta": self.delta,
            "accounts": [self.label(one) for one, _ in parts],
        }

    def label(self, one: TariffAccount | ListAccount) -> str:
        """How an account is called in a statement: its number, and the dataset if not this one."""
        number = str(one.account.number)
        return number if one.dataset == self.dataset else f"{number} of {one.dataset}"


def _cap(one: TariffAccount | ListAccount) -> int | None:
    return one.account.farthings if isinstance(one, TariffAccount) else None
