"""A filter whose currency is the mechanism that is bought most, beside Gaussian noise.

With n of it and a variance of b left, nothing may reveal more than N_b Gⁿ V_0, where G is the
operator of the mechanism and N_b that of a normal loss. The mechanism itself is sold exactly as
often as a list fixed in advance allows. Everything else is paid for in Gaussian noise, into which
some of the mechanism is changed when it is needed, at a certified rate: N_c G^{n−m} V_0 ≤ Gⁿ V_0.
Fixed losses with an exact mirror, such as other samples, are kept in pockets of their own instead.
docs/theory/filter.md, "Other currencies", has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from farthing.composition.accounts.gaussian_filter import ADDED, GaussianFilter
from farthing.composition.adaptive.lattice import sum_of
from farthing.composition.adaptive.normal_prices import CELLS, SMALLEST
from farthing.composition.adaptive.operators import Kernel
from farthing.composition.adaptive.profiles import Curves, curves
from farthing.composition.items import Losses
from farthing.guarantees.kinds import Gaussian
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.losses.bounded_range import RangeLoss
from farthing.guarantees.losses.gaussian import GaussianLoss
from farthing.guarantees.losses.laplace import LaplaceLoss
from farthing.guarantees.losses.randomized_response import PureLoss
from farthing.guarantees.losses.sampled import PoissonLoss
from farthing.numerics.ball import in_balls
from farthing.numerics.curves import Chords, Grid, Supports
from farthing.numerics.rounding import UNIT, FloatArray, deflated, inflated
from farthing.numerics.search import last_whole

#: Kinds whose loss without the unit is exactly the mirror of that with it.
MIRRORED = (PureLoss, LaplaceLoss, PoissonLoss, RangeLoss)
#: The mechanism is changed in parts of this many at least.
PARTS = 16
#: Relative width of profiles in ε, and points at which a cell is compared.
FINENESS, PLACES = 1e-3, 8
#: Variances that are tried, as shares of what its part of the whole budget is worth.
SHARES = tuple(0.96**n for n in range(40))
#: So many units at most, and if they leave a choice; of the smallest ones noise sells as many.
MOST, MOST_CHOICES = 100_000, 500
#: The largest number of units is found up to this part of itself.
NEAR = 1000


@dataclass(frozen=True, slots=True)
class UnitFilter:
    """`grant` units are (ε, δ)-DP with `added` for each of the parts that may be changed."""

    losses: tuple[Loss, ...]
    grant: int
    added: float
    noise: GaussianFilter
    delta: float

    @staticmethod
    @lru_cache(maxsize=64)
    @in_balls
    def of(losses: tuple[Loss, ...], epsilon: float, delta: float) -> UnitFilter | None:
        """None if this kind is no currency, or too little of it fits."""
        noise = GaussianFilter.of(epsilon, delta)
        mirrored = all(isinstance(one, MIRRORED) and one.in_range for one in losses)
        if noise.added < SMALLEST or not mirrored:
            return None
        target = deflated(delta * (1 - ADDED), 8)

        def fits(count: int) -> bool:
            profiles = [_curves(one, count, delta) for one in losses]
            return all(one is not None and one.upper.at(epsilon) <= target for one in profiles)

        fixed = all(one.chosen_range is None for one in losses)
        low, high = 0, max(1, int(noise.grant / max(one.tariff_variance() for one in losses)))
        if high > (MOST if fixed else MOST_CHOICES):
            return None
        while fits(high):
            low, high = high, math.ceil(1.1 * high)
        if (grant := last_whole(fits, low, high, part=NEAR)) == 0:
            return None
        part = math.ceil(grant / PARTS)
        added = deflated(delta * ADDED / (grant // part + 1), 8)
        most = 2 * noise.grant * part / grant
        rates = GaussianFilter(noise.grant, deflated(added / (2 * most), 8))
        return UnitFilter(losses, grant, added, rates, delta)

    def has_pocket_for(self, other: tuple[Loss, ...]) -> bool:
        """Whether units are changed into this kind itself, and not into noise that pays for it."""
        return all(isinstance(one, MIRRORED) and one.chosen_range is None for one in other)

    @in_balls
    def changed(
        self, units: int, other: tuple[Loss, ...] | None, needed: Fraction
    ) -> tuple[int, Fraction] | None:
        """How many of so many are changed, and into how much: of another kind, or of a variance.

        None if not into enough. What is proved with fewer units holds with more, if the mechanism
        leaves no choice.
        """
        part = math.ceil(self.grant / PARTS)
        fixed = all(one.chosen_range is None for one in self.losses)
        for times in (1, 4, PARTS):
            taken = min(times * part, units)
            at = max(units - units % part, taken) if fixed else units
            amount = _amount(self, at, taken, other)
            if amount is not None and amount >= needed:
                return taken, Fraction(amount)
        return None


@lru_cache(maxsize=512)
def _amount(
    filter_: UnitFilter, units: int, taken: int, other: tuple[Loss, ...] | None
) -> float | None:
    """k or c with H^k G^{n−m} V_0 or N_c G^{n−m} V_0 ≤ Gⁿ V_0 + added/2, in all directions."""
    allowed = deflated(filter_.added / 2, 4)
    whole = filter_.noise.grant * taken / filter_.grant
    if other is not None:
        whole *= 1.25 / max(one.tariff_variance() for one in other)
    steps: list[tuple[Loss | None, Chords, FloatArray]] = []
    for way in range(max(len(filter_.losses), len(other or ()))):
        loss = _in_direction(filter_.losses, way)
        added = None if other is None else _in_direction(other, way)
        before = _curves(loss, units, filter_.delta)
        after = _curves(loss, units - taken, filter_.delta) if taken < units else before
        if before is None or after is None:
            return None
        step = after.upper.grid.step
        right = math.ceil(_reach(added, whole, allowed) / step)
        grid = Grid(step, after.upper.grid.below, after.upper.grid.above + right)
        nothing = taken == units
        later = Chords.of_nothing(grid) if nothing else Chords(grid, after.upper.padded(0, right))
        places = np.arange(1, grid.above * PLACES + 1, dtype=np.float64) * (step / PLACES)
        steps.append((added, later, _lines_at(before.lower, inflated(places, 4))))

    def proved(place: int) -> bool:
        amount = SHARES[place] * whole
        return all(
            _stays_below(_kernel(added, amount, later.grid, allowed), later, lines, allowed)
            for added, later, lines in steps
        )

    if not proved(len(SHARES) - 1):
        return None
    first = last_whole(lambda place: not proved(place), -1, len(SHARES) - 1) + 1
    return deflated(SHARES[first] * whole, 16)


def _in_direction(losses: tuple[Loss, ...], way: int) -> Loss:
    """Most kinds have the same loss in both directions."""
    return losses[min(way, len(losses) - 1)]


def _reach(added: Loss | None, amount: float, allowed: float) -> float:
    """About how far it leads, at most."""
    if added is None:
        return _noise(amount).reach(allowed / 16)
    return 8 * math.sqrt(amount * added.tariff_variance()) + 2 * added.reach(allowed / 16)


def _kernel(added: Loss | None, amount: float, grid: Grid, allowed: float) -> Kernel:
    """So much of another kind, rounded down to a whole number, or noise of such a variance."""
    if added is None:
        noise, deviation = _noise(amount), math.sqrt(amount)
        step = max(1, int(deviation / CELLS / grid.step)) * grid.step
        return Kernel.of(noise.atoms_above(step, noise.reach(allowed / 16)), grid)
    if (count := int(amount)) == 0:
        return Kernel(0, np.ones(1), 0.0)
    if added.on_lattice(count) and (sums := sum_of(added, count, grid.step, allowed)) is not None:
        return Kernel.of_lattice(sums[0], grid)
    atoms, times = added.total(count, grid.step, allowed / 16 / count, upward=True)
    return Kernel.of(atoms, grid).power(times, grid.size)


def _curves(loss: Loss, count: int, delta: float) -> Curves | None:
    return curves(Losses(((loss, count),)), "adaptive", FINENESS, delta, whole=True)


def _noise(variance: float) -> GaussianLoss:
    """With at least this variance."""
    return GaussianLoss(Gaussian(deflated(1 / math.sqrt(variance), 8)))


def _stays_below(kernel: Kernel, later: Chords, lines: FloatArray, allowed: float) -> bool:
    """Whether T of the chords is at most the lines plus `allowed`, for all x ≥ 0.

    Each cell has PLACES places; `lines` are bounds at those right of 0. Both sides decrease, so
    from one place to the next the left end of one is compared with the right end of the other.
    Beyond the first grid point with a value of at most `allowed` nothing is compared.
    """
    grid = later.grid
    values = kernel.apply(later).values[grid.below :]
    weights = np.expm1(np.arange(PLACES) * (grid.step / PLACES)) / math.expm1(grid.step)
    rises = values[:-1, None] * (1 - weights) + values[1:, None] * weights
    lefts = inflated(rises, 32).ravel()
    small = np.flatnonzero(values <= allowed)
    if len(small) == 0:
        return False
    here = slice(0, int(small[0]) * PLACES)
    return bool(np.all(lefts[here] <= deflated(lines[here] + allowed, 4)))


def _lines_at(profile: Supports, points: FloatArray) -> FloatArray:
    """Lower bounds at many points x ≥ 0, by the better of the two lines around each."""
    grid = profile.grid
    cells, rests = grid.split_all(points)
    inside = cells < grid.above
    place = np.where(inside, cells, 0) + grid.below
    here = profile.values[place] - profile.slopes[place] * np.expm1(rests)
    there = profile.values[place + 1] - profile.slopes[place + 1] * np.expm1(rests - grid.step)
    slack = 16 * UNIT * (profile.values[place] + profile.slopes[place])
    return np.where(inside, np.maximum(np.maximum(here, there) - slack, 0.0), 0.0)
