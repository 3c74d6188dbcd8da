"""Random small systems, and the naive definitions that dynamic programming is checked against."""

from __future__ import annotations

import random
from fractions import Fraction

from tests.interactive.finite.systems import (
    HALTED,
    FiniteSystem,
    History,
    Reply,
    strategies,
    transcript_law,
)

Shape = tuple[int, int, int]


def random_law(rng: random.Random, size: int, *, zeros: bool) -> list[Fraction]:
    """A random exact distribution; `zeros` allows impossible answers."""
    least = 0 if zeros else 1
    weights = [rng.randint(least, 6) for _ in range(size)]
    if not any(weights):
        weights[rng.randrange(size)] = 1
    return [Fraction(weight, sum(weights)) for weight in weights]


def random_pair(
    rng: random.Random, rounds: int, *, zeros: bool = True
) -> tuple[FiniteSystem, FiniteSystem]:
    """Two systems of one shape: 1–2 questions, 2–3 answers, halting early now and then."""
    if rounds == 0 or rng.random() < 0.1:
        return HALTED, HALTED
    sides: tuple[dict, dict] = ({}, {})
    for question in range(rng.randint(1, 2)):
        size = rng.randint(2, 3)
        laws = random_law(rng, size, zeros=zeros), random_law(rng, size, zeros=zeros)
        below = [random_pair(rng, rounds - 1, zeros=zeros) for _ in range(size)]
        for side, law in zip((0, 1), laws, strict=True):
            sides[side][question] = {
                answer: Reply(law[answer], below[answer][side])
                for answer in range(size)
                if law[answer] > 0
            }
    return FiniteSystem(sides[0]), FiniteSystem(sides[1])


def laws(
    pair: tuple[FiniteSystem, FiniteSystem],
) -> list[tuple[dict[History, Fraction], dict[History, Fraction]]]:
    """The two transcript laws under every deterministic adversary."""
    whole = union(*pair)
    return [
        (transcript_law(pair[0], strategy), transcript_law(pair[1], strategy))
        for strategy in strategies(whole)
    ]


def union(first: FiniteSystem, second: FiniteSystem) -> FiniteSystem:
    """A system with every answer that either of the two can give: the shape adversaries plan on."""
    replies: dict = {}
    for question, ours in first.replies.items():
        theirs = second.replies[question]
        answers = {*ours, *theirs}
        replies[question] = {
            answer: Reply(
                Fraction(1, len(answers)),
                union(
                    ours[answer].then if answer in ours else theirs[answer].then,
                    theirs[answer].then if answer in theirs else ours[answer].then,
                ),
            )
            for answer in sorted(answers, key=repr)
        }
    return FiniteSystem(replies)


def naive_hockey_stick(pair: tuple[FiniteSystem, FiniteSystem], factor: Fraction) -> Fraction:
    return max(
        sum((max(p - factor * q.get(h, 0), 0) for h, p in p_law.items()), Fraction(0))
        for p_law, q in laws(pair)
    )


def naive_moment(pair: tuple[FiniteSystem, FiniteSystem], order: int) -> Fraction | None:
    values = []
    for p_law, q in laws(pair):
        if any(h not in q for h in p_law):
            return None
        values.append(sum((p**order / q[h] ** (order - 1) for h, p in p_law.items()), Fraction(0)))
    return max(values)


def naive_ratio(pair: tuple[FiniteSystem, FiniteSystem]) -> Fraction | None:
    ratios = []
    for p_law, q in laws(pair):
        if any(h not in q for h in p_law):
            return None
        ratios += [p / q[h] for h, p in p_law.items()]
    return max(ratios)
