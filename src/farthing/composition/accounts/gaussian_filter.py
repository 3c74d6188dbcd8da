"""A filter whose currency is Gaussian noise: what is left is the variance b of a normal loss.

Let U_b be the profile of a normal loss with variance b. Whoever has b left may reveal no more than
U_b, whatever is chosen from answers. A mechanism may be sold for c if T U_{b−c} ≤ U_b everywhere,
in both directions of neighbours; Gaussian noise is sold for its variance exactly. Other prices are
certified here on a grid, once for each kind, at a few balances; each holds for all larger balances
(docs/theory/filter.md has the proofs).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from farthing.composition.adaptive.operators import BoundedRangeChoice, FixedLoss
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import Ball, down, in_balls, up
from farthing.numerics.curves import Chords, Grid
from farthing.numerics.rounding import FloatArray, deflated
from farthing.numerics.search import turning_point

#: Of the δ of this filter, what all purchases together may add to the profiles.
ADDED = 1 / 1024
#: Cells of the grid in a standard deviation of the loss, and points of a grid at most.
CELLS, MOST_POINTS = 32, 6000
#: Atoms of a loss at most.
MOST_ATOMS = 50_000
#: Balances at which prices are certified; each is about this much larger than the last.
LEVELS, RATIO = 12, 2
#: A price that falls by less than this part is not looked for at larger balances.
SMALL_FALL = 5e-4
#: Less than this is not worth a grid: floats end near 1e-308.
SMALLEST = 1e-250
#: By how much a price that was found in floats is raised until it is proved, in variances.
MARGINS = (1e-7, 1e-5, 1e-3)


@dataclass(frozen=True, slots=True)
class Rate:
    """With a balance of at least `least`, one purchase costs `price`."""

    least: Fraction
    price: Fraction


Rates = tuple[Rate, ...]


def sold(balance: Fraction, rates: Rates, most: int | None = None) -> tuple[int, Fraction]:
    """How many are sold one after the other, `most` of them at most, and what is left then."""
    times = 0
    for rate in reversed(rates):  # from the largest balance on, where prices are lowest
        if balance >= rate.least:
            now = (balance - rate.least) // rate.price + 1
            now = now if most is None else min(now, most - times)
            times, balance = times + now, balance - now * rate.price
    return times, balance


@dataclass(frozen=True, slots=True)
class GaussianFilter:
    """The largest variance that is (ε, δ)-DP, with `added` per unit of it set aside for grids."""

    grant: float
    added: float

    @staticmethod
    @lru_cache(maxsize=64)
    @in_balls
    def of(epsilon: float, delta: float) -> GaussianFilter:
        """The grant is rounded down."""
        target = deflated(delta * (1 - ADDED), 8)

        def fits(variance: float) -> bool:
            return up(normal_profile(variance, arb(epsilon))) <= target

        high = 1.0
        while fits(high):
            high *= 4
        low = high / 4
        while not fits(low):
            low /= 4
            if low < 1e-30:
                return GaussianFilter(0.0, 0.0)
        grant, _ = turning_point(fits, low, high, width=1e-9)
        return GaussianFilter(grant, deflated(delta * ADDED / grant, 8))

    @in_balls
    def rates(self, losses: tuple[Loss, ...]) -> Rates:
        """The prices of a mechanism with these losses in its directions; empty if not sold.

        Those of a filter that may add less hold too, so budgets that are alike share them.
        """
        if self.grant <= 0 or self.added < SMALLEST:
            return ()
        grant, added = (math.frexp(number)[1] for number in (self.grant, self.added))
        return _rates(GaussianFilter(math.ldexp(1.0, grant), math.ldexp(0.5, added)), losses)


def normal_profile(variance: float, x: Ball) -> Ball:
    """U_b(x) = Φ(√b/2 − x/√b) − e^x Φ(−√b/2 − x/√b)."""
    deviation, scale = arb(variance).sqrt(), arb(8).sqrt()
    half, place = deviation / scale, x / (deviation * arb(2).sqrt())
    return ((place - half).erfc() - x.exp() * (place + half).erfc()) / 2


def variance_of_range(epsilon: float) -> Ball:
    """The smallest normal variance whose loss dominates ε-bounded range: 4Φ⁻¹(1/(1 + e^{−ε/2}))².

    docs/theory/filter.md, lemma 3.
    """
    return 8 * (arb(epsilon) / 4).tanh().erfinv() ** 2


@lru_cache(maxsize=1024)
def _rates(filter_: GaussianFilter, losses: tuple[Loss, ...]) -> Rates:
    if not all(loss.known and loss.in_range for loss in losses):
        return ()
    squares = [square for loss in losses if (square := loss.gaussian_variance()) is not None]
    if len(squares) == len(losses):
        variance = Fraction(max(up(1 / square) for square in squares))
        return (Rate(variance, variance),)
    rates: list[Rate] = []
    behind = 0.0
    while behind < filter_.grant and len(rates) < LEVELS:
        price = _price(losses, behind, filter_)
        if price is None or (rates and price > (1 - SMALL_FALL) * rates[-1].price):
            break
        rates.append(Rate(Fraction(behind) + Fraction(price), Fraction(price)))
        behind = float(RATIO * behind + rates[0].price)
    return tuple(rates)


def _price(losses: tuple[Loss, ...], behind: float, filter_: GaussianFilter) -> float | None:
    """c with T U_behind ≤ U_{behind + c} + c·added, proved on a grid; None if there is none.

    T of the chords of U_behind, which lies above, is compared at the grid points with U_{b − p_h}:
    its chords between them are a bounded-range step of range h, so they lie below U_b.
    """
    variance = max(loss.tariff_variance() for loss in losses)
    if not 0 < variance < 4 * filter_.grant:
        return None
    least = variance / 2
    if (added := deflated(least * filter_.added, 8)) < SMALLEST:
        return None
    reaches = [loss.chosen_range or loss.reach(added / 8) for loss in losses]
    farthest = max(reaches)
    spread = math.sqrt(behind) * math.sqrt(-2 * math.log(added / 8)) + behind / 2
    step = max(math.sqrt(variance) / CELLS, (spread + farthest) / MOST_POINTS)
    step = farthest / math.ceil(farthest / step)
    fixed = [loss for loss in losses if loss.chosen_range is None]
    if any(loss.number_of_atoms(step, farthest) > MOST_ATOMS for loss in fixed):
        return None
    above = math.ceil((spread + farthest) / step) + 1
    grid = Grid(step, math.ceil(farthest / step) + 2, above)
    later = Chords.of_nothing(grid) if behind == 0 else Chords(grid, _values(behind, grid, up))
    values = np.max(
        [
            _operator(loss, step, reach).above(later).values[grid.below :]
            for loss, reach in zip(losses, reaches, strict=True)
        ],
        axis=0,
    )
    if values[-1] > added:
        return None
    right = Grid(step, 0, above)
    most = filter_.grant + variance
    found = _least_variance(values - added, right, behind + variance, most)
    for margin in MARGINS if found < math.inf else ():
        tried = found + margin * variance
        if np.all(values <= deflated(_values(tried, right, down) + added, 4)):
            return max(least, up(arb(tried) + variance_of_range(step) - arb(behind)))
    return None


def _operator(loss: Loss, step: float, reach: float) -> BoundedRangeChoice | FixedLoss:
    if loss.chosen_range is not None:
        return BoundedRangeChoice(loss.chosen_range)
    atoms = loss.atoms_above(step, reach)
    return FixedLoss(atoms, atoms)


def _values(variance: float, grid: Grid, rounded: Callable[[Ball], float]) -> FloatArray:
    """U at the points of a grid, rounded by `up` or `down`."""
    h, points = arb(grid.step), range(-grid.below, grid.above + 1)
    return np.array([max(0.0, rounded(normal_profile(variance, j * h))) for j in points])


def _least_variance(values: FloatArray, grid: Grid, start: float, most: float) -> float:
    """About the least variance whose profile reaches these values; infinite if above `most`."""
    x, variance = grid.points(), start
    for _ in range(40):
        deviation = math.sqrt(variance)
        place = x / deviation
        tails = [_normal_above(place + shift * deviation / 2) for shift in (-1, 1)]
        profile = tails[0] - np.exp(np.minimum(x, 700.0)) * tails[1]
        slope = np.exp(-((place - deviation / 2) ** 2) / 2) / (deviation * math.sqrt(8 * math.pi))
        change = float(np.max((values - profile) / np.maximum(slope, 1e-300)))
        variance = min(max(variance + change, variance / 2), 2 * variance)
        if variance > most:
            return math.inf
        if abs(change) < 1e-12 * variance:
            break
    return variance


def _normal_above(points: FloatArray) -> FloatArray:
    return np.array([math.erfc(x / math.sqrt(2)) / 2 for x in points.tolist()])
