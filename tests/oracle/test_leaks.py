"""(ε, δ) items: every outcome of leaky randomized response, enumerated."""

from fractions import Fraction

import pytest

import farthing as fa
from oracle.reference import inside, leaky_enumeration, mp, pure_equal

LISTS = [
    [(0.5, 1e-6)],
    [(1.0, 0.01), (1.0, 0.01), (1.0, 0.01)],
    [(0.3, 0.1), (0.7, 1e-9), (0.0, 0.05)],
    [(0.2, 0.0), (0.2, 1e-4), (0.9, 0.2), (0.05, 1e-3), (0.05, 1e-3)],
]


@pytest.mark.parametrize("items", LISTS, ids=str)
@pytest.mark.parametrize("adaptivity", ["none", "adaptive", "setwise", "concurrent"])
def test_mixed_lists(items, adaptivity):
    composition = fa.compose([fa.ApproximateDP(e, d) for e, d in items], adaptivity=adaptivity)
    for x in (0.0, 0.1, 0.6, 1.3, 4.0):
        assert inside(composition.delta_at(x), leaky_enumeration(items, x))
    for extra in (1e-4, 0.05):
        delta = float(1 - (1 - extra) * _survival(items))
        bracket = composition.epsilon_at(delta)
        assert leaky_enumeration(items, bracket.upper) <= delta
        assert bracket.lower == 0 or leaky_enumeration(items, bracket.lower) >= delta


def _survival(items):
    value = mp.mpf(1)
    for _, delta in items:
        value *= 1 - mp.mpf(delta)
    return value


@pytest.mark.parametrize("count", [1, 10, 1000])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_the_leak_of_equal_items(count, delta):
    """1 − (1 − δ)^k (1 − δ′) [KOV15], for δ′ the optimum without leaks."""
    composition = fa.compose([(fa.ApproximateDP(0.1, delta), count)])
    for x in (0.0, 0.05, 1.0):
        value = 1 - (1 - mp.mpf(delta)) ** count * (1 - pure_equal(0.1, count, x))
        assert inside(composition.delta_at(x), value)


def test_a_single_item_promises_what_it_says():
    """By definition: (ε, δ)-DP is (ε, δ)-DP."""
    bracket = fa.compose([fa.ApproximateDP(1.0, 1e-6)]).epsilon_at(1e-6)
    assert Fraction(bracket.lower) <= 1 <= Fraction(bracket.upper)
    assert bracket.width < 1e-9
    assert inside(fa.compose([fa.ApproximateDP(1.0, 1e-6)]).delta_at(1.0), mp.mpf(1e-6))


@pytest.mark.parametrize("part", [0.999999, 0.5, 0.0])
def test_less_delta_than_leaks_is_unattainable(part):
    composition = fa.compose([(fa.ApproximateDP(1.0, 1e-3), 5), fa.PureDP(1.0)])
    leak = 1 - (1 - 1e-3) ** 5
    with pytest.raises(fa.Unattainable, match=r"delta must be at least 0\.0049"):
        composition.epsilon_at(leak * part)
    with pytest.raises(fa.Unattainable):
        composition.bounds_at(leak * part)


def test_leaks_and_bounded_range_together():
    """Constants pass through the sup: δ + (1 − δ)·V with V the profile without the leak."""
    plain = fa.compose([fa.PureDP(0.5), (fa.BoundedRange(0.7), 2)]).delta_at(0.6)
    leaky = fa.compose([fa.ApproximateDP(0.5, 0.01), (fa.BoundedRange(0.7), 2)]).delta_at(0.6)
    assert leaky.lower == pytest.approx(0.01 + 0.99 * plain.lower, rel=1e-12)
    assert leaky.upper == pytest.approx(0.01 + 0.99 * plain.upper, rel=1e-12)


def test_approximate_zcdp_leaks_too():
    composition = fa.compose([(fa.ZeroConcentratedDP(0.01, 0.0, 1e-5), 3)])
    assert composition.delta_at(50.0).lower >= 2.9e-5
    with pytest.raises(fa.Unattainable):
        composition.epsilon_at(2.9e-5)
