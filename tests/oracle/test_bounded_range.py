"""Non-adaptive bounded range: Theorem 3 and Lemma 3.1 of [DDR20]."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

import farthing as fa
from farthing.composition.bounds.nonadaptive import (
    delta_nonadaptive,
    epsilon_nonadaptive,
)
from oracle.reference import inside, mp, ranged_equal, ranged_subset_sum


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 10.0])
def test_theorem_3(epsilon, count):
    for part in (-0.99, -0.7, -0.25, -0.01, 0.0, 0.1, 0.5, 0.9, 0.999):
        x = part * count * epsilon
        bracket = delta_nonadaptive(x, epsilon=epsilon, count=count)
        assert inside(bracket, ranged_equal(epsilon, count, x))
        assert bracket.upper - bracket.lower <= 1e-12 * bracket.upper


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_thresholds_on_the_lattice(count):
    """ε_g a multiple of ε: some candidate t lies exactly at 0 or at ε."""
    for multiple in range(-count, count + 1):
        x = multiple * 0.5
        bracket = delta_nonadaptive(x, epsilon=0.5, count=count)
        assert inside(bracket, ranged_equal(0.5, count, x))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_optimum_is_the_best_of_every_vector_of_t(count):
    """Lemma 3.1 by brute force: no (t_1, …, t_k) on a grid beats Theorem 3, one comes close."""
    epsilon, points = 1.0, {1: 400, 2: 30, 3: 9}[count]
    for x in (0.0, 0.3, 0.77):
        values = [
            ranged_subset_sum([epsilon] * count, [mp.mpf(i) / points for i in choice], x)
            for choice in product(range(points + 1), repeat=count)
        ]
        bracket = delta_nonadaptive(x, epsilon=epsilon, count=count)
        assert max(values) <= bracket.upper
        assert max(values) >= bracket.lower - 2.0 / points**2


@pytest.mark.parametrize("count", [1, 4, 12])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 3.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-6, 0.02, 0.9])
def test_the_inverse_brackets_the_true_epsilon(epsilon, count, delta):
    bracket = epsilon_nonadaptive(delta, epsilon=epsilon, count=count)
    assert ranged_equal(epsilon, count, bracket.upper) <= delta
    assert bracket.lower == 0 or ranged_equal(epsilon, count, bracket.lower) > delta
    assert bracket.width <= 1e-9


@pytest.mark.parametrize("count", [1, 3, 10])
def test_without_delta_the_answer_is_the_exact_sum(count):
    bracket = epsilon_nonadaptive(0.0, epsilon=0.1, count=count)
    assert Fraction(bracket.lower) <= Fraction(0.1) * count <= Fraction(bracket.upper)


@pytest.mark.parametrize("count", [30, 60])
@pytest.mark.parametrize("epsilon", [0.02, 0.3, 2.0])
def test_discarded_candidates_are_smaller(epsilon, count):
    """Beyond 24 candidates most of them are ruled out by an argument, not by evaluation."""
    for part in (-0.5, 0.0, 0.03, 0.2, 0.6):
        x = part * count * epsilon
        bracket = delta_nonadaptive(x, epsilon=epsilon, count=count)
        assert inside(bracket, ranged_equal(epsilon, count, x))


def _unequal_optimum(epsilons, x):
    """Lemma 3.1 for unequal ε: the best t found by many local searches."""
    epsilons = np.array(epsilons)
    subsets = np.array(list(product((0, 1), repeat=len(epsilons))), dtype=bool)

    def loss(t):
        t = np.clip(t, 1e-12, epsilons - 1e-12)
        q = np.expm1(t - epsilons) / np.expm1(-epsilons)
        p = np.exp(-t) * q
        up = np.prod(np.where(subsets, 1 - q, q), axis=1)
        down = np.prod(np.where(subsets, 1 - p, p), axis=1)
        return -np.sum(np.maximum(up - np.exp(x) * down, 0))

    rng = np.random.default_rng(11)
    shared = np.linspace(0.3, 0.98, 8)[:, None] * epsilons
    starts = np.concatenate((shared, rng.uniform(0.05, 0.95, (8, len(epsilons))) * epsilons))
    found = [
        minimize(loss, s, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14})
        for s in starts
    ]
    return -min(result.fun for result in found)


@pytest.mark.parametrize(
    "epsilons", [[1.0, 2.0], [0.5, 1.0, 1.5], [0.1, 0.3, 0.3], [1.0, 1.0, 0.2]]
)
@pytest.mark.parametrize("part", [0.05, 0.3, 0.6, 0.85])
def test_unequal_parameters_bracket_the_best_choice_of_t(epsilons, part):
    x = part * sum(epsilons)
    composition = fa.compose([fa.BoundedRange(e) for e in epsilons], adaptivity="none")
    best = _unequal_optimum(epsilons, x)
    bracket = composition.delta_at(x)
    assert bracket.lower <= best * (1 + 1e-7)
    assert best <= bracket.upper
    assert bracket.upper <= 1.15 * best  # the adaptive optimum is not far away
