"""A privacy loss as a list of atoms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.numerics.rounding import UNIT, FloatArray, deflated

#: Relative error that the masses of a given distribution, and their sums, stay far below.
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Atoms:
    """A discrete privacy loss: mass `masses[i]` at `losses[i]`, `infinity` beyond all of them."""

    losses: FloatArray
    masses: FloatArray
    infinity: float = 0.0


def merged(atoms: Atoms, step: float) -> Atoms:
    """Atoms in bins around multiples of `step`, each one outcome: post-processing, never above."""
    bins = np.floor(atoms.losses / step + 0.5)
    starts = np.flatnonzero(np.concatenate(([True], np.diff(bins) != 0)))
    if len(starts) == len(bins):
        return atoms
    centres = np.repeat(bins[starts], np.diff(np.append(starts, len(bins)))) * step
    p = np.add.reduceat(atoms.masses, starts)
    with np.errstate(over="ignore"):  # a larger Q is a smaller loss, and the edge holds
        q = np.add.reduceat(atoms.masses * np.exp(centres - atoms.losses), starts) + 1e-300
    fine = p > 0
    middles = bins[starts][fine] * step
    losses = middles - np.log(q[fine] / p[fine])
    edges = middles - step / 2  # ln(P/Q) lies between the edges of its bin
    losses = np.maximum(losses - 1e-13 * (1 + np.abs(losses)), edges - 4 * UNIT * np.abs(edges))
    return Atoms(losses, deflated(p[fine], 4 * len(bins)), 0.0)
