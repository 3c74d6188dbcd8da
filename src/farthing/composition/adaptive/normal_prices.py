"""What mechanisms cost in Gaussian noise: prices in the variance of a normal loss.

Let U_b be the profile of a normal loss with variance b. A mechanism costs c with b − c behind it if
T U_{b−c} ≤ U_b everywhere, in both directions of neighbours. Gaussian noise costs its variance
exactly. Other prices are certified here on a grid, once for each kind, at a few balances; each
holds for all larger balances (docs/theory/filter.md has the proofs).
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
from farthing.composition.bounds.moments import tight_gain
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import Ball, down, in_balls, middle, up
from farthing.numerics.curves import Chords, Grid
from farthing.numerics.rounding import FloatArray, deflated

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
#: Orders at which moments are looked at, and how near to 1 the first one is.
ORDERS, NEAREST = 1000, 1e-3


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


def climbed(balance: Fraction, rates: Rates, count: int) -> Fraction:
    """A balance from which `count` can be bought one after the other so that `balance` is left."""
    starts = [rate.least - rate.price for rate in rates]
    for rate, end in zip(rates, [*starts[1:], None], strict=True):
        if count > 0 and (end is None or balance < end):
            now = count if end is None else min(count, math.ceil((end - balance) / rate.price))
            balance, count = balance + now * rate.price, count - now
    return balance


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
@in_balls
def rates_of(losses: tuple[Loss, ...], most: float, added: float) -> Rates:
    """The prices of a mechanism with these losses in its directions, up to a balance of `most`.

    For each unit of variance `added` may be added to the profile. Empty if it has no price.
    """
    if not all(loss.in_range for loss in losses):
        return ()
    squares = [square for loss in losses if (square := loss.gaussian_variance()) is not None]
    if len(squares) == len(losses):
        variance = Fraction(max(up(1 / square) for square in squares))
        return (Rate(variance, variance),)
    rates: list[Rate] = []
    behind = 0.0
    while behind < most and len(rates) < LEVELS:
        price = _price(losses, behind, most, added)
        if price is None or (rates and price > (1 - SMALL_FALL) * rates[-1].price):
            break
        rates.append(Rate(Fraction(behind) + Fraction(price), Fraction(price)))
        behind = float(RATIO * behind + rates[0].price)
    return tuple(rates)


def _price(losses: tuple[Loss, ...], behind: float, most: float, per_unit: float) -> float | None:
    """c with T U_behind ≤ U_{behind + c} + c·per_unit, proved on a grid; None if there is none.

    T of the chords of U_behind, which lies above, is compared at the grid points with U_{b − p_h}:
    its chords between them are a bounded-range step of range h, so they lie below U_b.
    """
    known = all(loss.known for loss in losses)
    curve = None if known else _Moments.of(losses)
    if not known and curve is None:
        return None
    variance = curve.variance if curve else max(loss.tariff_variance() for loss in losses)
    if not 0 < variance < 4 * most:
        return None
    least = variance / 2
    if (added := deflated(least * per_unit, 8)) < SMALLEST:
        return None
    if curve:
        reaches = [curve.reach(added / 8)]
    else:
        reaches = [loss.chosen_range or loss.reach(added / 8) for loss in losses]
    farthest = max(reaches)
    spread = math.sqrt(behind) * math.sqrt(-2 * math.log(added / 8)) + behind / 2
    step = max(math.sqrt(variance) / CELLS, (spread + farthest) / MOST_POINTS)
    step = farthest / math.ceil(farthest / step)
    above = math.ceil((spread + farthest) / step) + 1
    right = Grid(step, 0, above)
    if curve:
        values = curve.before(behind, right)
    else:
        fixed = [loss for loss in losses if loss.chosen_range is None]
        if any(loss.number_of_atoms(step, farthest) > MOST_ATOMS for loss in fixed):
            return None
        grid = Grid(step, math.ceil(farthest / step) + 2, above)
        later = Chords.of_nothing(grid) if behind == 0 else Chords(grid, _values(behind, grid, up))
        operators = [_operator(loss, step, r) for loss, r in zip(losses, reaches, strict=True)]
        values = np.max([one.above(later).values[grid.below :] for one in operators], axis=0)
    if values[-1] > added:
        return None
    found = _least_variance(values - added, right, behind + variance, most + variance)
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


@dataclass(frozen=True, slots=True)
class _Moments:
    """ln E[e^{βL}] ≤ r(β), in both directions, for some β: of kinds that only bound moments."""

    betas: FloatArray
    moments: tuple[Ball, ...]
    variance: float

    @staticmethod
    @lru_cache(maxsize=32)
    def of(losses: tuple[Loss, ...]) -> _Moments | None:
        """None if no moment is known."""
        last = min(1e6, *(loss.orders_below - 1 for loss in losses)) * (1 - 1e-9)
        for orders in (64, ORDERS):  # a look at all of them, and then near those that matter
            betas, moments = [], []
            for beta in np.geomspace(NEAREST, last, orders).tolist() if last > NEAREST else ():
                known = [loss.log_moment(1 + beta) for loss in losses]
                if all(moment.is_finite() for moment in known):
                    betas.append(beta)
                    moments.append(max(known, key=up))
            if not betas or up(moments[0]) <= 0:
                return None
            variance = 2 * min(up(one) / beta for beta, one in zip(betas, moments, strict=True))
            last = min(last, max(1.0, 100 / math.sqrt(variance)))
        return _Moments(np.array(betas), tuple(moments), variance)

    def reach(self, tiny: float) -> float:
        """An ε at which δ is at most `tiny`."""
        betas: list[float] = self.betas.tolist()
        return min(
            (up(moment) - math.log(tiny)) / beta
            for beta, moment in zip(betas, self.moments, strict=True)
        )

    def before(self, behind: float, grid: Grid) -> FloatArray:
        """T U_behind at the points of a grid, from above; lemma 4 of docs/theory/filter.md.

        Every β is valid; the best one is found in floats.
        """
        x, betas = grid.points()[:, None], self.betas
        middles = np.array([middle(moment) for moment in self.moments])
        if behind == 0:
            logs = middles - betas * x + betas * np.log(betas / (1 + betas)) - np.log1p(betas)
        else:
            growth = np.where(middles > 30, middles, np.log(np.expm1(np.minimum(middles, 30.0))))
            far = np.maximum(x / behind - 0.5 - betas, 0.0)
            logs = growth - np.log(betas * (1 + betas)) + behind * far**2 / 2
        best = np.argmin(logs, axis=1).tolist()
        places = enumerate(best, start=-grid.below)
        return np.array([self._at(behind, j * arb(grid.step), place) for j, place in places])

    def _at(self, behind: float, x: Ball, place: int) -> float:
        beta, moment = arb(self.betas[place]), self.moments[place]
        if behind == 0:
            return min(1.0, up((moment - beta * x + tight_gain(1 + beta)).exp()))
        b = arb(behind)
        far = (x / b - arb(0.5) - beta).max(arb(0))
        density = (b * far**2 / 2 - (x - b / 2) ** 2 / (2 * b)).exp() / (2 * arb.pi() * b).sqrt()
        added = density * moment.expm1() / (beta * (1 + beta))
        return min(1.0, up(normal_profile(behind, x) + added))
