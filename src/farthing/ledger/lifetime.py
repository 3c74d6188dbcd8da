"""What can ever be learned: by each analyst, by all of them, from the dataset as a whole.

Each is the composition of accounts, of which a tariff counts with the farthings that can be
spent of it (docs/theory/odometer.md, "Several accounts").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from farthing.errors import FarthingError
from farthing.ledger import lists
from farthing.ledger.blocks import Part, epsilon_of, list_part
from farthing.ledger.facts import TARIFF, Account, Purse
from farthing.ledger.odometer import PLANNED, parts_of, purses_are_separate, within_reach
from farthing.ledger.reading import Reader

UNPLANNED = "whatever led to opening these accounts (sum of their epsilons, an ex-post statement)"


class Lifetimes:
    """The accounts of a dataset, each spent to the end."""

    def __init__(self, ledger: Reader, dataset: str, delta: float) -> None:
        self.ledger = ledger
        self.dataset = dataset
        self.delta = delta
        self.books: list[Account] = ledger.accounts(dataset)
        self.purses: list[Purse] = ledger.purses(dataset)
        self._parts: dict[tuple[int, int], Part] = {}
        self._known: dict[tuple[tuple[int, int], ...], float | None] = {}

    def whole(self) -> list[dict[str, Any]]:
        """All accounts, whoever is granted what of them, under two assumptions."""
        if not self.books:
            nothing = "no account was opened; nothing is released"
            return [{"epsilon": 0.0, "delta": 0.0, "if": nothing}]
        caps = [(book.number, book.farthings) for book in self.books]
        return [
            {**self._row(caps), "if": PLANNED},
            {"epsilon": proved(self._sum), "delta": self.delta, "if": UNPLANNED},
        ]

    def per_analyst(self) -> list[dict[str, Any]]:
        """Every analyst with all of their accounts; all together where the cap can refuse them."""
        tariffs = [book for book in self.books if book.mode == TARIFF]
        separate = all(purses_are_separate(book, self.purses) for book in tariffs)
        names = {p.analyst for p in self.purses} | {b.analyst for b in self.books if b.analyst}
        return [
            {
                "analyst": name,
                **self._row(self._held_by(name) if separate else self._held_by_all()),
                "if": PLANNED,
            }
            for name in sorted(names)
        ]

    def colluding(self) -> dict[str, Any]:
        """All analysts who pool what they see, as far as their purses reach."""
        return {**self._row(self._held_by_all()), "if": PLANNED}

    def part(self, account: int, farthings: int) -> Part:
        """What one account reveals when this much of it is spent; a list is spent whole."""
        if (account, farthings) not in self._parts:
            self._parts[account, farthings] = self._part(self.books[account - 1], farthings)
        return self._parts[account, farthings]

    def _part(self, book: Account, farthings: int) -> Part:
        if book.mode == TARIFF:
            return parts_of(self.ledger, self.dataset, book, self.purses, self.delta)[farthings]
        document = self.ledger.document(self.dataset, book.number)
        return list_part(lists.from_document(document), self.delta)

    def _held_by(self, analyst: str) -> list[tuple[int, int]]:
        caps = {book.number: book.farthings for book in self.books}
        purses = [
            (p.account, min(p.farthings, caps[p.account]))
            for p in self.purses
            if p.analyst == analyst
        ]
        return purses + [(book.number, 0) for book in self.books if book.analyst == analyst]

    def _held_by_all(self) -> list[tuple[int, int]]:
        return [
            (book.number, within_reach(book, self.purses) if book.mode == TARIFF else 0)
            for book in self.books
        ]

    def _row(self, held: list[tuple[int, int]]) -> dict[str, Any]:
        """ε of these accounts together; the same accounts are composed once."""
        key = tuple(held)
        if key not in self._known:
            self._known[key] = proved(
                lambda: epsilon_of([self.part(*pair) for pair in held], self.delta)
            )
        return {
            "epsilon": self._known[key],
            "delta": self.delta,
            "accounts": [number for number, _ in held],
        }

    def _sum(self) -> float:
        parts = [self.part(book.number, book.farthings) for book in self.books]
        shares = (epsilon_of([p], self.delta / 2**i) for i, p in enumerate(parts, start=1))
        return sum(shares) * (1 + 1e-12)


def proved(compute: Callable[[], float]) -> float | None:
    """None where nothing is proved at this δ; never a guess."""
    try:
        return float(compute())
    except FarthingError:
        return None
