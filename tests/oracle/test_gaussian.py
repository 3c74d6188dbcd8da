"""The Gaussian mechanism: profile, composition and calibration in 50 digits."""

import pytest

import farthing as fa
from oracle.reference import gaussian, inside, mp


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 13.1, 400.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 1.0, 30.0])
def test_delta(sigma, epsilon):
    bracket = fa.gaussian_delta(epsilon, noise_multiplier=sigma)
    value = gaussian(sigma, epsilon)
    assert value <= bracket.upper
    assert bracket.lower <= value
    assert bracket.upper <= float(value) * (1 + 1e-12) + 5e-324


@pytest.mark.parametrize("sigma", [0.05, 1.0, 13.1, 400.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-20, 1e-6, 0.3])
def test_epsilon(sigma, delta):
    bracket = fa.gaussian_epsilon(delta, noise_multiplier=sigma)
    assert gaussian(sigma, bracket.upper) <= delta
    assert bracket.lower == 0 or gaussian(sigma, bracket.lower) > delta
    assert bracket.width <= 1e-11


def test_gaussians_compose_to_one_gaussian():
    items = [(fa.Gaussian(2.0), 3), fa.Gaussian(5.0), (fa.Gaussian(11.0), 7)]
    sigma = 1 / mp.sqrt(3 / mp.mpf(4) + 1 / mp.mpf(25) + 7 / mp.mpf(121))
    for adaptivity in ("none", "adaptive", "setwise"):
        composition = fa.compose(items, adaptivity=adaptivity)
        for epsilon in (0.0, 0.7, 4.0):
            assert inside(composition.delta_at(epsilon), gaussian(sigma, epsilon))
        bracket = composition.epsilon_at(1e-6)
        assert gaussian(sigma, bracket.upper) <= 1e-6 < gaussian(sigma, bracket.lower)


@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.01), (0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
def test_calibration_is_private_and_not_wasteful(epsilon, delta, count):
    sigma = fa.gaussian_noise_multiplier(epsilon, delta, count=count)
    assert gaussian(mp.mpf(sigma) / mp.sqrt(count), epsilon) <= delta
    assert gaussian(mp.mpf(sigma) * (1 - mp.mpf("1e-9")) / mp.sqrt(count), epsilon) > delta


@pytest.mark.parametrize("keys", [1, 25])
@pytest.mark.parametrize("delta", [1e-12, 1e-3])
def test_lemma_6_3_both_ways(keys, delta):
    sigma = fa.zcdp_noise_multiplier(1.7, delta, contribution_limit=keys)
    s, log = mp.mpf(sigma), mp.log(1 / mp.mpf(delta))
    exact = keys / (2 * s**2) + mp.sqrt(2 * keys * log) / s
    assert exact <= mp.mpf(1.7)
    assert float(exact) == pytest.approx(1.7, rel=1e-13)
    value = fa.zcdp_epsilon(delta, noise_multiplier=sigma, contribution_limit=keys)
    assert mp.mpf(value) >= exact
    assert value == pytest.approx(float(exact), rel=1e-14)


def test_the_analytic_value_is_below_the_zcdp_one():
    for sigma in (1.0, 13.1):
        analytic = fa.gaussian_epsilon(1e-6, noise_multiplier=sigma, count=25).upper
        assert analytic < fa.zcdp_epsilon(1e-6, noise_multiplier=sigma, contribution_limit=25)
