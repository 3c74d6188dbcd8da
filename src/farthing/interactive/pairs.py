"""Two systems of one shape: the two neighbours that an adversary tries to tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from farthing.errors import InvalidInput
from farthing.interactive.finite import AnswerSymbol, FiniteSystem, History, QuestionSymbol

#: A number for each of the two systems.
Both: TypeAlias = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Fork:
    """One answer: its probability in the first and in the second system, and what remains."""

    first: Fraction
    second: Fraction
    then: Pair

    def weights(self, *, swapped: bool) -> Both:
        """Both probabilities, the second system's first if `swapped`."""
        return (self.second, self.first) if swapped else (self.first, self.second)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """question → answer → `Fork`. Compared by identity: equal remainders share one node."""

    forks: Mapping[QuestionSymbol, Mapping[AnswerSymbol, Fork]]


def align(first: FiniteSystem, second: FiniteSystem) -> Pair:
    """The two systems side by side.

    Where an answer is impossible in one of them, what follows it there is arbitrary, because it is
    never met; the other system's continuation is used, so that both trees have one shape. What
    may be asked must not depend on the secret.
    """
    known: dict[tuple[int, int], Pair] = {}

    def node(left: FiniteSystem, right: FiniteSystem) -> Pair:
        key = (id(left), id(right))
        if key not in known:
            if left.replies.keys() != right.replies.keys():
                raise InvalidInput(
                    "both systems must allow the same questions after every history, "
                    f"got {sorted(map(repr, left.replies))} and {sorted(map(repr, right.replies))}"
                )
            known[key] = Pair({question: forks(left, right, question) for question in left.replies})
        return known[key]

    def forks(
        left: FiniteSystem, right: FiniteSystem, question: QuestionSymbol
    ) -> dict[AnswerSymbol, Fork]:
        ours, theirs = left.replies[question], right.replies[question]
        found = {}
        for answer in (*ours, *(answer for answer in theirs if answer not in ours)):
            p = ours[answer].probability if answer in ours else Fraction(0)
            q = theirs[answer].probability if answer in theirs else Fraction(0)
            if p == 0 and q == 0:
                continue
            after_ours = ours[answer].then if p > 0 else theirs[answer].then
            after_theirs = theirs[answer].then if q > 0 else ours[answer].then
            found[answer] = Fork(p, q, node(after_ours, after_theirs))
        return found

    return node(first, second)


def transcripts(pair: Pair) -> Iterator[tuple[History, Both]]:
    """Every complete transcript with the probability of its answers in both systems."""

    def visit(node: Pair, history: History, weights: Both) -> Iterator[tuple[History, Both]]:
        if not node.forks:
            yield history, weights
        for question, forks in node.forks.items():
            for answer, fork in forks.items():
                reached = (weights[0] * fork.first, weights[1] * fork.second)
                yield from visit(fork.then, (*history, (question, answer)), reached)

    return visit(pair, (), (Fraction(1), Fraction(1)))
