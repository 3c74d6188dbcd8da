"""What one computation proves about a tariff: the profile of everything that can be spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from farthing.composition.tariffs.budget import Budget
from farthing.composition.tariffs.tariff_recursion import TariffProfile
from farthing.guarantees.bracket import Bracket
from farthing.numerics.rounding import deflated, float_down, inflated

THEOREM = "tariff filter: supremum over all ways to spend (docs/theory/tariffs.md)"
#: Points of the profile that are kept; the chords between them are still an upper bound.
PROFILE_POINTS = 600
#: What is stated is this much larger than what was proved, relative.
OUTWARD = 1e-9


@dataclass(frozen=True, slots=True)
class ProofGrid:
    """A grid on which what is stated can be proved: points up to cells·step, units in steps.

    A proposal for whoever checks a certificate (docs/theory/checking.md); no claim rests on it.
    """

    step: float
    cells: int
    unit_step: int


@dataclass(frozen=True, slots=True)
class Proof:
    """What one computation proves about a tariff, the δ units counted."""

    leak: float
    end: TariffProfile
    unit_step: int

    @staticmethod
    @lru_cache(maxsize=16)
    def of(budget: Budget, leak: float, tolerance: float, delta: float) -> Proof:
        """On the grid for this tolerance at this δ: the same numbers whenever it is repeated.

        So it is not repeated in one process, where whoever certifies often proves again at once.
        """
        inner = (delta - leak) / (1 - leak)
        recursion = budget.recursion(0.8 * tolerance, inner)
        return Proof(leak, recursion.last(), recursion.unit_step)

    @property
    def grid(self) -> ProofGrid:
        """Where others may repeat it."""
        grid = self.end.upper.grid
        return ProofGrid(grid.step, grid.above, self.unit_step)

    @property
    def most_epsilon(self) -> float:
        """From here on only the units count; infinite if there is no such ε."""
        most = self.end.epsilon_at_most(0.0)
        return math.inf if most is None else most

    def epsilon_at(self, delta: float) -> Bracket | None:
        """Both sides of ε at this δ; None if nothing is proved there."""
        if delta < self.leak:
            return None
        inner = deflated((delta - self.leak) / (1 - self.leak), 8)
        upper = self.end.epsilon_at_most(inner)
        if upper is None:
            return None
        exact = delta == 0 and self.end.most_epsilon is not None
        # the ε of a sample is rounded up
        lower = deflated(float_down(self.end.most_epsilon or Fraction(0)), 8) if exact else 0.0
        lower = max(lower, self.end.lower.last_above(delta))
        return Bracket(min(lower, upper), upper, THEOREM)

    def delta_at(self, epsilon: float) -> Bracket:
        """Both sides of δ at this ε."""
        inner = self.end.delta_at_most(epsilon)
        upper = min(1.0, inflated(self.leak + (1 - self.leak) * inner, 8))
        return Bracket(min(self.end.lower.at(epsilon), upper), upper, THEOREM)

    def point_at(self, x: float) -> float:
        """An upper bound on the profile at x, without units; at grid points what is stored."""
        curve = self.end.upper
        place = round(x / curve.grid.step) + curve.grid.below
        if 0 <= place < curve.grid.size and (place - curve.grid.below) * curve.grid.step == x:
            return float(curve.values[place])
        return self.end.delta_at_most(x)

    @property
    def last_value(self) -> float:
        """Where the profile ends on the grid."""
        return float(self.end.upper.values[-1])

    def points(self) -> tuple[tuple[float, float], ...]:
        """Some points of the upper side from ε = 0 on, moved outward, among them both ends."""
        grid = self.end.upper.grid
        xs, values = grid.points()[grid.below :], self.end.upper.values[grid.below :]
        zeros = np.flatnonzero(values[1:] == 0)  # the first one says it all
        last = int(zeros[0]) + 1 if len(zeros) > 0 else len(values) - 1
        stride = max(1, math.ceil(last / PROFILE_POINTS))
        kept = sorted({*range(0, last, stride), last})
        outward = 1 + OUTWARD
        return tuple((float(xs[i]) * outward, min(1.0, float(values[i]) * outward)) for i in kept)


def outward(bracket: Bracket, most: float) -> Bracket:
    """Wider by OUTWARD, but not beyond `most`, which is exact."""
    upper = min(bracket.upper * (1 + OUTWARD), most)
    return Bracket(min(bracket.lower * (1 - OUTWARD), upper), upper, bracket.theorem)
