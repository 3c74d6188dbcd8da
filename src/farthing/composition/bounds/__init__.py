"""Theorems that bound a list without a grid: closed forms, Gaussian noise, moments.

Every answer is a `Bracket`; each theorem gives a `Bound`; `moment_witness` shows how close moments
come; `tradeoff` says what a profile means for somebody who guesses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from farthing.errors import NotCertified

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
    """The lower side alone."""
    return replace(
        bound,
        optimal=False,
        epsilon_at=lambda delta: (bound.epsilon_at(delta)[0], math.inf),
        delta_at=lambda epsilon: (bound.delta_at(epsilon)[0], math.inf),
    )


@dataclass(frozen=True, slots=True)
class Bracket:
    """`lower ≤ truth ≤ upper`, and the theorem that gives `upper`.

    The truth is the smallest value that is valid for every mechanism with the stated
    guarantees. `lower` is attained by some adversary; charge `upper`.
    """

    lower: float
    upper: float
    theorem: str

    def __post_init__(self) -> None:
        if not 0 <= self.lower <= self.upper < math.inf:
            raise NotCertified(
                "a bracket must satisfy 0 <= lower <= upper < inf, "
                f"got [{self.lower}, {self.upper}]"
            )

    @property
    def width(self) -> float:
        """Relative width: (upper − lower) / upper, and 0 where both are 0."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper
