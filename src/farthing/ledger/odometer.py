"""What has been spent so far, as a statement that is valid at any moment.

How much is spent at a moment depends on the answers, so the profile of that amount is not by
itself a guarantee. Levels ℓ_1 < … < ℓ_m are fixed when the tariff is signed; a reading takes the
smallest level not below what is spent. Half of δ is shared by the levels below the cap, half
belongs to the cap, and a level never reads more than the cap. Then for every event S of the
whole view

    P[S] ≤ Σ_j e^{ε_j} Q[S, level = j] + δ,

which is proved, with several accounts and for any coalition, in docs/theory/odometer.md.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.errors import require_real
from farthing.ledger import lists
from farthing.ledger.blocks import Part, epsilon_of, list_part, tariff_parts
from farthing.ledger.errors import NotInLedger
from farthing.ledger.facts import TARIFF, Account, Purse
from farthing.ledger.reading import Reader

THEOREM = "odometer by levels of the tariff filter (docs/theory/odometer.md)"
PLANNED = "the accounts and grants were decided without looking at releases"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a coalition has learned up to now is within (ε, δ), at the level it has reached.

    `analysts` is None for everybody together. `shared` says that the reading had to count
    what everybody spent, because one analyst's refusals can depend on another's answers.
    `assuming` is what a reading over several accounts rests on, None for a single one.
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
        return {
            "dataset": self.dataset,
            "analysts": None if self.analysts is None else list(self.analysts),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "farthings_spent": self.farthings_spent,
            "level": self.level,
            "cap": self.cap,
            "shared": self.shared,
            "assuming": self.assuming,
            "theorem": self.theorem,
        }


def levels(farthings: int, count: int) -> tuple[int, ...]:
    """Equal steps up to the cap, at most `count` of them."""
    return tuple(sorted({math.ceil(farthings * j / count) for j in range(1, count + 1)}))


def odometer(
    ledger: Reader, dataset: str, *, delta: float = 1e-6, analysts: Collection[str] | None = None
) -> Reading:
    """What these analysts together, or all of them, have learned so far.

    Of a tariff the level reached counts, of a registered list the whole if it was used.
    """
    delta = require_real("delta", delta, above=0, below=1)
    books, purses = ledger.accounts(dataset), ledger.purses(dataset)
    if analysts is not None:
        known = {purse.analyst for purse in purses} | {b.analyst for b in books if b.analyst}
        strangers = set(analysts) - known
        if strangers:
            raise NotInLedger(f"{min(strangers)} has no purse for {dataset}")
    tariffs = [book for book in books if book.mode == TARIFF]
    shared = analysts is not None and not all(purses_are_separate(b, purses) for b in tariffs)
    counted = None if shared else analysts
    parts: list[Part] = []
    full: list[Part] = []
    cases, spent, level, cap = 1, 0, 0, 0
    for book in books:
        if book.mode == TARIFF:
            mine = spent_by(book, purses, counted)
            steps = levels_of(ledger, dataset, book)
            reached = next((step for step in (0, *steps) if step >= mine), book.farthings)
            profiles = parts_of(ledger, dataset, book, purses, delta)
            parts.append(profiles[reached])
            full.append(profiles[book.farthings])
            cases *= len(steps) + 1
            spent, level, cap = spent + mine, level + reached, cap + book.farthings
        elif counted is None or book.analyst in counted:
            whole = list_part(lists.from_document(ledger.document(dataset, book.number)), delta)
            used = any(lot.spent > 0 for lot in ledger.lots(dataset, book.name))
            parts.append(whole if used else Part(None, whole.leak))
            full.append(whole)
            cases *= 2
    below = max(cases - 2, 1)  # neither nothing, which reveals nothing, nor everything
    epsilon = epsilon_of(parts, delta, share=0.5 / below)
    if epsilon > 0:
        epsilon = min(epsilon, epsilon_of(full, delta, share=0.5))
    return Reading(
        dataset,
        None if analysts is None else tuple(sorted(analysts)),
        epsilon,
        delta,
        spent,
        level,
        cap,
        shared,
        PLANNED if len(books) > 1 else None,
    )


def levels_of(ledger: Reader, dataset: str, book: Account) -> tuple[int, ...]:
    """The levels that were fixed when a tariff was signed."""
    return levels(book.farthings, ledger.entry(dataset, book.entry).fact["levels"])


def parts_of(
    ledger: Reader, dataset: str, book: Account, purses: list[Purse], delta: float
) -> Mapping[int, Part]:
    """V_b for every b that is ever stated about a tariff: one computation serves them all."""
    own = [min(p.farthings, book.farthings) for p in purses if p.account == book.number]
    stated = {*levels_of(ledger, dataset, book), *own, within_reach(book, purses)}
    return tariff_parts(ledger.tariff(dataset, book.number), frozenset(stated), delta)


def spent_by(book: Account, purses: list[Purse], analysts: Collection[str] | None) -> int:
    """What these analysts, or all of them, have spent of one tariff."""
    if analysts is None:
        return book.farthings_spent
    own = [p for p in purses if p.account == book.number and p.analyst in analysts]
    return sum(purse.farthings_spent for purse in own)


def within_reach(book: Account, purses: list[Purse]) -> int:
    """What all analysts together can ever spend of a tariff, as it is granted."""
    own = [purse for purse in purses if purse.account == book.number]
    if any(purse.renewal is not None for purse in own):
        return book.farthings
    return min(sum(purse.farthings for purse in own), book.farthings)


def purses_are_separate(book: Account, purses: list[Purse]) -> bool:
    """Whether the cap can never refuse what a purse allows.

    Then what one analyst is refused depends on their own purse only. Otherwise it may depend on
    what others have spent, which depends on the data, and their spending must be counted.
    """
    own = [purse for purse in purses if purse.account == book.number]
    return (
        all(purse.renewal is None for purse in own)
        and sum(purse.farthings for purse in own) <= book.farthings
        and sum(purse.delta_units for purse in own) <= book.delta_units
    )
