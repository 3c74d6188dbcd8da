"""Lists of fixed losses, many times each, by sums on a lattice.

Where nothing in a list leaves the adversary a choice, its profile is that of the sum of all losses
(composition/lattice.py). Beside bounded-range steps the sum of one item is a step by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.composition.items import Items
from farthing.composition.lattice import (
    OUTSIDE,
    Factors,
    Lattice,
    lattice_above,
    lattice_below,
)
from farthing.guarantees.atoms import Atoms
from farthing.guarantees.kinds import (
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    OneWay,
    PureDP,
    Subsampled,
    SubsampledWithoutReplacement,
    TwoWayLoss,
)
from farthing.guarantees.losses import (
    atoms_above,
    atoms_below,
    mean_and_variance,
    number_of_atoms,
    reach_of,
    responses,
)
from farthing.guarantees.subsampling import sampled_losses
from farthing.numerics.binomial import MOST_TRIALS
from farthing.numerics.curves import Chords, Grid, Supports
from farthing.numerics.rounding import deflated, inflated

#: Of what is asked for, the share that cutting off large losses may add to δ.
CUT = 1e-7
#: Cells of one loss at most, and those of all losses of a list.
MOST_CELLS = 400_000
MOST_MADE = 2_000_000
#: Points between 0 and the far end of a sum at most.
MOST_POINTS = 1 << 22
#: Samples of discrete or Laplace noise up to this many are not moved to a lattice; nor is so much
#: Laplace noise without sampling, which is made of shifted lines as fast.
FEW, SEVERAL = 20, 100
#: Tilts that together show a whole distribution, as shares of the one for the δ asked for.
SHARES = (1.0, 0.6, 0.3, 0.0)


def added_on_lattice(guarantee: Guarantee, count: int) -> bool:
    """Whether so many copies of this guarantee are added up on a lattice.

    Two losses have sums in closed form; heavy losses far apart, as discrete and Laplace noise have
    them, are better added where they are while they are few.
    """
    match guarantee:
        case OneWay(Subsampled(PureDP())):
            return False
        case OneWay(Subsampled(DiscreteGaussian() | Laplace())):
            return count > FEW
        case Laplace():
            return count > SEVERAL
        case OneWay(Subsampled()) | SubsampledWithoutReplacement():
            return True
        case _:
            return False


def two_losses(sampled: OneWay) -> tuple[float, float]:
    """The smaller and the larger loss of a sample of randomized response."""
    match sampled.guarantee:
        case Subsampled(PureDP(epsilon), rate):
            low, high = sampled_losses(np.array([-epsilon, epsilon]), rate).tolist()
            return (low, high) if sampled.with_unit else (-high, -low)
        case _:
            raise TypeError(f"{sampled!r} has more than two losses")


def responses_of(guarantee: Guarantee, count: int, step: float) -> tuple[Atoms, Atoms] | None:
    """Atoms (above, below) `count` losses of a guarantee whose worst case has two outcomes.

    A pair with losses in [t − ε, t] is a post-processing of one with a wider interval, so the two
    losses of a sample are rounded outwards above and inwards below. On the lower side atoms closer
    than `step` are merged.
    """
    match guarantee:
        case PureDP(epsilon=epsilon):
            return responses(count=count, epsilon=epsilon, t=None, step=step)
        case OneWay(Subsampled(PureDP(), rate)):
            low, high = two_losses(guarantee)
            steep = rate * math.exp(min(max(-low, high), 600.0))
            error = 1e-14 * (high - low) + 1e-15 * steep
            above, below = (
                responses(count=count, epsilon=high - low + 2 * e, t=high + e, step=step)
                for e in (error, -error)
            )
            return above[0], below[1]
        case _:
            return None


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
    items: Items,
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
    variance = sum(count * mean_and_variance(g)[1] for g, count in items)
    variance += sum(one.variance for one in beside)
    added = sum(count if added_on_lattice(g, count) else 1 for g, count in items)
    added += sum(one.times for one in beside)
    reach = max((reach_of(g, delta * CUT / n) for g, n in items), default=0.0)
    step = _aligned(items, max(math.sqrt(3 * fineness * variance / added), reach / MOST_CELLS))
    if sum(_made(g, n, step, delta) for g, n in items.unordered()) > MOST_MADE:
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
    theta = above.tilt_for(delta)
    tilts = [theta * share for share in (SHARES if whole else SHARES[:1])]
    upper, lower = _sums(above, tilts, upward=True), _sums(below, tilts, upward=False)
    if upper is None or lower is None:
        return None
    if max(_grid_of(upper).size, _grid_of(lower).size) > MOST_POINTS:
        return None  # a window far from 0
    chords = upper.upper(_grid_of(upper))
    if upper.first > 0 and not whole:  # what lies left of a tilted window is not counted
        chords.values[: upper.first] = 1.0
    return chords, lower.lower(_grid_of(lower))


def _aligned(items: Items, step: float) -> float:
    """A step that fits between the two ends of the loss that matters most, if it has both."""
    sampled = [(n * mean_and_variance(g)[1], g) for g, n in items if added_on_lattice(g, n)]
    match max(sampled, key=lambda pair: pair[0], default=(0.0, None))[1]:
        case Laplace(epsilon):
            return 2 * epsilon / math.ceil(2 * epsilon / step)
        case OneWay(Subsampled(Laplace(epsilon), rate)) | SubsampledWithoutReplacement(
            PureDP(epsilon) | Laplace(epsilon), rate
        ):
            ends = sampled_losses(np.array([-epsilon, epsilon]), rate)
            width = float(ends[1] - ends[0])
            return width / math.ceil(width / step)
        case _:
            return step


@lru_cache(maxsize=32)
def sum_of(
    guarantee: Guarantee, count: int, step: float, delta: float
) -> tuple[Lattice, Lattice] | None:
    """`count` equal losses as one, (above, below), for profiles that matter down to `delta`."""
    items = Items(((guarantee, count),))
    above, below = (_factors(items, step, delta, upward=upward) for upward in (True, False))
    theta = above.tilt_for(delta)
    tilts = [theta * share for share in SHARES]
    upper, lower = _sums(above, tilts, upward=True), _sums(below, tilts, upward=False)
    return None if upper is None or lower is None else (upper, lower)


def _sums(factors: Factors, tilts: list[float], *, upward: bool) -> Lattice | None:
    """The best of what one or several tilts show of every mass; the last of several is 0."""
    found = [factors.sums(theta, upward=upward) for theta in tilts]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
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


def _factors(items: Items, step: float, delta: float, *, upward: bool) -> Factors:
    return Factors(tuple(_factor(g, count, step, delta, upward) for g, count in items.unordered()))


@lru_cache(maxsize=64)
def _factor(
    guarantee: Guarantee, count: int, step: float, delta: float, upward: bool
) -> tuple[Lattice, int]:
    """One loss on the lattice and how often it is added; exact sums are made before that."""
    atoms, times = _atoms(guarantee, count, step, delta * CUT / count, upward)
    if upward:
        return lattice_above(atoms, step), times
    return lattice_below(atoms, step, times), times


def _made(guarantee: Guarantee, count: int, step: float, delta: float) -> float:
    """About how many atoms and cells there will be; infinite for more trials than are summed."""
    match guarantee:
        case PureDP(epsilon) | OneWay(Subsampled(PureDP(epsilon))):
            trials = min(count + 1.0, 80 * math.sqrt(count))
            return trials * (1 + 2 * epsilon / step) if count <= MOST_TRIALS else math.inf
        case Gaussian(noise_multiplier=sigma):
            each = sigma / math.sqrt(count)
            return 2 * (reach_of(Gaussian(each), delta * CUT) + 0.02 / each) / step
        case LossDistribution(losses=losses):
            return (losses[-1] - losses[0]) / step
        case OneWay(TwoWayLoss()):
            return (guarantee.loss.losses[-1] - guarantee.loss.losses[0]) / step
    return 2 * number_of_atoms(guarantee, step, reach_of(guarantee, delta * CUT / count))


def _atoms(
    guarantee: Guarantee, count: int, step: float, tiny: float, upward: bool
) -> tuple[Atoms, int]:
    if (known := responses_of(guarantee, count, step)) is not None:
        return known[0 if upward else 1], 1
    match guarantee:
        case Gaussian(noise_multiplier=sigma):
            each = sigma / math.sqrt(count)
            one = Gaussian(deflated(each, 8) if upward else inflated(each, 8))
            wide = step * max(1, round(0.02 / each / step))
            make = atoms_above if upward else atoms_below
            return make(one, wide, reach_of(one, tiny)), 1
        case _:
            make = atoms_above if upward else atoms_below
            return make(guarantee, step, reach_of(guarantee, tiny)), count
