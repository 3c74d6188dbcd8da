"""The whole profile of a pair of finite systems, and the one draw that dominates the conversation.

As a function of z = e^ε the largest excess sup Σ [P − zQ]₊ is convex, decreasing and piecewise
linear. Every such curve is the profile of two distributions on finitely many outcomes, and by
[VZ23] (docs/theory/concurrency.md has a proof for finite systems) the conversation is a
post-processing of one draw from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import TypeAlias

from farthing.interactive.finite import HALTED, FiniteSystem, Reply
from farthing.interactive.pairs import Both, Fork, Pair, align

Point: TypeAlias = tuple[Fraction, Fraction]

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class ExactProfile:
    """z ↦ δ: linear between `points` (z increasing, the first z is 0), constant after the last."""

    points: tuple[Point, ...]

    def at(self, factor: Fraction) -> Fraction:
        """δ at e^ε = factor."""
        for (z, v), (next_z, next_v) in pairwise(self.points):
            if factor <= next_z:
                return v + (next_v - v) * (factor - z) / (next_z - z)
        return self.points[-1][1]

    def reached_with(self, first: Fraction, second: Fraction) -> ExactProfile:
        """first·V(z·second/first): the same where P and Q start at these weights."""
        if first == 0:
            return ExactProfile(((_ZERO, _ZERO),))
        if second == 0:
            return ExactProfile(((_ZERO, first),))
        return ExactProfile(tuple((z * first / second, first * v) for z, v in self.points))

    def plus(self, other: ExactProfile) -> ExactProfile:
        """The sum: two answers of which one is given."""
        factors = sorted({z for z, _ in (*self.points, *other.points)})
        return _tidy([(z, self.at(z) + other.at(z)) for z in factors])

    def maximum(self, other: ExactProfile) -> ExactProfile:
        """The larger one everywhere: two questions of which one is asked."""
        factors = sorted({z for z, _ in (*self.points, *other.points)})
        crossings = []
        for low, high in pairwise(factors):
            left = self.at(low) - other.at(low)
            right = self.at(high) - other.at(high)
            if left * right < 0:
                crossings.append(low + (high - low) * left / (left - right))
        return _tidy([(z, max(self.at(z), other.at(z))) for z in sorted((*factors, *crossings))])


class Profiles:
    """Profiles of pairs, each worked out once."""

    def __init__(self) -> None:
        self._known: dict[Pair, ExactProfile] = {}

    def of(self, pair: Pair) -> ExactProfile:
        """sup over adversaries of Σ [P − zQ]₊, for P and Q that start at 1 each."""
        if not pair.forks:
            return ExactProfile(((_ZERO, _ONE), (_ONE, _ZERO)))
        if pair not in self._known:
            asked = [self._asked(list(forks.values())) for forks in pair.forks.values()]
            self._known[pair] = reduce(ExactProfile.maximum, asked)
        return self._known[pair]

    def _asked(self, forks: list[Fork]) -> ExactProfile:
        return reduce(
            ExactProfile.plus, (self.of(f.then).reached_with(f.first, f.second) for f in forks)
        )


def profile(first: FiniteSystem, second: FiniteSystem) -> ExactProfile:
    """sup over adversaries of Σ [P − zQ]₊ for every z ≥ 0 at once."""
    return Profiles().of(align(first, second))


def masses(curve: ExactProfile, second: Fraction) -> tuple[Both, ...]:
    """Two measures with this profile, as weights of outcomes on the two sides.

    The total of the first is V(0), that of the second is given.
    V(z) = Σ m_j(1 − z/z_j)₊ + m_∞ with a kink at each z_j: outcome j weighs m_j in the first and
    m_j/z_j in the second, and the rest goes to outcomes that only one of them has.
    """
    points = curve.points
    slopes = [_slope(a, b) for a, b in pairwise(points)]
    kinks = [
        (z * (after - before), after - before)
        for (z, _), before, after in zip(points[1:], slopes, (*slopes, _ZERO)[1:], strict=True)
    ]
    rest = second + (slopes[0] if slopes else _ZERO)
    return tuple(m for m in ((points[-1][1], _ZERO), *kinks, (_ZERO, rest)) if any(m))


def dominating_pair(first: FiniteSystem, second: FiniteSystem) -> tuple[FiniteSystem, FiniteSystem]:
    """Two systems that answer one question once and have the profile of the given pair.

    The profile of the reverse direction is 1 − z + z·V(1/z), so they serve both directions.
    """
    outcomes = masses(profile(first, second), _ONE)
    sides = [
        FiniteSystem({"draw": {j: Reply(m[side], HALTED) for j, m in enumerate(outcomes)}})
        for side in (0, 1)
    ]
    return sides[0], sides[1]


def _tidy(points: list[Point]) -> ExactProfile:
    """Without the points at which nothing bends."""
    kept: list[Point] = []
    for point in points:
        while len(kept) > 1 and _slope(kept[-2], kept[-1]) == _slope(kept[-1], point):
            kept.pop()
        kept.append(point)
    while len(kept) > 1 and kept[-1][1] == kept[-2][1]:
        kept.pop()
    return ExactProfile(tuple(kept))


def _slope(left: Point, right: Point) -> Fraction:
    return (right[1] - left[1]) / (right[0] - left[0])
