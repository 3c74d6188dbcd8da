"""Ordinary distributions of dp-accounting were refused: their masses at very negative losses,
rounded up, weighed more than 1 under the other neighbour."""

from __future__ import annotations

import random

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import farthing as fa
from farthing.composition.adaptive.operators import loss_distribution_above
from farthing.exchange import from_dp_accounting, to_dp_accounting
from farthing.numerics.curves import Chords, Grid

INTERVAL = 1e-3
ORDINARY = {
    "gaussian 1": lambda: pld.from_gaussian_mechanism(1.0, value_discretization_interval=INTERVAL),
    "gaussian 0.5": lambda: pld.from_gaussian_mechanism(
        0.5, value_discretization_interval=INTERVAL
    ),
    "gaussian 0.3": lambda: pld.from_gaussian_mechanism(
        0.3, value_discretization_interval=INTERVAL
    ),
    "20 laplace 1": lambda: pld.from_laplace_mechanism(
        1.0, value_discretization_interval=INTERVAL
    ).self_compose(20),
    "sampled gaussian": lambda: pld.from_gaussian_mechanism(
        0.7, sampling_prob=0.2, value_discretization_interval=INTERVAL
    ).self_compose(10),
    "randomized response": lambda: pld.from_randomized_response(
        0.1, 5, value_discretization_interval=INTERVAL
    ),
}


def profile(loss: fa.LossDistribution | fa.TwoWayLoss, x: float) -> float:
    """δ(x) of the loss, or of the worse of two, summed in floats: all terms are positive."""
    if isinstance(loss, fa.TwoWayLoss):
        return max(profile(loss.with_unit, x), profile(loss.without_unit, x))
    beyond = np.array(loss.losses) > x
    excess = x - np.array(loss.losses)[beyond]
    return loss.infinity + float(np.sum(np.array(loss.masses)[beyond] * -np.expm1(excess)))


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_distributions_come_in_and_stay_above(name):
    theirs = ORDINARY[name]()
    guarantee = from_dp_accounting(theirs)
    reach = theirs.get_epsilon_for_delta(1e-12)
    for x in np.linspace(-1.1 * reach, 1.1 * reach, 301) + INTERVAL / 3:
        # their masses add up to a little more than 1, which shows near δ = 1 only
        slack = 1e-10 if x >= 0 else 1e-8
        assert profile(guarantee, x) >= theirs.get_delta_for_epsilon(x) * (1 - slack)
    ours = fa.compose([guarantee], tolerance=1e-2).epsilon_at(1e-6)
    stated = theirs.get_epsilon_for_delta(1e-6)
    assert stated * (1 - 1e-9) <= ours.upper <= 1.01 * stated


@pytest.mark.parametrize("sigma", [1.0, 0.5, 0.3])
def test_there_and_back_and_there_stays_above_the_truth(sigma):
    exact = fa.gaussian_epsilon(1e-6, noise_multiplier=sigma)
    theirs = pld.from_gaussian_mechanism(sigma, value_discretization_interval=INTERVAL)
    again = to_dp_accounting([from_dp_accounting(theirs)], interval=INTERVAL, tolerance=1e-2)
    assert exact.lower <= again.get_epsilon_for_delta(1e-6) <= 1.02 * exact.upper
    twice = from_dp_accounting(again.self_compose(2), delta=1e-10)
    two = fa.gaussian_epsilon(1e-6, noise_multiplier=sigma, count=2)
    assert fa.compose([twice], tolerance=1e-2).epsilon_at(1e-6).upper >= two.lower


#: shares of randomized responses: a profile in closed form
Mixture = list[tuple[float, float]]


def some_profile(source: random.Random) -> tuple[Mixture, Chords]:
    """A random mixture, and chords through values of its profile that erred upwards."""
    grid = Grid(10 ** source.uniform(-3, 0), source.randint(0, 60), source.randint(1, 60))
    reach = grid.above * grid.step
    shares = np.array([source.random() for _ in range(source.randint(1, 6))])
    shares = shares / (shares.sum() * (1 + source.random()))
    mixture = [(source.uniform(0.01, 1.2) * reach, float(share)) for share in shares]
    values = np.array([float(mixed_profile(mixture, x)) for x in grid.points()])
    noise = np.array([source.random() for _ in values]) * 10 ** source.uniform(-16, -10)
    values = np.maximum.accumulate((values * (1 + noise))[::-1])[::-1]
    return mixture, Chords(grid, np.minimum(values + source.choice([0.0, 1e-12, 1e-3]), 1.0))


def mixed_profile(mixture: Mixture, x: float) -> mp.mpf:
    nothing = max(-mp.expm1(x), mp.mpf(0))
    total = nothing
    for epsilon, share in mixture:
        response = max(-mp.expm1(mp.mpf(x) - epsilon), 0) / (1 + mp.exp(-epsilon))
        total += share * (max(response, nothing) - nothing)
    return total


def test_hundreds_of_random_profiles_are_dominated():
    source = random.Random(20)
    with mp.workdps(40):
        for _ in range(300):
            mixture, chords = some_profile(source)
            loss = loss_distribution_above(chords)
            points = chords.grid.points()
            places = [*source.sample(points.tolist(), min(4, len(points))), points[0] - 3.0]
            places += [source.uniform(points[0] - 2, points[-1]) for _ in range(4)]
            for x in places:
                value = loss.infinity + mp.fsum(
                    m * -mp.expm1(mp.mpf(x) - at)
                    for at, m in zip(loss.losses, loss.masses, strict=True)
                    if at > x
                )
                value *= 1 + mp.mpf("1e-13")
                assert value >= mixed_profile(mixture, x)
                if x >= loss.losses[0]:
                    assert value >= exact_chord(chords, x)


def exact_chord(chords: Chords, x: float) -> mp.mpf:
    points = chords.grid.points()
    if x >= points[-1]:
        return mp.mpf(chords.values[-1])
    if x < points[0]:
        left, first = (mp.mpf(0), mp.mpf(1)), (mp.exp(points[0]), mp.mpf(chords.values[0]))
    else:
        place = int(np.searchsorted(points, x, side="right")) - 1
        left, first = ((mp.exp(points[i]), mp.mpf(chords.values[i])) for i in (place, place + 1))
    return left[1] + (first[1] - left[1]) * (mp.exp(x) - left[0]) / (first[0] - left[0])


def test_a_profile_that_proves_nothing_is_refused():
    with pytest.raises(fa.Unattainable, match="proves nothing"):
        loss_distribution_above(Chords(Grid(0.1, 3, 3), np.ones(7)))
    with pytest.raises(fa.Unsupported, match="no epsilon up to"):
        from_dp_accounting(pld.from_gaussian_mechanism(0.02, value_discretization_interval=0.1))
