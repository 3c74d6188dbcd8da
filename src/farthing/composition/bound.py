"""A theorem applied to one list of mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

#: What a bound knows about one number: `lower` may be 0 and `upper` infinite.
Sides = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bound:
    """One theorem for one list, read in both directions.

    `epsilon_at` and `delta_at` give (lower, upper) for the optimum of the adaptivity that was
    asked for; a bound that is not tight has lower 0. `optimal` means that nothing better exists.
    """

    name: str
    theorem: str
    epsilon_at: Callable[[float], Sides]
    delta_at: Callable[[float], Sides]
    optimal: bool = False
