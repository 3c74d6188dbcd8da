"""Scales, groups, replace-one, totals in other words: on the safe side of the exact number."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

import farthing as fa

NUMBERS = st.floats(1e-6, 1e6)


@given(NUMBERS, NUMBERS)
def test_scales_are_rounded_to_the_safe_side(scale: float, sensitivity: float) -> None:
    exact = Fraction(scale) / Fraction(sensitivity)
    assert Fraction(fa.Laplace.from_scale(scale, sensitivity).epsilon) >= 1 / exact
    assert Fraction(fa.Gaussian.from_scale(scale, sensitivity).noise_multiplier) <= exact
    assert fa.Laplace.from_scale(scale, sensitivity).epsilon == pytest.approx(sensitivity / scale)


def test_scales() -> None:
    assert fa.Laplace.from_scale(10.0) == fa.Laplace(0.1)
    assert fa.Laplace.from_scale(20, sensitivity=5) == fa.Laplace(0.25)
    assert fa.Gaussian.from_scale(6.0, sensitivity=2.0) == fa.Gaussian(3.0)
    assert fa.DiscreteGaussian.from_scale(6.0, 2) == fa.DiscreteGaussian(3.0, 2)
    for bad in (0, -1, math.nan, math.inf, "1"):
        with pytest.raises(fa.InvalidInput, match="scale"):
            fa.Laplace.from_scale(bad)
        with pytest.raises(fa.InvalidInput, match="sensitivity"):
            fa.Gaussian.from_scale(1.0, bad)


def test_groups_of_pure_mechanisms_by_brute_force() -> None:
    """Randomized response of one bit of each unit, summed: two units move it twice as far."""
    truth = 1 / (1 + math.exp(-0.4))
    both = [truth**2, 2 * truth * (1 - truth), (1 - truth) ** 2]
    epsilon = max(abs(math.log(p / q)) for p, q in zip(both, both[::-1], strict=True))
    assert epsilon == pytest.approx(fa.group_privacy(fa.PureDP(0.4), 2).epsilon)


@pytest.mark.parametrize("units", [1, 2, 3, 7])
def test_groups(units: int) -> None:
    each = fa.group_privacy(fa.Gaussian(6.3), units)
    assert Fraction(each.noise_multiplier) <= Fraction(6.3) / units
    assert fa.group_privacy(fa.BoundedRange(0.5), units) == fa.BoundedRange(0.5 * units)
    assert fa.group_privacy(fa.DiscreteGaussian(6.3), units).sensitivity == units
    assert fa.group_privacy(fa.ZeroConcentratedDP(0.25), units).rho == 0.25 * units**2
    # the noise of a sum is the same number whoever asks, and so is the exact profile
    alone = fa.gaussian_delta(1.0, noise_multiplier=6.3 / units)
    assert fa.compose([each]).delta_at(1.0).upper == pytest.approx(alone.upper, rel=1e-9)
    # (ε, δ): k steps of P ≤ e^ε Q + δ
    approximate = fa.group_privacy(fa.ApproximateDP(0.3, 1e-6), units)
    steps = 0.0
    for _ in range(units):
        steps = math.exp(0.3) * steps + 1e-6
    assert approximate.delta >= steps * (1 - 1e-12)
    assert approximate.delta == pytest.approx(steps)
    # moments: that of k Gaussian steps is the moment of one Gaussian at k times the distance
    offset = fa.group_privacy(fa.ZeroConcentratedDP(0.1, 0.05), units)
    assert offset.xi >= 0.05


def test_groups_without_a_theorem_are_refused() -> None:
    for guarantee in (
        fa.Subsampled(fa.Gaussian(1.0), 0.1),
        fa.ZeroConcentratedDP(0.1, 0.0, 1e-9),
        fa.RenyiDP(lambda alpha: alpha),
    ):
        assert fa.group_privacy(guarantee, 1) == guarantee
        with pytest.raises(fa.Unsupported, match="group"):
            fa.group_privacy(guarantee, 2)
    with pytest.raises(fa.Unsupported, match="delta grows"):
        fa.group_privacy(fa.ApproximateDP(2.0, 0.1), 3)
    with pytest.raises(fa.InvalidInput, match="units"):
        fa.group_privacy(fa.PureDP(1.0), 0)


def test_replace_one_and_back() -> None:
    replaced = fa.for_replace_one(fa.Gaussian(4.0))
    assert replaced == fa.SubsampledWithoutReplacement(fa.Gaussian(2.0), 1.0)
    assert fa.from_replace_one(replaced) == fa.Gaussian(2.0)
    assert fa.for_replace_one(fa.BoundedRange(0.5)).guarantee == fa.PureDP(1.0)
    exact = fa.gaussian_epsilon(1e-6, noise_multiplier=2.0)
    assert fa.compose([replaced]).epsilon_at(1e-6).upper == pytest.approx(exact.upper, rel=1e-3)
    with pytest.raises(fa.Unsupported, match="add/remove"):  # the two never meet in one list
        fa.compose([replaced, fa.Gaussian(4.0)])
    with pytest.raises(fa.Unsupported, match="replace-one"):
        fa.for_replace_one(fa.ZeroConcentratedDP(0.1))
    for wrong in (fa.Gaussian(1.0), fa.SubsampledWithoutReplacement(fa.Gaussian(1.0), 0.5)):
        with pytest.raises(fa.InvalidInput, match="rate 1"):
            fa.from_replace_one(wrong)


def test_rho() -> None:
    assert fa.compose([(fa.Gaussian(2.0), 8)]).rho() == 1.0
    assert fa.compose([(fa.PureDP(0.5), 2), fa.ZeroConcentratedDP(0.25)]).rho() == 0.5
    assert fa.compose([fa.BoundedRange(0.4)]).rho() == pytest.approx(0.02, rel=1e-9)
    assert fa.compose([fa.ZeroConcentratedDP(0.1, 0.05)]).rho() == pytest.approx(0.15)
    for guarantee in (fa.ApproximateDP(0.1, 1e-9), fa.Subsampled(fa.Gaussian(1.0), 0.1)):
        with pytest.raises(fa.Unsupported, match="rho"):
            fa.compose([guarantee]).rho()


@given(st.floats(0.01, 12.0))
def test_pure_dp_has_exactly_this_mu(epsilon: float) -> None:
    """Errors of randomized response touch those of two normals at their equal point."""
    mu = fa.compose([fa.PureDP(epsilon)]).mu()
    equal = 1 / (1 + math.exp(epsilon))
    assert NormalDist().cdf(-mu / 2) == pytest.approx(equal, rel=1e-9)
    # and its profile lies below that of the normals everywhere
    for x in (0.0, 0.3 * epsilon, 0.9 * epsilon):
        ours = fa.compose([fa.PureDP(epsilon)]).delta_at(x).lower
        assert ours <= fa.gaussian_delta(x, noise_multiplier=1 / mu).upper


def test_mu() -> None:
    assert fa.compose([(fa.Gaussian(2.0), 16)]).mu() == 2.0
    mixed = fa.compose([(fa.Gaussian(2.0), 4), (fa.Laplace(0.2), 3)])
    sigma = 1 / mixed.mu()
    exact = fa.gaussian_epsilon(1e-6, noise_multiplier=sigma).upper
    assert mixed.epsilon_at(1e-6).upper <= exact
    assert math.isfinite(fa.compose([fa.PureDP(400.0)]).mu())
    with pytest.raises(fa.Unsupported, match="mu"):
        fa.compose([fa.ZeroConcentratedDP(0.1)]).mu()
