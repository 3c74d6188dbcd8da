"""The order chosen as you go, among several bounded-range parameters: its supremum from above.

For the largest parameters the remaining uses are counted. The others get prices, and the total
price of their uses may be spent on them in any way. Every play of the list is one of these ways, so
the supremum over all ways to spend is an upper bound, and with prices ∝ ε² little is lost
(docs/theory/order.md). With one priced parameter nothing is lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from farthing.composition.adaptive.operators import BoundedRangeChoice
from farthing.numerics.curves import Chords

#: Bounded-range parameters and how often each is used.
Choices = tuple[tuple[float, int], ...]

#: Prices at most.
DEAREST = 2_000
#: Numbers in all profiles that are kept at once, at most.
MOST_NUMBERS = 6e7


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """Which parameters are counted, and what the others cost."""

    counted: Choices
    priced: Choices
    prices: tuple[int, ...]

    @staticmethod
    @lru_cache(maxsize=256)
    def of(choices: Choices, fineness: float, most_states: float, points: int) -> AnyOrder:
        """As many parameters counted as `most_states` profiles of `points` points allow."""
        large_first = tuple(sorted(choices, reverse=True))
        for number in range(len(choices) - 1, 0, -1):
            priced = large_first[number:]
            layout = AnyOrder(large_first[:number], priced, prices(priced, fineness))
            if layout.states <= most_states and layout._kept * points <= MOST_NUMBERS:
                return layout
        return AnyOrder((), large_first, prices(large_first, fineness))

    @property
    def states(self) -> int:
        """How often the operator of every parameter is applied."""
        return math.prod(count + 1 for _, count in self.counted) * (self._budget + 1)

    @property
    def _budget(self) -> int:
        return sum(n * price for (_, n), price in zip(self.priced, self.prices, strict=True))

    @property
    def _kept(self) -> int:
        return 2 * math.prod(count + 1 for _, count in self.counted[1:]) * (self._budget + 1)

    def above(self, later: Chords) -> Chords:
        """Chords above the list in whatever order, before `later`."""
        counted = [BoundedRangeChoice(epsilon) for epsilon, _ in self.counted]
        rows: dict[tuple[int, ...], list[Chords]] = {}
        for left in product(*(range(count + 1) for _, count in self.counted)):
            fewer = [
                (operator, rows[(*left[:i], left[i] - 1, *left[i + 1 :])])
                for i, operator in enumerate(counted)
                if left[i] > 0
            ]
            rows[left] = self._row(later, fewer)
            if left and left[0] > 0:  # rows with two fewer of the first are not needed again
                rows.pop((left[0] - 2, *left[1:]), None)
        return rows[tuple(count for _, count in self.counted)][-1]

    def _row(
        self, later: Chords, fewer: list[tuple[BoundedRangeChoice, list[Chords]]]
    ) -> list[Chords]:
        """V for every number of farthings b: the best of V_{b−1}, of buying, of using another."""
        operators = [BoundedRangeChoice(epsilon) for epsilon, _ in self.priced]
        row: list[Chords] = []
        for b in range(self._budget + 1):
            best = row[-1] if row else later
            for operator, price in zip(operators, self.prices, strict=True):
                if price <= b:
                    best = best.larger(operator.above(row[b - price]))
            for operator, before in fewer:
                best = best.larger(operator.above(before[b]))
            row.append(best)
        return row


@lru_cache(maxsize=256)
def prices(choices: Choices, fineness: float) -> tuple[int, ...]:
    """Whole-number prices ∝ ε², as coarse as a relative loss of `fineness`/2 in ε allows.

    Moments of the loss grow like Σ ε², of which a farthing buys at most max ε²/price.
    """
    squares = [epsilon**2 for epsilon, _ in choices]
    exact = sum(count * square for (_, count), square in zip(choices, squares, strict=True))
    best, least = tuple(1 for _ in choices), math.inf
    unit, finest = max(squares), max(min(squares) / 64, max(squares) / DEAREST)
    while unit > finest and least > 0.5 * fineness:
        tried = tuple(max(1, round(square / unit)) for square in squares)
        total = sum(count * price for (_, count), price in zip(choices, tried, strict=True))
        bought = max(square / price for square, price in zip(squares, tried, strict=True))
        loss = 0.5 * (total * bought / exact - 1)
        if loss < least:
            best, least = tried, loss
        unit *= 0.99
    common = math.gcd(*best)
    return tuple(price // common for price in best)
