"""The supremum over all ways to spend a budget, as a recursion over what is left of it.

With b farthings and d units of δ left, whatever is bought next and whatever follows,

    V_{0,d}(x) = max(1 − e^x, 0),    V_{b,d} = max( V_{b−1,d},  max_i T_i V_{b−c_i, d−d_i} )

over the offers i that cost c_i ≤ b farthings and d_i ≤ d units (docs/theory/tariffs.md). The δ of
an offer is taken out before: T_i is what the rest of it does. Both sides are computed:

    units    counted in steps of some g units. Rounding prices down allows every purchase that
             fits, which is the upper side; rounding them up allows only purchases that fit.
    Σε       if everything that can be bought is pure, V_{b,d} is 0 from the largest Σε on, which
             is a knapsack in whole numbers.

Samples have one loss with the unit and another without it. The two neighbours are fixed for the
whole interaction, so each direction has its own recursion and the larger profile counts
(docs/theory/tariffs.md, "Samples").
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from farthing.composition.adaptive.operators import Operator
from farthing.numerics.curves import Chords, Grid, Supports
from farthing.numerics.rounding import float_up, inflated
from farthing.progress import tell


@dataclass(frozen=True, slots=True)
class TariffProfile:
    """V from both sides once this many farthings, and all units of δ, may be spent.

    From `most_epsilon` on V is 0: the largest Σε that can be bought, None if that is unbounded.
    """

    farthings: int
    upper: Chords
    lower: Supports
    most_epsilon: Fraction | None

    def delta_at_most(self, epsilon: float) -> float:
        """An upper bound on V(ε)."""
        if self.most_epsilon is not None and self.most_epsilon <= epsilon:
            return 0.0
        return self.upper.at(epsilon)

    def epsilon_at_most(self, delta: float) -> float | None:
        """An ε ≥ 0, near the smallest, with V(ε) ≤ `delta`; None if there is none on the grid."""
        epsilon = self.upper.first_below(delta) if delta > 0 else None
        if self.most_epsilon is None:
            return epsilon
        most = float_up(self.most_epsilon)
        return most if epsilon is None else min(epsilon, most)

    def larger(self, other: TariffProfile) -> TariffProfile:
        """The larger of both, once the same may be spent."""
        return replace(
            self, upper=self.upper.larger(other.upper), lower=self.lower.larger(other.lower)
        )


@dataclass(frozen=True, slots=True)
class PricedOperator:
    """One offer in the recursion: its operator, its price in steps of both currencies, its ε."""

    operator: Operator
    farthings: int
    level: int
    epsilon: int


@dataclass(frozen=True, slots=True)
class _State:
    """V_{b,d} from both sides, and the largest Σε as a whole number."""

    upper: Chords
    lower: Supports
    epsilon: int


@dataclass(frozen=True, slots=True)
class Recursion:
    """V_{0,·}, V_{1,·}, … one after the other: a state for every number of unit steps.

    Each ε is a whole number of 1/`whole`; from `beyond` on it means that Σε is unbounded.
    """

    grid: Grid
    upper: tuple[PricedOperator, ...]
    lower: tuple[PricedOperator, ...]
    farthings: int
    farthing_step: int
    highest_level: int
    unit_step: int
    whole: int
    beyond: int

    def __iter__(self) -> Iterator[TariffProfile]:
        """V_{b,d} with all the units, for every b at which it can change."""
        nothing = _State(Chords.of_nothing(self.grid), Supports.of_nothing(self.grid), 0)
        states = [nothing] * (self.highest_level + 1)
        longest = max((move.farthings for move in self.upper), default=1)
        past: deque[list[_State]] = deque([states], maxlen=longest)
        yield self._profile(0, states[-1])
        rate = self._levels_per_farthing()
        for spent in range(1, self.farthings + 1):
            usable = math.floor(spent * rate)
            later = [self._next(states[d], d, past) for d in range(min(usable + 1, len(states)))]
            states = later + later[-1:] * (len(states) - len(later))
            past.append(states)
            tell(f"{spent * self.farthing_step} farthings", spent, self.farthings)
            yield self._profile(spent, states[-1])

    def _levels_per_farthing(self) -> Fraction:
        """With more units than this for each farthing, some are left over."""
        moves = (*self.upper, *self.lower)
        return max((Fraction(m.level, m.farthings) for m in moves), default=Fraction(0))

    def _next(self, state: _State, level: int, past: deque[list[_State]]) -> _State:
        """One farthing more than `state`: the best of not needing it and of every purchase."""
        upper, lower, epsilon = state.upper, state.lower, state.epsilon
        for move in self.upper:
            if move.farthings <= len(past) and move.level <= level:
                before = past[-move.farthings][level - move.level]
                upper = upper.larger(move.operator.above(before.upper))
                epsilon = max(epsilon, before.epsilon + move.epsilon)
        for move in self.lower:
            if move.farthings <= len(past) and move.level <= level:
                before = past[-move.farthings][level - move.level]
                lower = lower.larger(move.operator.below(before.lower))
        return _State(self._ended(upper, epsilon), lower, epsilon)

    def _ended(self, curve: Chords, epsilon: int) -> Chords:
        """The chords, 0 from Σε on; left of that the tangent from there, where it is lower.

        V is convex in z, so the greatest convex function below the values still lies above it.
        """
        if epsilon >= self.beyond:
            return curve
        step, scale = self.grid.step.as_integer_ratio()
        first = self.grid.below - (-epsilon * scale) // (self.whole * step)
        if first >= self.grid.size or not curve.values[first:].any():
            return curve
        values = curve.values.copy()
        values[first:] = 0.0
        gaps = -np.expm1(np.arange(-first, 0) * self.grid.step)  # 1 − z_j/z_first
        slopes = values[:first] / gaps
        touching = int(np.argmin(slopes))
        tangent = inflated(slopes[touching] * gaps[touching + 1 :], 8)
        values[touching + 1 : first] = np.minimum(values[touching + 1 : first], tangent)
        return Chords(self.grid, values)

    def _profile(self, spent: int, state: _State) -> TariffProfile:
        pure = state.epsilon < self.beyond
        most = Fraction(state.epsilon, self.whole) if pure else None
        return TariffProfile(spent * self.farthing_step, state.upper, state.lower, most)


@dataclass(frozen=True, slots=True)
class EitherWay:
    """One recursion for each direction of neighbours, side by side: the larger profile counts."""

    directions: tuple[Recursion, ...]

    @property
    def farthing_step(self) -> int:
        return self.directions[0].farthing_step

    @property
    def unit_step(self) -> int:
        return self.directions[0].unit_step

    def __iter__(self) -> Iterator[TariffProfile]:
        """As of one recursion."""
        for profiles in zip(*self.directions, strict=True):
            yield reduce(TariffProfile.larger, profiles)

    def last(self) -> TariffProfile:
        """V with everything to spend."""
        return deque(self, maxlen=1)[0]

    def upper_only(self) -> EitherWay:
        """Without lower sides, which take time."""
        return EitherWay(tuple(replace(one, lower=()) for one in self.directions))
