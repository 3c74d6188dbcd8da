"""Unequal bounded range fixed in advance: boxes of t against many t."""

import numpy as np
import pytest

import farthing as fa
from farthing.composition.bounded_range import delta_nonadaptive, epsilon_nonadaptive
from farthing.composition.boxed_adversary import BoxedAdversary
from farthing.composition.sheared_boxes import Box, Frame, Outcomes
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


def _inside(optimum, place):
    return all(0 < t < e for t, (e, _) in zip(place, optimum.ranged, strict=True))


@pytest.mark.parametrize(
    "optimum", [*LISTS, InAdvance(((0.1, 2), (0.2, 2), (0.4, 1), (0.9, 2)), ())]
)
def test_both_bounds_of_a_box_hold_everywhere_in_it(optimum):
    generator = np.random.default_rng(5)
    outcomes = Outcomes.of(optimum.ranged, optimum.pure)
    everywhere = tuple((0.0, e) for e, _ in optimum.ranged)
    tried, close = 0, 0
    for _ in range(120):
        x = generator.uniform(-0.2, 0.95) * _total(optimum)
        place = tuple(generator.uniform(0.1, 0.9) * e for e, _ in optimum.ranged)
        frame = Frame.at(outcomes, x, place)
        half = generator.uniform(0.001, 0.2) * generator.uniform(0.2, 1, len(place))
        box = Box(outcomes, frame, everywhere, place, tuple(half))
        monotone, curved = box.monotone(x), box.curved(x)
        close += curved < monotone
        for _ in range(20):
            sides = generator.uniform(-1.5, 1.5, len(half)).clip(-1, 1)  # corners too
            moved = tuple(np.array(place) + frame.columns @ (sides * half))
            if _inside(optimum, moved):
                value = optimum.at(x, moved)
                assert value <= monotone + 1e-15
                assert value <= curved + 1e-15
                tried += 1
    assert tried > 500
    assert close > 10


def test_halves_of_a_box_hold_all_of_it():
    optimum = LISTS[3]
    outcomes = Outcomes.of(optimum.ranged, ())
    limits = ((0.05, 0.15), (0.1, 0.3), (0.5, 1.2))
    boxes = [Box.around(outcomes, Frame.at(outcomes, 0.9, (0.1, 0.2, 1.0)), limits)]
    for _ in range(6):
        boxes = [half for box in boxes for half in box.cut()]
    for place in np.random.default_rng(1).uniform(*zip(*limits, strict=True), (200, 3)):
        seen = [np.abs(one.frame.inverse @ (place - one.place)) <= one.half for one in boxes]
        assert any(one.all() for one in seen)


def test_a_curved_bound_is_exact_to_the_second_order():
    """A tenth of the box, less than a five-hundredth of the error; and far below first order."""
    optimum = InAdvance(((0.1, 10), (0.2, 10), (0.3, 10)), ())
    outcomes = Outcomes.of(optimum.ranged, ())
    best = (0.0546, 0.1243, 0.20564)
    frame, everywhere = Frame.at(outcomes, 2.6, best), tuple((0.0, e) for e, _ in optimum.ranged)
    errors = []
    for size in (0.2, 0.02):
        box = Box(outcomes, frame, everywhere, best, (size,) * 3)
        errors.append(box.curved(2.6) / optimum.at(2.6, best) - 1)
        assert errors[-1] < box.monotone(2.6) / optimum.at(2.6, best) - 1
    assert 0 <= errors[1] < errors[0] / 500


@pytest.mark.parametrize(
    "optimum",
    [LISTS[0], LISTS[2], InAdvance(((0.1, 2), (0.2, 2), (0.3, 1), (0.4, 1), (0.7, 1)), ())],
)
def test_an_adversary_in_a_box_has_at_least_what_any_t_of_it_gives(optimum):
    generator = np.random.default_rng(7)
    for x in (0.3 * _total(optimum), 0.8 * _total(optimum)):
        adversary = BoxedAdversary.of(optimum.ranged, optimum.pure, 1e-6)
        for _ in range(30):
            ends = [sorted(generator.uniform(0, e, 2)) for e, _ in optimum.ranged]
            most = adversary.ceiling(x, tuple((low, high) for low, high in ends))
            for _ in range(20):
                place = tuple(generator.uniform(low, high) for low, high in ends)
                assert optimum.at(x, place) <= most
            assert most <= adversary.ceiling(x, tuple((0.0, e) for e, _ in optimum.ranged))


def test_an_adversary_with_one_t_has_what_it_gives():
    """The recursion loses only what its grid loses, so a box that shrinks to a point is settled."""
    optimum = InAdvance(((0.1, 3), (0.2, 3), (0.3, 3), (0.4, 3)), ())
    adversary = BoxedAdversary.of(optimum.ranged, (), 1e-6)
    for place in ((0.06, 0.13, 0.22, 0.32), (0.05, 0.15, 0.2, 0.3)):
        most = adversary.ceiling(1.98, tuple((t, t) for t in place))
        assert optimum.at(1.98, place) <= most <= 1.001 * optimum.at(1.98, place)


def test_what_is_shrunk_away_holds_no_more_than_was_said():
    optimum = InAdvance(((0.1, 5), (0.2, 5), (0.3, 5), (0.4, 5)), ())
    adversary, x, enough = BoxedAdversary.of(optimum.ranged, (), 1e-6), 2.6937, 1e-6
    everywhere = tuple((0.0, e) for e, _ in optimum.ranged)
    start = (0.0557, 0.1258, 0.2075, 0.2986)
    limits, dropped = adversary.shrunk(x, everywhere, start, enough)
    assert dropped <= enough
    assert np.prod([h - low for low, h in limits]) < 0.01 * np.prod([e for e, _ in optimum.ranged])
    outside = 0
    for place in np.random.default_rng(3).uniform(0, [e for e, _ in optimum.ranged], (4000, 4)):
        if not all(low <= t <= high for t, (low, high) in zip(place, limits, strict=True)):
            assert optimum.at(x, tuple(place)) <= dropped
            outside += 1
    assert outside > 3000


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
        assert upper <= lower * 1.001


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
    [
        ((0.1, 12), (0.25, 8)),
        ((0.1, 2), (0.2, 3), (0.3, 4)),
        ((0.5, 3), (0.07, 4), (1, 2)),
        ((0.1, 2), (0.25, 4), (0.45, 3), (0.8, 2)),
        ((0.1, 5), (0.2, 5), (0.3, 5), (0.4, 5)),
        ((0.1, 2), (0.2, 2), (0.3, 2), (0.4, 2), (0.5, 2)),
        ((0.1, 1), (0.15, 1), (0.2, 1), (0.3, 1), (0.4, 1), (0.5, 1), (0.6, 1)),
    ],
)
def test_several_parameters_within_two_parts_in_ten_thousand(listed):
    items = [(fa.BoundedRange(epsilon), count) for epsilon, count in listed]
    bracket = fa.compose(items, adaptivity="none").epsilon_at(1e-6)
    assert bracket.width <= 2e-4
    assert bracket.upper <= fa.compose(items).epsilon_at(1e-6).upper


def test_near_the_sum_of_all_epsilon():
    items = [fa.BoundedRange(0.1), (fa.BoundedRange(0.3), 2)]
    for x in (0.595, 0.69):
        bracket = fa.compose(items, adaptivity="none").delta_at(x)
        assert bracket.width <= 2e-4
