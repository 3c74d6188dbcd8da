"""Errors in [Lyu22], each shown by numbers. The list is in docs/errata.md."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

import farthing as fa
from tests.interactive.finite import (
    LogOf,
    concurrent,
    decompose,
    hockey_stick,
    profile,
    randomized_response,
    renyi_moment,
)
from tests.interactive.systems import random_pair


def test_the_weights_of_theorem_3() -> None:
    """At ε = ln 3 the printed weights add up to 1.68; with e^ε/(1 + e^ε) the identity holds."""
    epsilon = math.log(3)
    assert 3 / (1 + epsilon) + 1 / 4 > 1.6
    first, second = (randomized_response([bit], Fraction(3), 1) for bit in (0, 1))
    found = decompose(first, second, LogOf(Fraction(3)), Fraction(0))
    honest = found.hidden[0].replies[0][0].probability
    assert honest == 1  # N⁰ tells the bit: three quarters of it and one of N¹ are M⁰
    assert found.weight(0, ((0, 0),)) == Fraction(3, 4)


def test_the_square_root_law_lacks_the_mean() -> None:
    """ε′/(√k·ε) is bounded in the printed claim; it grows like √k."""
    ratios = [
        fa.compose([(fa.PureDP(1.0), count)]).epsilon_at(0.1).lower / math.sqrt(count)
        for count in (100, 10_000)
    ]
    assert ratios[0] > 5
    assert ratios[1] > 8 * ratios[0]
    mean = 10_000 * math.expm1(1) / (math.e + 1)
    assert ratios[1] * 100 == pytest.approx(mean, rel=0.05)


def joint_pairs() -> list[tuple[dict, dict]]:
    """Random distributions P, Q on pairs (y₁, y₂) with full support."""
    rng = random.Random(8)
    found = []
    for _ in range(50):
        sides = []
        for _ in range(2):
            weights = {(y, w): rng.randint(1, 9) for y in range(2) for w in range(2)}
            total = sum(weights.values())
            sides.append({key: weight / total for key, weight in weights.items()})
        found.append((sides[0], sides[1]))
    return found


def moments(p: dict, q: dict, order: float) -> tuple[dict, dict, dict, float]:
    """Marginals of y₁, e^D of y₂ given y₁, and Σ P^α·Q^(1−α) of the pair."""
    first = {y: p[y, 0] + p[y, 1] for y in (0, 1)}
    second = {y: q[y, 0] + q[y, 1] for y in (0, 1)}
    rest = {}
    for y in (0, 1):
        inner = sum(
            (p[y, w] / first[y]) ** order * (q[y, w] / second[y]) ** (1 - order) for w in (0, 1)
        )
        rest[y] = inner ** (1 / (order - 1))
    whole = sum(p[key] ** order * q[key] ** (1 - order) for key in p)
    return first, second, rest, whole


@pytest.mark.parametrize("order", [1.5, 2.0, 4.0])
def test_lemma_5_is_a_chain_rule(order: float) -> None:
    """P₁ℓ₁(y₁)^(1/β) is β-dominated by e^B·Q₁ with equality; with Q₂ in its place it is not."""
    beta, broken = order / (order - 1), 0
    for p, q in joint_pairs():
        first, second, rest, whole = moments(p, q, order)

        def size(base: dict, measure: dict = first, rest: dict = rest) -> float:
            """Σ Q·(Pℓ^(1/β)/Q)^α, to be compared with Σ P^α·Q^(1−α) = e^((α−1)B)."""
            return sum(
                base[y] * (measure[y] * rest[y] ** (1 / beta) / base[y]) ** order for y in (0, 1)
            )

        assert size(second) == pytest.approx(whole, rel=1e-12)
        other = {w: q[0, w] + q[1, w] for w in (0, 1)}
        broken += size(other) > whole * (1 + 1e-9)
    assert broken > 5


def test_claim_3_needs_its_exponent() -> None:
    order, broken = 2.0, 0
    for p, q in joint_pairs():
        first, second, rest, whole = moments(p, q, order)
        printed = sum(second[y] * (first[y] * rest[y] / second[y]) ** order for y in (0, 1))
        broken += printed > whole * (1 + 1e-9)
    assert broken == 50


def test_claim_2_at_the_last_round() -> None:
    """Lower^b ≤ Upper^b + e^−ε·Lower^(1−b) for T = 1, where the printed range is empty."""
    for seed in range(100):
        first, second = random_pair(random.Random(seed), 1)
        factor = Fraction(3, 2)
        lower, other = profile(first, second).both_ways_at(factor)
        assert other == hockey_stick(second, first, factor)
        upper = 1 - 1 / factor
        assert lower <= upper + other / factor
        assert other <= upper + lower / factor


def test_the_toy_example_bounds_the_divergence_itself() -> None:
    """Two conversations with e^D₂ = 7/3 each: D₂ of both is ln(49/9) = 1.69; e^1.69 is 5.4."""
    one, other = (randomized_response([bit], Fraction(3), 1) for bit in (0, 1))
    assert renyi_moment(one, other, 2) == Fraction(7, 3)
    assert renyi_moment(concurrent([one, one]), concurrent([other, other]), 2) == Fraction(49, 9)
