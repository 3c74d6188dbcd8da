"""Exchanging two bounded-range steps: neither order is always worse (docs/theory/order.md)."""

import numpy as np
import pytest

import farthing as fa
from farthing.composition.adaptive.operators import BoundedRangeChoice
from farthing.numerics.curves import Chords, Grid, Supports
from oracle import recursion


def _two_steps(first, second, z, choices=600):
    """T_first T_second V at z for V(z) = 0.6(1 − z/0.6)₊ + 0.4(1 − z)₊, t by dense search."""

    def future(y):
        return 0.6 * np.maximum(1 - y / 0.6, 0) + 0.4 * np.maximum(1 - y, 0)

    def step(epsilon, later, y):
        t = np.linspace(0, epsilon, choices + 1)
        q = np.expm1(t - epsilon) / np.expm1(-epsilon)
        near, far = later(y[..., None] * np.exp(-t)), later(y[..., None] * np.exp(epsilon - t))
        return np.max(q * near + (1 - q) * far, axis=-1)

    return float(step(first, lambda y: step(second, future, y), np.array(z)))


def test_large_first_can_be_worse_for_a_general_future():
    assert _two_steps(0.8, 0.6, 1.0) - _two_steps(0.6, 0.8, 1.0) == pytest.approx(0.0031, abs=5e-5)


def test_small_before_large_is_not_the_worst_order():
    """{½, 1, 1, 1} at ε = 0.83: one large step before the small one is certified to be worse."""
    large, small = fa.BoundedRange(1.0), fa.BoundedRange(0.5)
    ascending = fa.compose([small, large, large, large], tolerance=1e-5).delta_at(0.83)
    other = fa.compose([large, small, large, large], tolerance=1e-5).delta_at(0.83)
    assert other.lower > ascending.upper
    assert other.lower / ascending.upper - 1 == pytest.approx(1.97e-4, rel=0.03)
    dense = float(
        recursion.optimum([("br", 1.0), ("br", 0.5), ("br", 1.0), ("br", 1.0)], 0.83, 150)
    )
    assert ascending.upper < dense <= other.upper


def test_up_to_three_steps_no_order_was_found_above_small_before_large():
    """Random triples on a grid; the same comparison finds {½, 1, 1, 1} above."""
    generator = np.random.default_rng(1)
    for _ in range(150):
        cells = np.sort(generator.integers(4, 60, size=3))
        grid = Grid(0.02, int(cells.sum()) + 2, int(cells.sum()) + 2)
        small, large, last = (float(c) * 0.02 for c in cells)
        above = Chords.of_nothing(grid)
        for epsilon in (last, large, small):
            above = BoundedRangeChoice(epsilon).above(above)
        for order in ((large, small, last), (small, last, large), (last, small, large)):
            below = Supports.of_nothing(grid)
            for epsilon in reversed(order):
                below = BoundedRangeChoice(epsilon).below(below)
            assert np.all(below.values <= above.values * (1 + 1e-9) + 1e-13)
