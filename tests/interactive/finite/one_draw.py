"""The profile of a finite conversation, and the one draw that can replace it [VZ23].

As a function of z = e^ε the largest excess sup Σ [P − zQ]₊ is convex, decreasing and piecewise
linear. Every such curve is the profile of two distributions on finitely many outcomes, and by
[VZ23] the conversation is a post-processing of one draw from them.

`one_draw` runs that theorem. Two distributions P, Q on finitely many outcomes, whose profile is
nowhere below that of the conversation, are turned into one system per outcome, so that mixing the
systems by P gives the first side of the conversation and by Q the second. The proof is in
docs/theory/concurrency.md, section 4. Each of its steps is the theorem of Blackwell, Sherman and
Stein for two distributions, which `kernel` makes explicit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import TypeAlias

from farthing.errors import InvalidInput, NotCertified
from tests.interactive.finite.systems import (
    HALTED,
    AnswerSymbol,
    Both,
    FiniteSystem,
    Fork,
    History,
    Pair,
    QuestionSymbol,
    Reply,
    align,
    transcripts,
)

Point: TypeAlias = tuple[Fraction, Fraction]

_ZERO, _ONE = Fraction(0), Fraction(1)

#: Parts of the source's outcomes, in order: which outcome, and which share of it.
Pieces: TypeAlias = list[tuple[int, Fraction]]


@dataclass(frozen=True, slots=True)
class ExactProfile:
    """z ↦ δ: linear between `points` (z increasing, the first z is 0), constant after the last."""

    points: tuple[Point, ...]

    def at(self, factor: Fraction) -> Fraction:
        """δ at e^ε = factor."""
        place = bisect_right(self.points, factor, key=itemgetter(0))
        z, v = self.points[place - 1]
        return (
            v
            if place == len(self.points)
            else v + (factor - z) * _slope(*self.points[place - 1 : place + 1])
        )

    def both_ways_at(self, factor: Fraction) -> Both:
        """δ at e^ε = factor > 0, and the same with both sides exchanged.

        [q − zp]₊ = q − zp + z·[p − q/z]₊.
        """
        return self.at(factor), 1 - factor + factor * self.at(1 / factor)

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
    """Profiles of pairs, each computed once."""

    def __init__(self) -> None:
        self._known: dict[Pair, ExactProfile] = {}

    def of(self, pair: Pair) -> ExactProfile:
        """sup over adversaries of Σ [P − zQ]₊, for P and Q that start at 1 each."""
        if not pair.forks:
            return ExactProfile(((_ZERO, _ONE), (_ONE, _ZERO)))
        if pair not in self._known:
            self._known[pair] = reduce(ExactProfile.maximum, map(self.asked, pair.forks.values()))
        return self._known[pair]

    def asked(self, forks: Mapping[AnswerSymbol, Fork]) -> ExactProfile:
        """The same once a question was asked that is answered so."""
        parts = (self.of(f.then).reached_with(f.first, f.second) for f in forks.values())
        return reduce(ExactProfile.plus, parts)


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


@dataclass(frozen=True, slots=True)
class OneDraw:
    """Outcome j has probability `outcomes[j]` on the two sides; `systems[j]` then answers."""

    outcomes: tuple[Both, ...]
    systems: tuple[FiniteSystem, ...]

    def weights(self, history: History) -> Both:
        """The probability of these answers to these questions on the two sides."""
        chances = [system.weight(history) for system in self.systems]
        pairs = list(zip(self.outcomes, chances, strict=True))
        return (
            sum((outcome[0] * chance for outcome, chance in pairs), _ZERO),
            sum((outcome[1] * chance for outcome, chance in pairs), _ZERO),
        )


def one_draw(
    first: FiniteSystem, second: FiniteSystem, outcomes: Sequence[Both] | None = None
) -> OneDraw:
    """The systems for these outcomes; without any, the fewest with the conversation's profile."""
    pair = align(first, second)
    builder = _Builder()
    needed = builder.profiles.of(pair)
    given = tuple(outcomes) if outcomes is not None else masses(needed, Fraction(1))
    if [sum(side) for side in zip(*given, strict=True)] != [1, 1]:
        raise InvalidInput("the outcomes must have total probability 1 on both sides")
    if not _dominates(given, needed):
        raise InvalidInput("the outcomes must be at least as easy to tell apart as the systems")
    result = OneDraw(given, tuple(builder.systems(pair, (Fraction(1), Fraction(1)), given)))
    for history, weights in transcripts(pair):
        if result.weights(history) != weights:
            raise NotCertified("the draw does not add up to the systems given")
    return result


class _Builder:
    def __init__(self) -> None:
        self.profiles = Profiles()

    def systems(self, pair: Pair, m: Both, given: Sequence[Both]) -> list[FiniteSystem]:
        """One system per outcome, below a node that is reached with weights m."""
        replies: list[dict[QuestionSymbol, dict[AnswerSymbol, Reply]]] = [{} for _ in given]
        for question, forks in pair.forks.items():
            for table, answers in zip(replies, self._asked(forks, m, given), strict=True):
                table[question] = answers
        return [FiniteSystem(table) for table in replies]

    def _asked(
        self, forks: Mapping[AnswerSymbol, Fork], m: Both, given: Sequence[Both]
    ) -> list[dict[AnswerSymbol, Reply]]:
        """The answers of every outcome's system to one question."""
        reached = {a: (m[0] * f.first, m[1] * f.second) for a, f in forks.items()}
        wanted = {
            a: masses(self.profiles.of(f.then).reached_with(*reached[a]), reached[a][1])
            for a, f in forks.items()
        }
        shares = kernel(given, [target for targets in wanted.values() for target in targets])
        ends = list(accumulate(len(targets) for targets in wanted.values()))
        result: list[dict[AnswerSymbol, Reply]] = [{} for _ in given]
        for (answer, fork), end in zip(forks.items(), ends, strict=True):
            start = end - len(wanted[answer])
            chances = [sum(row[start:end], _ZERO) for row in shares]
            after = [(p * k, q * k) for (p, q), k in zip(given, chances, strict=True)]
            below = self.systems(fork.then, reached[answer], after)
            for answers, chance, then in zip(result, chances, below, strict=True):
                answers[answer] = Reply(chance, then)
        return result


def kernel(source: Sequence[Both], target: Sequence[Both]) -> list[list[Fraction]]:
    """K with Σ_i source_i·K_ij = target_j on both sides, each row adding up to 1.

    It exists if the totals are equal and the profile of the source is nowhere below that of the
    target. Lay the outcomes of the source side by side by falling ratio p/q. Take the targets by
    falling ratio too, and cut a window with exactly the target's q and p out of the source: when a
    window of that q slides from left to right, its p falls continuously, and at the left end it is
    not below the target's, by domination. What is left of the source still dominates what is left
    of the targets: behind the window both curves lost the same, and before it the source is at
    least as steep as the target's ratio and the remaining targets are at most as steep. An outcome
    of weight 0 on both sides goes to the first target.
    """
    met = [i for i, piece in enumerate(source) if any(piece)]
    left = [(i, Fraction(1)) for i in sorted(met, key=lambda i: _rank(source[i]))]
    shares = [[_ZERO] * len(target) for _ in source]
    for j in sorted(range(len(target)), key=lambda j: _rank(target[j])):
        window, left = _cut(source, left, target[j])
        for i, share in window:
            shares[i][j] += share
    for row in shares:
        if not any(row):
            row[0] = Fraction(1)
    return shares


def _cut(source: Sequence[Both], pieces: Pieces, target: Both) -> tuple[Pieces, Pieces]:
    """A window of the pieces with exactly the weights of the target, and the pieces without it."""
    before: Pieces = []
    window: Pieces = []
    behind = list(pieces)
    missing, surplus = target[1], -target[0]
    while behind and (missing > 0 or source[behind[0][0]][1] == 0):
        i, share = behind.pop(0)
        taken = min(share, missing / source[i][1]) if source[i][1] > 0 else share
        window.append((i, taken))
        missing, surplus = missing - taken * source[i][1], surplus + taken * source[i][0]
        if taken < share:
            behind.insert(0, (i, share - taken))
    while surplus > 0:
        (i, share), *window = window
        p, q = source[i]
        if q == 0:
            moved = min(share, surplus / p)
            surplus -= moved * p
        else:
            if not behind:
                break
            k, available = behind.pop(0)
            fall = p / q - source[k][0] / source[k][1]
            weight = min(share * q, available * source[k][1])
            if fall > 0:
                weight = min(weight, surplus / fall)
            surplus -= weight * fall
            moved, entered = weight / q, weight / source[k][1]
            window.append((k, entered))
            if entered < available:
                behind.insert(0, (k, available - entered))
        before.append((i, moved))
        if moved < share:
            window.insert(0, (i, share - moved))
    if missing != 0 or surplus != 0:
        raise NotCertified("the source does not dominate the target")
    return window, before + behind


def _rank(piece: Both) -> tuple[bool, Fraction]:
    """Falling ratio of the first to the second weight, infinite ones first."""
    return (True, -piece[0] / piece[1]) if piece[1] > 0 else (False, _ZERO)


def _dominates(outcomes: Sequence[Both], needed: ExactProfile) -> bool:
    """Both profiles are linear between their kinks, so it is enough to compare them there."""
    factors = {z for z, _ in needed.points} | {p / q for p, q in outcomes if q > 0}
    return all(
        sum((max(p - z * q, _ZERO) for p, q in outcomes), _ZERO) >= needed.at(z) for z in factors
    )
