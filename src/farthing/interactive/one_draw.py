"""The theorem of [VZ23], run: a conversation is held by somebody who sees one draw.

Two distributions P, Q on finitely many outcomes, whose profile is nowhere below that of the
conversation, are turned into one system per outcome, so that the mixture of the systems by P is the
first and by Q the second side of the conversation. The proof is in docs/theory/concurrency.md,
section 4; each of its steps is the theorem of Blackwell, Sherman and Stein for two distributions,
which `kernel` makes explicit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TypeAlias

from farthing.errors import InvalidInput, NotCertified
from farthing.interactive.dominating_pair import ExactProfile, Profiles, masses
from farthing.interactive.finite import AnswerSymbol, FiniteSystem, History, QuestionSymbol, Reply
from farthing.interactive.pairs import Both, Fork, Pair, align, transcripts

#: Parts of the source's outcomes, in order: which outcome, and which share of it.
Pieces: TypeAlias = list[tuple[int, Fraction]]

_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class OneDraw:
    """Outcome j has probability `outcomes[j]` on the two sides; then `systems[j]` is talked to."""

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
    found = OneDraw(given, tuple(builder.systems(pair, (Fraction(1), Fraction(1)), given)))
    for history, weights in transcripts(pair):
        if found.weights(history) != weights:
            raise NotCertified("the draw does not add up to the systems given")
    return found


class _Builder:
    def __init__(self) -> None:
        self.profiles = Profiles()

    def systems(self, pair: Pair, m: Both, given: Sequence[Both]) -> list[FiniteSystem]:
        """One system per outcome, below a node that is reached with weights m."""
        replies: list[dict[QuestionSymbol, dict[AnswerSymbol, Reply]]] = [{} for _ in given]
        for question, forks in pair.forks.items():
            for found, answers in zip(replies, self._asked(forks, m, given), strict=True):
                found[question] = answers
        return [FiniteSystem(found) for found in replies]

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
            for found, chance, then in zip(result, chances, below, strict=True):
                found[answer] = Reply(chance, then)
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
