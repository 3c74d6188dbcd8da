"""Ten thousand random cases: the enclosure contains the 50-digit value, without exception.

Parameters are drawn on logarithmic scales: ε from 1e-6 to 10, δ from 1e-300 to 0.9, small
counts for the formulas whose reference costs k² terms and up to 10⁴ where it costs k.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

import farthing as fa
from farthing.composition.bounds import closed_forms, nonadaptive
from farthing.composition.bounds.moments import subgaussian_bounds
from farthing.composition.bounds.nonadaptive import Mix
from oracle.reference import (
    gaussian,
    inside,
    mixed_equal,
    mp,
    pure_equal,
    ranged_at,
    ranged_equal,
)

#: how the ten thousand are spread
CASES = {
    "pure_delta": 2050,
    "pure_epsilon": 1500,
    "pure_long": 50,
    "range_delta": 1540,
    "range_epsilon": 600,
    "range_long": 60,
    "mixed_delta": 700,
    "mixed_epsilon": 120,
    "gaussian_delta": 1080,
    "gaussian_epsilon": 600,
    "subgaussian": 1700,
}


def _epsilon(rng):
    return float(10 ** rng.uniform(-6, 1))


def _delta(rng):
    exponent = rng.uniform(-300, -0.046) if rng.random() < 0.5 else rng.uniform(-12, -0.046)
    return float(10**exponent)


def _threshold(rng, total):
    """ε_g anywhere in the support, of either sign, near 0, or just inside its end."""
    kind = rng.integers(4)
    parts = rng.uniform(0, 1), rng.uniform(-1, 1), rng.uniform(0, 0.05)
    return float((*parts, 1 - 10 ** rng.uniform(-9, -1))[kind] * total)


def pure_delta(rng):
    epsilon, count = _epsilon(rng), int(rng.integers(1, 40))
    x = _threshold(rng, epsilon * count)
    bracket = closed_forms.delta_equal(x, epsilon=epsilon, count=count)
    return inside(bracket, min(pure_equal(epsilon, count, x), mp.mpf(1)))  # 1 + 1e-50 is 1


def pure_epsilon(rng):
    epsilon, count, delta = _epsilon(rng), int(rng.integers(1, 40)), _delta(rng)
    bracket = closed_forms.epsilon_equal(delta, epsilon=epsilon, count=count)
    return pure_equal(epsilon, count, bracket.upper) <= delta and (
        bracket.lower == 0 or pure_equal(epsilon, count, bracket.lower) >= delta
    )


def pure_long(rng):
    count, delta = int(10 ** rng.uniform(2, 4)), _delta(rng)
    epsilon = float(10 ** rng.uniform(-3, -0.5))
    bracket = closed_forms.epsilon_equal(delta, epsilon=epsilon, count=count)
    return pure_equal(epsilon, count, bracket.upper) <= delta and (
        bracket.lower == 0 or pure_equal(epsilon, count, bracket.lower) >= delta
    )


def range_delta(rng):
    epsilon, count = _epsilon(rng), int(rng.integers(1, 10))
    x = _threshold(rng, epsilon * count)
    bracket = nonadaptive.delta_nonadaptive(x, epsilon=epsilon, count=count)
    return inside(bracket, ranged_equal(epsilon, count, x))


def range_epsilon(rng):
    epsilon, count, delta = _epsilon(rng), int(rng.integers(1, 9)), _delta(rng)
    bracket = nonadaptive.epsilon_nonadaptive(delta, epsilon=epsilon, count=count)
    return ranged_equal(epsilon, count, bracket.upper) <= delta and (
        bracket.lower == 0 or ranged_equal(epsilon, count, bracket.lower) >= delta
    )


def _best_places(epsilon, count, x):
    """The few ℓ with the largest F_ℓ(t_ℓ), by two binomial tails in floats for each."""
    places = np.arange(count)
    t = (x + (places + 1) * epsilon) / (count + 1)
    places, t = places[(t > 0) & (t < epsilon)], t[(t > 0) & (t < epsilon)]
    q = np.expm1(t - epsilon) / np.expm1(-epsilon)
    p = np.exp(-t) * q
    values = binom.cdf(places, count, 1 - q) - np.exp(x) * binom.cdf(places, count, 1 - p)
    return places[np.argsort(values)[-4:]]


def range_long(rng):
    count, epsilon = int(10 ** rng.uniform(1.5, 3.5)), float(10 ** rng.uniform(-2.5, 0))
    mean, spread = count * epsilon**2 / 8, epsilon * math.sqrt(count) / 2
    x = min(mean + spread * rng.uniform(0, 6), 0.98 * count * epsilon)
    bracket = nonadaptive.delta_nonadaptive(x, epsilon=epsilon, count=count)
    exact = max(
        ranged_at(epsilon, count, (mp.mpf(x) + (int(i) + 1) * mp.mpf(epsilon)) / (count + 1), x)
        for i in _best_places(epsilon, count, x)
    )
    return inside(bracket, exact)


def mixed_delta(rng):
    epsilon, pure, ranged = _epsilon(rng), int(rng.integers(0, 4)), int(rng.integers(0, 4))
    if pure + ranged == 0:
        pure = 1
    x = abs(_threshold(rng, epsilon * (pure + ranged)))
    return inside(Mix(epsilon, pure, ranged).delta_at(x), mixed_equal(epsilon, pure, ranged, x))


def mixed_epsilon(rng):
    epsilon, pure, ranged = _epsilon(rng), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    delta = _delta(rng)
    bracket = Mix(epsilon, pure, ranged).epsilon_at(delta)
    return mixed_equal(epsilon, pure, ranged, bracket.upper) <= delta and (
        bracket.lower == 0 or mixed_equal(epsilon, pure, ranged, bracket.lower) >= delta
    )


def gaussian_delta(rng):
    sigma, count = float(10 ** rng.uniform(-1.5, 2.5)), int(rng.integers(1, 100))
    x = float(10 ** rng.uniform(-4, 1.5))
    bracket = fa.gaussian_delta(x, noise_multiplier=sigma, count=count)
    return inside(bracket, gaussian(mp.mpf(sigma) / mp.sqrt(count), x))


def gaussian_epsilon(rng):
    sigma, delta = float(10 ** rng.uniform(-1.5, 2.5)), _delta(rng)
    bracket = fa.gaussian_epsilon(delta, noise_multiplier=sigma)
    return gaussian(sigma, bracket.upper) <= delta and (
        bracket.lower == 0 or gaussian(sigma, bracket.lower) >= delta
    )


def subgaussian(rng):
    """The closed-form bounds are formulas: rounded up, and by very little."""
    epsilon, count, delta = _epsilon(rng), int(10 ** rng.uniform(0, 6)), _delta(rng)
    e, log = mp.mpf(epsilon), -mp.log(mp.mpf(delta))
    pure = fa.compose([(fa.PureDP(epsilon), count)])
    ranged = fa.compose([(fa.BoundedRange(epsilon), count)])
    kl = e / mp.expm1(e) - 1 - mp.log(e / mp.expm1(e))
    expected = {
        (pure, "drv10"): count * e * mp.expm1(e) + e * mp.sqrt(2 * count * log),
        (pure, "improved-drv10"): count * e**2 / 2 + e * mp.sqrt(2 * count * log),
        (pure, "strong"): count * e * mp.tanh(e / 2) + e * mp.sqrt(2 * count * log),
        (ranged, "dr19"): count * e**2 / 2 + e * mp.sqrt(count * log / 2),
        (ranged, "optimal-kl"): count * kl + e * mp.sqrt(count * log / 2),
    }
    composition, name = list(expected)[int(rng.integers(len(expected)))]
    bound = next(
        b for b in subgaussian_bounds(composition.directions[0].leaky.items) if b.name == name
    )
    value, exact = bound.epsilon_at(delta)[1], expected[composition, name]
    return exact <= value <= exact * (1 + mp.mpf("1e-14"))


def test_there_are_ten_thousand():
    assert sum(CASES.values()) == 10_000


@pytest.mark.parametrize("name", CASES)
def test_no_case_is_missed(name):
    rng = np.random.default_rng(sum(map(ord, name)))
    case = globals()[name]
    misses = []
    for number in range(CASES[name]):
        state = rng.bit_generator.state
        if not case(rng):
            misses.append((number, state["state"]))
    assert misses == []
