"""Which grid a list needs, and what composing it there costs, also where the order is left open.

The cost is counted before anything is computed, in evaluations of one cell of the bounded-range
operator (about one nanosecond); what would take longer than WORK_LIMIT is not begun.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from farthing.composition.adaptive.operators import BoundedRangeChoice
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import Losses, losses_of
from farthing.guarantees.kinds import BoundedRange
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import up
from farthing.numerics.binomial import MOST_TRIALS
from farthing.numerics.curves import Chords, Grid

#: Bounded-range parameters and how often each is used.
Choices = tuple[tuple[float, int], ...]

#: Prices at most.
DEAREST = 2_000
#: Numbers in all profiles that are kept at once, at most.
MOST_NUMBERS = 6e7


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """The order chosen as you go, among several bounded-range parameters: its supremum from above.

    For the largest parameters the remaining uses are counted. The others get prices, and the total
    price of their uses may be spent on them in any way. Every play of the list is one of these
    ways, so the supremum over all ways to spend is an upper bound, and with prices ∝ ε² little is
    lost (docs/theory/order.md). With one priced parameter nothing is lost.
    """

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


#: Cost of a bounded-range group above which it is cut into blocks.
DIRECT_WORK = 2e9
#: Cost of a whole answer at most: about six seconds on one core.
WORK_LIMIT = 6e9
#: Steps that a grid may have between 0 and its right end, and points in all.
FINEST_GRID = 50_000
MOST_POINTS = 1_000_000
#: Cells between 0 and the right end at a fineness of 8e-3, at least: near Σε profiles bend there.
FEWEST_CELLS = 400
#: Beyond this ε e^ε leaves the range of floats.
FARTHEST = 650.0
#: Sequences that are tried where every choice is fixed in advance: orders for all parameters, then
#: places for each of the most frequent ones.
ORDERS, PLACES, MOVED = 9, 13, 3

#: Costs of one multiplication in a convolution, of one cell and one atom in a sum of shifted
#: lines, and of making one atom in ball arithmetic and in floats.
CONVOLVED, SHIFTED, PER_SHIFT, IN_BALLS, IN_FLOATS = 0.1, 2.0, 4e3, 4e3, 20.0


@dataclass(frozen=True, slots=True)
class Blocks:
    """A long bounded-range group as `number` equal blocks, each computed on its own grid."""

    number: int
    length: int
    inside: Grid

    def work(self, epsilon: float) -> float:
        """One block, in evaluations of one cell."""
        return _choices_cost(self.inside, epsilon, self.length)


@dataclass(frozen=True, slots=True)
class Layout:
    """The grid, and the bounded-range parameters whose groups are cut into blocks."""

    grid: Grid
    blocked: frozenset[float]
    fineness: float
    delta: float

    @staticmethod
    def of(items: Losses, fineness: float, delta: float, *, whole: bool) -> Layout | None:
        """Direct if that is cheap enough, else with the long groups in blocks.

        None if there is nothing to see on any grid, if e^x would leave the range of floats, or for
        more points than MOST_POINTS.
        """
        grid = _grid(items, fineness, delta, frozenset(), whole=whole)
        if grid is None:
            return None
        direct = Layout(grid, frozenset(), fineness, delta)
        long = frozenset(
            epsilon
            for epsilon, count in items.choices()
            if count > 2 * _block_length(fineness)
            and direct.choices_cost(epsilon, count) > DIRECT_WORK
        )
        if not long:
            return direct
        grid = _grid(items, fineness, delta, long, whole=whole)
        return None if grid is None else Layout(grid, long, fineness, delta)

    def choices_cost(self, epsilon: float, count: float) -> float:
        """`count` bounded-range steps on this grid, both sides."""
        return _choices_cost(self.grid, epsilon, count)

    def any_order(self, choices: tuple[tuple[float, int], ...]) -> AnyOrder:
        """How the order of these is left open, in about a third of the time that there is."""
        each = sum(self.choices_cost(epsilon, 1) for epsilon, _ in choices)
        return AnyOrder.of(choices, self.fineness, 0.3 * WORK_LIMIT / each, self.grid.size)

    def work(self, items: Losses, adaptivity: str) -> float:
        """About how many cell evaluations the whole answer takes."""
        choices = items.unordered().choices()
        fixed = sum(self._fixed_cost(loss, n) for loss, n in items.split()[1])
        trials = ORDERS + PLACES * min(len(choices), MOVED) if adaptivity == "none" else 0
        if trials and choices:
            fixed *= trials
        if adaptivity == "setwise" and len(choices) > 1:
            states = self.any_order(choices).states
            return fixed + sum(self.choices_cost(epsilon, states) for epsilon, _ in choices)
        return fixed + sum(self._group_cost(epsilon, n, trials) for epsilon, n in choices)

    def _group_cost(self, epsilon: float, count: int, trials: int) -> float:
        """Bounded range: the steps, or the steps of one block and the convolution of all blocks."""
        if epsilon not in self.blocked:
            responses = trials * self._responses_cost(epsilon, count) if trials else 0.0
            return self.choices_cost(epsilon, count) + responses
        blocks = blocks_of(epsilon, count, self.fineness, self.delta)
        if blocks is None:
            return math.inf
        played = max(trials, 1)
        return (
            blocks.work(epsilon)
            + self._power_cost(blocks.inside.size * blocks.inside.step, blocks.number)
            + played * self._responses_cost(epsilon, count)
        )

    def _fixed_cost(self, given: Loss, uses: int) -> float:
        if given.outcomes_apart is not None:
            return self._responses_cost(given.outcomes_apart, uses)
        loss, count = given.as_one(uses)
        reach = loss.reach(self.delta * 1e-7)
        made = loss.number_of_atoms(self.grid.step, reach)
        spread = loss.spread(reach)
        if loss.on_lattice(count):
            deviation = math.sqrt(count * loss.mean_and_variance()[1])
            cells = self._cells(20 * deviation + spread)
            return made * IN_BALLS + 100 * cells + 2 * CONVOLVED * cells * self.grid.size
        atoms = min(made, self._cells(spread))
        return (
            made * (IN_BALLS if loss.by_balls else IN_FLOATS)
            + self._power_cost(spread, count)
            + count * self._shift_cost(atoms)
        )

    def _responses_cost(self, spacing: float, count: int) -> float:
        """`count` randomized responses with losses `spacing` apart, as one loss."""
        if count > MOST_TRIALS:
            return math.inf
        atoms = min(count + 1.0, 80 * math.sqrt(count))
        merged = min(atoms, self._cells(atoms * spacing))
        return atoms * IN_FLOATS + self._shift_cost(merged)

    def _shift_cost(self, atoms: float) -> float:
        """One application to both sides."""
        return atoms * ((SHIFTED + CONVOLVED) * self.grid.size + PER_SHIFT)

    def _power_cost(self, spread: float, count: int) -> float:
        """Repeated squaring of a loss that is `spread` wide, and its application."""
        most = 2.0 * self.grid.size
        cost, square, left = 0.0, self._cells(spread), count - 1
        result = square
        while left > 0:
            if left & 1:
                cost += 2 * CONVOLVED * result * square
                result = min(result + square, most)
            left >>= 1
            cost += 2 * CONVOLVED * square**2 if left > 0 else 0.0
            square = min(2 * square, most)
        return cost + CONVOLVED * result * self.grid.size

    def _cells(self, spread: float) -> float:
        return min(spread / self.grid.step + 1, 2.0 * self.grid.size)


def blocks_of(epsilon: float, count: int, fineness: float, delta: float) -> Blocks | None:
    """How a group is cut, or None if no grid shows one block of it."""
    number = max(1, round(count / _block_length(fineness)))
    length = math.ceil(count / number)
    one = losses_of([(BoundedRange(epsilon), length)])
    inside = _grid(one, fineness / 2, delta * 1e-3 / number, frozenset(), whole=True)
    return None if inside is None else Blocks(number, length, inside)


def aligned(step: float, epsilons: list[float]) -> float:
    """`step` or a little less, so that the smallest of these ε is a whole number of cells."""
    if not epsilons or min(epsilons) <= step:
        return step
    return math.nextafter(min(epsilons) / math.ceil(min(epsilons) / step), math.inf)


def _grid(
    items: Losses, fineness: float, delta: float, blocked: frozenset[float], *, whole: bool
) -> Grid | None:
    """The step makes the variance that interpolation adds a `fineness` of the whole.

    To the right the grid ends where the profile is negligible beside `delta`, at some R. The
    value at ε depends on points left of ε − R only through losses above R, so unless the whole
    profile is wanted it starts there. Counts of one parameter that differ little share a grid.
    """
    variance = sum(count * loss.mean_and_variance()[1] for loss, count in items)
    steps = sum(_interpolations(g, count, blocked, fineness) for g, count in items)
    longer = _rounded_up(items)
    moments, everything = MomentBound(longer), longer.epsilon_sum()
    reach = moments.epsilon_at(max(delta * 1e-5, 1e-290))
    reach = reach if everything is None else min(reach, up(everything))
    if not 0 < reach <= FARTHEST or not 0 < variance < math.inf:
        return None
    step = math.sqrt(fineness * variance / (0.2 * steps))
    fewest = FEWEST_CELLS / math.sqrt(min(1.0, fineness / 8e-3))
    step = min(max(step, reach / FINEST_GRID), reach / fewest)
    ends = [loss.heavy_end for loss, _ in items]
    step = aligned(step, [*items.ranges, *(end for end in ends if end is not None)])
    left = reach if whole else reach - 0.7 * min(moments.epsilon_at(delta), reach)
    grid = Grid(step, math.ceil(left / step) + 2, math.ceil(reach / step) + 2)
    return grid if grid.size <= MOST_POINTS else None


def _rounded_up(items: Losses) -> Losses:
    """One bounded-range parameter with a count of five binary digits and zeros; others as is."""
    if len(items) > 1 or not items.ranges:
        return items
    ((loss, count),) = items
    unit = 1 << max(0, count.bit_length() - 5)
    return Losses(((loss, -(-count // unit) * unit),))


def _choices_cost(grid: Grid, epsilon: float, count: float) -> float:
    return count * grid.size * (epsilon / grid.step + 1)


def _block_length(fineness: float) -> int:
    return max(32, math.ceil(1.7 / fineness))


def _interpolations(loss: Loss, count: int, blocked: frozenset[float], fineness: float) -> int:
    """How often the profile is interpolated for this group."""
    if loss.chosen_range in blocked:
        return count // _block_length(fineness)
    return 1 if loss.outcomes_apart is not None else loss.as_one(count)[1]
