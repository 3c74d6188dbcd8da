"""Lists of fixed losses, many times each, by sums on a lattice.

Where nothing in a list leaves the adversary a choice, its profile is that of the sum of all losses
(lattice.py). Beside bounded-range steps the sum of one item is a step by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.composition.adaptive.lattice import (
    OUTSIDE,
    Factors,
    Lattice,
    lattice_above,
    lattice_below,
)
from farthing.composition.items import Losses
from farthing.guarantees.losses.base import Atoms, Loss
from farthing.numerics.curves import Chords, Grid, Supports

#: Of what is asked for, the share that cutting off large losses may add to δ.
CUT = 1e-7
#: Cells of one loss at most, and those of all losses of a list.
MOST_CELLS = 400_000
MOST_MADE = 2_000_000
#: Points between 0 and the far end of a sum at most.
MOST_POINTS = 1 << 22
#: Tilts that together show a whole distribution, as shares of the one for the δ asked for.
SHARES = (1.0, 0.6, 0.3, 0.0)


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
    theta = above.tilt_for(delta)
    tilts = [theta * share for share in SHARES]
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
