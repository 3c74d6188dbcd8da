"""A profile as a guarantee: a discrete loss that dominates everything below the profile."""

from __future__ import annotations

import math

import numpy as np

from farthing.composition.adaptive.operators import atoms_of
from farthing.errors import Unattainable
from farthing.guarantees.kinds import LossDistribution
from farthing.numerics.curves import Chords
from farthing.numerics.rounding import FloatArray, inflated


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
