"""Chords stay above a profile and supporting lines below it, wherever they are read."""

import numpy as np
import pytest

from farthing.numerics.curves import Chords, Grid, Supports
from oracle.polygons import chord_value, chords_of, support_value, supports_of
from oracle.reference import gaussian, mp

GRIDS = [Grid(0.1, 30, 30), Grid(0.037, 60, 90), Grid(1.0, 4, 6)]
SIGMA = 0.9


def profile(x):
    return gaussian(SIGMA, x)


def points(grid, number=80):
    rng = np.random.default_rng(3)
    low, high = -grid.below * grid.step, grid.above * grid.step
    inside = rng.uniform(low, high, number)
    on_grid = rng.integers(-grid.below, grid.above, 10) * grid.step
    return [*inside, *on_grid, low, high, low - 0.3, low - 4.0, high + 0.2, high + 9.0, 0.0]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_chords_lie_above(grid):
    chords = chords_of(grid, profile)
    for x in points(grid):
        assert chords.at(float(x)) >= profile(x)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_reading_chords_is_reading_the_polygon(grid):
    chords = chords_of(grid, profile)
    for x in points(grid):
        exact = chord_value(chords, float(x))
        assert chords.at(float(x)) >= exact
        assert chords.at(float(x)) <= float(exact) * (1 + 1e-12)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_lines_lie_below(grid):
    supports = supports_of(grid, profile)
    for x in points(grid):
        assert mp.mpf(supports.at(float(x))) <= profile(x)
        assert supports.at(float(x)) <= support_value(supports, float(x)) * (1 + mp.mpf("1e-30"))


@pytest.mark.parametrize("grid", GRIDS[:2], ids=str)
@pytest.mark.parametrize("delta", [0.3, 0.05, 0.02])
def test_inverting_errs_on_the_safe_side(grid, delta):
    chords, supports = chords_of(grid, profile), supports_of(grid, profile)
    upper, lower = chords.first_below(delta), supports.last_above(delta)
    assert upper is not None
    assert chord_value(chords, upper) <= delta
    assert profile(upper) <= delta
    assert profile(lower) > delta
    assert chord_value(chords, upper * (1 - 1e-9)) > delta  # and not by much
    assert 0 < upper - lower < 2 * grid.step


def test_inverting_outside_the_grid():
    grid = Grid(0.1, 5, 5)
    chords, supports = chords_of(grid, profile), supports_of(grid, profile)
    assert chords.first_below(1e-9) is None
    assert chords.first_below(0.99) == 0.0
    assert supports.last_above(0.99) == 0.0
    assert profile(supports.last_above(1e-9)) > 1e-9


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_the_profile_of_nothing(grid):
    above, below = Chords.of_nothing(grid), Supports.of_nothing(grid)
    for x in points(grid, 40):
        exact = max(-mp.expm1(mp.mpf(float(x))), mp.mpf(0))
        assert above.at(float(x)) >= exact
        assert mp.mpf(below.at(float(x))) <= exact
    for place in range(grid.size):
        x = mp.mpf(grid.step) * (place - grid.below)
        assert above.values[place] >= max(-mp.expm1(x), mp.mpf(0))
        assert mp.mpf(float(below.values[place])) <= max(-mp.expm1(x), mp.mpf(0))


def test_the_larger_of_two_chords():
    grid = GRIDS[0]
    one, two = chords_of(grid, profile), chords_of(grid, lambda x: gaussian(2.0, x - 0.4))
    both = one.larger(two)
    for x in points(grid, 30):
        assert both.at(float(x)) >= max(one.at(float(x)), two.at(float(x))) * (1 - 1e-14)


@pytest.mark.parametrize("shift", [0.0, 0.1, -0.1, 0.25, -0.25, 1e-17, -1e-17, 7.3, -0.3, 0.3])
def test_splitting_a_shift(shift):
    grid = Grid(0.1, 3, 3)
    cells, rest = grid.split(shift)
    assert 0 <= rest <= grid.step
    assert mp.mpf(cells) * mp.mpf(grid.step) + mp.mpf(rest) == pytest.approx(shift, abs=2e-17)
