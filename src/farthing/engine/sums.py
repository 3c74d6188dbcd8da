"""A noisy sum of whole numbers that each unit changes by a bounded amount."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms import DiscreteLaplace, Items
from farthing.mechanisms.parameters import check
from farthing.mechanisms.randomness import open_source


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSum:
    """The sum plus discrete Laplace noise of scale max(|lower|, |upper|)/ε.

    Adding a unit adds a whole number between `lower` and `upper`. One step changes a
    probability by a factor of at most e^(1/scale), so that many steps by at most e^ε
    (docs/theory/mechanisms.md, Theorem 1, with τ the larger bound).
    """

    epsilon: float
    lower: int
    upper: int
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self, "epsilon")
        if self.sensitivity < 1:
            raise InvalidInput("lower and upper must not both be 0")
        _ = self.noise  # the scale is checked when the mechanism is made

    @property
    def sensitivity(self) -> int:
        """How much one unit changes the sum."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def noise(self) -> DiscreteLaplace:
        """What is added."""
        return DiscreteLaplace(self.sensitivity / Fraction(self.epsilon))

    @property
    def guarantees(self) -> Items:
        """One ε-DP release."""
        return ((PureDP(self.epsilon), 1),)

    def run(self, total: int) -> int:
        """The noisy sum, in Python's whole numbers: nothing overflows."""
        return total + int(self.noise.draw(1, open_source())[0])
