"""The loss of discrete Gaussian noise: enumerated, on the right sides, largest at the shift Δ."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import farthing as fa
from farthing.guarantees.losses import loss_of

CASES = [(0.5, 1), (1.0, 1), (2.5, 2), (4.0, 3)]


def profile(sigma: float, sensitivity: int, shift: int, x: float) -> mpmath.mpf:
    """max(P − e^x Q, 0) summed over outcomes, in 40 digits."""
    with mpmath.workdps(40):
        s = mpmath.mpf(sigma) * sensitivity
        far = int(30 * s) + 40
        g = {z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * s**2)) for z in range(-far, far + 1)}
        total = mpmath.fsum(g.values())
        factor = mpmath.exp(mpmath.mpf(x))
        gains = (
            p - factor * mpmath.exp(-(mpmath.mpf(z - shift) ** 2) / (2 * s**2))
            for z, p in g.items()
        )
        return mpmath.fsum(gain for gain in gains if gain > 0) / total


def of_atoms(atoms, x: float) -> float:
    gains = np.maximum(-np.expm1(x - atoms.losses), 0.0)
    return float(np.sum(atoms.masses * gains)) + atoms.infinity


@pytest.mark.parametrize(("sigma", "sensitivity"), CASES)
@pytest.mark.parametrize("x", [-1.0, 0.0, 0.3, 1.1, 4.0])
def test_atoms_lie_on_their_sides(sigma: float, sensitivity: int, x: float) -> None:
    guarantee = fa.DiscreteGaussian(sigma, sensitivity)
    exact = profile(sigma, sensitivity, sensitivity, x)
    loss = loss_of(guarantee)
    reach = loss.reach(1e-20)
    above, below = loss.atoms_above(1e-3, reach), loss.atoms_below(1e-3, reach)
    assert of_atoms(below, x) <= exact + mpmath.mpf(10) ** -15
    assert of_atoms(above, x) >= exact - mpmath.mpf(10) ** -15
    assert of_atoms(above, x) <= exact * (1 + 1e-6) + 1e-12
    assert of_atoms(below, x) >= exact * (1 - 1e-2) - 1e-9


@pytest.mark.parametrize(("sigma", "sensitivity"), [(1.0, 3), (2.0, 2)])
@pytest.mark.parametrize("x", [0.0, 0.2, 0.9])
def test_the_largest_shift_dominates(sigma: float, sensitivity: int, x: float) -> None:
    profiles = [profile(sigma, sensitivity, shift, x) for shift in range(sensitivity + 1)]
    assert profiles == sorted(profiles)


def test_two_coordinates_against_enumeration() -> None:
    sigma, x = 1.5, 0.8
    s = sigma
    z = np.arange(-30, 31)
    p = np.exp(-0.5 * (z / s) ** 2)
    p /= p.sum()
    q = np.exp(-0.5 * ((z - 1) / s) ** 2)
    q /= q.sum()
    exact = float(np.maximum(np.outer(p, p) - np.exp(x) * np.outer(q, q), 0).sum())
    bracket = fa.compose([(fa.DiscreteGaussian(sigma), 2)], tolerance=1e-3).delta_at(x)
    assert bracket.lower <= exact * (1 + 1e-12)
    assert exact <= bracket.upper * (1 + 1e-12)
    assert bracket.width < 2e-2


def test_it_is_close_to_but_not_the_continuous_one() -> None:
    discrete = fa.compose([(fa.DiscreteGaussian(3.0), 10)]).epsilon_at(1e-6)
    continuous = fa.compose([(fa.Gaussian(3.0), 10)]).epsilon_at(1e-6)
    concentrated = fa.compose([(fa.ZeroConcentratedDP(0.5 / 9), 10)]).epsilon_at(1e-6)
    assert continuous.upper < discrete.lower < 1.001 * continuous.upper
    assert discrete.upper < concentrated.upper


@pytest.mark.parametrize("sensitivity", [0, -1, 1.5, True, "1"])
def test_the_sensitivity_is_a_whole_number(sensitivity: object) -> None:
    with pytest.raises(fa.InvalidInput, match="sensitivity must be a whole number"):
        fa.DiscreteGaussian(1.0, sensitivity)


def test_too_much_noise_to_enumerate_is_said_so() -> None:
    bracket = fa.compose([(fa.DiscreteGaussian(1e7), 100)]).epsilon_at(1e-12)
    assert bracket.upper >= fa.gaussian_epsilon(1e-12, noise_multiplier=1e7, count=100).lower
    assert "limit reached" in bracket.theorem
