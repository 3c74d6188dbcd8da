"""The order of several bounded-range parameters left open: prices against the exact table."""

import itertools

import numpy as np
import pytest

import farthing as fa
from farthing.composition.adaptive.grid_choice import AnyOrder, prices
from farthing.composition.adaptive.operators import BoundedRangeChoice
from farthing.numerics.curves import Chords, Grid

LISTS = [
    ((0.1, 3), (0.2, 2)),
    ((0.1, 2), (0.2, 2), (0.3, 2)),
    ((0.05, 4), (0.3, 1), (0.17, 2)),
    ((0.5, 1), (0.25, 2), (0.1, 2), (0.05, 1)),
]


def _nothing():
    return Chords.of_nothing(Grid(0.005, 300, 400))


def _every_order(choices):
    """The pointwise largest over all fixed orders, by trying them."""
    steps = [epsilon for epsilon, count in choices for _ in range(count)]
    best = _nothing()
    for order in set(itertools.permutations(steps)):
        profile = _nothing()
        for epsilon in reversed(order):
            profile = BoundedRangeChoice(epsilon).above(profile)
        best = best.larger(profile)
    return best.values


@pytest.mark.parametrize("choices", LISTS)
def test_prices_lie_above_the_table_and_the_table_above_every_order(choices):
    exact = AnyOrder.of(choices, 1e-3, 1e9, 700)
    assert len(exact.priced) == 1
    table = exact.above(_nothing()).values
    priced = AnyOrder.of(choices, 1e-3, 0, 700)
    assert priced.counted == ()
    bound = priced.above(_nothing()).values
    assert np.all(bound >= table * (1 - 1e-9) - 1e-60)
    assert np.all(table >= _every_order(choices) * (1 - 1e-9) - 1e-60)
    assert np.any(bound > table)


@pytest.mark.parametrize("given", [(1, 1, 1), (1, 4, 9), (5, 1, 2)])
def test_any_prices_are_valid(given):
    choices = LISTS[1]
    bound = AnyOrder((), choices, given).above(_nothing()).values
    assert np.all(bound >= _every_order(choices) * (1 - 1e-9) - 1e-60)


def test_too_small_a_budget_would_be_noticed():
    """The same test fails if one use less is paid for."""
    short = AnyOrder((), ((0.1, 2), (0.2, 2), (0.3, 1)), (1, 4, 9)).above(_nothing()).values
    assert np.any(short < _every_order(LISTS[1]) * (1 - 1e-9) - 1e-60)


def test_natural_prices():
    assert prices(((0.05, 40), (0.1, 40), (0.3, 40)), 1e-3) == (1, 4, 36)
    assert prices(((0.1, 5), (0.2, 5)), 1e-3) == (1, 4)
    assert prices(((1e-9, 5), (1.0, 5)), 1e-3)[0] == 1


def test_many_parameters_have_both_sides():
    items = [(fa.BoundedRange(e), 12) for e in (0.05, 0.1, 0.2, 0.4, 0.8)]
    bracket = fa.compose(items, adaptivity="setwise", tolerance=0.05).epsilon_at(1e-6)
    assert bracket.width <= 0.05
    small_first = fa.compose(items, tolerance=1e-2).epsilon_at(1e-6)
    assert bracket.upper >= small_first.lower
