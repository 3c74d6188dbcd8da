"""Losses given as distributions: one for both directions, or one for each.

The adversary fixes two neighbouring datasets for the whole interaction, so all guarantees of a list
face the same way: with the unit against without it, or the reverse. If V bounds the profile of
(P, Q) and that of (Q, P), the first also lies below the mirror image

    V*(z) = 1 − z + z·V(1/z),    z = e^x,

and, being convex in z, below the convex hull of the smaller of the two. That hull is its own mirror
image, so a symmetric mechanism has exactly this profile, and no mechanism with the promise exceeds
it (docs/theory/directions.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import arb

from farthing.guarantees.kinds import LossDistribution, TwoWayLoss
from farthing.guarantees.losses.base import SLACK, Atoms, Loss, merged
from farthing.numerics.ball import Ball
from farthing.numerics.rounding import UNIT, FloatArray
from farthing.numerics.search import turning_point

#: Losses beyond this leave the range of floats.
FARTHEST = 700.0


@dataclass(frozen=True, slots=True)
class DistributionLoss(Loss):
    """One distribution that dominates in both directions."""

    guarantee: LossDistribution | TwoWayLoss

    @property
    def distribution(self) -> LossDistribution:
        """The loss of this direction."""
        assert isinstance(self.guarantee, LossDistribution)
        return self.guarantee

    @property
    def leak(self) -> float:
        return self.distribution.infinity

    @property
    def attained_leak(self) -> float:
        """An infinite loss in one direction is outcomes that the other neighbour never gives. In
        the other direction there are 1 − `mirrored_mass` of them, and the smaller side counts."""
        return min(self.leak, max(0.0, 1 - self.distribution.mirrored_mass - 1e-12))

    def without_leak(self) -> Loss:
        return self if self.leak == 0 else DistributionLoss(self.distribution.finite_part())

    @property
    def pure_epsilon(self) -> float | None:
        return max(self.distribution.losses[-1], 0.0) if self.leak == 0 else None

    def log_moment(self, alpha: float) -> Ball:
        """In floats relative to the largest term, with their rounding as the radius."""
        losses, masses = np.array(self.distribution.losses), np.array(self.distribution.masses)
        losses, masses = losses[masses > 0], masses[masses > 0]
        logs = np.log(masses) + (alpha - 1) * losses
        largest = float(logs.max())
        value = largest + math.log(float(np.sum(np.exp(logs - largest))))
        error = 4 * UNIT * (1500 + len(logs) + alpha * float(np.abs(losses).max()))
        return arb(value, error) + (1 + arb(10) ** -9).log()

    def atoms_above(self, step: float, reach: float) -> Atoms:
        masses = np.array(self.distribution.masses) * (1 + SLACK)
        return Atoms(np.array(self.distribution.losses), masses, self.leak)

    def atoms_below(self, step: float, reach: float) -> Atoms:
        return merged(attained_loss(self.distribution), step)

    def reach(self, tiny: float) -> float:
        return max(self.distribution.losses[-1], 0.0)

    def mean_and_variance(self) -> tuple[float, float]:
        losses, masses = self.distribution.losses, self.distribution.masses
        mean = float(np.dot(losses, masses))
        return mean, float(np.dot(np.square(losses), masses)) - mean**2

    def number_of_atoms(self, step: float, reach: float) -> float:
        return len(self.distribution.losses)

    def spread(self, reach: float) -> float:
        return self.distribution.losses[-1] - self.distribution.losses[0]

    def cells(self, count: int, step: float, tiny: float) -> float:
        return self.spread(0.0) / step


@dataclass(frozen=True, slots=True)
class OneWayLoss(DistributionLoss, one_way=True, by_balls=True):
    """One direction of two distributions. It is `leakless` once its infinite loss is counted
    elsewhere. A leak in one direction only does not count as attained."""

    guarantee: TwoWayLoss
    leakless: bool = False

    @property
    def distribution(self) -> LossDistribution:
        pair = self.guarantee
        here = pair.with_unit if self.with_unit else pair.without_unit
        return here.finite_part() if self.leakless else here

    @property
    def attained_leak(self) -> float:
        return 0.0

    def without_leak(self) -> Loss:
        return OneWayLoss(self.guarantee, self.with_unit, leakless=True)

    @property
    def pure_epsilon(self) -> float | None:
        return None

    def atoms_below(self, step: float, reach: float) -> Atoms:
        return merged(attained_one_way(self.guarantee, with_unit=self.with_unit), step)

    def number_of_atoms(self, step: float, reach: float) -> float:
        return len(self.guarantee.with_unit.losses) + len(self.guarantee.without_unit.losses)


def attained_one_way(pair: TwoWayLoss, *, with_unit: bool) -> Atoms:
    """The largest profile below V and V′*, with V the loss of this direction, V′ of the other.

    Right of z = 1 corners are those of the hull that begins at (1, v), left of it those of the
    mirror image; v is the largest value for which the whole is convex. Rounded down. Infinite
    losses are left out of both: what they add at every x says nothing about finite ones, and its
    rounding would look like some of them.
    """
    here, there = pair.with_unit, pair.without_unit
    if not with_unit:
        here, there = there, here
    x = np.unique([0.0, *np.abs([*here.losses, *there.losses])])
    x = x[x < FARTHEST]
    right = np.minimum(_values(here, x), _mirror_values(there, x))
    left = np.minimum(_values(there, x), _mirror_values(here, x))
    top, x, right, left = float(min(right[0], left[0])), x[1:], right[1:], left[1:]
    z = np.exp(x)
    apart = z - 1 > 1e-13
    x, z, right, left = x[apart], z[apart], right[apart], left[apart]
    if len(x) == 0:
        return Atoms(np.zeros(1), np.ones(1) * (1 - SLACK))

    def bend(value: float) -> float:
        falls = (float(np.max((value - side) / (z - 1))) for side in (right, left))
        return 1 - value - sum(max(0.0, fall) for fall in falls)

    if bend(top) < 0:
        top = turning_point(lambda value: bend(value) >= 0, 0.0, top, width=1e-12)[0]
    corners, bends = _hull(z, right, start=(1.0, top))
    mirrored, bends_there = _hull(z, left, start=(1.0, top))
    losses = np.concatenate((-x[mirrored][::-1], [0.0], x[corners]))
    masses = np.concatenate(
        ((bends_there * np.exp(-x[mirrored]))[::-1], [max(0.0, bend(top))], bends)
    )
    return Atoms(losses, np.maximum(masses, 0.0) * (1 - SLACK))


def _values(loss: LossDistribution, x: FloatArray) -> FloatArray:
    """The profile of the finite losses at each x, among which they are; rounded down."""
    losses, masses = np.array(loss.losses), np.array(loss.masses)
    q_masses = np.exp(np.minimum(np.log(np.maximum(masses, 1e-300)) - losses, 700.0))
    return _profile(x, losses, q_masses * (1 - SLACK))


def _mirror_values(loss: LossDistribution, x: FloatArray) -> FloatArray:
    """The mirror image of its profile at each x, above what stays at every x; rounded down."""
    losses, masses = np.array(loss.losses), np.array(loss.masses)
    missing = max(0.0, 1 - math.fsum(masses) - loss.infinity)
    values = _profile(x, -losses[::-1], masses[::-1] * (1 - SLACK))
    return np.maximum(values - np.exp(x) * missing, 0.0)


def attained_loss(loss: LossDistribution) -> Atoms:
    """The symmetric loss with the largest profile that lies below V and V*, rounded down.

    For a loss without infinite part; where it weighs more than 1 under either neighbour, as the
    finite part of a larger one may, it is scaled down. By symmetry only z ≥ 1 is needed: there
    the hull is that of the corners of both curves and the point (z, V) = (−1, 1), in which every
    chord from 1/z to z ends when it is prolonged.
    """
    losses, masses = np.array(loss.losses), np.array(loss.masses)
    used = (masses > 0) & (np.abs(losses) < FARTHEST)
    losses, masses = losses[used], masses[used]
    masses = masses / max(1.0, loss.mirrored_mass, math.fsum(masses))
    mirrored = np.exp(np.log(masses) - losses)
    x = np.unique(np.abs(losses))
    if len(x) == 0:
        return Atoms(np.zeros(1), np.ones(1) * (1 - SLACK))
    given = _profile(x, losses, mirrored)
    # what is missing of the two weights bends V* at both ends of the line
    missing = max(0.0, 1 - math.fsum(masses))
    beyond = max(0.0, 1 - math.fsum(mirrored) - 1e-12)
    mirror = beyond + _profile(x, -losses[::-1], masses[::-1]) - np.exp(x) * missing
    lower = np.maximum(np.minimum(given, mirror), 0.0)
    corners, bends = _hull(np.exp(x), lower, start=(-1.0, 1.0))
    x, bends = x[corners], bends * (1 - SLACK)
    distinct, place = np.unique(np.concatenate((-x[::-1], x)), return_inverse=True)
    total = np.zeros(len(distinct))  # only 0 can be there twice
    np.add.at(total, place, np.concatenate(((bends * np.exp(-x))[::-1], bends)))
    return Atoms(distinct, total)


def _profile(x: FloatArray, losses: FloatArray, mirrored: FloatArray) -> FloatArray:
    """Σ mass·(1 − e^{x − loss})₊ at x ≥ 0 up to the largest loss, from masses·e^−loss.

    Between two points the slope in z is the sum of what lies beyond: only positive terms.
    """
    beyond = np.concatenate((np.cumsum(mirrored[::-1])[::-1], [0.0]))
    slopes = beyond[np.searchsorted(losses, x, side="right")]
    falls = np.exp(x[:-1]) * np.expm1(np.diff(x)) * slopes[:-1]
    return np.concatenate((np.cumsum(falls[::-1])[::-1], [0.0]))


def _hull(
    z: FloatArray, values: FloatArray, *, start: tuple[float, float]
) -> tuple[list[int], FloatArray]:
    """Corners of the lower convex hull that begins at `start`, and the mass at each of the others:
    z times its bend. Of points that only rounding keeps apart the first one counts."""
    corners: list[int] = []
    falls: list[float] = []  # −slope of the edge that ends in each corner
    seen = start[0]
    for place, (here, value) in enumerate(zip(z.tolist(), values.tolist(), strict=True)):
        if here - seen <= 1e-13 * here:
            continue
        seen = here
        while True:
            before, height = (z[corners[-1]], values[corners[-1]]) if corners else start
            fall = (height - value) / (here - before)
            if not corners or fall < falls[-1]:
                break
            corners.pop()
            falls.pop()
        corners.append(place)
        falls.append(float(fall))
        if value == 0:
            break
    bends = -np.diff(np.append(falls, 0.0)) * z[corners]
    return corners, bends
