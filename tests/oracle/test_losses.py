"""Discretised losses lie on the side of the true profile that they claim."""

import numpy as np
import pytest

import farthing as fa
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Atoms, merged
from farthing.guarantees.losses.randomized_response import binomial_atoms
from farthing.numerics.ball import in_balls
from oracle.reference import atoms_profile, gaussian, laplace, mp, pure_equal, ranged_at

CASES = [
    (fa.Laplace(0.5), 0.1, lambda x: laplace(0.5, x)),
    (fa.Laplace(0.5), 0.07, lambda x: laplace(0.5, x)),
    (fa.Laplace(0.5), 0.9, lambda x: laplace(0.5, x)),
    (fa.Laplace(3.0), 0.25, lambda x: laplace(3.0, x)),
    (fa.Gaussian(1.0), 0.1, lambda x: gaussian(1.0, x)),
    (fa.Gaussian(0.3), 0.4, lambda x: gaussian(0.3, x)),
    (fa.Gaussian(20.0), 0.003, lambda x: gaussian(20.0, x)),
    (
        fa.PureDP(0.7),
        0.2,
        lambda x: pure_equal(0.7, 1, x) if abs(x) < 0.7 else max(-mp.expm1(x), 0),
    ),
]
TINY = 1e-12


def _points(step, reach):
    rng = np.random.default_rng(2)
    spread = rng.uniform(-1.3 * reach, 1.3 * reach, 40)
    return [float(x) for x in (*spread, 0.0, step, -step, reach, -reach, 3 * step)]


@in_balls
def _above(guarantee, step):
    reach = loss_of(guarantee).reach(TINY)
    return loss_of(guarantee).atoms_above(step, reach), reach


@in_balls
def _below(guarantee, step):
    reach = loss_of(guarantee).reach(TINY)
    return loss_of(guarantee).atoms_below(step, reach), reach


@pytest.mark.parametrize(
    ("guarantee", "step", "profile"),
    CASES,
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_atoms_above(guarantee, step, profile):
    atoms, reach = _above(guarantee, step)
    assert np.all(atoms.masses >= 0)
    for x in _points(step, reach):
        assert atoms_profile(atoms, x) >= profile(mp.mpf(x))
        # chords cost second order in the step, relative to the width of the loss
        assert atoms_profile(atoms, x) <= profile(mp.mpf(x)) + min(1.0, step**2 / reach) + TINY


@pytest.mark.parametrize(
    ("guarantee", "step", "profile"),
    CASES[:-1],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_atoms_below(guarantee, step, profile):
    atoms, reach = _below(guarantee, step)
    assert atoms.infinity == 0
    for x in _points(step, reach):
        assert atoms_profile(atoms, x) <= profile(mp.mpf(x))
        assert atoms_profile(atoms, x) >= profile(mp.mpf(x)) - min(1.0, step**2 / reach) - 10 * TINY


@pytest.mark.parametrize(
    ("guarantee", "step", "profile"),
    CASES,
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@in_balls
def test_beyond_the_reach_hardly_anything_is_left(guarantee, step, profile):
    assert step > 0
    assert profile(mp.mpf(loss_of(guarantee).reach(TINY))) <= TINY


RESPONSES = [
    (1, 0.5, None),
    (7, 0.5, None),
    (400, 0.02, None),
    (1, 1.0, 0.3),
    (9, 1.0, 0.61),
    (300, 0.1, 0.052),
]


@pytest.mark.parametrize(("count", "epsilon", "t"), RESPONSES)
@pytest.mark.parametrize("step", [1e-6, 0.03, 0.4])
@in_balls
def test_many_responses_at_once(count, epsilon, t, step):
    above, below = binomial_atoms(count=count, epsilon=epsilon, t=t, step=step)
    rng = np.random.default_rng(4)
    for x in [*rng.uniform(-1, 1, 12) * min(count * epsilon, 6.0), 0.0]:
        x = float(x)
        exact = pure_equal(epsilon, count, x) if t is None else ranged_at(epsilon, count, t, x)
        assert atoms_profile(above, x) >= exact
        assert atoms_profile(below, x) <= exact
        assert atoms_profile(above, x) <= exact + mp.mpf("1e-11")
        assert atoms_profile(below, x) >= exact - min(mp.mpf(1), mp.mpf(step)) - mp.mpf("1e-11")


@pytest.mark.parametrize("t", [1e-300, 1e-17, 1 - 1e-16])
@in_balls
def test_a_choice_near_the_end_reveals_next_to_nothing(t):
    """At t = 0 and at t = ε the answer is the same for both neighbours."""
    above, below = binomial_atoms(count=3, epsilon=1.0, t=t, step=0.1)
    for x in (-0.5, 0.0, 0.4):
        exact = max(-mp.expm1(mp.mpf(x)), mp.mpf(0))
        assert atoms_profile(above, x) >= exact
        assert atoms_profile(below, x) <= exact + mp.mpf("1e-15")


@pytest.mark.parametrize("step", [0.01, 0.2, 1.5])
def test_merging_outcomes_is_post_processing(step):
    rng = np.random.default_rng(6)
    losses = np.sort(rng.uniform(-2, 2, 40))
    atoms = Atoms(losses, rng.dirichlet(np.ones(40)))
    coarse = merged(atoms, step)
    assert len(coarse.losses) <= len(losses)
    assert np.sum(coarse.masses) == pytest.approx(1.0, rel=1e-11)
    for x in rng.uniform(-2.5, 2.5, 40):
        assert atoms_profile(coarse, float(x)) <= atoms_profile(atoms, float(x))
