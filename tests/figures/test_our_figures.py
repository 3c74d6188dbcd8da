"""What the captions of our own figures say."""

import pytest

from farthing.composition.compose import compose
from farthing.guarantees.kinds import BoundedRange, ZeroConcentratedDP
from farthing.lab.figures.ours import (
    DELTA,
    RATE,
    STEPS_PER_EPOCH,
    adaptive_epsilon,
    any_way_to_spend,
    cost_of_adaptivity_at,
    how_many,
    of_concentrated,
    of_samples,
    quick_bounds,
    sampled_epsilon_at,
    selections,
    three_items,
)


def test_every_bound_is_above_the_optimum() -> None:
    best = adaptive_epsilon(0.1, 100)
    bounds = compose([(BoundedRange(0.1), 100)], adaptivity="none").bounds_at(DELTA)
    excess = {name: 100 * (bound.upper / best.lower - 1) for name, bound in bounds.items()}
    shown = {name: round(excess[name]) for name in ("renyi", "mgf", "optimal-dp")}
    assert shown == {"renyi": 7, "mgf": 21, "optimal-dp": 112}
    assert best.width < 1e-3
    del bounds["optimal-br"]  # in advance: no bound for adaptive choices
    assert min(bound.upper for bound in bounds.values()) > best.upper


def test_the_cost_of_adaptivity() -> None:
    """Nothing for few, 1.3 % at most, a thousandth for many."""
    assert cost_of_adaptivity_at(0.01, 4)[1] < 1e-6
    low, high = cost_of_adaptivity_at(0.01, 8)
    assert 1.3 < low < high < 1.32
    low, high = cost_of_adaptivity_at(0.1, 200)
    assert 0.12 < low < high < 0.14


def test_the_cost_of_choice() -> None:
    """Within 1 % at the worst number of farthings that is drawn; zCDP pays 7 to 10, or 18 to 33."""
    fixed = adaptive_epsilon(0.1, 30, tolerance=2e-4)
    free = any_way_to_spend(30)
    assert 1.008 < free.lower / fixed.upper < free.upper / fixed.lower < 1.01
    for farthings, tight, textbook in ((10, 10, 33), (400, 7, 18)):
        best = adaptive_epsilon(0.1, farthings).upper
        bounds = compose([ZeroConcentratedDP(farthings * 0.1**2 / 8)]).bounds_at(DELTA)
        assert round(100 * (bounds["zcdp-tight"].upper / best - 1)) == tight
        assert round(100 * (bounds["zcdp"].upper / best - 1)) == textbook
    assert {price for _, price in three_items(9).items.values()} == {1, 4}


def test_questions_for_a_budget_of_four() -> None:
    assert selections(4.0) == 281
    assert adaptive_epsilon(0.1, 282, tolerance=2e-4).lower > 4
    found = {
        name: how_many(lambda n, name=name: quick_bounds(n)[name], 4)
        for name in ("mgf", "optimal-dp")
    }
    assert found == {"mgf": 204, "optimal-dp": 74}
    asked = of_concentrated()
    assert len(asked) == 2
    for ask in asked.values():
        assert how_many(lambda n, ask=ask: ask(n, 0.1**2 / 8, DELTA), 4) == 248


def test_nothing_fits_a_budget_that_is_too_small() -> None:
    assert how_many(lambda count: float(count), 0.5) == 0
    assert how_many(lambda count: float(count), 1) == 1


@pytest.mark.parametrize("epochs", [1, 10])
def test_others_agree_with_the_bracket_of_training(epochs: int) -> None:
    bracket = sampled_epsilon_at(1.0, epochs)
    assert bracket.width < 4e-4
    for ask in of_samples().values():
        low, estimate, high = ask(1.0, RATE, round(epochs * STEPS_PER_EPOCH), 1e-5)
        assert low <= bracket.upper
        assert bracket.lower <= high
        assert estimate == pytest.approx(bracket.upper, rel=4e-4)
        assert (high - low) / high > 25 * bracket.width
