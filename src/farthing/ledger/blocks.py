"""Profiles of accounts, and several accounts together.

The profile of an account dominates everything that is done inside it, whatever comes before,
after or in between; so accounts compose like mechanisms with a fixed privacy loss
(docs/theory/odometer.md, "Several accounts").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from farthing.canonical import canonical
from farthing.composition.certificate import tariff_from_json, tariff_to_json
from farthing.composition.compose import compose
from farthing.composition.items import take_out_leaks
from farthing.composition.operators import atoms_of
from farthing.composition.profiles import curves
from farthing.composition.tariff import Tariff, spendings
from farthing.errors import NotCertified, Unattainable
from farthing.guarantees.kinds import LossDistribution
from farthing.ledger.lists import Registered
from farthing.numerics.ball import up
from farthing.numerics.curves import UNIT, Chords

#: Relative width in ε that profiles are computed to.
FINENESS = 4e-3


@dataclass(frozen=True, slots=True)
class Part:
    """What one account may have revealed: a profile, and the chance that it told everything."""

    profile: Chords | None
    leak: float


def tariff_parts(tariff: Tariff, farthings: frozenset[int], delta: float) -> Mapping[int, Part]:
    """V_b for each of these b, accurate down to about `delta`; 0 has no profile.

    The leak is that of all δ units whatever is spent, so that it is counted once over all levels.
    """
    return _tariff_parts(canonical(tariff_to_json(tariff)), farthings, delta)


@lru_cache(maxsize=64)
def _tariff_parts(written: str, farthings: frozenset[int], delta: float) -> Mapping[int, Part]:
    tariff = tariff_from_json(json.loads(written))
    found = {0: Part(None, tariff.leak)}
    for spent in spendings(tariff, FINENESS, delta):
        if spent.farthings in farthings and spent.farthings > 0:
            found[spent.farthings] = Part(spent.upper, tariff.leak)
    return MappingProxyType(found)


def list_part(listed: Registered, delta: float) -> Part:
    """The profile of a registered list, run whole."""
    leaky = take_out_leaks(listed.items)
    leak = up(leaky.leak) if leaky.sum_of_deltas > 0 else 0.0
    if not leaky.items.pairs:
        return Part(None, leak)
    found = curves(leaky.items, listed.adaptivity, FINENESS, delta, whole=True)
    if found is None:
        raise NotCertified("the registered list is too long for one profile; register it in parts")
    return Part(found.upper, leak)


def epsilon_of(parts: list[Part], delta: float, *, share: float = 1.0) -> float:
    """ε for all parts together, with a share of what the leaks leave of δ."""
    inner = _without_leaks(parts, delta) * share * (1 - 8 * UNIT)
    profiles = [part.profile for part in parts if part.profile is not None]
    if not profiles:
        return 0.0
    if len(profiles) == 1:
        found = profiles[0].first_below(inner)
        if found is None:
            raise NotCertified(f"no epsilon is proved at delta = {delta:g}")
        return found
    composed = compose(
        [_as_guarantee(p) for p in profiles], adaptivity="adaptive", tolerance=FINENESS
    )
    return composed.epsilon_at(inner).upper


def _without_leaks(parts: list[Part], delta: float) -> float:
    """What of δ is left for the profiles, rounded down."""
    leak = sum(part.leak for part in parts) * (1 + 8 * len(parts) * UNIT)
    if delta <= leak:
        raise Unattainable(f"delta must exceed the {leak:g} of the delta units, got {delta:g}")
    return (delta - leak) * (1 - 8 * UNIT)


def _as_guarantee(profile: Chords) -> LossDistribution:
    """A discrete loss whose profile is nowhere below; missing mass counts as infinite loss.

    Under Q an atom weighs its mass times e^−loss, which turns the rounding up of masses at very
    negative losses into a total above 1. The leftmost atoms are moved up to the first one from
    where on it is not; a larger loss only dominates.
    """
    atoms = atoms_of(profile)
    kept = atoms.masses > 0
    losses, masses = atoms.losses[kept], atoms.masses[kept]
    moved = np.cumsum(masses) * (1 + 2 * len(masses) * UNIT)
    with np.errstate(over="ignore"):
        shrink = np.exp(-losses)
    right = np.append(np.cumsum((masses * shrink)[::-1])[::-1][1:], 0.0)
    first = int(np.argmax(moved * shrink + right <= 1))
    losses, masses = losses[first:], np.append(moved[first], masses[first + 1 :])
    missing = max(0.0, 1 - float(np.sum(masses)) - atoms.infinity)
    return LossDistribution(
        losses=tuple(losses.tolist()),
        masses=tuple(masses.tolist()),
        infinity=atoms.infinity + missing,
    )
