"""Gaussian noise as currency: lemmas and prices against naive high-precision arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from flint import arb

import farthing as fa
from farthing.composition.accounts.gaussian_filter import GaussianFilter
from farthing.composition.accounts.unit_filter import UnitFilter
from farthing.composition.adaptive.normal_prices import normal_profile, sold, variance_of_range
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import up

FILTER = GaussianFilter.of(3.0, 1e-6)


def profile(variance: float, x: float) -> float:
    """U_b(x) in floats, V_0 at b = 0; relative errors are below 1e-9 where it is above 1e-20."""
    if variance == 0:
        return max(0.0, -math.expm1(x))
    deviation = mp.sqrt(variance)
    return float(
        mp.ncdf(deviation / 2 - x / deviation) - mp.exp(x) * mp.ncdf(-deviation / 2 - x / deviation)
    )


def step(guarantee: fa.Guarantee, variance: float, x: float) -> float:
    """T U at x, by trying many t; from below."""
    if isinstance(guarantee, fa.PureDP):
        epsilon = guarantee.epsilon
        truth = 1 / (1 + math.exp(-epsilon))
        return truth * profile(variance, x - epsilon) + (1 - truth) * profile(variance, x + epsilon)
    assert isinstance(guarantee, fa.BoundedRange)
    epsilon, best = guarantee.epsilon, 0.0
    for i in range(17):
        t = epsilon * i / 16
        stay = math.expm1(t - epsilon) / math.expm1(-epsilon)
        value = stay * profile(variance, x - t) + (1 - stay) * profile(variance, x + epsilon - t)
        best = max(best, value)
    return best


def losses(guarantee: fa.Guarantee) -> tuple[Loss, ...]:
    return tuple(dict.fromkeys(loss_of(guarantee, with_unit=way) for way in (True, False)))


def test_the_profile_is_that_of_normal_noise() -> None:
    for variance in (0.0025, 0.4, 7.0):
        for x in (0.0, 0.3, 3.0):
            exact = fa.compose([fa.Gaussian(1 / math.sqrt(variance))]).delta_at(x).upper
            assert up(normal_profile(variance, arb(x))) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 3.0])
def test_bounded_range_is_dominated_by_that_variance_and_no_smaller_one(epsilon: float) -> None:
    """Lemma 3."""
    variance = up(variance_of_range(epsilon))
    for i in range(41):
        x = epsilon * i / 40
        alone = (1 - math.exp((x - epsilon) / 2)) ** 2 / -math.expm1(-epsilon)
        tried = step(fa.BoundedRange(epsilon), 0.0, x)
        assert tried * (1 - 1e-9) <= alone <= 1.1 * tried + 5e-3 * epsilon
        assert alone <= profile(variance, x) * (1 + 1e-9)
    assert math.tanh(epsilon / 4) > profile(variance * 0.999, 0.0)


@pytest.mark.parametrize(
    "guarantee", [fa.BoundedRange(0.1), fa.BoundedRange(0.3), fa.PureDP(0.1), fa.PureDP(0.4)]
)
def test_prices_hold_at_every_balance_from_where_they_are_used(guarantee: fa.Guarantee) -> None:
    rates = FILTER.rates(losses(guarantee))
    assert len(rates) >= 2
    for place, rate in enumerate(rates):
        least, price = float(rate.least), float(rate.price)
        allowed = price * FILTER.added
        for balance in (least, 1.3 * least, 2.5 * least):
            for x in (0.0, 0.02, 0.1, 0.35, 0.8, 1.5, 2.2, 3.0, 3.6):
                value = step(guarantee, max(balance - price, 0.0), x)
                assert value <= profile(balance, x) * (1 + 1e-9) + allowed
        if place > 0:  # half a per cent less would not do
            cheaper = 0.995 * price
            assert any(
                step(guarantee, least - cheaper, x / 50) > profile(least, x / 50) + allowed
                for x in range(150)
            )


def test_bulk_is_one_by_one() -> None:
    rates = FILTER.rates(losses(fa.BoundedRange(0.3)))
    balance, times = Fraction(FILTER.grant), 0
    while sold(balance, rates, 1)[0] == 1:
        balance = sold(balance, rates, 1)[1]
        times += 1
    assert sold(Fraction(FILTER.grant), rates) == (times, balance)
    assert sold(Fraction(FILTER.grant), rates, 5)[0] == 5


@pytest.mark.parametrize(
    ("guarantee", "least"),
    [
        (fa.Gaussian(20.0), 166),
        (fa.BoundedRange(0.1), 164),
        (fa.PureDP(0.1), 41),
        (fa.BoundedRange(0.3), 17),
        (fa.PureDP(0.3), 10),
        (fa.ZeroConcentratedDP(0.001), 184),
    ],
)
def test_what_the_default_sells(guarantee: fa.Guarantee, least: int) -> None:
    """At (3, 10⁻⁶) a list that is fixed in advance has 167, 167, 46, 18, 10 and no exact value."""
    assert fa.Accountant(3.0, 1e-6).how_many(guarantee) >= least


@pytest.mark.parametrize(
    "guarantee",
    [
        fa.Gaussian(20.0),
        fa.BoundedRange(0.1),
        fa.PureDP(0.1),
        fa.Laplace(0.1),
        fa.Subsampled(fa.Gaussian(1.0), 0.01),
    ],
)
def test_what_is_bought_mostly_is_sold_as_in_a_list(guarantee: fa.Guarantee) -> None:
    budget = fa.Accountant(3.0, 1e-6, mostly=guarantee)
    most = budget.how_many(guarantee)
    assert fa.compose([(guarantee, most)]).delta_at(3.0).upper <= 1e-6
    more = math.ceil(most / 0.99)
    assert fa.compose([(guarantee, more)]).delta_at(3.0).lower > 1e-6


STEP = fa.Subsampled(fa.Gaussian(1.0), 0.01)


@pytest.mark.parametrize("other", [None, fa.Subsampled(fa.Gaussian(1.2), 0.01)])
def test_units_are_changed_at_a_rate_that_holds(other: fa.Guarantee | None) -> None:
    """H^k G^{n−m} ≤ Gⁿ for samples, in both directions, by composing both sides."""
    own = UnitFilter.of(losses(STEP), 3.0, 1e-6)
    assert own is not None
    into = None if other is None else losses(other)
    changed = own.changed(own.grant, into, Fraction(0))
    assert changed is not None
    taken, amount = changed
    if other is None:
        assert taken * 0.0025 / float(amount) < 26  # gauss:20 for so many steps
        bought = [(fa.Gaussian(1 / math.sqrt(amount)), 1)]
    else:
        assert int(amount) > 1.2 * taken
        bought = [(other, int(amount))]
    for x in (0.0, 1.0, 3.0):
        before = fa.compose([(STEP, own.grant)], tolerance=0.02).delta_at(x)
        after = fa.compose([*bought, (STEP, own.grant - taken)], tolerance=0.02).delta_at(x)
        assert after.lower <= before.upper + own.added


def test_a_currency_pays_for_everything_else() -> None:
    budget = fa.Accountant(3.0, 1e-6, mostly=STEP)
    budget.spend(STEP, 500)
    budget.spend(fa.Gaussian(20.0), 5)
    budget.spend(fa.Subsampled(fa.Gaussian(1.2), 0.01), 100)
    left = budget.how_many(STEP)
    assert 1250 < left < 1450
    again = fa.Accountant.from_json(budget.to_json())
    assert again.how_many(STEP) == left
    assert again.to_json() == budget.to_json()
