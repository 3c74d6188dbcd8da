"""The references agree with each other where two of them answer the same question."""

import numpy as np
import pytest

from oracle import recursion
from oracle.reference import (
    leaky_enumeration,
    mixed_equal,
    mp,
    pure_equal,
    pure_subset_sum,
    ranged_at,
    ranged_equal,
    ranged_subset_sum,
)

CLOSE = mp.mpf(10) ** -45


@pytest.mark.parametrize("count", [1, 2, 5, 9])
@pytest.mark.parametrize("x", [-0.4, 0.0, 0.3, 1.1])
def test_grouping_subsets_by_size_changes_nothing(count, x):
    assert abs(pure_subset_sum([0.3] * count, x) - pure_equal(0.3, count, x)) < CLOSE
    t = mp.mpf("0.17")
    grouped = ranged_at(0.3, count, t, x)
    assert abs(ranged_subset_sum([0.3] * count, [t] * count, x) - grouped) < CLOSE


@pytest.mark.parametrize("x", [0.0, 0.3, 1.1])
def test_the_double_sum_contains_both_single_ones(x):
    assert abs(mixed_equal(0.3, 0, 6, x) - ranged_equal(0.3, 6, x)) < CLOSE
    assert abs(mixed_equal(0.3, 6, 0, x) - pure_equal(0.3, 6, x)) < CLOSE


def test_a_leak_of_zero_is_no_leak():
    assert (
        abs(leaky_enumeration([(0.3, 0.0), (0.7, 0.0)], 0.2) - pure_subset_sum([0.3, 0.7], 0.2))
        < CLOSE
    )


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("x", [0.0, 0.25, 0.9])
def test_no_t_on_a_dense_grid_beats_the_candidates_of_theorem_3(count, x):
    best = ranged_equal(1.0, count, x)
    dense = [ranged_at(1.0, count, mp.mpf(i) / 500, x) for i in range(501)]
    assert max(dense) <= best + CLOSE
    assert best - max(dense) < 1e-5


def test_different_t_never_help():
    """Lemma 5.4 of [DDR20]: averaging two of the t cannot lower δ."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        x = float(rng.uniform(-2, 2))
        t1, t2, t3 = (mp.mpf(float(t)) for t in rng.uniform(0, 1, 3))
        apart = ranged_subset_sum([1.0] * 3, [t1, t2, t3], x)
        mean = (t1 + t2) / 2
        assert apart <= ranged_subset_sum([1.0] * 3, [mean, mean, t3], x) + CLOSE


@pytest.mark.parametrize("x", [-1.3, -0.5, 0.0, 0.4, 0.99, 1.2])
def test_one_range_is_theorem_3_with_one_mechanism(x):
    assert float(recursion.one_range(1.0, np.array(x))) == pytest.approx(
        float(ranged_equal(1.0, 1, x)), rel=1e-12, abs=1e-15
    )


def test_the_dense_search_converges_from_below():
    steps = [("br", 1.0), ("dp", 0.5), ("br", 0.7)]
    coarse, fine, finest = (float(recursion.optimum(steps, 0.3, n)) for n in (20, 80, 320))
    assert coarse <= fine <= finest
    assert finest - fine < (fine - coarse) / 4 + 1e-9
