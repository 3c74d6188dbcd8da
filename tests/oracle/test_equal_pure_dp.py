"""Kairouz–Oh–Viswanath and Murtagh–Vadhan against the sum over all subsets."""

from fractions import Fraction

import pytest

import farthing as fa
from farthing.composition.bounds.closed_forms import delta_equal, epsilon_equal
from oracle.reference import inside, mp, pure_equal, pure_subset_sum


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 10.0])
def test_equal_parameters_at_every_fraction_of_the_whole(epsilon, count):
    for part in (-1.0, -0.7, -0.25, 0.0, 0.1, 0.5, 0.9, 0.999, 1.0):
        x = part * count * epsilon
        bracket = delta_equal(x, epsilon=epsilon, count=count)
        assert inside(
            bracket,
            pure_subset_sum([epsilon] * count, x) if count < 9 else pure_equal(epsilon, count, x),
        )
        assert bracket.upper - bracket.lower <= 1e-12 * bracket.upper


@pytest.mark.parametrize("count", [1, 4, 12])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 3.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-6, 0.02, 0.9])
def test_the_inverse_brackets_the_true_epsilon(epsilon, count, delta):
    bracket = epsilon_equal(delta, epsilon=epsilon, count=count)
    assert pure_equal(epsilon, count, bracket.upper) <= delta
    assert bracket.lower == 0 or pure_equal(epsilon, count, bracket.lower) > delta
    assert bracket.width <= 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 0.7])
@pytest.mark.parametrize("count", [1, 3, 7, 10])
def test_without_delta_the_answer_is_the_exact_sum(epsilon, count):
    total = Fraction(epsilon) * count
    for bracket in (
        epsilon_equal(0.0, epsilon=epsilon, count=count),
        fa.compose([(fa.PureDP(epsilon), count)]).epsilon_at(0.0),
    ):
        assert Fraction(bracket.lower) <= total <= Fraction(bracket.upper)
        assert bracket.width < 1e-14


@pytest.mark.parametrize("count", [100, 1000])
def test_ten_thousand_terms_would_not_change_the_bracket(count):
    for part in (0.0, 0.05, 0.3, 0.9):
        x = part * count * 0.05
        assert inside(delta_equal(x, epsilon=0.05, count=count), pure_equal(0.05, count, x))


UNEQUAL = [
    [0.5, 1.0],
    [0.1, 0.2, 0.3],
    [1.0, 0.7, 0.7, 0.05],
    [0.011, 0.5, 2.0, 0.3, 0.3],
    [0.3 + 0.01 * i for i in range(10)],
]


@pytest.mark.parametrize("epsilons", UNEQUAL)
@pytest.mark.parametrize("adaptivity", ["none", "adaptive", "setwise", "concurrent"])
def test_unequal_parameters(epsilons, adaptivity):
    composition = fa.compose([fa.PureDP(e) for e in epsilons], adaptivity=adaptivity)
    for part in (0.0, 0.2, 0.6, 0.95):
        x = part * sum(epsilons)
        assert inside(composition.delta_at(x), pure_subset_sum(epsilons, x))
    for delta in (1e-9, 1e-4, 0.05):
        bracket = composition.epsilon_at(delta)
        assert pure_subset_sum(epsilons, bracket.upper) <= delta
        assert bracket.lower == 0 or pure_subset_sum(epsilons, bracket.lower) >= delta
        assert bracket.width <= 1e-3


def test_order_and_adaptivity_do_not_matter_for_pure_dp():
    forward = fa.compose([fa.PureDP(0.5), (fa.PureDP(1.0), 3)]).epsilon_at(1e-3)
    backward = fa.compose([(fa.PureDP(1.0), 3), fa.PureDP(0.5)], adaptivity="none").epsilon_at(1e-3)
    assert forward.lower <= backward.upper
    assert backward.lower <= forward.upper
    value = pure_subset_sum([0.5, 1.0, 1.0, 1.0], mp.mpf(forward.upper))
    assert value <= 1e-3
