"""Theorems 1 and 2 of [Lyu22] and the theorem of [VZ23] by brute force: interleaving gains nothing.

Every number is exact. The left side is the best adversary against the concurrent composition, found
by dynamic programming over all interleavings; the right side uses the parts' guarantees alone.
"""

from __future__ import annotations

import random
from fractions import Fraction
from math import prod

from tests.interactive.finite import (
    FiniteSystem,
    concurrent,
    dominating_pair,
    hockey_stick,
    largest_ratio,
    profile,
    renyi_moment,
)
from tests.interactive.finite.systems import HALTED, Reply
from tests.interactive.systems import naive_hockey_stick, random_pair

Systems = tuple[FiniteSystem, FiniteSystem]


def together(pairs: list[Systems]) -> Systems:
    return concurrent([first for first, _ in pairs]), concurrent([second for _, second in pairs])


def leaky_response(factor: Fraction, delta: Fraction) -> Systems:
    """Leaky randomized response on the two bits, as systems that answer once."""
    honest = (1 - delta) * factor / (1 + factor)
    sides = [
        FiniteSystem(
            {
                "bit": {
                    (bit, "leaked"): Reply(delta, HALTED),
                    (bit, "noisy"): Reply(honest, HALTED),
                    (1 - bit, "noisy"): Reply(1 - delta - honest, HALTED),
                }
            }
        )
        for bit in (0, 1)
    ]
    return sides[0], sides[1]


def some_pairs(seed: int, *, zeros: bool) -> list[Systems]:
    rng = random.Random(seed)
    return [random_pair(rng, rng.choice([1, 2]), zeros=zeros) for _ in range(rng.choice([2, 2, 3]))]


def test_dynamic_programming_over_interleavings_is_the_enumeration() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        pair = together([random_pair(rng, 1), random_pair(rng, 1)])
        assert hockey_stick(*pair, Fraction(3, 2)) == naive_hockey_stick(pair, Fraction(3, 2))


def test_theorem_1() -> None:
    """(ε_i, δ_i) each: no more than the leaky randomized responses with these parameters."""
    for seed in range(60):
        rng = random.Random(1000 + seed)
        pairs = some_pairs(seed, zeros=True)
        responses = []
        for pair in pairs:
            factor = Fraction(rng.randint(4, 10), 4)
            delta = max(hockey_stick(*pair, factor), hockey_stick(*pair[::-1], factor))
            responses.append(leaky_response(factor, delta))
        for factor in (Fraction(1), Fraction(2), Fraction(5)):
            attained = hockey_stick(*together(pairs), factor)
            assert attained <= hockey_stick(*together(responses), factor)


def test_theorem_2() -> None:
    """Rényi divergences of one order add up, and nothing beats one part after the other."""
    for seed in range(60):
        pairs = some_pairs(seed, zeros=False)
        for order in (2, 3):
            whole = renyi_moment(*together(pairs), order)
            parts = prod(renyi_moment(*pair, order) for pair in pairs)
            assert whole == parts


def test_pure_ratios_multiply() -> None:
    for seed in range(60):
        pairs = some_pairs(seed, zeros=False)
        whole = largest_ratio(*together(pairs))
        assert whole == prod(largest_ratio(*pair) for pair in pairs)


def test_a_conversation_is_one_draw() -> None:
    """[VZ23]: the draws with the parts' profiles dominate every interleaving, at every ε."""
    strict = 0
    for seed in range(40):
        pairs = some_pairs(seed, zeros=True)
        draws = together([dominating_pair(*pair) for pair in pairs])
        attained, bound = profile(*together(pairs)), profile(*draws)
        for factor in {z for z, _ in (*attained.points, *bound.points)}:
            assert attained.at(factor) <= bound.at(factor)
            strict += attained.at(factor) < bound.at(factor)
    assert strict > 0


def bounded_range(largest: Fraction, ratios: list[Fraction]) -> Systems:
    """Generalized randomized response as a question per t: e^ε = largest, e^t one of `ratios`."""
    sides: tuple[dict, dict] = ({}, {})
    for ratio in ratios:
        q = (1 - ratio / largest) / (1 - 1 / largest)
        p = (1 / ratio - 1 / largest) / (1 - 1 / largest)
        for side, zero in zip(sides, (q, p), strict=True):
            side[ratio] = {0: Reply(zero, HALTED), 1: Reply(1 - zero, HALTED)}
    return FiniteSystem(sides[0]), FiniteSystem(sides[1])


def test_a_choice_between_the_answers_of_a_conversation() -> None:
    """A one-shot bounded-range draw, made at any moment: the draw first, then the choice."""
    choice = bounded_range(Fraction(4), [Fraction(n, 4) for n in range(4, 17, 2)])
    attained = 0
    for seed in range(40):
        rng = random.Random(seed)
        conversation = random_pair(rng, 2, zeros=False)
        draw = dominating_pair(*conversation)
        for factor in (Fraction(1), Fraction(2)):
            fixed_first = sum(
                (
                    p * hockey_stick(*choice, factor * q / p) if p > 0 else Fraction(0)
                    for p, q in outcomes(draw)
                ),
                Fraction(0),
            )
            between = hockey_stick(*together([conversation, choice]), factor)
            assert between <= fixed_first
            assert hockey_stick(*together([draw, choice]), factor) == fixed_first
            attained += between == fixed_first
    assert attained > 10


def outcomes(draw: Systems) -> list[tuple[Fraction, Fraction]]:
    first, second = (side.replies["draw"] for side in draw)
    return [(first[j].probability, second[j].probability) for j in first]


def test_the_draws_are_not_larger_than_the_parameters() -> None:
    """Reading a conversation by its whole profile is at least as tight as by one (ε, δ)."""
    for seed in range(40):
        pairs = some_pairs(seed, zeros=False)
        factor = Fraction(3, 2)
        deltas = [max(hockey_stick(*p, factor), hockey_stick(*p[::-1], factor)) for p in pairs]
        responses = together([leaky_response(factor, delta) for delta in deltas])
        draws = together([dominating_pair(*pair) for pair in pairs])
        assert hockey_stick(*draws, Fraction(2)) <= hockey_stick(*responses, Fraction(2))
