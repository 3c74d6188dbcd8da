"""Losses with a profile in closed form, discretised from above and from below.

A loss distribution is given by its two tails, P[L > x] under one neighbour and Q[L > x] under the
other; the profile is V(x) = P[L > x] − e^x Q[L > x].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
from flint import arb

from farthing.guarantees.losses.base import Atoms, Loss
from farthing.numerics.ball import Ball, down, in_balls, up
from farthing.numerics.search import turning_point


@dataclass(frozen=True, slots=True)
class ContinuousLoss(Loss):
    """A loss with known tails; one with only a known profile overrides that and `atoms_below`."""

    by_balls: ClassVar[bool] = True

    def tails(self, x: Ball) -> tuple[Ball, Ball]:
        """P[L > x] and Q[L > x] of the dominating pair."""
        raise TypeError(f"{self.guarantee!r} has no tails in closed form (at {x})")

    def profile(self, x: Ball) -> Ball:
        """V(x)."""
        above, shadow = self.tails(x)
        return above - x.exp() * shadow

    def atoms_above(self, step: float, reach: float) -> Atoms:
        """Connects the points of the profile by chords in z; the slope of the polygon changes at
        the grid points only, and by how much is the mass there. Masses are rounded up."""
        last = max(1, int(reach / step) + 1)
        low = -last
        h = arb(step)
        values = [self.profile(j * h) for j in range(low, last + 1)]
        width, growth = h.expm1(), h.exp()
        masses = []
        for i, value in enumerate(values):
            previous = values[i - 1] if i > 0 else None
            after = values[i + 1] if i + 1 < len(values) else value
            if previous is None:
                fall = 1 - value  # the chord from z = 0, V = 1, times the width of a cell
                mass = (after - value) / width + fall
            else:
                mass = (after - value) / width + (previous - value) * growth / width
            masses.append(max(0.0, up(mass)))
        return Atoms(
            losses=np.arange(low, last + 1, dtype=np.float64) * step,
            masses=np.array(masses),
            infinity=up(values[-1]),
        )

    def atoms_below(self, step: float, reach: float) -> Atoms:
        """Merging outcomes is post-processing. A bin that holds P and Q of the two neighbours
        becomes an atom at ln(P/Q), near the multiple of `step` in its middle, where lines are known
        best; losses and masses are rounded down."""
        return _binned(self, step, reach)

    def reach(self, tiny: float) -> float:
        def too_near(x: float) -> bool:
            return up(self.profile(arb(x))) > tiny

        high = 1.0
        while too_near(high):
            high *= 1.5
        return turning_point(too_near, 0.0, high, width=1e-6)[1]


@lru_cache(maxsize=32)
@in_balls
def _binned(loss: ContinuousLoss, step: float, reach: float) -> Atoms:
    """Cached, because a search over the parameters of other items asks for it again and again."""
    last = max(1, int(reach / step) + 1)
    h = arb(step)
    edges = [(2 * j + 1) * h / 2 for j in range(-last - 1, last + 1)]
    cut = [(arb(1), arb(1)), *(loss.tails(edge) for edge in edges), (arb(0), arb(0))]
    losses, masses = [], []
    for (p0, q0), (p1, q1) in pairwise(cut):
        p, q = p0 - p1, q0 - q1
        if p > 0 and q > 0:
            losses.append(down((p / q).log()))
            masses.append(down(p))
    return Atoms(losses=np.array(losses), masses=np.array(masses))
