"""Counts that share their first rounds have the profile that they have alone."""

import numpy as np
import pytest

from farthing.composition.adaptive.grid_choice import Layout
from farthing.composition.adaptive.operators import BoundedRangeChoice, equal_rounds
from farthing.composition.items import losses_of
from farthing.guarantees.kinds import BoundedRange
from farthing.numerics.curves import Chords, Grid, Supports


@pytest.mark.parametrize("count", [1, 2, 7, 12, 23])
def test_shared_rounds_are_the_same_rounds(count):
    grid, operator = Grid(0.02, 60, 80), BoundedRangeChoice(0.1)
    above, below = Chords.of_nothing(grid), Supports.of_nothing(grid)
    for _ in range(count):
        above, below = operator.above(above), operator.below(below)
    equal_rounds(0.1, grid, count - 1)  # what is kept must not matter
    assert np.array_equal(equal_rounds(0.1, grid, count)[0].values, above.values)
    assert np.array_equal(equal_rounds(0.1, grid, count)[1].values, below.values)


def test_neighbouring_counts_share_a_grid_and_it_reaches_as_far_as_each_needs():
    grids = [
        Layout.of(losses_of([(BoundedRange(0.01), count)]), 2e-3, 1e-6, whole=False).grid
        for count in (2177, 2240, 2304, 2305)
    ]
    assert grids[0] == grids[1] == grids[2]
    assert grids[3].above > grids[2].above
