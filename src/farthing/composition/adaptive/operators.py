"""What one more mechanism does to a profile, and a profile as a guarantee.

Let V be the profile of everything that happens after this step. One more step turns it into

    fixed loss L            TV(x) = E[V(x − L)]
    ε-bounded range         TV(x) = sup_t { q_t V(x − t) + (1 − q_t) V(x + ε − t) },  0 ≤ t ≤ ε,
                            q_t = (1 − e^{t−ε})/(1 − e^{−ε})

Lemma B.2 of the supplement [DDR20] makes the first an upper bound for any adaptive future
and Lemma 6.1 the second; randomized response and generalized randomized response attain
them. Every operator acts on `Chords`, giving chords above TV, and on `Supports`, giving
lines below TV. Both errors are of second order in the grid step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from farthing.composition.adaptive.lattice import Lattice
from farthing.errors import Unattainable
from farthing.guarantees.kinds import LossDistribution
from farthing.guarantees.losses.base import Atoms
from farthing.numerics.compiled import compiled
from farthing.numerics.convolution import averaged, convolved, pieces
from farthing.numerics.curves import Chords, Grid, Supports
from farthing.numerics.rounding import UNIT, FloatArray, IntArray, deflated, inflated

#: With so few weights, adding shifted arrays is faster than a convolution.
FEW = 40
#: Atoms this near to grid points on average, in cells, lose nothing with the nearest line alone.
NEAR = 0.2
#: Profiles of equal rounds that are kept: about two counts and their parts.
KEPT = 24


class Operator(Protocol):
    """One step, on both representations of a profile."""

    def above(self, later: Chords) -> Chords:
        """Chords above T of anything that lies below `later`."""
        ...

    def below(self, later: Supports) -> Supports:
        """Lines below T of anything that lies above `later`."""
        ...


@dataclass(frozen=True, slots=True)
class FixedLoss:
    """TV(x) = E[V(x − L)], with one discretisation of L for each side."""

    upper: Atoms
    lower: Atoms

    def above(self, later: Chords) -> Chords:
        return Kernel.of(self.upper, later.grid).apply(later)

    def below(self, later: Supports) -> Supports:
        grid, size = later.grid, later.grid.size
        near = np.abs(self.lower.losses) <= size * grid.step  # others lead off the grid
        losses, masses = self.lower.losses[near], self.lower.masses[near]
        if len(losses) == 0:
            return Supports(grid, np.zeros(size), np.zeros(size))
        cells, rests = grid.split_all(-losses)
        if len(cells) > FEW:
            past = rests > grid.step / 2
            offsets = np.where(past, rests - grid.step, rests)  # from the nearest grid point
            if np.dot(masses, np.abs(offsets)) <= NEAR * grid.step:
                return _nearest_lines(later, cells + past, offsets, masses)
        left, right = max(0, -int(cells.min())), max(0, int(cells.max()) + 1)
        values, slopes = later.padded(left, right)
        total, fall = np.zeros(size), np.zeros(size)
        for part in pieces(len(cells), size):
            sums = compiled().support_average(
                values, slopes, left + cells[part], rests[part], masses[part], size, grid.step
            )
            total, fall = total + sums[0], fall + sums[1]
        return Supports(grid, deflated(total, 4 * len(cells) + 16), fall)


def _nearest_lines(
    later: Supports, places: IntArray, offsets: FloatArray, masses: FloatArray
) -> Supports:
    """Σ masses·(the line of the grid point nearest to where an atom leads), by convolution.

    Every line lies below V, and close to its point it is as good as any. It is its value less
    its slope times e^offset − 1, which has either sign and is at most e^h − 1; the new slopes weigh
    e^offset ≥ e^−h. So rounding adds to these sums at most their number of terms in units, times
    (e^h − 1)e^h·fall.
    """
    grid, size, step = later.grid, later.grid.size, later.grid.step
    first = int(places.min())
    kernels = np.zeros((3, int(places.max()) - first + 1))
    for kernel, weights in zip(
        kernels, (masses, -masses * np.expm1(offsets), masses * np.exp(offsets)), strict=True
    ):
        np.add.at(kernel, places - first, weights)
    count = kernels.shape[1]
    left, right = max(0, -first), max(0, first + count - 1)
    values, slopes = (
        padded[left + first : left + first + size + count - 1]
        for padded in later.padded(left, right)
    )
    height = averaged(values, kernels[0, ::-1])
    tilt, fall = (averaged(slopes, kernels[i, ::-1]) for i in (1, 2))
    units = 2.0 * (count + len(places)) + 16
    error = 2 * units * UNIT * math.expm1(step) * math.exp(step) * fall
    total = deflated(height, units) + tilt - error
    above = total > 0
    return Supports(grid, np.where(above, total, 0.0), np.where(above, fall, 0.0))


@dataclass(frozen=True, slots=True)
class BoundedRangeChoice:
    """sup_t over generalized randomized response: the adversary moves up by t or down by ε − t."""

    epsilon: float

    def above(self, later: Chords) -> Chords:
        """The supremum over every t in [0, ε], in closed form between grid points.

        The place of an inner maximum is found in floats with an error that costs second
        order; cancellation in the interpolation and in q_t costs at most
        64u(1 + 1/h + 1/ε) relative, which is added.
        """
        grid, pad = later.grid, self._pad(later.grid)
        epsilon = _aligned_up(self.epsilon, grid.step)
        cuts = np.array(_cuts(epsilon, grid.step))
        padded = later.padded(pad, pad)
        parts = [
            compiled().chord_supremum(padded[_around(part, pad)], pad, grid.step, epsilon, cuts)
            for part in pieces(grid.size, len(cuts))
        ]
        best = np.concatenate(parts)
        units = 64 * (1 + 1 / math.expm1(grid.step) + 1 / -math.expm1(-epsilon))
        return Chords(grid, np.minimum(inflated(best, units), 1.0))

    def below(self, later: Supports) -> Supports:
        """The best t among those that move by whole cells: what a real adversary achieves."""
        return self.play(later)[0]

    def play(self, later: Supports) -> tuple[Supports, FloatArray]:
        """Lines below TV, and the t that the adversary chooses at each grid point."""
        grid, pad = later.grid, self._pad(later.grid)
        values, slopes = later.padded(pad, pad)
        whole, rest = grid.split(self.epsilon)
        if rest > (1 - 1e-9) * grid.step:  # V decreases, so a little further right is lower
            whole, rest = whole + 1, 0.0
        parts = [
            compiled().support_maximum(
                values[here], slopes[here], pad, grid.step, self.epsilon, whole, rest
            )
            for here in (_around(part, pad) for part in pieces(grid.size, whole + 1))
        ]
        best, fall, chosen = (np.concatenate(sides) for sides in zip(*parts, strict=True))
        units = 32 * (1 + 1 / -math.expm1(-self.epsilon))
        return Supports(grid, deflated(np.maximum(best, 0.0), units), fall), chosen

    def _pad(self, grid: Grid) -> int:
        return math.ceil(self.epsilon / grid.step) + 2


@dataclass(frozen=True, slots=True)
class Kernel:
    """A loss on the grid: Σ_c weights[c]·V(x_{j + first + c}) + infinity, rounded up."""

    first: int
    weights: FloatArray
    infinity: float

    @staticmethod
    def of(atoms: Atoms, grid: Grid) -> Kernel:
        """An atom between two grid points is split so that chords are reproduced exactly.

        A loss that leads from one end of the grid beyond the other is infinite, or counts as one
        that just does.
        """
        reach = grid.size * grid.step
        near = atoms.losses <= reach
        far = inflated(float(np.sum(atoms.masses[~near])), 2 * len(near))
        losses, masses = np.maximum(atoms.losses[near], -reach), atoms.masses[near]
        if len(losses) == 0:
            return Kernel(0, np.zeros(1), atoms.infinity + far)
        cells, rests = grid.split_all(-losses)
        first = int(cells.min())
        weights = np.zeros(int(cells.max()) - first + 2)
        width = math.expm1(grid.step)
        right = np.where(rests > 0, inflated(np.expm1(rests) / width, 8) + 4 * UNIT, 0.0)
        left = inflated(np.exp(rests) * np.expm1(grid.step - rests) / width, 8) + 4 * UNIT
        np.add.at(weights, cells - first, masses * left)
        np.add.at(weights, cells - first + 1, masses * right)
        return Kernel(first, inflated(weights, 4 * len(cells)), atoms.infinity + far)

    @staticmethod
    def of_lattice(lattice: Lattice, grid: Grid) -> Kernel:
        """A loss on the lattice of the grid, its first mass counting for all below it."""
        last = lattice.first + len(lattice.masses) - 1
        kernel = Kernel(-last, lattice.masses[::-1], lattice.infinity)
        return kernel.within(grid.size)

    def within(self, limit: int) -> Kernel:
        """Losses above `limit` cells count as infinite, those below −limit as −limit."""
        first, weights, infinity = self.first, self.weights, self.infinity
        if first < -limit:
            cut = min(-limit - first, len(weights) - 1)
            infinity += inflated(float(np.sum(weights[:cut])), 2 * cut)
            first, weights = first + cut, weights[cut:]
        excess = first + len(weights) - 1 - limit
        if 0 < excess < len(weights):
            moved = inflated(float(np.sum(weights[-excess:])), 2 * excess)
            weights = weights[:-excess].copy()
            weights[-1] += moved
        return Kernel(first, weights, infinity)

    def apply(self, later: Chords) -> Chords:
        """T of the chords, at every grid point."""
        size, count = later.grid.size, len(self.weights)
        left, right = max(0, -self.first), max(0, self.first + count - 1)
        start = left + self.first
        padded = later.padded(left, right)[start : start + size + count - 1]
        used = np.flatnonzero(self.weights)
        if len(used) <= FEW:
            total = np.full(size, self.infinity)
            for place in used.tolist():
                total += self.weights[place] * padded[place : place + size]
        else:
            total = averaged(padded, self.weights[::-1]) + self.infinity
        return Chords(later.grid, np.minimum(inflated(total, 2 * count + 8), 1.0))

    def then(self, other: Kernel, limit: int) -> Kernel:
        """The sum of both losses, cut as by `within`."""
        first = self.first + other.first
        terms = min(len(self.weights), len(other.weights))
        weights = inflated(_convolved(self.weights, other.weights), 2 * terms + 8)
        return Kernel(first, weights, self.infinity + other.infinity).within(limit)

    def power(self, count: int, limit: int) -> Kernel:
        """`count` independent such losses added, by repeated squaring."""
        result, square, left = self, self, count - 1
        while left > 0:
            if left & 1:
                result = result.then(square, limit)
            left >>= 1
            if left > 0:
                square = square.then(square, limit)
        return result


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """The convolution of both; a few weights far apart are added as shifted copies."""
    for few, many in ((one, other), (other, one)):
        used = np.flatnonzero(few)
        if len(used) <= FEW < len(few):
            total = np.zeros(len(few) + len(many) - 1)
            for place in used.tolist():
                total[place : place + len(many)] += few[place] * many
            return total
    return convolved(one, other)


def shifted_below(lattice: Lattice, later: Supports) -> Supports:
    """TV(x) = E[V(x − L)] for masses on the lattice of the grid that are lower bounds."""
    size = later.grid.size
    near = np.abs(lattice.first + np.arange(len(lattice.masses))) <= size
    used = np.flatnonzero(near & (lattice.masses > 0))
    if len(used) == 0:
        return Supports(later.grid, np.zeros(size), np.zeros(size))
    masses = lattice.masses[used[0] : used[-1] + 1]
    first, last = lattice.first + int(used[0]), lattice.first + int(used[-1])
    left, right = max(0, last), max(0, -first)
    here = slice(left - last, left + size - first)
    values, slopes = (averaged(curve[here], masses) for curve in later.padded(left, right))
    return Supports(later.grid, deflated(values, 2 * len(masses) + 16), slopes)


def atoms_of(profile: Chords) -> Atoms:
    """The chords as a discrete privacy loss, for use as one step of a longer composition.

    A convex polygon with corners at the grid points is Σ m_j (1 − z/z_j)₊, m_j the change
    of slope at z_j. Changes are rounded up, so the atoms' profile is nowhere lower.
    """
    values, h = profile.values, profile.grid.step
    width, growth = math.expm1(h), math.exp(h)
    before = np.concatenate((profile.padded(1, 0)[:1], values[:-1]))
    after = np.concatenate((values[1:], values[-1:]))
    bends = ((after - values) + growth * (before - values)) / width
    bends[0] = (after[0] - values[0]) / width + (1 - values[0])
    noise = 16 * UNIT * (1 + growth) * before / width
    masses = np.maximum(bends + noise, 0.0)
    return Atoms(profile.grid.points(), masses, inflated(float(values[-1]), 4))


def _aligned_up(epsilon: float, step: float) -> float:
    """A slightly larger ε that is a whole number of cells, or clearly is not.

    Slivers below a millionth of a cell would be decided by rounding; a larger ε only adds to
    the loss.
    """
    rest = math.fmod(epsilon, step)
    if rest == 0:
        return epsilon
    whole = round((epsilon - rest) / step)
    if rest < 1e-6 * step:
        return inflated((whole + 1e-6) * step, 4)
    return inflated((whole + 1) * step, 2) if rest > (1 - 1e-6) * step else epsilon


def _around(part: slice, pad: int) -> slice:
    """The points of a padded profile that lead to these of the result."""
    return slice(part.start, part.stop + 2 * pad)


@lru_cache(maxsize=256)
def _cuts(epsilon: float, step: float) -> tuple[float, ...]:
    """The t in [0, ε] at which x − t or x + ε − t crosses a grid point, with both ends."""
    whole = [m * step for m in range(math.ceil(epsilon / step) + 1)]
    crossings = sorted({t for m in whole for t in (m, epsilon - m) if 0 < t < epsilon})
    cuts = [0.0]
    for t in crossings:
        if t - cuts[-1] > 1e-7 * step and epsilon - t > 1e-7 * step:
            cuts.append(t)
    return (*cuts, epsilon)


@lru_cache(maxsize=KEPT)
def equal_rounds(epsilon: float, grid: Grid, count: int) -> tuple[Chords, Supports]:
    """What no adversary of `count` equal bounded-range rounds exceeds, and what one achieves.

    A planner asks for 2239 rounds and then for 2240. The profile of a count is made from that of
    the count without its last binary digit that is 1; both are kept, so the second question takes
    64 rounds. The rounds are the same ones in the same order either way.
    """
    if count == 0:
        return Chords.of_nothing(grid), Supports.of_nothing(grid)
    fewer = count & (count - 1)
    (upper, lower), operator = equal_rounds(epsilon, grid, fewer), BoundedRangeChoice(epsilon)
    for _ in range(count - fewer):
        upper, lower = operator.above(upper), operator.below(lower)
    return upper, lower


def loss_distribution_above(profile: Chords) -> LossDistribution:
    """A loss that dominates every profile below the chords, if it holds in both directions.

    The bends of the chords are masses that are rounded up. Left of some corner z the curve is
    replaced by the chord from (0, 1) to its value at z, which lies above a convex profile: one
    mass at z that makes the total 1. Under the other neighbour masses weigh e^−loss times as much,
    and what was rounded up there too: at very negative losses the chord can be steeper than −1,
    the steepest that any two distributions have. The first corner where it is not is taken.
    """
    atoms = atoms_of(profile)
    if atoms.infinity >= 1:
        raise Unattainable("the profile proves nothing; no loss distribution dominates it")
    kept = (atoms.masses > 0) & (atoms.losses > -700)
    losses, masses = atoms.losses[kept], atoms.masses[kept]
    rest = 1 - atoms.infinity - _sums_beyond(masses)
    steepness = rest * np.exp(-losses) + _sums_beyond(masses * np.exp(-losses))
    fine = np.flatnonzero((rest >= 0) & (steepness <= 1))
    if len(fine) == 0:
        raise Unattainable("the profile proves nothing; no loss distribution dominates it")
    first = int(fine[0])
    others = masses[first + 1 :].tolist()
    return LossDistribution(
        losses=tuple(losses[first:].tolist()),
        masses=(1 - math.fsum((atoms.infinity, *others)), *others),
        infinity=atoms.infinity,
    )


def _sums_beyond(weights: FloatArray) -> FloatArray:
    """Σ of the weights after each place, rounded up."""
    sums = np.append(np.cumsum(weights[::-1])[::-1][1:], 0.0)
    return inflated(sums, 2 * len(weights))
