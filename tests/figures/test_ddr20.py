"""What [DDR20] says in words about its two figures."""

import pytest

from farthing.composition.planning import largest_count
from farthing.guarantees.kinds import BoundedRange
from farthing.lab.figures.ddr20_smith25 import (
    COUNTS,
    DELTA,
    ddr20_1,
    ddr20_2,
    log_moment_bounds,
    six_bounds,
)
from farthing.lab.figures.ours import how_many

NAMES = ("ε-DP OptComp", "DR19", "OptKL", "MGF", "ε/2-DP OptComp", "BR OptComp")


def times_as_many(epsilon: float, count: int, name: str, than: str = "ε-DP OptComp") -> float:
    """How many more mechanisms `name` allows for the budget that `than` gives `count` of them."""
    budget = six_bounds(epsilon, count)[than]
    return how_many(lambda n: six_bounds(epsilon, n)[name], budget) / count


def test_three_panels_of_six_curves() -> None:
    assert tuple(COUNTS) == (0.01, 0.1, 1.0)
    assert DELTA == 1e-6
    panels = ddr20_1.panels()
    assert [panel.title for panel in panels] == ["ε = 0.01", "ε = 0.1", "ε = 1"]
    for panel, counts in zip(panels, COUNTS.values(), strict=True):
        assert {curve.name for curve in panel.curves} == set(NAMES)
        assert all(curve.x == counts for curve in panel.curves)
        dashed = [curve.name for curve in panel.curves if curve.shape == "dashes"]
        dotted = [curve.name for curve in panel.curves if curve.shape == "dots"]
        assert (dashed, dotted) == (["BR OptComp"], ["ε/2-DP OptComp"])  # as its caption says


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 1000), (0.1, 100)])
def test_about_four_times_more_queries(epsilon: float, count: int) -> None:
    """Section 1: than the optimal composition of DP, for a fixed budget."""
    assert 3.8 <= times_as_many(epsilon, count, "BR OptComp") <= 4.1


def test_not_four_times_at_epsilon_one() -> None:
    """Errata: where the third panel ends it is three times, and at its beginning one and a half."""
    assert times_as_many(1.0, 10, "BR OptComp") == pytest.approx(1.5)
    assert 3.0 < times_as_many(1.0, 50, "BR OptComp") < 3.2
    assert times_as_many(1.0, 300, "BR OptComp") < 3.6


def test_the_budget_of_a_hundred_serves_384() -> None:
    budget = six_bounds(0.1, 100)["ε-DP OptComp"]
    in_advance = {"delta": DELTA, "adaptivity": "none"}
    assert largest_count(BoundedRange(0.1), epsilon=budget, **in_advance) == 384
    assert times_as_many(0.1, 100, "BR OptComp") == pytest.approx(3.84)


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 5000), (0.1, 100), (0.1, 300)])
def test_about_two_times_more_than_dr19(epsilon: float, count: int) -> None:
    assert 1.7 <= times_as_many(epsilon, count, "BR OptComp", than="DR19") <= 2.3


def test_adaptively_three_times_more_than_both_in_some_settings() -> None:
    assert 2.9 <= times_as_many(1.0, 100, "MGF") <= 3.3
    assert 2.6 <= times_as_many(1.0, 100, "MGF", than="DR19") <= 3.3


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 1000), (0.01, 5000), (0.1, 50), (0.1, 300)])
def test_bounded_range_is_almost_half_of_epsilon(epsilon: float, count: int) -> None:
    bounds = six_bounds(epsilon, count)
    assert 1.0 < bounds["BR OptComp"] / bounds["ε/2-DP OptComp"] < 1.04


@pytest.mark.parametrize(
    ("epsilon", "count"), [(0.01, 200), (0.1, 20), (1.0, 1), (1.0, 7), (1.0, 50)]
)
def test_the_order_of_the_curves(epsilon: float, count: int) -> None:
    bounds = six_bounds(epsilon, count)
    assert bounds["ε/2-DP OptComp"] < bounds["BR OptComp"] * (1 + 1e-9)
    assert bounds["BR OptComp"] <= bounds["MGF"] <= bounds["OptKL"] <= bounds["DR19"]
    assert max(bounds.values()) <= count * epsilon * (1 + 1e-12)


def test_the_functions_of_figure_2() -> None:
    """Section 7, at ε = 1; the axis that is printed goes from 0 to 10 and beyond 50."""
    at_ten = log_moment_bounds(10.0)
    assert at_ten["Improved DRV10"] == 55
    assert at_ten["DR19"] == 17.5
    assert at_ten["KL-improved DR19"] == pytest.approx(12.5 + 10 * 0.12330, abs=1e-3)
    panel = ddr20_2.panels()[0]
    assert panel.across.limits == (0, 10)
    for at in (1.0, 4.0, 10.0):
        order = [panel.curve(name).at(at) for name in at_ten]  # "Theorem 5 uses the smallest U"
        assert order == sorted(order, reverse=True)


def test_only_the_exact_moment_becomes_a_line() -> None:
    slopes = [
        log_moment_bounds(p + 1)["General MGF"] - log_moment_bounds(p)["General MGF"]
        for p in (8, 9)
    ]
    assert slopes[1] < 1  # the loss is at most ε = 1
    assert slopes[1] - slopes[0] < 0.05
