"""Many fixed losses added up on a lattice, from both sides, with small relative error.

Every loss is moved to whole multiples of a step: outwards for the upper side, so that chords of
the profile between neighbouring multiples appear, and inwards for the lower one, where outcomes
are put together whose common loss is such a multiple. Their sums are cyclic products
(numerics/convolution.py). So that tails keep their digits the masses are tilted by e^{θ·loss}
first, with θ chosen for the δ that is asked for; what the window leaves out is bounded by moments
of the tilted masses. docs/theory/subsampling.md has the proofs.

Where nothing in a list leaves the adversary a choice, its profile is that of the sum of all losses
(`fixed_curves`). Beside bounded-range steps the sum of one item is a step by itself (`sum_of`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.composition.items import Losses
from farthing.guarantees.losses.base import Atoms, Loss
from farthing.numerics.convolution import cyclic_product
from farthing.numerics.curves import Chords, Grid, Supports
from farthing.numerics.rounding import UNIT, FloatArray, deflated, inflated
from farthing.numerics.search import golden_section

#: Tilted mass outside a window, on either side, at most.
OUTSIDE = 1e-13
#: Places of a lattice inside a cell that are tried.
PHASES = 4
#: A loss with this share of all mass is worth a place of its own.
HEAVY = 0.05
#: Points of a window at most, and points between 0 and the far end of a sum.
WIDEST_WINDOW, MOST_POINTS = 1 << 21, 1 << 22
#: A little less than the best tilt has far lighter tails.
LIGHTER = 0.75
#: Factors of e that a tilt may bring, at most: floats end near e^709.
STEEPEST = 600.0
#: Of what is asked for, the share that cutting off large losses may add to δ.
CUT = 1e-7
#: Cells of one loss at most, and those of all losses of a list.
MOST_CELLS = 400_000
MOST_MADE = 2_000_000
#: Tilts that together show a whole distribution, as shares of the one for the δ asked for.
SHARES = (1.0, 0.6, 0.3, 0.0)


@dataclass(frozen=True, slots=True)
class Lattice:
    """Mass `masses[i]` at the loss (first + phase + i)·step, `infinity` beyond all of them."""

    step: float
    first: int
    masses: FloatArray
    infinity: float = 0.0
    phase: float = 0.0

    @property
    def losses(self) -> FloatArray:
        return (self.first + self.phase + np.arange(len(self.masses), dtype=np.float64)) * self.step

    def upper(self, grid: Grid) -> Chords:
        """The profile at the points of a grid of this step; masses are upper bounds."""
        above, shadow = self._tails(grid)
        units = 8 * len(self.masses) + 64
        values = above - deflated(shadow, 2 * units) + inflated(self.infinity, 8)
        return Chords(grid, np.clip(inflated(values, units) + units * UNIT * above, 0.0, 1.0))

    def lower(self, grid: Grid) -> Supports:
        """Lines below the profile at the points of a grid of this step; masses are lower bounds."""
        above, shadow = self._tails(grid)
        values = above - shadow - (8 * len(self.masses) + 64) * UNIT * above
        fine = values > 0
        return Supports(grid, np.where(fine, values, 0.0), np.where(fine, shadow, 0.0))

    def _tails(self, grid: Grid) -> tuple[FloatArray, FloatArray]:
        """Σ masses and Σ masses·e^{x − loss} over losses above x, for every point x of the grid."""
        last = self.first + len(self.masses) - 1
        low, high = -grid.below, grid.above
        padded = np.zeros(max(high, last) - min(low, self.first) + 1)
        start = self.first - min(low, self.first)
        padded[start : start + len(self.masses)] = self.masses
        above = np.cumsum(padded[::-1])[::-1] - 0.0
        shadow = _discounted(padded, self.step)
        place = low - min(low, self.first) + 1
        size = grid.size
        decay = math.exp(-self.step)
        above = np.append(above, 0.0)[place : place + size]
        return above, decay * np.append(shadow, 0.0)[place : place + size]


def _discounted(masses: FloatArray, step: float) -> FloatArray:
    """Σ_{i ≥ j} masses[i]·e^{−(i − j)·step} for every j, in blocks over which e stays small."""
    size = len(masses)
    block = max(1, min(size, int(30 / step)))
    result = np.empty(size)
    carried = 0.0
    for start in range((size - 1) // block * block, -1, -block):
        part = masses[start : start + block]
        scale = np.exp(-step * np.arange(len(part)))
        sums = np.cumsum((part * scale)[::-1])[::-1] / scale
        sums += carried * np.exp(-step * np.arange(len(part), 0, -1))
        result[start : start + block] = sums
        carried = float(sums[0])
    return result


def lattice_above(atoms: Atoms, step: float) -> Lattice:
    """Every atom split between its two neighbours on the lattice: chords of its profile."""
    cells = np.floor(atoms.losses / step)
    rests = atoms.losses - cells * step
    cells = np.where(rests >= step, cells + 1, cells)  # the quotient was rounded
    rests = np.clip(atoms.losses - cells * step, 0.0, step)
    # a rest is off by a few units of the loss; more of the atom goes to the right for that
    rests = np.minimum(rests + 4 * UNIT * np.abs(atoms.losses), step)
    width = -math.expm1(-step)
    right = inflated(-np.expm1(-rests) / width, 8)
    left = inflated(np.exp(-rests) * -np.expm1(rests - step) / width, 8) + 4 * UNIT
    places = cells.astype(np.int64)
    first = int(places.min())
    masses = np.zeros(int(places.max()) - first + 2)
    np.add.at(masses, places - first, atoms.masses * left)
    np.add.at(masses, places - first + 1, atoms.masses * right)
    most = int(np.bincount(places - first).max())
    return Lattice(step, first, inflated(masses, 8 + 4 * most), atoms.infinity)


def lattice_below(atoms: Atoms, step: float, count: int) -> Lattice:
    """Outcomes put together, some of them in part, so that their common loss is on the lattice.

    Putting outcomes together is post-processing. The lattice may be moved by a whole number of
    `count`-th parts of a cell, which a sum of `count` losses does not see. Of several places, and
    of both ways to go through the losses, the one that keeps most of E[e^{2·loss}] is taken.
    """
    losses, masses = atoms.losses.tolist(), atoms.masses.tolist()
    best: tuple[float, dict[int, float], float] | None = None
    for phase, ascending in _ways_to_group(atoms, step, count):
        grouped = _grouped(losses, list(masses), step, phase, ascending)
        kept = sum(
            mass * math.expm1(min(2 * (place + phase) * step, 600.0))
            for place, mass in grouped.items()
        )
        if best is None or kept > best[0]:
            best = kept, grouped, phase
    assert best is not None
    _, grouped, phase = best
    first = min(grouped)
    spread = np.zeros(max(grouped) - first + 1)
    for place, mass in grouped.items():
        spread[place - first] = mass
    return Lattice(step, first, deflated(spread, 4 * len(losses) + 64), phase=phase)


def _ways_to_group(atoms: Atoms, step: float, count: int) -> set[tuple[float, bool]]:
    """Phases, and whether to ascend: the dense end of a loss comes first, so that what does not
    come out even is left at the thin one; a heavy atom lies just beside a place."""
    total = float(np.sum(atoms.masses))
    middle = int(np.searchsorted(np.cumsum(atoms.masses), 0.5 * total))
    median = float(atoms.losses[min(middle, len(atoms.losses) - 1)])
    ascending = 2 * median < float(atoms.losses[0] + atoms.losses[-1])
    ways = {(round(i * count / PHASES) / count, ascending) for i in range(PHASES)}
    heavy = atoms.losses[atoms.masses > HEAVY * total].tolist()
    for loss in {*heavy[:1], *heavy[-1:]}:
        share = loss / step
        ways.add((math.floor((share - 1e-9) % 1.0 * count) / count, False))
        ways.add((math.ceil((share + 1e-9) % 1.0 * count) / count, True))
    return ways


def _grouped(
    losses: list[float], masses: list[float], step: float, phase: float, ascending: bool
) -> dict[int, float]:
    """Masses at (place + phase)·step. Each group has Σ P ≥ e^x Σ Q; x is a little larger here.

    Ascending, a group is what lies below the next such x, and then so much of what lies above it
    as makes up for that. Descending, it is what lies above, and so much below as it can carry.
    """
    groups: dict[int, float] = {}
    i, end, onward = (0, len(losses), 1) if ascending else (len(losses) - 1, -1, -1)
    while i != end:
        start = losses[i] if ascending else losses[i] - 3e-14 * (1 + abs(losses[i]))
        place = math.floor(start / step - phase) + (1 if ascending else 0)
        x = (place + phase) * step
        x += 1e-14 * (1 + abs(x))
        total, surplus = 0.0, 0.0
        while i != end and (losses[i] < x) == ascending:
            total += masses[i]
            surplus -= masses[i] * math.expm1(x - losses[i])
            i += onward
        while i != end and (surplus < 0) == ascending:
            gain = -masses[i] * math.expm1(x - losses[i])
            if abs(gain) > abs(surplus):
                share = abs(surplus / gain) * (1 + 1e-12 if ascending else 1 - 1e-12)
                total += share * masses[i]
                masses[i] *= 1 - share
                break
            total += masses[i]
            surplus += gain
            i += onward
        else:
            if surplus < 0:  # nothing is left above: the next place below what they have in common
                common = x - math.log1p(-surplus / total)
                place = math.floor((common - 3e-14 * (1 + abs(common))) / step - phase)
        groups[place] = groups.get(place, 0.0) + total
    return groups


@dataclass(frozen=True, slots=True)
class Factors:
    """Lattices with one step and their counts; all masses are upper bounds, or all lower ones."""

    parts: tuple[tuple[Lattice, int], ...]

    def log_moment(self, theta: float) -> float:
        """K(θ) = Σ count·ln Σ masses·e^{θ·loss}, of the finite losses."""
        return math.fsum(count * _log_sum(_tilted(one, theta)) for one, count in self.parts)

    def tilt_for(self, delta: float) -> float:
        """θ > 0 that makes (K(θ) − ln δ)/θ least: there sums lie near the ε of this δ."""
        rest = -math.log(delta)

        def height(log_theta: float) -> float:
            theta = math.exp(log_theta)
            return (self.log_moment(theta) + rest) / theta

        farthest = max(float(np.abs(one.losses[[0, -1]]).max()) for one, _ in self.parts)
        low, high = -14.0, math.log(STEEPEST / (farthest + 1e-9))
        low, _, _, high = golden_section(height, low, high, width=0.02)
        return LIGHTER * math.exp(0.5 * (low + high))

    def sums(self, theta: float, *, upward: bool) -> Lattice | None:
        """The losses added up, tilted by θ meanwhile; None if the window is too large.

        Bounds in the direction of `upward`: no mass is below, or above, what it stands for.
        """
        step = self.parts[0][0].step
        first = math.floor(self._beyond(theta, -1) / step) - 1
        cells = math.ceil(self._beyond(theta, +1) / step) + 2 - first
        size = 1 << max(4, (cells - 1).bit_length())
        if size > WIDEST_WINDOW:
            return None
        vectors, offset, log_scale, rounding = [], 0, 0.0, 16.0
        for one, count in self.parts:
            logs = _tilted(one, theta)
            log_sum = _log_sum(logs)
            vectors.append((np.exp(logs - log_sum), count))
            offset += count * one.first + round(count * one.phase)
            log_scale += count * log_sum
            steepest = theta * float(np.abs(one.losses[[0, -1]]).max())
            rounding += count * (16 + 4 * steepest + 8 * abs(log_sum))
        tilted, error = cyclic_product(vectors, size)
        if error == math.inf:
            return None
        tilted = np.roll(tilted, (offset - first) % size)
        losses = (first + np.arange(size, dtype=np.float64)) * step
        exponents = log_scale - theta * losses
        rounding += 8 * float(np.abs(exponents).max())
        scales = np.exp(np.minimum(exponents, 50.0))
        if not upward:
            masses = np.maximum(tilted - error - 3 * OUTSIDE, 0.0) * scales
            masses[exponents > 50] = 0.0
            return Lattice(step, first, deflated(masses, rounding))
        masses = np.minimum(inflated((np.maximum(tilted, 0.0) + error) * scales, rounding), 1.0)
        infinity = math.fsum(count * one.infinity for one, count in self.parts)
        infinity += OUTSIDE * math.exp(min(float(exponents[-1]), 50.0)) + 1e-300  # underflow
        return Lattice(step, first, masses, inflated(infinity, rounding))

    def _beyond(self, theta: float, side: int) -> float:
        """A place beyond which the tilted masses have less than OUTSIDE of their sum.

        By Markov's inequality for e^{λ·sum}, for several λ; the 1 pays for rounding.
        """
        base = self.log_moment(theta)
        deviation = math.sqrt(self._variance(theta)) + 1e-300
        rest = 1 - math.log(OUTSIDE)
        powers = [0.5 * 1.55**i / deviation for i in range(12)]
        return side * min(
            (self.log_moment(theta + side * power) - base + rest) / power for power in powers
        )

    def _variance(self, theta: float) -> float:
        total = 0.0
        for one, count in self.parts:
            logs, losses = _tilted(one, theta), one.losses
            weights = np.exp(logs - logs.max())
            weights /= weights.sum()
            mean = float(np.sum(weights * losses))
            total += count * float(np.sum(weights * (losses - mean) ** 2))
        return total


def _tilted(one: Lattice, theta: float) -> FloatArray:
    """ln(mass·e^{θ·loss}) of every mass; −∞ where there is none."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(one.masses) + theta * one.losses
    return logs


def _log_sum(logs: FloatArray) -> float:
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))


@dataclass(frozen=True, slots=True)
class RepeatedBlock:
    """A loss from above that is added `times` times, and all of them together from below."""

    upper: Atoms
    times: int
    lower: Atoms
    variance: float

    def factor(self, step: float, *, upward: bool) -> tuple[Lattice, int]:
        """On a lattice."""
        if upward:
            return lattice_above(self.upper, step), self.times
        return lattice_below(self.lower, step, 1), 1


def fixed_curves(
    items: Losses,
    fineness: float,
    delta: float,
    *,
    whole: bool,
    beside: tuple[RepeatedBlock, ...] = (),
) -> tuple[Chords, Supports] | None:
    """Both sides of the profile of fixed losses, accurate where it is about `delta`.

    With `whole` it is accurate everywhere. None if the lattice would be too large, or too long in
    the making.
    """
    variance = sum(count * g.mean_and_variance()[1] for g, count in items)
    variance += sum(one.variance for one in beside)
    added = sum(count if g.on_lattice(count) else 1 for g, count in items)
    added += sum(one.times for one in beside)
    reach = max((g.reach(delta * CUT / n) for g, n in items), default=0.0)
    step = _aligned(items, max(math.sqrt(3 * fineness * variance / added), reach / MOST_CELLS))
    if sum(g.cells(n, step, delta * CUT) for g, n in items.unordered()) > MOST_MADE:
        return None
    above, below = (
        Factors(
            (
                *_factors(items, step, delta, upward=upward).parts,
                *(one.factor(step, upward=upward) for one in beside),
            )
        )
        for upward in (True, False)
    )
    sums = _both_sums(above, below, delta, SHARES if whole else SHARES[:1])
    if sums is None:
        return None
    upper, lower = sums
    if max(_grid_of(upper).size, _grid_of(lower).size) > MOST_POINTS:
        return None  # a window far from 0
    chords = upper.upper(_grid_of(upper))
    if upper.first > 0 and not whole:  # what lies left of a tilted window is not counted
        chords.values[: upper.first] = 1.0
    return chords, lower.lower(_grid_of(lower))


def _aligned(items: Losses, step: float) -> float:
    """A step that fits between the two ends of the loss that matters most, if it has both."""
    sampled = [(n * g.mean_and_variance()[1], g) for g, n in items if g.on_lattice(n)]
    _, largest = max(sampled, key=lambda pair: pair[0], default=(0.0, None))
    width = None if largest is None else largest.ends_apart
    return step if width is None else width / math.ceil(width / step)


@lru_cache(maxsize=32)
def sum_of(loss: Loss, count: int, step: float, delta: float) -> tuple[Lattice, Lattice] | None:
    """`count` equal losses as one, (above, below), for profiles that matter down to `delta`."""
    items = Losses(((loss, count),))
    above, below = (_factors(items, step, delta, upward=upward) for upward in (True, False))
    return _both_sums(above, below, delta, SHARES)


def _both_sums(
    above: Factors, below: Factors, delta: float, shares: tuple[float, ...]
) -> tuple[Lattice, Lattice] | None:
    tilt = above.tilt_for(delta)
    tilts = [tilt * share for share in shares]
    upper, lower = _sums(above, tilts, upward=True), _sums(below, tilts, upward=False)
    return None if upper is None or lower is None else (upper, lower)


def _sums(factors: Factors, tilts: list[float], *, upward: bool) -> Lattice | None:
    """The best bound on every mass over one or several tilts; the last of several is 0."""
    sums = [factors.sums(theta, upward=upward) for theta in tilts]
    known = [one for one in sums if one is not None]
    if len(known) < len(sums):
        return None
    if len(known) == 1:
        return known[0]
    furthest = min(known, key=lambda one: one.infinity) if upward else known[0]
    first, last = min(one.first for one in known), furthest.first + len(furthest.masses)
    masses = np.ones(last - first) if upward else np.zeros(last - first)
    for one in known:  # what lies beyond the last mass is in `infinity`
        seen = one.masses[: last - one.first]
        here = slice(one.first - first, one.first - first + len(seen))
        masses[here] = (np.minimum if upward else np.maximum)(masses[here], seen)
    if upward:  # below the window of no tilt at all: all of it counts as the smallest loss
        masses[0] += 4 * OUTSIDE
    return Lattice(furthest.step, first, masses, furthest.infinity)


def _grid_of(lattice: Lattice) -> Grid:
    last = lattice.first + len(lattice.masses) - 1
    return Grid(lattice.step, max(1, -lattice.first), max(1, last))


def _factors(items: Losses, step: float, delta: float, *, upward: bool) -> Factors:
    return Factors(tuple(_factor(g, count, step, delta, upward) for g, count in items.unordered()))


@lru_cache(maxsize=64)
def _factor(loss: Loss, count: int, step: float, delta: float, upward: bool) -> tuple[Lattice, int]:
    """One loss on the lattice and how often it is added; exact sums are made before that."""
    fine = loss.coarsest(count, step)
    atoms, times = loss.total(count, fine, delta * CUT / count, upward=upward)
    if upward:
        return lattice_above(atoms, step), times
    return lattice_below(atoms, step, times), times
