"""DP and bounded range together, fixed in advance: Theorem 3 of [CR22]."""

import itertools

import pytest

import farthing as fa
from farthing.composition.bounds.closed_forms import delta_equal
from farthing.composition.bounds.nonadaptive import Mix, delta_nonadaptive
from oracle.reference import inside, mixed_at, mixed_equal, mp


@pytest.mark.parametrize("total", [2, 5, 8])
@pytest.mark.parametrize("epsilon", [1e-4, 0.3, 2.0])
def test_the_double_sum_for_every_number_of_pure_mechanisms(epsilon, total):
    for pure in range(total + 1):
        mix = Mix(epsilon, pure=pure, ranged=total - pure)
        for part in (0.0, 0.13, 0.5, 0.9):
            x = part * total * epsilon
            assert inside(mix.delta_at(x), mixed_equal(epsilon, pure, total - pure, x))


@pytest.mark.parametrize("x", [0.0, 0.45, 1.3])
def test_the_ends_are_the_two_older_theorems(x):
    only_range, only_pure = Mix(0.3, pure=0, ranged=7), Mix(0.3, pure=7, ranged=0)
    for left, right in (
        (only_range.delta_at(x), delta_nonadaptive(x, epsilon=0.3, count=7)),
        (only_pure.delta_at(x), delta_equal(x, epsilon=0.3, count=7)),
    ):
        assert left.lower <= right.upper
        assert right.lower <= left.upper
        assert left.upper == pytest.approx(right.upper, rel=1e-12)


def test_no_t_on_a_dense_grid_beats_the_candidates():
    for x in (0.0, 0.4, 1.5):
        bracket = Mix(0.5, pure=2, ranged=3).delta_at(x)
        dense = [mixed_at(0.5, 2, 3, mp.mpf(i) / 600, x) for i in range(301)]
        assert max(dense) <= bracket.upper
        assert max(dense) >= bracket.lower - 1e-5


@pytest.mark.parametrize(("pure", "ranged"), [(1, 1), (3, 4), (6, 2)])
@pytest.mark.parametrize("delta", [1e-200, 1e-6, 0.05])
def test_the_inverse_brackets_the_true_epsilon(pure, ranged, delta):
    bracket = Mix(0.4, pure=pure, ranged=ranged).epsilon_at(delta)
    assert mixed_equal(0.4, pure, ranged, bracket.upper) <= delta
    assert bracket.lower == 0 or mixed_equal(0.4, pure, ranged, bracket.lower) > delta
    assert bracket.width <= 1e-8


def test_the_order_of_a_list_fixed_in_advance_does_not_matter():
    """Lemma 4.3 of [CR22]."""
    dp, br = fa.PureDP(0.2), fa.BoundedRange(0.2)
    answers = {
        fa.compose(order, adaptivity="none").epsilon_at(1e-5)
        for order in ([(dp, 3), (br, 4)], [(br, 4), (dp, 3)], [br, dp, br, dp, br, dp, br])
    }
    assert len(answers) == 1


def test_more_pure_mechanisms_cost_more():
    values = [Mix(0.3, pure=m, ranged=8 - m).epsilon_at(1e-5) for m in range(9)]
    assert all(a.upper < b.lower for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(("pure", "ranged"), [(40, 60), (100, 20)])
def test_large_counts_against_the_full_double_sum(pure, ranged):
    mix = Mix(0.1, pure=pure, ranged=ranged)
    for x in (0.5, 3.0):
        bracket = mix.delta_at(x)
        width = mp.mpf(0.1) / (ranged + 1)
        offset = (mp.mpf(x) - pure * mp.mpf(0.1)) / (ranged + 1)
        places = [
            i
            for i in range(2 * pure + ranged + 1)
            if 0.3 < float(offset / 0.1 + (i + 1) * width / mp.mpf(0.1)) < 0.7
        ]
        best = max(mixed_at(0.1, pure, ranged, offset + (i + 1) * width, x) for i in places[::3])
        assert best <= bracket.upper
        assert bracket.width < 1e-9
