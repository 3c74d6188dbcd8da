"""What OpenDP composes: zCDP sums and their conversion to (ε, δ)."""

import opendp.prelude as dp
import pytest

import farthing as fa


@pytest.fixture(scope="module", autouse=True)
def _features():
    dp.enable_features("contrib")


def _gaussians(sigma, count):
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    one = dp.m.make_gaussian(*space, scale=sigma)
    return dp.c.make_composition([one] * count) if count > 1 else one


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("sigma", [2.0, 10.0])
def test_zcdp_adds_up(sigma, count):
    assert _gaussians(sigma, count).map(1.0) == pytest.approx(count / (2 * sigma**2), rel=1e-12)


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_zcdp_to_approximate_dp(count, delta):
    profile = dp.c.make_zCDP_to_approxDP(_gaussians(3.0, count)).map(1.0)
    theirs = profile.epsilon(delta)
    rho = fa.ZeroConcentratedDP(count / 18.0)
    ours = fa.compose([rho]).bounds_at(delta)["zcdp-tight"].upper
    assert ours == pytest.approx(theirs, rel=1e-7)
    exact = fa.compose([(fa.Gaussian(3.0), count)]).epsilon_at(delta)
    assert exact.upper <= theirs


@pytest.mark.parametrize("count", [2, 7])
def test_pure_dp_adds_up(count):
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    measurement = dp.c.make_composition([dp.m.make_laplace(*space, scale=10.0)] * count)
    theirs = measurement.map(1.0)
    ours = fa.compose([(fa.Laplace(0.1), count)]).bounds_at(1e-12)["basic"].upper
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert fa.compose([(fa.Laplace(0.1), count)]).epsilon_at(1e-6).upper <= theirs * (1 + 1e-12)
