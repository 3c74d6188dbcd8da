"""Dynamic programming against the enumeration of every deterministic adversary."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import pytest

from farthing.errors import InvalidInput
from tests.interactive.finite import (
    FiniteSystem,
    best_attack,
    dominating_pair,
    hockey_stick,
    largest_ratio,
    profile,
    randomized_response,
    renyi_divergence,
    renyi_moment,
    transcript_law,
)
from tests.interactive.systems import naive_hockey_stick, naive_moment, naive_ratio, random_pair

SEEDS = range(200)


def small(seed: int) -> tuple:
    rng = random.Random(seed)
    return rng, random_pair(rng, rng.choice([1, 2, 2]), zeros=rng.random() < 0.5)


def test_hockey_stick_against_every_adversary() -> None:
    for seed in SEEDS:
        rng, pair = small(seed)
        for factor in (Fraction(0), Fraction(1), Fraction(rng.randint(1, 12), 4)):
            assert hockey_stick(*pair, factor) == naive_hockey_stick(pair, factor)


def test_the_attack_attains_the_hockey_stick() -> None:
    for seed in SEEDS:
        rng, pair = small(seed)
        factor = Fraction(rng.randint(0, 12), 4)
        attack = best_attack(*pair, factor)
        laws = [transcript_law(system, attack.strategy) for system in pair]
        inside = [sum((law.get(h, 0) for h in attack.event), Fraction(0)) for law in laws]
        assert [attack.first, attack.second] == inside
        assert attack.first - factor * attack.second == hockey_stick(*pair, factor)


@pytest.mark.parametrize("order", [2, 3, 5])
def test_renyi_against_every_adversary(order: int) -> None:
    infinite = 0
    for seed in SEEDS:
        _, pair = small(seed)
        moment = naive_moment(pair, order)
        assert renyi_moment(*pair, order) == moment
        if moment is None:
            infinite += 1
            assert not renyi_divergence(*pair, order).is_finite()
        else:
            stated = math.log(moment) / (order - 1)
            assert float(renyi_divergence(*pair, order)) == pytest.approx(stated, abs=1e-12)
    assert 0 < infinite < len(SEEDS)


def test_the_largest_ratio_against_every_adversary() -> None:
    for seed in SEEDS:
        _, pair = small(seed)
        assert largest_ratio(*pair) == naive_ratio(pair)


def test_the_profile_is_the_hockey_stick_everywhere() -> None:
    for seed in SEEDS:
        rng, pair = small(seed)
        curve = profile(*pair)
        kinks = [z for z, _ in curve.points]
        between = [(a + b) / 2 for a, b in pairwise(kinks)]
        for factor in (*kinks, *between, kinks[-1] + 1, Fraction(rng.randint(0, 9), 7)):
            assert curve.at(factor) == hockey_stick(*pair, factor)


def test_one_draw_has_the_profile_of_the_conversation_in_both_directions() -> None:
    for seed in SEEDS:
        rng, pair = small(seed)
        draw = dominating_pair(*pair)
        for factor in (Fraction(0), Fraction(1), Fraction(rng.randint(0, 20), 6)):
            assert hockey_stick(*draw, factor) == hockey_stick(*pair, factor)
            assert hockey_stick(*draw[::-1], factor) == hockey_stick(*pair[::-1], factor)


def test_adaptive_questions_gain() -> None:
    """Which of two second questions tells anything is known from the first answer."""

    def system(bit: int) -> FiniteSystem:
        coin = {0: Fraction(1, 2), 1: Fraction(1, 2)}
        told = {bit: Fraction(1)}
        after = {answer: {answer: told, 1 - answer: coin} for answer in (0, 1)}
        return FiniteSystem.from_table(
            {(): {"x": coin}, **{(("x", answer),): asked for answer, asked in after.items()}}
        )

    pair = system(0), system(1)
    assert hockey_stick(*pair, Fraction(1)) == 1
    fixed = [
        {(): "x", (("x", 0),): later, (("x", 1),): later} for later in (0, 1)
    ]  # the same second question whatever was answered
    for strategy in fixed:
        first, second = (transcript_law(side, strategy) for side in pair)
        assert sum(max(p - second.get(h, 0), 0) for h, p in first.items()) == Fraction(1, 2)


def test_randomized_response_by_hand() -> None:
    first, second = (
        randomized_response([0], Fraction(3), 2),
        randomized_response([1], Fraction(3), 2),
    )
    assert hockey_stick(first, second, Fraction(3)) == Fraction(9, 16) - 3 * Fraction(1, 16)
    assert largest_ratio(first, second) == 9
    assert renyi_moment(first, second, 2) == (Fraction(9, 4) + Fraction(1, 12)) ** 2


@pytest.mark.parametrize("order", [1, 0, 2.5])
def test_orders_are_whole_numbers_from_two(order: object) -> None:
    system = randomized_response([0], Fraction(3), 1)
    with pytest.raises(InvalidInput):
        renyi_moment(system, system, order)
