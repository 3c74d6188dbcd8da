"""Equal bounded-range rounds from nothing, where neighbouring counts share what they can.

A planner asks for 2239 rounds and then for 2240. The profile of a count is made from that of the
count without its last binary digit that is 1; both are kept, so on one grid the second question
takes 64 rounds instead of 2240. The rounds are the same ones in the same order either way.
"""

from __future__ import annotations

from functools import lru_cache

from farthing.composition.operators import BoundedRangeChoice
from farthing.numerics.curves import Chords, Grid, Supports

#: Profiles that are kept of each side: about two counts with all that they are made from.
KEPT = 24


@lru_cache(maxsize=KEPT)
def rounds_above(epsilon: float, grid: Grid, count: int) -> Chords:
    """What no adversary of `count` rounds exceeds."""
    if count == 0:
        return Chords.of_nothing(grid)
    fewer = count & (count - 1)
    profile, operator = rounds_above(epsilon, grid, fewer), BoundedRangeChoice(epsilon)
    for _ in range(count - fewer):
        profile = operator.above(profile)
    return profile


@lru_cache(maxsize=KEPT)
def rounds_below(epsilon: float, grid: Grid, count: int) -> Supports:
    """What one adversary of `count` rounds achieves."""
    if count == 0:
        return Supports.of_nothing(grid)
    fewer = count & (count - 1)
    profile, operator = rounds_below(epsilon, grid, fewer), BoundedRangeChoice(epsilon)
    for _ in range(count - fewer):
        profile = operator.below(profile)
    return profile
