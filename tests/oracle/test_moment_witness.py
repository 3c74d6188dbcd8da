"""Mechanisms that are worst for bounds on moments, and the conversion beside a profile."""

import math
from itertools import product

import pytest
from mpmath import mp, mpf

import farthing as fa
from farthing.composition.adaptive.moments_beside_others import (
    dominating,
    moments_as_loss,
    moments_first,
)
from farthing.composition.adaptive.profiles import curves
from farthing.composition.bounds.moment_witness import Moments
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import losses_of
from farthing.guarantees.losses import loss_of

BR = fa.BoundedRange
KINDS = [
    fa.ZeroConcentratedDP(0.05),
    fa.ZeroConcentratedDP(1.0),
    fa.ZeroConcentratedDP(0.02, 0.01),
    fa.ZeroConcentratedDP(0.02, -0.005),
    fa.TruncatedConcentratedDP(0.05, 20.0),
    fa.TruncatedConcentratedDP(0.05, 8.0),
]
#: so few orders that the moment of silence, 1, counts beside that of the loss
FEW_ORDERS = fa.TruncatedConcentratedDP(0.05, 4.0)


@pytest.mark.parametrize("guarantee", [*KINDS, FEW_ORDERS])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_a_witness_keeps_every_moment(guarantee, delta):
    """Renyi divergences by their definition, in 40 digits, in both directions."""
    moments = Moments.of(loss_of(guarantee))
    found = [one for one in map(moments.witness, moments.losses_for(delta)[::3]) if one is not None]
    assert found
    with mp.workdps(40):
        for one in found:
            (low, _, high), (rare, middle, often) = one.losses, map(mpf, one.masses)
            assert low == -high
            p = (often, middle, rare)
            q = (often * mp.exp(-mpf(high)), middle, rare * mp.exp(mpf(high)))
            for here, there in ((p, q), (q, p)):
                for step in range(-60, 60):
                    beta = mpf(1.15) ** step
                    if 1 + beta < moments.orders_below:
                        sums = zip(here, there, strict=True)
                        moment = mp.log(mp.fsum(a * (a / b) ** beta for a, b in sums))
                        allowed = beta * (moments.xi + moments.rho + moments.rho * beta)
                        assert moment <= allowed * (1 + mpf(10) ** -9) + mpf(10) ** -9 * often


def test_more_than_is_allowed_is_not_confirmed():
    moments = Moments.of(loss_of(KINDS[0]))
    for loss in (1.2, 1.5, 2.0):
        most = math.exp(moments.log_chance(loss))
        assert moments._allows(loss, most * math.exp(-1e-3), 1e-3)
        assert not moments._allows(loss, most * math.exp(1e-3), 1e-3)


@pytest.mark.parametrize("guarantee", KINDS)
def test_the_tight_conversion_is_attained(guarantee):
    bracket = fa.compose([guarantee]).epsilon_at(1e-6)
    assert bracket.width <= 0.01
    assert fa.compose([FEW_ORDERS]).epsilon_at(1e-6).width <= 0.1
    at = fa.compose([guarantee]).delta_at(0.9 * bracket.lower)
    assert 1e-6 < at.lower <= at.upper
    assert at.lower >= 0.9 * at.upper


@pytest.mark.parametrize("adaptivity", ["none", "adaptive", "setwise", "concurrent"])
@pytest.mark.parametrize(
    ("listed", "width"),
    [
        ([(fa.ZeroConcentratedDP(0.02), 2)], 0.001),
        ([(fa.ZeroConcentratedDP(0.02), 3)], 0.004),
        ([(fa.ZeroConcentratedDP(0.05), 4)], 0.01),
        ([fa.ZeroConcentratedDP(0.05), fa.ZeroConcentratedDP(0.02)], 0.002),
        ([(fa.ZeroConcentratedDP(0.02, 0.01), 2), fa.TruncatedConcentratedDP(0.05, 40.0)], 0.01),
    ],
)
def test_a_few_together_attain_what_their_moments_allow(listed, width, adaptivity):
    bracket = fa.compose(listed, adaptivity=adaptivity).epsilon_at(1e-6)
    assert 0 < bracket.width <= width
    at = fa.compose(listed, adaptivity=adaptivity).delta_at(0.9 * bracket.lower)
    assert 0.7 * at.upper <= at.lower <= at.upper


def test_a_few_together_by_hand():
    """Three witnesses at one order, every outcome enumerated in 40 digits."""
    moments = Moments.of(loss_of(fa.ZeroConcentratedDP(0.02)))
    one = moments.witness(moments.slope(13.6))
    bracket = fa.compose([(fa.ZeroConcentratedDP(0.02), 3)]).epsilon_at(1e-6)
    with mp.workdps(40):
        each = list(zip(map(mpf, one.losses), map(mpf, one.masses), strict=True))
        outcomes = [(a[0] + b[0] + c[0], a[1] * b[1] * c[1]) for a, b, c in product(each, repeat=3)]

        def delta(epsilon):
            return mp.fsum(p * (1 - mp.exp(epsilon - x)) for x, p in outcomes if x > epsilon)

        assert delta(0.995 * bracket.upper) > 1e-6 > delta(bracket.upper)
        assert delta(0.99 * bracket.lower) > 1e-6


@pytest.mark.parametrize(
    "after", [[(BR(0.1), 20)], [(fa.Gaussian(5.0), 3)], [(fa.PureDP(0.3), 3), (fa.Laplace(0.2), 2)]]
)
def test_beside_a_profile_both_sides_meet(after):
    listed = [fa.ZeroConcentratedDP(0.05), *after]
    bracket = fa.compose(listed).epsilon_at(1e-6)
    assert "docs/theory/moments.md" in bracket.theorem
    assert bracket.width <= 0.01
    noise = fa.compose([fa.Gaussian(math.sqrt(10.0)), *after]).epsilon_at(1e-6)
    assert noise.lower <= bracket.upper


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_no_mechanism_exceeds_the_conversion_beside_a_profile(delta):
    """Every witness, and noise, before ten bounded-range draws."""
    guarantee = fa.ZeroConcentratedDP(0.1)
    items = losses_of([guarantee, (BR(0.2), 10)])
    upper = moments_first(items, "adaptive").epsilon_at(delta)[1]
    moments = Moments.of(loss_of(guarantee))
    examples = [one for one in map(moments.witness, moments.losses_for(delta)[::3]) if one]
    for one in (*examples, fa.Gaussian(math.sqrt(5.0))):
        reached = fa.compose([one, (BR(0.2), 10)], tolerance=1e-2).epsilon_at(delta)
        assert reached.lower <= upper


@pytest.mark.parametrize("power", [2.0, 4.0, 30.0])
def test_the_peak_of_a_profile(power):
    found = curves(losses_of([(BR(0.3), 6)]), "adaptive", 8e-3, 1e-9, whole=True).upper
    peak = found.log_peak(power)
    end = found.grid.above * found.grid.step
    tried = [0.00037 * i - end for i in range(int(2 * end / 0.00037))]
    heights = [math.log(max(found.at(x), 1e-300)) + power * x for x in tried]
    assert max(heights) <= peak <= max(heights) + 1e-4 * power + 1e-6


def test_where_the_order_is_open_nothing_is_said():
    items = losses_of([fa.ZeroConcentratedDP(0.1), (BR(0.2), 2)])
    assert moments_first(items, "setwise") is None
    assert moments_first(losses_of([(BR(0.2), 2), fa.ZeroConcentratedDP(0.1)]), "adaptive") is None
    assert moments_first(losses_of([(BR(0.2), 2), fa.ZeroConcentratedDP(0.1)]), "none") is not None


@pytest.mark.parametrize("before", [[(BR(0.1), 20)], [(fa.Gaussian(5.0), 3)], [fa.Laplace(0.3)]])
@pytest.mark.parametrize("adaptivity", ["adaptive", "setwise"])
def test_what_comes_last_is_chosen_last(before, adaptivity):
    last = fa.ZeroConcentratedDP(0.05)
    bracket = fa.compose([*before, last], adaptivity=adaptivity).epsilon_at(1e-6)
    assert bracket.width <= 0.01
    for one in (Moments.of(loss_of(last)).witness(1.8), fa.Gaussian(math.sqrt(10.0))):
        assert fa.compose([*before, one], tolerance=1e-2).epsilon_at(1e-6).lower <= bracket.upper


@pytest.mark.parametrize("guarantee", KINDS)
def test_one_loss_lies_above_every_witness_and_what_is_chosen_below_the_conversion(guarantee):
    items = losses_of([guarantee])
    above, bound = dominating(items, 1e-6), MomentBound(items)
    moments = Moments.of(loss_of(guarantee))
    chosen = moments.chosen_last(1e-6)
    witnesses = [moments.witness(loss) for loss in moments.losses_for(1e-6)[::4]]

    def profile(loss, x):
        pairs = zip(loss.losses, loss.masses, strict=True)
        parts = [mpf(m) * (1 - mp.exp(mpf(x) - mpf(at))) for at, m in pairs if at > x]
        return mp.fsum(parts) + mpf(loss.infinity)

    with mp.workdps(30):
        for x in (-2.0, -0.5, -0.01, 0.0, 0.1, 0.5, 1.0, 1.4, 2.0, 3.3):
            most = profile(above, x)
            for witness in witnesses:
                assert witness is None or profile(witness, x) <= most
            assert profile(chosen, x) <= most
            if x >= 0:
                assert profile(chosen, x) <= bound.delta_at(x)


def test_a_run_that_others_may_interrupt_is_not_one_loss():
    items = losses_of([(fa.ZeroConcentratedDP(0.05), 2), (BR(0.1), 3)])
    assert moments_as_loss(items, "setwise") is None
    assert moments_as_loss(items, "adaptive") is not None
