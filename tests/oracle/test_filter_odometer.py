"""An odometer of filters against every adversary who stops when the answers are telling."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import pytest

import farthing as fa
from tests.oracle.test_accountant import Bag, plays

LEVELS, DELTA = (0.3, 0.7, 1.2), 0.1


def replayed(bag: Bag, **options: object) -> fa.Odometer | None:
    """The odometer after these purchases in this order; None if one of them does not fit."""
    odometer = fa.Odometer(LEVELS, DELTA, **options)
    try:
        for kind in bag:
            odometer.spend(kind)
    except fa.BudgetExceeded:
        return None
    return odometer


def attained(kinds: Bag, reading: Callable[[Bag], float | None], most: int) -> float:
    """The largest Σ [P − e^reading Q]₊ over views, stopping and buying by the loss so far."""
    read = cache(reading)

    @cache
    def value(bag: Bag, loss: float) -> float:
        epsilon = read(bag)
        assert epsilon is not None
        best = max(0.0, -math.expm1(epsilon - loss))
        for kind in kinds if len(bag) < most else ():
            if read(after := (*bag, kind)) is None:
                continue
            for outcomes in plays(kind):
                told = 1 - sum(mass for mass, _ in outcomes)
                later = sum(mass * value(after, round(loss + more, 9)) for mass, more in outcomes)
                best = max(best, told + later)
        return best

    return value((), 0.0)


@pytest.mark.parametrize(
    ("kinds", "leaks"),
    [
        ((fa.PureDP(0.3), fa.BoundedRange(0.5)), 0.0),
        ((fa.Gaussian(3.0), fa.PureDP(0.2)), 0.0),
        ((fa.ApproximateDP(0.2, 0.01), fa.BoundedRange(0.4)), 0.02),
    ],
)
def test_readings_hold_whenever_somebody_stops(kinds: Bag, leaks: float) -> None:
    def reading(bag: Bag) -> float | None:
        odometer = replayed(bag, leaks=leaks)
        return None if odometer is None else odometer.epsilon

    assert 0 < attained(kinds, reading, 5) <= DELTA


def test_what_a_list_proves_is_no_reading() -> None:
    def composed(bag: Bag) -> float:
        return fa.compose([(bag[0], len(bag))]).epsilon_at(DELTA).upper if bag else 0.0

    assert attained((fa.PureDP(0.3),), composed, 12) > 1.2 * DELTA


def test_the_reading_grows_from_level_to_level() -> None:
    odometer = fa.Odometer((0.5, 1.0, 3.0), 1e-6, mostly=fa.Gaussian(20.0))
    assert odometer.epsilon == 0
    odometer.spend(fa.PureDP(0.1))
    assert odometer.epsilon == 0.1  # the sum of pure ε, below the first level
    readings = []
    while odometer.how_many(fa.Gaussian(20.0)) > 0:
        odometer.spend(fa.Gaussian(20.0))
        readings.append(odometer.epsilon)
    assert sorted(readings) == readings
    assert set(readings) == {0.5, 1.0, 3.0}
    assert len(readings) == 154  # an accountant with half of δ sells 158
    before = repr(odometer)
    with pytest.raises(fa.BudgetExceeded):
        odometer.spend(fa.Gaussian(20.0))
    assert repr(odometer) == before


@pytest.mark.parametrize("levels", [(), (1.0, 1.0), (2.0, 1.0), (math.nan,), (-1.0, 1.0)])
def test_levels_increase(levels: tuple[float, ...]) -> None:
    with pytest.raises(fa.InvalidInput):
        fa.Odometer(levels, 1e-6)


def test_all_leaks_and_nothing_else() -> None:
    odometer = fa.Odometer((1.0, 2.0), 1e-6, leaks=1e-6)
    odometer.spend(fa.ApproximateDP(0.5, 1e-7))
    assert odometer.epsilon == 0.5
    with pytest.raises(fa.InvalidInput):
        fa.Odometer((1.0,), 1e-6, leaks=2e-6)
