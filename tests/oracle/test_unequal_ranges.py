"""Unequal bounded range fixed in advance: boxes of t against many t."""

import numpy as np
import pytest

import farthing as fa
from farthing.composition.bounded_range import delta_nonadaptive, epsilon_nonadaptive
from farthing.composition.sheared_boxes import Box, Outcomes
from farthing.composition.unequal_ranges import InAdvance
from oracle.reference import mp, ranged_subset_sum

LISTS = [
    InAdvance(((0.1, 1), (0.3, 2)), ()),
    InAdvance(((0.5, 3), (1.0, 2)), ()),
    InAdvance(((0.2, 4), (0.7, 2)), ((0.3, 2),)),
    InAdvance(((0.2, 2), (0.4, 2), (1.5, 1)), ()),
]


def _total(optimum):
    return sum(e * n for e, n in (*optimum.ranged, *optimum.pure))


@pytest.mark.parametrize("optimum", LISTS)
def test_both_bounds_of_a_box_hold_everywhere_in_it(optimum):
    generator = np.random.default_rng(5)
    outcomes = Outcomes.of(optimum.ranged, optimum.pure)
    epsilons = np.array([e for e, _ in outcomes.others])
    spread = np.sqrt(sum(n * e * e for e, n in optimum.ranged))
    tried, close = 0, 0
    for _ in range(60):
        half = epsilons * generator.uniform(0.001, 0.1, len(epsilons))
        t = [generator.uniform(0.1, 0.9) * e for e, _ in optimum.ranged]
        total, width = outcomes.total(tuple(t)), spread * generator.uniform(0.001, 0.1)
        free = [one for i, one in enumerate(t) if i != outcomes.pivot]
        box = Box(outcomes, (total, *free), (width, *half))
        x = generator.uniform(-0.2, 0.95) * _total(optimum)
        monotone, curved = box.monotone(x), box.curved(x)
        close += curved < monotone
        for _ in range(20):
            sides = generator.uniform(-1.5, 1.5, len(box.half)).clip(-1, 1)  # corners too
            moved = Box(outcomes, tuple(np.array(box.centre) + sides * box.half), box.half).place
            if all(0 < one < e for one, (e, _) in zip(moved, optimum.ranged, strict=True)):
                value = optimum.at(x, moved)
                assert value <= monotone + 1e-15
                assert value <= curved + 1e-15
                tried += 1
    assert tried > 500
    assert close > 10


def test_a_curved_bound_is_exact_to_the_second_order():
    """A tenth of the box, less than a five-hundredth of the error; and far below first order."""
    optimum = InAdvance(((0.1, 10), (0.2, 10), (0.3, 10)), ())
    outcomes = Outcomes.of(optimum.ranged, ())
    best = (0.0546, 0.1243, 0.20564)
    errors = []
    for size in (0.03, 0.003):
        box = Box(outcomes, (outcomes.total(best), *best[:2]), (size, 0.1 * size, 0.2 * size))
        errors.append(box.curved(2.6) / optimum.at(2.6, best) - 1)
        assert errors[-1] < 0.1 * (box.monotone(2.6) / optimum.at(2.6, best) - 1)
    assert 0 <= errors[1] < errors[0] / 500


def test_one_set_of_t_is_the_subset_sum():
    """Lemma 3.1 of [DDR20] in 50 digits."""
    optimum = LISTS[0]
    for x in (-0.1, 0.0, 0.2, 0.5, 0.65):
        exact = ranged_subset_sum([0.1, 0.3, 0.3], [mp.mpf(0.04), mp.mpf(0.2), mp.mpf(0.2)], x)
        assert optimum.at(x, (0.04, 0.2)) == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
        assert optimum.at(x, (0.04, 0.2)) <= exact


@pytest.mark.parametrize("optimum", LISTS)
def test_no_t_beats_the_optimum_and_one_attains_it(optimum):
    for share in (0.1, 0.7):
        x = share * _total(optimum)
        lower, upper = optimum.delta_at(x, 1e-3)
        grids = [np.linspace(0, e, 33)[1:-1] for e, _ in optimum.ranged]
        points = np.stack([m.ravel() for m in np.meshgrid(*grids)], axis=1)
        tried = max(optimum.at(x, tuple(p)) for p in points[:: max(1, len(points) // 400)])
        assert tried <= upper
        assert lower <= upper * (1 + 1e-12)
        on_an_edge = optimum is LISTS[3] and share == 0.1  # of [0, ε]: there it does not end
        assert upper <= lower * (1.03 if on_an_edge else 1.001)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01])
def test_one_parameter_is_theorem_3(delta):
    lower, upper = InAdvance(((0.3, 12),), ()).epsilon_at(delta, 1e-4)
    exact = epsilon_nonadaptive(delta, epsilon=0.3, count=12)
    assert lower <= exact.upper
    assert exact.lower <= upper <= exact.upper * (1 + 1e-3)
    low, high = InAdvance(((0.3, 12),), ()).delta_at(1.0, 1e-4)
    value = delta_nonadaptive(1.0, epsilon=0.3, count=12)
    assert low <= value.upper
    assert high >= value.lower


@pytest.mark.parametrize(
    "listed",
    [((0.1, 12), (0.25, 8)), ((0.1, 2), (0.2, 3), (0.3, 4)), ((0.5, 3), (0.07, 4), (1, 2))],
)
def test_two_and_three_parameters_within_two_parts_in_ten_thousand(listed):
    items = [(fa.BoundedRange(epsilon), count) for epsilon, count in listed]
    bracket = fa.compose(items, adaptivity="none", tolerance=2e-4).epsilon_at(1e-6)
    assert bracket.width <= 2e-4
    assert bracket.upper <= fa.compose(items).epsilon_at(1e-6).upper


def test_near_the_sum_of_all_epsilon():
    items = [fa.BoundedRange(0.1), (fa.BoundedRange(0.3), 2)]
    for x in (0.595, 0.69):
        bracket = fa.compose(items, adaptivity="none").delta_at(x)
        assert bracket.width <= 1e-3
