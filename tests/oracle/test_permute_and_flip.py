"""Permute-and-flip: its law, its range, and the profile that dominates it, by enumeration."""

from __future__ import annotations

import math
import random
from itertools import permutations

import mpmath as mp
import numpy as np
import pytest
from flint import arb

import farthing as fa
from farthing.guarantees.losses import loss_of
from farthing.mechanisms import PermuteAndFlipMechanism
from farthing.mechanisms.noise import exact_sampling
from farthing.numerics.ball import in_balls, up
from tests.mechanisms.fit import fits


def law(scores: list[float]) -> list[mp.mpf]:
    """P(y) = z_y·∫ Π_{i ≠ y} (1 − z_i·u) du over [0, 1], z = e^{s − max}: exponential noise."""
    best = max(scores)
    z = [mp.e ** (mp.mpf(s) - best) for s in scores]
    found = []
    for y, own in enumerate(z):
        polynomial = [mp.mpf(1)]
        for other in (*z[:y], *z[y + 1 :]):
            shifted = [mp.mpf(0), *(-other * c for c in polynomial)]
            polynomial = [a + b for a, b in zip([*polynomial, mp.mpf(0)], shifted, strict=True)]
        found.append(own * sum(c / (k + 1) for k, c in enumerate(polynomial)))
    return found


def by_permutations(scores: list[float]) -> list[float]:
    """The algorithm itself, over all orders."""
    best, found = max(scores), [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0 / len(orders)
        for y in order:
            kept = math.exp(scores[y] - best)
            found[y] += left * kept
            left *= 1 - kept
    return found


@pytest.mark.parametrize("scores", [[0.0, 0.0], [0.3, 0.1, -2.0], [1.0, 1.0, 0.2, -0.5]])
def test_the_integral_is_the_algorithm(scores):
    assert np.allclose([float(p) for p in law(scores)], by_permutations(scores), atol=1e-12)


@pytest.mark.parametrize("scores", [[0, 0, 0], [2, 1, 0], [1.5, 1.5, -0.25, -4.0]])
def test_the_sampler(scores):
    mechanism = PermuteAndFlipMechanism(epsilon=0.8, score_range=1.0)
    with exact_sampling._seeded(5):
        drawn = [mechanism.run(scores) for _ in range(6000)]
    exact = law([0.8 * s for s in scores])
    assert fits(drawn, {y: float(p) for y, p in enumerate(exact)})
    wrong = law([0.56 * s for s in scores])
    if len(set(scores)) > 1:
        assert not fits(drawn, {y: float(p) for y, p in enumerate(wrong)})


def neighbours(source: random.Random, epsilon: float) -> tuple[list[float], list[float]]:
    size = source.choice((2, 2, 3, 4))
    spreads = [source.choice((0.0, epsilon, 3.0)) for _ in range(size)]
    scores = [source.gauss(0, spread) for spread in spreads]
    half = epsilon / 2
    moved = [s + source.choice((-half, half, source.uniform(-half, half))) for s in scores]
    return scores, moved


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@in_balls
def test_no_pair_exceeds_range_and_profile(epsilon):
    source, loss = random.Random(7), loss_of(fa.PermuteAndFlip(epsilon))
    widest = float(loss.range().mid())
    places = [epsilon * part for part in (-0.9, -0.3, 0.0, 0.2, 0.5, 0.8, 0.95)]
    bounds = {x: up(loss.profile(arb(x))) for x in places}
    largest = 0.0
    for _ in range(300):
        one, other = (law(scores) for scores in neighbours(source, epsilon))
        losses = [float(mp.log(p / q)) for p, q in zip(one, other, strict=True)]
        assert max(map(abs, losses)) <= epsilon + 1e-9
        assert max(losses) - min(losses) <= widest + 1e-9
        largest = max(largest, max(losses) - min(losses))
        for x, bound in bounds.items():
            attained = sum(max(p - mp.e**x * q, 0) for p, q in zip(one, other, strict=True))
            assert attained <= bound + 1e-12
    assert largest > epsilon, "it is not bounded range"


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_both_ranges_are_attained_by_two_candidates(epsilon):
    half = epsilon / 2
    one, other = law([half / 2, -half / 2]), law([-half / 2, half / 2])
    widest = 2 * math.log(2 * math.exp(half) - 1)
    losses = [float(mp.log(p / q)) for p, q in zip(one, other, strict=True)]
    assert max(losses) - min(losses) == pytest.approx(widest, rel=1e-12)
    tied = [float(mp.log(p / q)) for p, q in zip(law([0, 0]), law([epsilon, 0]), strict=True)]
    assert max(tied) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_composed_it_lies_between_what_two_candidates_attain_and_pure_dp(count, epsilon):
    for delta in (1e-2, 1e-6):
        found = fa.compose([(fa.PermuteAndFlip(epsilon), count)]).epsilon_at(delta)
        pure = fa.compose([(fa.PureDP(epsilon), count)]).epsilon_at(delta)
        assert found.upper <= pure.upper * (1 + 1e-3)
        narrower = fa.PureDP(math.log(2 * math.exp(epsilon / 2) - 1) * (1 - 1e-12))
        assert found.upper >= fa.compose([(narrower, count)]).epsilon_at(delta).lower * (1 - 1e-3)
        assert found.lower <= found.upper


def test_many_are_cheaper_than_pure_dp_and_dearer_than_bounded_range():
    epsilons = {
        kind: fa.compose([(kind(1.0), 40)]).epsilon_at(1e-6).upper
        for kind in (fa.PureDP, fa.PermuteAndFlip, fa.BoundedRange)
    }
    assert epsilons[fa.BoundedRange] < epsilons[fa.PermuteAndFlip] < 0.92 * epsilons[fa.PureDP]


@pytest.mark.parametrize("alpha", [1.1, 2.0, 7.5, 60.0])
@in_balls
def test_moments_bound_every_pair(alpha):
    source, bound = random.Random(3), up(loss_of(fa.PermuteAndFlip(0.8)).log_moment(alpha))
    for _ in range(200):
        one, other = (law(scores) for scores in neighbours(source, 0.8))
        moment = sum(p * (p / q) ** (alpha - 1) for p, q in zip(one, other, strict=True))
        assert mp.log(moment) <= bound + 1e-12


def test_what_it_is_elsewhere():
    assert fa.parse_guarantee("pf:0.5") == fa.PermuteAndFlip(0.5)
    assert fa.group_privacy(fa.PermuteAndFlip(0.5), 2) == fa.PermuteAndFlip(1.0)
    with pytest.raises(fa.Unsupported, match="tariff sells"):
        fa.Tariff({"a": (fa.PermuteAndFlip(0.1), 1)}, farthings=3)
    sampled = fa.compose([(fa.Subsampled(fa.PermuteAndFlip(1.0), 0.1), 3)]).epsilon_at(1e-6)
    pure = fa.compose([(fa.Subsampled(fa.PureDP(1.0), 0.1), 3)]).epsilon_at(1e-6)
    assert sampled.upper <= pure.upper * (1 + 1e-3)
