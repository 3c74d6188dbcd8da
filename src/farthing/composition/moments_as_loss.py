"""Kinds that only bound moments, anywhere in a list: each run of them as one loss.

Whatever was said before, a run of such mechanisms is (ε, D(ε))-DP for every ε at once, D the tight
conversion of its moments. D is the profile of a pair of distributions that dominates the run, and
dominating pairs compose with everything, in any order (docs/theory/moments.md).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import groupby

import numpy as np

from farthing.composition.adaptive import by_operators
from farthing.composition.bound import Bound, Sides
from farthing.composition.items import Losses
from farthing.composition.moments import MomentBound
from farthing.composition.profile_as_loss import loss_distribution_above
from farthing.errors import Unattainable
from farthing.guarantees.kinds import LossDistribution
from farthing.guarantees.losses.registry import loss_of
from farthing.numerics.curves import Chords, Grid
from farthing.numerics.rounding import inflated

#: D is computed at so many points on each side of ε = 0, up to where it is this part of δ.
POINTS, FAR = 400, 1e-4
#: Relative width that the profile of the whole is computed to.
FINE = 2e-3
#: A δ below this is not worth a grid.
SMALLEST = 1e-200


def moments_as_loss(items: Losses, adaptivity: str) -> Bound | None:
    """The bound for lists that have both; None if there is nothing to gain.

    Where the order is chosen as you go others may come between two of a run: then one use only.
    """
    uses = sum(count for loss, count in items if not loss.known)
    if uses in (0, items.total) or (adaptivity == "setwise" and uses > 1):
        return None

    def near(delta: float) -> Bound | None:
        listed = _as_losses(items, delta) if SMALLEST < delta < 1 else None
        return None if listed is None else by_operators(listed, adaptivity, FINE)

    def epsilon_at(delta: float) -> Sides:
        bound = near(delta)
        return 0.0, math.inf if bound is None else bound.epsilon_at(delta)[1]

    def delta_at(epsilon: float) -> Sides:
        bound = near(0.1 * MomentBound(items).delta_at(epsilon))
        return 0.0, 1.0 if bound is None else bound.delta_at(epsilon)[1]

    return Bound(
        "moments-as-loss",
        "Rényi moments as one loss beside others (docs/theory/moments.md)",
        epsilon_at=epsilon_at,
        delta_at=delta_at,
        on_grid=True,
    )


def _as_losses(items: Losses, delta: float) -> Losses | None:
    """The list with each run of kinds that only bound moments as one loss."""
    pairs = []
    for known, run in groupby(items, key=lambda pair: pair[0].known):
        if known:
            pairs += list(run)
            continue
        loss = dominating(Losses(tuple(run)), delta)
        if loss is None:
            return None
        pairs.append((loss_of(loss), 1))
    return Losses(tuple(pairs))


@lru_cache(maxsize=16)
def dominating(items: Losses, delta: float) -> LossDistribution | None:
    """A loss whose profile lies above that of every such list, close to it where it is about δ.

    For ε < 0 the profile is 1 − e^ε + e^ε·D(−ε) at most, by the other direction.
    """
    bound = MomentBound(items)
    end = bound.epsilon_at(FAR * delta)
    if not 0 < end < 300:
        return None
    grid = Grid(end / POINTS, POINTS, POINTS)
    values = np.array([bound.delta_at(x) for x in grid.points()[POINTS:].tolist()])
    mirrored = np.exp(grid.points()[:POINTS])
    below = inflated(1 - mirrored + mirrored * values[:0:-1], 16)
    both = np.minimum(np.concatenate((below, values)), 1.0)
    try:
        return loss_distribution_above(Chords(grid, np.minimum.accumulate(both)))
    except Unattainable:
        return None
