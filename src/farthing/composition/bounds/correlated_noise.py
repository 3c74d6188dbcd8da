"""Noise that is correlated between steps: one Gaussian mechanism, and its certified sensitivity.

x₁ … xₙ is what arrives step by step: numbers, or vectors such as clipped gradients. C·x + z is kept
for a strategy C and independent normal z, and running sums A·x are told as A·x + A·C⁻¹·z: noise of
one step takes back noise of earlier ones (DP-FTRL, matrix factorisation [DMRST22]). All of it is a
function of C·x + z, so it is one Gaussian mechanism with the ℓ2 sensitivity of C·x, also if x is
chosen from what was told before (docs/theory/correlated-noise.md). A unit adds vectors of length at
most 1 at the steps S that it takes part in. With G = CᵀC it changes C·x by at most
√Σ_{i,j∈S} |G_ij|, and by exactly that for some unit if no G_ij is negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from flint import arb, fmpz_mat

from farthing.composition.bounds import Bracket
from farthing.errors import InvalidInput, Unsupported, require_count, require_real
from farthing.guarantees.kinds import Gaussian
from farthing.numerics.ball import down, in_balls, up
from farthing.numerics.rounding import FloatArray, float_up, inflated

#: Steps of a strategy whose products of columns are listed.
MOST_STEPS = 2048
#: Sets of steps that are tried one by one.
MOST_SETS = 20_000

_EXACT = "the longest column of the strategy"
_EARLIEST = "decreasing Toeplitz strategy: the earliest steps are the worst [KL24]"
_EVERY = "every set of steps that a unit may take part in"
_ROWS = "the heaviest set of steps, each step with the heaviest others beside it"
_SIGNS = ", with absolute products of columns"


@dataclass(frozen=True, slots=True)
class Participation:
    """The steps that one unit may take part in.

    At most `times` steps, each at least `separation` steps after the one before, at most one in
    each `period` of so many steps; at each of them it adds a vector of length at most 1. With
    `total` instead, it adds vectors at any steps whose lengths add up to at most `total`.
    """

    times: int = 1
    separation: int = 1
    period: int = 1
    total: float | None = None

    def __post_init__(self) -> None:
        steps = {name: getattr(self, name) for name in ("times", "separation", "period")}
        for name, value in steps.items():
            object.__setattr__(self, name, require_count(name, value, at_least=1))
        if self.total is not None:
            if set(steps.values()) != {1}:
                raise InvalidInput("give a total, or times with separation and period; not both")
            object.__setattr__(self, "total", require_real("total", self.total, above=0))

    def after(self, step: int) -> int:
        """The first step, counted from 0, that may follow this one."""
        return max(step + self.separation, (step // self.period + 1) * self.period)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A matrix with a column for each step, exactly: whole numbers over one denominator.

    It has `rows`, or it is the lower triangular Toeplitz matrix with this first `column`.
    """

    steps: int
    denominator: int
    rows: tuple[tuple[int, ...], ...] = ()
    column: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        lengths = {len(line) for line in (*self.rows, *[self.column] * (self.column != ()))}
        if lengths != {self.steps} or self.steps < 1 or (self.rows and self.column):
            raise InvalidInput("a strategy must have rows of one length, or one column, not both")
        require_count("denominator", self.denominator, at_least=1)

    @classmethod
    def matrix(cls, rows: Iterable[Iterable[object]]) -> Strategy:
        """Any matrix. Floats are taken as they are; fractions are welcome."""
        exact = [[_exactly(entry) for entry in row] for row in rows]
        denominator = math.lcm(*(entry.denominator for row in exact for entry in row))
        whole = tuple(tuple(int(entry * denominator) for entry in row) for row in exact)
        return cls(len(whole[0]) if whole else 0, denominator, rows=whole)

    @classmethod
    def toeplitz(cls, column: Iterable[object], steps: int) -> Strategy:
        """Lower triangular, with the same numbers below each diagonal entry; zeros follow."""
        exact = [_exactly(entry) for entry in column]
        count = require_count("steps", steps, at_least=1)
        if not 0 < len(exact) <= count:
            raise InvalidInput(f"there must be 1 to {count} coefficients, got {len(exact)}")
        denominator = math.lcm(*(entry.denominator for entry in exact))
        whole = (*(int(entry * denominator) for entry in exact), *[0] * (count - len(exact)))
        return cls(count, denominator, column=whole)

    @classmethod
    def square_root(cls, steps: int, *, bands: int | None = None, bits: int = 64) -> Strategy:
        """The square root of the matrix of running sums: C(2k, k)/4^k, rounded to 2^−bits.

        With `bands`, only so many of them [FHU23; banded: KL24].
        """
        count = require_count("steps", steps, at_least=1)
        kept = min(count, require_count("bands", count if bands is None else bands, at_least=1))
        unit, guard = 1 << require_count("bits", bits, at_least=1), 64
        column, term = [], unit << guard
        for k in range(1, kept + 1):
            column.append((term + (1 << guard - 1)) >> guard)
            term = term * (2 * k - 1) // (2 * k)
        return cls(count, unit, column=(*column, *[0] * (count - kept)))

    @classmethod
    def binary_tree(cls, steps: int) -> Strategy:
        """A sum for every block of 1, 2, 4, … steps that ends within `steps` [DNPR10, CSS11]."""
        count = require_count("steps", steps, at_least=1)
        rows, size = [], 1
        while size <= count:
            for start in range(0, count - size + 1, size):
                rows.append(tuple(int(start <= step < start + size) for step in range(count)))
            size *= 2
        return cls(count, 1, rows=tuple(rows))

    @property
    def listed(self) -> tuple[tuple[int, ...], ...]:
        """The rows of whole numbers."""
        if self.rows:
            return self.rows
        before = self.column[::-1] + (0,) * self.steps
        return tuple(before[self.steps - 1 - i : 2 * self.steps - 1 - i] for i in range(self.steps))

    @property
    def decreasing(self) -> bool:
        """Whether it is Toeplitz, with numbers that fall and are never negative."""
        return bool(self.column) and all(a >= b >= 0 for a, b in pairwise((*self.column, 0)))

    def floats(self) -> FloatArray:
        """The matrix in floats, rounded to the nearest."""
        return np.array([[entry / self.denominator for entry in row] for row in self.listed])


@dataclass(frozen=True, slots=True)
class MatrixMechanism:
    """C·x + z as one Gaussian mechanism; `sensitivity` is a bracket of which `upper` counts."""

    strategy: Strategy
    participation: Participation
    sensitivity: Bracket

    def guarantee(self, deviation: float) -> Gaussian:
        """What everything that is told promises, if each entry of z has this deviation."""
        return Gaussian.from_scale(deviation, self.sensitivity.upper)

    def deviation(self, noise_multiplier: float) -> float:
        """The standard deviation of each entry of z that gives this noise multiplier."""
        sigma = require_real("noise_multiplier", noise_multiplier, above=0)
        return float_up(Fraction(sigma) * Fraction(self.sensitivity.upper))

    def errors(self, deviation: float, *, window: int | None = None) -> FloatArray:
        """The standard deviation of each running sum, or of the sum of the last `window` steps.

        Each is the best linear estimate from the rows that are complete by then: A·C⁻¹ for a square
        triangular strategy, least squares for others. In floats, to plan with.
        """
        scale = require_real("deviation", deviation, above=0)
        steps = self.strategy.steps
        last = steps if window is None else require_count("window", window, at_least=1)
        with np.errstate(all="ignore"):
            spread = _spreads(self.strategy, min(last, steps))
        if not np.isfinite(spread).all():
            raise InvalidInput("the sums of this strategy are not determined in floats")
        return np.asarray(scale * spread)


def matrix_mechanism(
    strategy: Strategy | Sequence[Sequence[float]] | npt.NDArray[np.generic],
    participation: Participation | None = None,
) -> MatrixMechanism:
    """The mechanism C·x + z for a strategy C, with the certified ℓ2 sensitivity of C·x.

    `participation` says which steps one unit may take part in: one of them, if it is left out. The
    sensitivity is exact for one step, for a `total`, for decreasing Toeplitz strategies, and where
    all sets of steps can be tried and no product of columns is negative. Otherwise it is a bracket.
    Neighbours differ by one unit that is added or removed.
    """
    given = strategy if isinstance(strategy, Strategy) else Strategy.matrix(strategy)
    part = Participation() if participation is None else participation
    return MatrixMechanism(given, part, _sensitivity(given, part))


def _sensitivity(strategy: Strategy, part: Participation) -> Bracket:
    one = strategy.denominator**2
    times, step = 1, part.after(0)
    while times < part.times and step < strategy.steps:  # more do not fit
        times, step = times + 1, part.after(step)
    if times == 1 or part.total is not None:
        columns = [strategy.column] if strategy.column else list(zip(*strategy.rows, strict=True))
        longest = max(sum(entry * entry for entry in column) for column in columns)
        square = Fraction(1 if part.total is None else part.total) ** 2 * longest / one
        return _root(square, square, _EXACT)
    if strategy.decreasing and part.period == 1:
        added = np.zeros(strategy.steps, dtype=object)
        for first in range(0, times * part.separation, part.separation):
            added[first:] += np.array(strategy.column[: strategy.steps - first], dtype=object)
        square = Fraction(int((added * added).sum()), one)
        return _root(square, square, _EARLIEST)
    if strategy.steps > MOST_STEPS:
        raise Unsupported(
            f"a strategy of more than {MOST_STEPS} steps must be Toeplitz and decreasing, or a "
            "unit must take part once"
        )
    rows = fmpz_mat([list(row) for row in strategy.listed])
    products = [[int(entry) for entry in row] for row in (rows.transpose() * rows).tolist()]
    signs = _SIGNS if any(entry < 0 for row in products for entry in row) else ""
    after = [min(part.after(step), strategy.steps) for step in range(strategy.steps)]
    if _few(after, times):
        chosen, heaviest = _heaviest_set(products, after, times)
        above, theorem = Fraction(heaviest, one), _EVERY
    else:
        chosen, above = _heaviest_rows(products, one, after, times)
        theorem = _ROWS
    return _root(Fraction(_attained(products, chosen), one), above, theorem + signs)


@in_balls
def _root(attained: Fraction, above: Fraction, theorem: str) -> Bracket:
    """The sensitivity, from both sides of its square."""
    low, high = ((arb(x.numerator) / arb(x.denominator)).sqrt() for x in (attained, above))
    return Bracket(max(0.0, down(low)), up(high), theorem)


def _few(after: list[int], times: int) -> bool:
    """Whether the sets of at most `times` steps can be tried one by one."""
    ways, total = np.ones(len(after) + 1), 0.0
    ways[-1] = 0
    for _ in range(times):
        total += float(ways.sum())
        if total > MOST_SETS or not ways.any():
            break
        following = np.cumsum(ways[::-1])[::-1]
        ways = np.append(following[after], 0.0)
    return total <= MOST_SETS


def _heaviest_set(products: list[list[int]], after: list[int], times: int) -> tuple[list[int], int]:
    """The set of steps whose absolute products add up to most, and how much that is."""
    best: tuple[list[int], int] = [], -1
    waiting: list[tuple[list[int], int]] = [([], 0)]
    while waiting:
        chosen, weight = waiting.pop()
        if weight > best[1]:
            best = chosen, weight
        if len(chosen) < times:
            for step in range(after[chosen[-1]] if chosen else 0, len(after)):
                beside = sum(abs(products[step][other]) for other in chosen)
                waiting.append(([*chosen, step], weight + products[step][step] + 2 * beside))
    return best


def _heaviest_rows(
    products: list[list[int]], one: int, after: list[int], times: int
) -> tuple[list[int], Fraction]:
    """A set of steps, and an upper bound for all of them.

    Σ_{i,j∈S} |G_ij| ≤ Σ_{i∈S} rᵢ, rᵢ = G_ii + the most that times − 1 steps which may go with i
    and with each other add to row i. Both maxima are over chains of steps. Every number is rounded
    up; 2·times additions of non-negative floats are inflated for.
    """
    try:
        near = np.array([[abs(entry) / one for entry in row] for row in products])
    except OverflowError:
        raise InvalidInput("the entries of a strategy must be within the floats") from None
    zero = np.array([[entry == 0 for entry in row] for row in products])
    above = np.where(zero, 0.0, np.nextafter(near, math.inf))
    steps, follows = np.arange(len(after)), np.array(after)
    beside = (follows[:, None] <= steps) | (follows <= steps[:, None])
    rows = np.diag(above) + _chains(np.where(beside, above, 0.0), follows, times - 1)[-1][0]
    levels = _chains(rows[None, :], follows, times)
    chosen, step = [], 0
    for level in reversed(levels[1:]):
        if level[step, 0] == 0:
            break
        reached = np.flatnonzero(level[step:, 0] == level[step, 0])[-1] + step
        chosen.append(int(reached))
        step = after[reached]
    return chosen, Fraction(float(inflated(levels[-1][0, 0], 2 * times + 8)))


def _chains(weights: FloatArray, after: npt.NDArray[np.int64], times: int) -> list[FloatArray]:
    """For 0 … times steps: by the first step allowed, the most that a chain of them weighs.

    `weights` has a row for each problem, and an answer a column. Of several problems only the last
    answer is kept.
    """
    levels = [np.zeros((weights.shape[1] + 1, weights.shape[0]))]
    for _ in range(times):
        taken = weights.T + levels[-1][after]
        best = np.maximum.accumulate(taken[::-1], axis=0)[::-1]
        level = np.vstack([best, np.zeros((1, weights.shape[0]))])
        levels = [*levels, level] if weights.shape[0] == 1 else [level]
    return levels


def _attained(products: list[list[int]], chosen: list[int]) -> int:
    """How much a unit really changes the square with +1 or −1 at these steps, chosen one by one."""
    signs: dict[int, int] = {}
    for step in chosen:
        along = sum(sign * products[step][other] for other, sign in signs.items())
        signs[step] = 1 if along >= 0 else -1
    square = sum(a * b * products[i][j] for i, a in signs.items() for j, b in signs.items())
    return max(square, max(products[step][step] for step in range(len(products))))


def _spreads(strategy: Strategy, window: int) -> FloatArray:
    """Deviations of the sums of the last `window` steps for z of deviation 1."""
    steps = strategy.steps
    if strategy.column:
        column = np.array([entry / strategy.denominator for entry in strategy.column])
        kept = np.zeros(steps)
        for k in range(steps):  # 1/(1 − X) over the power series of the column
            kept[k] = (1 - column[1 : k + 1] @ kept[:k][::-1]) / column[0]
        kept[window:] -= kept[: steps - window].copy()
        return np.sqrt(np.cumsum(kept**2))
    matrix, known, spread = strategy.floats(), np.zeros((steps, steps)), np.full(steps, np.nan)
    complete = [int(np.flatnonzero(row)[-1]) if row.any() else -1 for row in matrix]
    for step in range(steps):  # recursive least squares: `known` is the covariance of x₁ … x_step
        new = [row[: step + 1] for row, last in zip(matrix, complete, strict=True) if last == step]
        if not new:
            return spread
        before, last = known[:step, :step] @ new[0][:step], new[0][step]
        known[:step, step] = known[step, :step] = -before / last
        known[step, step] = (1 + new[0][:step] @ before) / last**2
        part = known[: step + 1, : step + 1]
        for row in new[1:]:
            along = part @ row
            part -= np.outer(along, along) / (1 + row @ along)
        spread[step] = np.sqrt(part[-window:, -window:].sum())
    return spread


def _exactly(value: object) -> Fraction:
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool | str) or not isinstance(number, int | float | Fraction):
        raise InvalidInput(f"an entry of a strategy must be a number, got {number!r:.60}")
    if isinstance(number, float):
        require_real("an entry of a strategy", number)
    return Fraction(number)
