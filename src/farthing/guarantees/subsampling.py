"""What sampling does to a privacy loss that is given as atoms.

Without the unit the sampled mechanism has the distribution Q, with it (1 − q)Q + qP. An outcome
with P/Q = r becomes one with the ratio 1 − q + qr in one direction and with its inverse in the
other. In terms of profiles, V becomes q·V((z − 1 + q)/q) from z = 1 − q on, which keeps order:
atoms above a loss give atoms above the sampled one, atoms below give atoms below
(docs/theory/subsampling.md).
"""

from __future__ import annotations

import math

import numpy as np

from farthing.guarantees.atoms import Atoms
from farthing.numerics.rounding import UNIT, FloatArray, deflated, inflated

#: Relative error that masses of discrete noise, and their sums, stay below.
RELATIVE = 3e-11


def sampled_above(inner: Atoms, rate: float, *, missing: float, with_unit: bool) -> Atoms:
    """Atoms above the sampled loss, from atoms above `inner`.

    `missing` bounds the mass of Q on outcomes that P does not give, or that are not listed.
    """
    blur = _blur(inner)
    q_masses = inflated(inner.masses * np.exp(blur - inner.losses), 16)
    if with_unit:
        losses = sampled_losses(inner.losses + blur, rate)
        losses += _error(losses, inner.losses, rate)
        masses = inflated((1 - rate) * q_masses + rate * inner.masses, 16)
        masses[0] += missing  # at a smaller loss in truth
        return Atoms(losses, masses, inflated(rate * inner.infinity, 4))
    losses = sampled_losses(inner.losses - blur, rate)
    losses = (_error(losses, inner.losses, rate) - losses)[::-1]
    largest = -math.log1p(-rate) * (1 + 4 * UNIT)
    if missing == 0 or largest > 2 * abs(float(losses[-1])):  # far away it counts as infinite
        return Atoms(losses, q_masses[::-1], missing)
    return Atoms(np.append(losses, largest), np.append(q_masses[::-1], missing))


def sampled_below(inner: Atoms, rate: float, *, with_unit: bool) -> Atoms:
    """Atoms below the sampled loss, from atoms below `inner`."""
    blur = _blur(inner)
    q_masses = deflated(inner.masses * np.exp(-blur - inner.losses), 16)
    if with_unit:
        losses = sampled_losses(inner.losses - blur, rate)
        losses -= _error(losses, inner.losses, rate)
        return Atoms(losses, deflated((1 - rate) * q_masses + rate * inner.masses, 16))
    losses = sampled_losses(inner.losses + blur, rate)
    losses = -losses - _error(losses, inner.losses, rate)
    return Atoms(losses[::-1], q_masses[::-1])


def replaced_above(inner: Atoms, rate: float) -> Atoms:
    """Atoms above the loss of a sample of fixed size under replace-one neighbours.

    From z = 1 on the profile is that of the Poisson sample with the unit, left of it the mirror
    image of that (docs/theory/subsampling.md, "Without replacement"): so every mass at a loss s > 0
    has e^−s times its mass at −s, and what is left lies at 0.
    """
    one = sampled_above(inner, rate, missing=0.0, with_unit=True)
    losses, masses = one.losses[one.losses > 0], one.masses[one.losses > 0]
    mirrored = inflated(masses * np.exp(-losses), 16)
    known = math.fsum(masses) + math.fsum(mirrored) + one.infinity
    at_zero = max(0.0, 1 - known) + RELATIVE
    return Atoms(
        np.concatenate((-losses[::-1], [0.0], losses)),
        np.concatenate((mirrored[::-1], [at_zero], masses)),
        one.infinity,
    )


def sampled_losses(losses: FloatArray, rate: float) -> FloatArray:
    """ln(1 − q + q·e^l), without overflow for large l."""
    small = np.log1p(rate * np.expm1(np.minimum(losses, 30.0)))
    large = losses + math.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(losses, 0)))
    return np.where(losses <= 30, small, large)


def loss_before(loss: float, rate: float) -> float:
    """The l ≥ 0 with ln(1 − q + q·e^l) = `loss`, about: for choosing where to cut."""
    if loss > 30:
        return loss - math.log(rate)
    return math.log1p(math.expm1(loss) / rate)


def _blur(inner: Atoms) -> float:
    """More than the losses of `inner` can be off their exact places."""
    return 3e-14 * (1 + float(np.abs(inner.losses).max()))


def _error(sampled: FloatArray, losses: FloatArray, rate: float) -> FloatArray:
    """More than the rounding of `sampled_losses`."""
    steep = rate * np.exp(-np.minimum(sampled, 0.0))
    return 8 * UNIT * (np.abs(sampled) + np.abs(losses) + steep)
