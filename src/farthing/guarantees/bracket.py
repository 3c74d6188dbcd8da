"""A bracket: what every answer is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing.errors import NotCertified


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
