"""What a loss that is promised in both directions of neighbours lets a mechanism attain.

If V bounds the profile of (P, Q) and that of (Q, P), the first also lies below the mirror image

    V*(z) = 1 − z + z·V(1/z),    z = e^x,

and, being convex in z, below the convex hull of the smaller of the two. That hull is its own mirror
image, so a symmetric mechanism has exactly this profile: it is what the promise is worth
(docs/theory/directions.md).
"""

from __future__ import annotations

import math

import numpy as np

from farthing.guarantees.atoms import SLACK, Atoms
from farthing.guarantees.kinds import LossDistribution
from farthing.numerics.rounding import FloatArray

#: Losses further out than this say nothing that a float could tell.
FARTHEST = 700.0


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
    corners, bends = _hull(np.exp(x), np.maximum(np.minimum(given, mirror), 0.0))
    x, bends = x[corners], bends * (1 - SLACK)
    return _merged_at_zero(
        np.concatenate((-x[::-1], x)), np.concatenate(((bends * np.exp(-x))[::-1], bends))
    )


def _profile(x: FloatArray, losses: FloatArray, mirrored: FloatArray) -> FloatArray:
    """Σ mass·(1 − e^{x − loss})₊ at x ≥ 0 up to the largest loss, from masses·e^−loss.

    Between two points the slope in z is the sum of what lies beyond: only positive terms.
    """
    beyond = np.concatenate((np.cumsum(mirrored[::-1])[::-1], [0.0]))
    slopes = beyond[np.searchsorted(losses, x, side="right")]
    falls = np.exp(x[:-1]) * np.expm1(np.diff(x)) * slopes[:-1]
    return np.concatenate((np.cumsum(falls[::-1])[::-1], [0.0]))


def _hull(z: FloatArray, values: FloatArray) -> tuple[list[int], FloatArray]:
    """Corners of the lower convex hull with (−1, 1), and the mass at each: z times its bend."""
    corners: list[int] = []
    falls: list[float] = []  # −slope of the edge that ends in each corner
    for place, (here, value) in enumerate(zip(z.tolist(), values.tolist(), strict=True)):
        while True:
            before, height = (z[corners[-1]], values[corners[-1]]) if corners else (-1.0, 1.0)
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


def _merged_at_zero(losses: FloatArray, masses: FloatArray) -> Atoms:
    """One atom at each loss; only 0 can be there twice."""
    distinct, place = np.unique(losses, return_inverse=True)
    total = np.zeros(len(distinct))
    np.add.at(total, place, masses)
    return Atoms(distinct, total)
