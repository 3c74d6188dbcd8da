"""Exact probabilities of what a sparse vector answers, for noise with all of its infinite tails.

With a rational e^(−1/scale) everything is rational: beyond the heights that are compared, the
chance of an answer is a polynomial in the power of one number, and the sum over the noise on the
threshold is a sum of geometric series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

#: How far a number lies above its threshold, and whether the answer was positive.
Compared = tuple[int, bool]


@dataclass(frozen=True)
class ExactSparseVector:
    """One threshold; `threshold` and `query` are e^(−1/scale) of the two noises."""

    threshold: Fraction
    query: Fraction

    def probability(self, compared: Sequence[Compared]) -> Fraction:
        """Σ_r Pr[ρ = r]·Π Pr[answer i | r]."""
        heights = [height for height, _ in compared]
        low, high = min(heights), max(heights) + 1
        inner = sum(
            (self._mass(r) * self._given(compared, r) for r in range(low + 1, high)), Fraction(0)
        )
        return inner + self._above(compared, high) + self._below(compared, low)

    def _mass(self, r: int) -> Fraction:
        a = self.threshold
        return (1 - a) / (1 + a) * a ** abs(r)

    def _tail(self, least: int) -> Fraction:
        """Pr[γ ≥ least]."""
        b = self.query
        return b**least / (1 + b) if least >= 1 else 1 - b ** (1 - least) / (1 + b)

    def _given(self, compared: Sequence[Compared], r: int) -> Fraction:
        chance = Fraction(1)
        for height, positive in compared:
            tail = self._tail(r - height)
            chance *= tail if positive else 1 - tail
        return chance

    def _above(self, compared: Sequence[Compared], start: int) -> Fraction:
        """r ≥ start, where every tail is c·u with u = query^r."""
        b = self.query
        polynomial = [Fraction(1)]
        for height, positive in compared:
            c = b**-height / (1 + b)
            polynomial = _times(polynomial, (Fraction(0), c) if positive else (Fraction(1), -c))
        return self._series(polynomial, start)

    def _below(self, compared: Sequence[Compared], end: int) -> Fraction:
        """r ≤ end, where every tail is 1 − c·w with w = query^(−r)."""
        b = self.query
        polynomial = [Fraction(1)]
        for height, positive in compared:
            c = b ** (1 + height) / (1 + b)
            polynomial = _times(polynomial, (Fraction(1), -c) if positive else (Fraction(0), c))
        return self._series(polynomial, -end)

    def _series(self, polynomial: Sequence[Fraction], start: int) -> Fraction:
        """Σ_{n ≥ start} Pr[ρ = n]·Σ_j polynomial[j]·query^(jn)."""
        total = Fraction(0)
        for n in range(start, 0):
            total += self._mass(n) * sum(
                (c * self.query ** (j * n) for j, c in enumerate(polynomial)), Fraction(0)
            )
        start = max(start, 0)
        a = self.threshold
        for j, coefficient in enumerate(polynomial):
            ratio = a * self.query**j
            total += (1 - a) / (1 + a) * coefficient * ratio**start / (1 - ratio)
        return total


def _times(left: Sequence[Fraction], right: Sequence[Fraction]) -> list[Fraction]:
    product = [Fraction(0)] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            product[i + j] += a * b
    return product
