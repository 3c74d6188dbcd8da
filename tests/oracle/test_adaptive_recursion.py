"""Adaptive and set-wise optima against the recursion by dense search over t (k ≤ 4)."""

import pytest

import farthing as fa
from oracle import recursion

KINDS = {"br": fa.BoundedRange, "dp": fa.PureDP}
#: choices of t per step, by the number of steps searched (a last one has a closed form)
CHOICES = {0: 1, 1: 4000, 2: 300, 3: 60}
#: how far the dense search may fall short, for as many searched steps
SHORTFALL = {0: 1e-9, 1: 1e-6, 2: 2e-4, 3: 2.5e-3}

LISTS = [
    [("br", 1.0)] * 2,
    [("br", 1.0)] * 3,
    [("br", 0.1)] * 3,
    [("br", 1.0)] * 4,
    [("br", 3.0)] * 3,
    [("br", 0.5), ("br", 1.0)],
    [("br", 1.0), ("br", 0.5)],
    [("br", 1.0), ("br", 0.37), ("br", 0.61)],
    [("dp", 0.5), ("br", 1.0), ("br", 1.0)],
    [("br", 1.0), ("dp", 0.5), ("br", 0.8)],
    [("br", 1.0), ("br", 0.3), ("dp", 0.5)],
    [("dp", 0.2), ("br", 0.5), ("dp", 0.7), ("br", 0.5)],
]


def _items(steps):
    return [KINDS[kind](epsilon) for kind, epsilon in steps]


def _searched(steps):
    return sum(kind == "br" for kind, _ in steps) - (steps[-1][0] == "br")


def _choices(steps):
    return CHOICES[_searched(steps)]


@pytest.mark.parametrize("steps", LISTS, ids=str)
def test_the_order_that_was_given(steps):
    composition = fa.compose(_items(steps), tolerance=1e-4)
    for part in (0.0, 0.15, 0.4, 0.7):
        x = part * sum(epsilon for _, epsilon in steps)
        dense = float(recursion.optimum(steps, x, _choices(steps)))
        bracket = composition.delta_at(x)
        assert dense <= bracket.upper * (1 + 1e-12)
        assert bracket.lower <= dense * (1 + SHORTFALL[_searched(steps)])
        assert bracket.upper <= dense * (1 + 2e-3)


@pytest.mark.parametrize("steps", [s for s in LISTS if len(s) < 4], ids=str)
def test_the_order_chosen_as_you_go(steps):
    composition = fa.compose(_items(steps), adaptivity="setwise", tolerance=1e-4)
    for part in (0.05, 0.3, 0.6):
        x = part * sum(epsilon for _, epsilon in steps)
        dense = float(recursion.set_wise(steps, x, min(_choices(steps), 400)))
        bracket = composition.delta_at(x)
        assert dense <= bracket.upper * (1 + 1e-12)
        assert bracket.lower <= dense * (1 + 2e-4)


@pytest.mark.parametrize("steps", LISTS[:2] + LISTS[5:8], ids=str)
def test_the_inverse_brackets_the_dense_search(steps):
    composition = fa.compose(_items(steps))
    for delta in (1e-3, 0.1):
        bracket = composition.epsilon_at(delta)
        assert bracket.width <= 1e-3
        assert float(recursion.optimum(steps, bracket.upper, _choices(steps))) <= delta
        short = float(recursion.optimum(steps, bracket.lower * (1 - 1e-4), _choices(steps)))
        assert short > delta * (1 - 1e-6)


@pytest.mark.parametrize("tolerance", [3e-2, 3e-3, 3e-4])
def test_a_coarser_grid_is_still_right(tolerance):
    steps = [("br", 1.0), ("br", 0.41), ("dp", 0.7)]
    composition = fa.compose(_items(steps), tolerance=tolerance)
    for x in (0.0, 0.2, 0.9, 1.4):
        dense = float(recursion.optimum(steps, x, 500))
        bracket = composition.delta_at(x)
        assert bracket.lower <= dense * (1 + 1e-4)
        assert dense <= bracket.upper
