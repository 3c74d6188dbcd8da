"""Theorem 3 of [Lyu22]: four systems exist exactly where (ε, δ) holds, and simulate the pair."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import pytest

from farthing.errors import InvalidInput
from farthing.interactive import Exceeds, Guess, GuessAndCheck, SparseVector
from tests.interactive.finite import (
    Distinguishable,
    LogOf,
    converse,
    decompose,
    geometric_noise,
    hockey_stick,
    simulate,
    strategies,
    tabulate_mechanism,
    transcript_law,
)
from tests.interactive.finite.systems import FiniteSystem, Reply
from tests.interactive.systems import random_pair, union
from tests.mechanisms.randomized_response import LeakyAnswer


def smallest_delta(pair: tuple, factor: Fraction) -> Fraction:
    return max(hockey_stick(*pair, factor), hockey_stick(*pair[::-1], factor))


def test_the_identity_against_every_adversary() -> None:
    """300 random pairs, at the smallest δ and above it, ε = 0 among them."""
    for seed in range(300):
        rng = random.Random(seed)
        pair = random_pair(rng, rng.choice([1, 2, 2]), zeros=rng.random() < 0.5)
        factor = Fraction(rng.randint(4, 12), 4)
        least = smallest_delta(pair, factor)
        for delta in {least, (1 + least) / 2, Fraction(1)}:
            found = decompose(*pair, LogOf(factor), delta)
            parts = [*found.leaked, *found.hidden]
            for number, strategy in enumerate(strategies(union(*pair))):
                if number == 10:
                    break
                laws = [transcript_law(part, strategy) for part in parts]
                honest = factor / (1 + factor)
                for bit in (0, 1):
                    wanted = transcript_law(pair[bit], strategy)
                    for history in {h for law in laws for h in law} | set(wanted):
                        e, n = laws[bit].get(history, 0), laws[2 + bit].get(history, 0)
                        other = laws[3 - bit].get(history, 0)
                        mixed = delta * e + (1 - delta) * (honest * n + (1 - honest) * other)
                        assert mixed == wanted.get(history, 0)


def test_below_the_smallest_delta_an_event_is_named() -> None:
    refused = 0
    for seed in range(200):
        rng = random.Random(seed)
        pair = random_pair(rng, 2)
        factor = Fraction(rng.randint(4, 8), 4)
        least = smallest_delta(pair, factor)
        if least == 0:
            continue
        delta = least * Fraction(9, 10)
        with pytest.raises(Distinguishable) as caught:
            decompose(*pair, LogOf(factor), delta)
        attack, bit = caught.value.attack, caught.value.bit
        sides = [transcript_law(system, attack.strategy) for system in pair]
        p = sum((sides[bit].get(h, 0) for h in attack.event), Fraction(0))
        q = sum((sides[1 - bit].get(h, 0) for h in attack.event), Fraction(0))
        assert p > factor * q + delta
        refused += 1
    assert refused > 100


def test_three_rounds() -> None:
    for seed in range(20):
        pair = random_pair(random.Random(seed), 3)
        decompose(
            *pair, LogOf(Fraction(3, 2)), smallest_delta(pair, Fraction(3, 2))
        )  # checks itself


def test_the_adjustment_at_epsilon_zero_needs_the_bound_that_continuity_hides() -> None:
    """Two equal systems, z = 1, δ = 1/2: eq. (25) alone lets δ·E exceed M at the first answer."""
    delta, z = Fraction(1, 2), Fraction(1)
    system = random_pair(random.Random(3), 1, zeros=False)[0]
    found = decompose(system, system, LogOf(z), delta)
    exceeded = 0
    for question, answers in system.replies.items():
        for answer, reply in answers.items():
            m = reply.probability
            printed = min(delta, m - m / z + delta / z)  # eq. (25), with all of δ left to place
            exceeded += printed > m
            assert delta * found.leaked[0].replies[question][answer].probability <= m
    assert exceeded > 0


def two_coins(p: Fraction, q: Fraction) -> tuple[FiniteSystem, FiniteSystem]:
    """One question, one of two answers."""
    end = FiniteSystem({})
    return tuple(
        FiniteSystem({"?": {"yes": Reply(x, end), "no": Reply(1 - x, end)}}) for x in (p, q)
    )


@pytest.mark.parametrize("epsilon", [0, 0.0, 1e-30, 0.25, 1, Fraction(2, 3), 5.5])
def test_epsilon_is_a_number_and_what_is_proved_is_not_below_it(epsilon: float) -> None:
    """The odds found are at most e^ε, and as near to it as the question needs."""
    exact = Fraction(epsilon)
    with mpmath.workprec(1000):
        limit = Fraction(int(mpmath.exp(mpmath.mpf(exact.numerator) / exact.denominator) * 2**900))
    inside = 1 + exact / 2  # below e^ε: so (ε, δ) holds, by a margin
    for seed in range(10):
        pair = random_pair(random.Random(seed), 2)
        found = decompose(*pair, epsilon, smallest_delta(pair, inside))
        assert 1 <= found.factor <= (limit + 1) / 2**900


def test_a_pair_that_only_a_narrower_enclosure_decides() -> None:
    """q = 2^-300 below and above p·e^-1: the first enclosures of e contain both odds."""
    with mpmath.workprec(1000):
        whole = mpmath.floor(mpmath.exp(-1) / 3 * 2**300)
    third = Fraction(1, 3)
    near = Fraction(int(whole), 2**300)
    step = Fraction(1, 2**300)
    assert decompose(*two_coins(third, near + step), 1.0, 0).factor < Fraction(272, 100)
    with pytest.raises(Distinguishable) as caught:
        decompose(*two_coins(third, near), 1.0, 0)
    assert caught.value.bit == 0
    assert caught.value.attack.first > caught.value.attack.second * Fraction(271, 100)


def test_an_excess_that_does_not_depend_on_the_odds_is_decided() -> None:
    """ "yes" never happens on the second side: the excess is ½ at every ε, and δ = ½ will do."""
    pair = two_coins(Fraction(1, 2), Fraction(0))
    decompose(*pair, 3.0, 0.5)
    with pytest.raises(Distinguishable):
        decompose(*pair, 3.0, math.nextafter(0.5, 0))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (-1.0, 0),
        (math.nan, 0),
        (math.inf, 0),
        (1e300, 0),
        ("1", 0),
        (True, 0),
        (Fraction(-1, 10**400), 0),
        (1, Fraction(3, 2)),
        (1, -1),
        (1, math.nan),
        (1, None),
    ],
)
def test_bad_parameters(epsilon: object, delta: object) -> None:
    pair = random_pair(random.Random(0), 1)
    with pytest.raises(InvalidInput):
        decompose(*pair, epsilon, delta)


@pytest.mark.parametrize("odds", [Fraction(1, 2), -1, 2.0, "2", True])
def test_odds_are_exact_and_at_least_one(odds: object) -> None:
    with pytest.raises(InvalidInput):
        LogOf(odds)


def tiny(mechanism: object, *questions: dict) -> tuple:
    """A live mechanism on two neighbours, with noise of at most 2."""
    return tuple(
        tabulate_mechanism(mechanism, asked, lambda _: geometric_noise(Fraction(1, 2), 2), 2)
        for asked in questions
    )


MECHANISMS = {
    "one threshold": tiny(
        SparseVector(positives=2, threshold_epsilon=1.0, answer_epsilon=1.0),
        {"a": Exceeds(0, 0), "b": Exceeds(1, 0)},
        {"a": Exceeds(1, 0), "b": Exceeds(0, 0)},
    ),
    "refreshed": tiny(
        SparseVector(positives=2, refresh_after=1, threshold_epsilon=1.0, answer_epsilon=1.0),
        {"a": Exceeds(0, 0), "b": Exceeds(1, 0)},
        {"a": Exceeds(1, 0), "b": Exceeds(0, 0)},
    ),
    "guess and check": tiny(
        GuessAndCheck(epsilon=1.0, corrections=1, tolerance=1),
        {"a": Guess(0, 0), "b": Guess(0, 1)},
        {"a": Guess(1, 0), "b": Guess(1, 1)},
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_small_versions_of_the_mechanisms(name: str) -> None:
    pair = MECHANISMS[name]
    factor = Fraction(2)
    least = smallest_delta(pair, factor)
    assert 0 < least < 1
    decompose(*pair, LogOf(factor), least)
    with pytest.raises(Distinguishable):
        decompose(*pair, LogOf(factor), least - Fraction(1, 10**6))


@pytest.mark.parametrize("bit", [0, 1])
def test_one_leaky_response_runs_the_conversation(bit: int) -> None:
    """Transcripts have the law of Mᵇ; four standard deviations, about 1 in 10⁴ for each of them."""
    pair = MECHANISMS["one threshold"]
    factor = Fraction(2)
    delta = smallest_delta(pair, factor)
    found = decompose(*pair, LogOf(factor), delta)
    strategy = next(strategies(union(*pair)))
    runs = [converse(simulate(found, found.respond(bit)), strategy) for _ in range(3000)]
    for history, chance in transcript_law(pair[bit], strategy).items():
        spread = 4 * (3000 * float(chance) * float(1 - chance)) ** 0.5
        assert abs(runs.count(history) - 3000 * chance) <= spread


def test_the_simulator_sees_only_the_response() -> None:
    found = decompose(*MECHANISMS["refreshed"], LogOf(Fraction(3)), Fraction(1, 2))
    assert simulate(found, LeakyAnswer(1, leaked=True)) is found.leaked[1]
    assert simulate(found, LeakyAnswer(0, leaked=False)) is found.hidden[0]
