"""One step of the engine against its definition, on aligned and misaligned grids."""

import numpy as np
import pytest

from farthing.composition.adaptive.operators import (
    FEW,
    BoundedRangeChoice,
    FixedLoss,
    Kernel,
    atoms_of,
)
from farthing.guarantees.losses.base import Atoms
from farthing.numerics.curves import Chords, Grid, Supports
from oracle.polygons import (
    chord_value,
    chords_of,
    grid_point,
    line_value,
    range_step,
    range_supremum,
    support_value,
    supports_of,
)
from oracle.reference import atoms_profile, gaussian, mp, ranged_equal

GRID = Grid(0.1, 25, 25)
#: aligned, misaligned, smaller than a cell, just beside a multiple
EPSILONS = [0.5, 0.1, 0.37, 0.05, 0.30000000000000004, 0.3 * (1 + 1e-13), 1.23]
PLACES = [3, 14, 25, 26, 33, 41]


def profile(x):
    return gaussian(1.3, x)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_range_above_is_the_supremum_over_t(epsilon):
    later = chords_of(GRID, profile)
    result = BoundedRangeChoice(epsilon).above(later)
    for place in PLACES:
        exact = range_supremum(lambda x: chord_value(later, x), epsilon, grid_point(GRID, place))
        assert result.values[place] >= exact
        assert result.values[place] <= float(exact) * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 0.37, 1.23])
def test_range_above_near_the_edges(epsilon):
    """Where the arguments fall off the grid, its own rules apply there."""
    later = chords_of(GRID, profile)
    result = BoundedRangeChoice(epsilon).above(later)
    for place in (0, 1, GRID.size - 2, GRID.size - 1):
        exact = range_supremum(lambda x: chord_value(later, x), epsilon, grid_point(GRID, place))
        assert result.values[place] >= exact


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_range_below_is_what_somebody_plays(epsilon):
    later = supports_of(GRID, profile)
    result, chosen = BoundedRangeChoice(epsilon).play(later)
    for place in PLACES[1:]:
        t = float(chosen[place])
        assert 0 <= t <= epsilon
        at_grid = range_step(lambda x: support_value(later, x), epsilon, t, grid_point(GRID, place))
        assert mp.mpf(float(result.values[place])) <= at_grid
        assert result.values[place] >= float(at_grid) * (1 - 2e-2)
        for offset in (-0.1, -0.03, 0.05, 0.1):
            x = grid_point(GRID, place) + mp.mpf(offset)
            played = range_step(lambda y: support_value(later, y), epsilon, t, x)
            assert line_value(result, place, x) <= played + mp.mpf("1e-15")


@pytest.mark.parametrize("epsilon", [1.0, 0.3])
@pytest.mark.parametrize("cells", [1, 7, 40, 10.37, 3.0000000001])
def test_one_range_step_from_nothing(epsilon, cells):
    """T V_0 is Theorem 3 with one mechanism, for every grid."""
    step = epsilon / cells
    reach = int(cells) + 2
    grid = Grid(step, reach, reach)
    operator = BoundedRangeChoice(epsilon)
    above, below = (
        operator.above(Chords.of_nothing(grid)),
        operator.below(Supports.of_nothing(grid)),
    )
    for place in range(grid.size):
        exact = ranged_equal(epsilon, 1, grid_point(grid, place))
        assert above.values[place] >= exact
        assert mp.mpf(float(below.values[place])) <= exact


def test_the_last_point_before_the_end_of_the_support():
    """The step is just below ε/7: near ε there is hardly room for t, but there is some."""
    for nudge in (1e-13, 3e-13, 1e-11):
        step = 1.0 / (7 + nudge)
        grid = Grid(step, 9, 9)
        above = BoundedRangeChoice(1.0).above(Chords.of_nothing(grid))
        place = grid.below + 7
        assert above.values[place] >= ranged_equal(1.0, 1, grid_point(grid, place))


ATOMS = Atoms(
    losses=np.array([-0.9, -0.3, 0.0, 0.1, 0.37, 1.05]),
    masses=np.array([0.05, 0.2, 0.15, 0.3, 0.2, 0.09]),
    infinity=0.01,
)


def _average(profile, atoms, x):
    pairs = zip(atoms.losses, atoms.masses, strict=True)
    total = mp.mpf(float(atoms.infinity))
    return total + sum(
        mp.mpf(float(mass)) * profile(mp.mpf(x) - mp.mpf(float(loss))) for loss, mass in pairs
    )


def test_a_kernel_averages_the_chords():
    later = chords_of(GRID, profile)
    result = Kernel.of(ATOMS, GRID).apply(later)
    for place in [*PLACES, 0, 1, GRID.size - 1]:
        exact = _average(lambda x: chord_value(later, x), ATOMS, grid_point(GRID, place))
        assert result.values[place] >= min(exact, mp.mpf(1))
        assert result.values[place] <= float(exact) * (1 + 1e-12) + 1e-15


#: More atoms than are added one by one, each near a grid point.
MANY = Atoms(
    losses=np.arange(-24, 25) * 0.1 + 0.02 * np.cos(np.arange(49)),
    masses=np.exp(-((np.arange(-24, 25) / 8 - 0.3) ** 2)) / 30,
)


@pytest.mark.parametrize("below", [Atoms(ATOMS.losses, ATOMS.masses), MANY], ids=["few", "many"])
def test_fixed_loss_below_averages_the_lines(below):
    assert (len(below.losses) > FEW) == (below is MANY)
    later = supports_of(GRID, profile)
    result = FixedLoss(upper=ATOMS, lower=below).below(later)
    for place in PLACES[1:]:
        for offset in (-0.1, 0.0, 0.06, 0.1):
            x = grid_point(GRID, place) + mp.mpf(offset)
            exact = _average(lambda y: support_value(later, y), below, x)
            assert line_value(result, place, x) <= exact + mp.mpf("1e-15")
        at_grid = _average(lambda y: support_value(later, y), below, grid_point(GRID, place))
        assert mp.mpf(float(result.values[place])) <= at_grid
        assert result.values[place] >= float(at_grid) * (1 - 2e-2)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_a_power_is_repeated_application(count):
    """On a grid so wide that no value in the middle is read off its ends."""
    wide = Grid(GRID.step, 200, 200)
    later = chords_of(wide, profile)
    kernel = Kernel.of(Atoms(ATOMS.losses, ATOMS.masses), wide)
    repeated = later
    for _ in range(count):
        repeated = kernel.apply(repeated)
    at_once = kernel.power(count, 10 * wide.size).apply(later)
    middle = slice(wide.below - 5, wide.below + 6)
    np.testing.assert_allclose(at_once.values[middle], repeated.values[middle], rtol=1e-11)


def test_infinite_losses_add_up():
    """Two losses are infinite with probability at most the sum of both."""
    later = chords_of(GRID, profile)
    twice = Kernel.of(ATOMS, GRID).power(2, 1000)
    assert 2 * ATOMS.infinity - ATOMS.infinity**2 <= twice.infinity <= 2 * ATOMS.infinity * 1.000001
    assert np.all(twice.apply(later).values >= twice.infinity)


@pytest.mark.parametrize("limit", [12, 20, 60])
def test_cutting_a_power_short_only_adds(limit):
    later = chords_of(GRID, profile)
    kernel = Kernel.of(ATOMS, GRID)
    whole = kernel.power(6, 1000).apply(later)
    cut = kernel.power(6, limit).apply(later)
    assert np.all(cut.values >= whole.values * (1 - 1e-12))


@pytest.mark.parametrize("grid", [GRID, Grid(0.037, 40, 70)], ids=str)
def test_chords_as_atoms(grid):
    chords = chords_of(grid, profile)
    atoms = atoms_of(chords)
    assert np.all(atoms.masses >= 0)
    rng = np.random.default_rng(5)
    for x in [*rng.uniform(-3, 4, 40), 0.0, grid.step, -grid.below * grid.step]:
        exact = chord_value(chords, float(x))
        assert atoms_profile(atoms, float(x)) >= exact
        assert atoms_profile(atoms, float(x)) <= exact * (1 + mp.mpf("1e-9")) + mp.mpf("1e-13")
