"""Theorems that bound a list without a grid: closed forms, Gaussian noise, moments.

Each of them gives a `Bound`; `moment_witness` shows how close moments come.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

#: What a bound knows about one number: `lower` may be 0 and `upper` infinite.
Sides = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bound:
    """One theorem for one list, read in both directions.

    `epsilon_at` and `delta_at` give (lower, upper) for the optimum of the adaptivity that was
    asked for; a bound that is not tight has lower 0. `optimal` means that nothing better exists
    where the bound says anything at all, `on_grid` that it takes noticeable time.
    """

    name: str
    theorem: str
    epsilon_at: Callable[[float], Sides]
    delta_at: Callable[[float], Sides]
    optimal: bool = False
    on_grid: bool = False


def lower_only(bound: Bound) -> Bound:
    """What an adversary achieves, without a claim about the others."""
    return replace(
        bound,
        optimal=False,
        epsilon_at=lambda delta: (bound.epsilon_at(delta)[0], math.inf),
        delta_at=lambda epsilon: (bound.delta_at(epsilon)[0], math.inf),
    )
