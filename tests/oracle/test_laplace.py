"""Laplace mechanisms composed exactly, against nested integrals."""

import itertools

import numpy as np
import pytest

import farthing as fa
from oracle.reference import inside, laplace, laplace_next, mp

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def profile(epsilon: float, count: int, x: np.ndarray) -> np.ndarray:
    """V_k(x) = E[V_{k−1}(x − L)] by Gauss–Legendre between the bends, in floats."""
    x = np.asarray(x, dtype=np.float64)
    if count == 0:
        return np.maximum(-np.expm1(x), 0.0)
    later = count - 1
    total = profile(epsilon, later, x - epsilon) / 2
    total = total + profile(epsilon, later, x + epsilon) * np.exp(-epsilon) / 2
    bends = [x - b * epsilon for b in range(-later, later + 1)]
    edges = np.sort(
        np.clip([np.full_like(x, -epsilon), *bends, np.full_like(x, epsilon)], -epsilon, epsilon),
        axis=0,
    )
    for left, right in itertools.pairwise(edges):
        half = (right - left)[..., None] / 2
        loss = (left + right)[..., None] / 2 + half * NODES
        inner = profile(epsilon, later, x[..., None] - loss) * np.exp((loss - epsilon) / 2) / 4
        total = total + np.sum(inner * WEIGHTS * half, axis=-1)
    return total


@pytest.mark.parametrize("x", [-0.9, 0.0, 0.3, 1.0])
def test_the_two_references_agree(x):
    one = float(profile(0.7, 1, np.array(x)))
    two = float(profile(0.7, 2, np.array(x)))
    assert one == pytest.approx(float(laplace(0.7, x)), abs=1e-13)
    with mp.workdps(25):
        nested = laplace_next(0.7, lambda y: laplace(0.7, y), x, (-1, 1))
    assert two == pytest.approx(float(nested), abs=1e-13)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0])
def test_one_mechanism(epsilon):
    composition = fa.compose([fa.Laplace(epsilon)], tolerance=1e-4)
    for part in (0.0, 0.4, 0.95):
        assert inside(composition.delta_at(part * epsilon), laplace(epsilon, part * epsilon))
    bracket = composition.epsilon_at(0.01 * epsilon)
    assert laplace(epsilon, bracket.upper) <= 0.01 * epsilon
    assert laplace(epsilon, bracket.lower) >= 0.01 * epsilon


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_composition(epsilon, count):
    for adaptivity in ("none", "adaptive"):
        composition = fa.compose([(fa.Laplace(epsilon), count)], adaptivity=adaptivity)
        for part in (0.0, 0.3, 0.8):
            x = part * count * epsilon
            value = float(profile(epsilon, count, np.array(x)))
            bracket = composition.delta_at(x)
            assert bracket.lower <= value * (1 + 1e-11)
            assert value <= bracket.upper * (1 + 1e-11)
            assert bracket.upper <= value * (1 + 5e-3)


def test_laplace_beside_other_kinds():
    """Lap(ε) then DP(ε′): the profile of the Laplace step averaged over the two answers."""
    q = 1 / (1 + np.exp(-0.4))
    composition = fa.compose([fa.Laplace(0.7), fa.PureDP(0.4)])
    for x in (0.0, 0.35, 0.9):
        value = q * profile(0.7, 1, np.array(x - 0.4)) + (1 - q) * profile(
            0.7, 1, np.array(x + 0.4)
        )
        bracket = composition.delta_at(x)
        assert bracket.lower <= float(value) * (1 + 1e-12)
        assert float(value) <= bracket.upper * (1 + 1e-12)
        assert bracket.width < 5e-3


def test_laplace_is_better_than_what_its_epsilon_promises():
    laplace_ten = fa.compose([(fa.Laplace(0.5), 10)]).epsilon_at(1e-6)
    pure_ten = fa.compose([(fa.PureDP(0.5), 10)]).epsilon_at(1e-6)
    assert laplace_ten.upper < pure_ten.lower


def test_gaussian_and_laplace_together():
    """E over the Gaussian loss of the Laplace profile, by Gauss–Legendre on many pieces."""
    sigma, epsilon = 1.5, 0.6
    inside, shares = np.polynomial.legendre.leggauss(20)
    nodes = np.concatenate([(2 * i + 1 + inside) / 200 - 1 for i in range(200)])
    weights = np.tile(shares / 200, 200)
    loss = 0.5 / sigma**2 + 9 / sigma * nodes
    density = np.exp(-((loss - 0.5 / sigma**2) ** 2) * sigma**2 / 2) * sigma / np.sqrt(2 * np.pi)
    composition = fa.compose([fa.Gaussian(sigma), fa.Laplace(epsilon)])
    for x in (0.0, 0.8, 2.0):
        value = np.sum(weights * 9 / sigma * density * profile(epsilon, 1, x - loss))
        bracket = composition.delta_at(x)
        assert bracket.lower <= value * (1 + 1e-6)
        assert value <= bracket.upper * (1 + 1e-6)
        assert bracket.width < 5e-3
