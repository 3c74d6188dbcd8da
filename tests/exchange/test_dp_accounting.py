"""Blocks that join dp-accounting's accountant, and distributions that come from there."""

from __future__ import annotations

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import farthing as fa
from farthing.exchange import from_dp_accounting, to_dp_accounting

SELECTIONS = [(fa.BoundedRange(0.1), 40)]
INTERVAL = 1e-3


def test_a_block_keeps_its_epsilon() -> None:
    theirs = to_dp_accounting(SELECTIONS, interval=INTERVAL).get_epsilon_for_delta(1e-6)
    ours = fa.compose(SELECTIONS).epsilon_at(1e-6)
    assert ours.lower <= theirs <= 1.005 * ours.upper


def test_a_block_composes_inside_their_accountant() -> None:
    noise = pld.from_gaussian_mechanism(5.0, value_discretization_interval=INTERVAL)
    together = to_dp_accounting(SELECTIONS, interval=INTERVAL).compose(noise)
    ours = fa.compose([fa.Gaussian(5.0), *SELECTIONS]).epsilon_at(1e-6)
    assert ours.lower <= together.get_epsilon_for_delta(1e-6) <= 1.01 * ours.upper


def test_reading_it_as_pure_dp_would_cost_much_more() -> None:
    block = to_dp_accounting(SELECTIONS, interval=INTERVAL).get_epsilon_for_delta(1e-6)
    assert block < 0.6 * fa.compose([(fa.PureDP(0.1), 40)]).epsilon_at(1e-6).lower


def test_leaks_become_infinite_loss() -> None:
    theirs = to_dp_accounting([(fa.ApproximateDP(0.1, 1e-7), 3)], interval=INTERVAL)
    assert theirs.get_delta_for_epsilon(5.0) == pytest.approx(3e-7, rel=1e-3)


def test_there_and_back() -> None:
    noise = pld.from_gaussian_mechanism(5.0, value_discretization_interval=1e-4)
    guarantee = from_dp_accounting(noise)
    ours = fa.compose([(guarantee, 4)]).epsilon_at(1e-6)
    exact = fa.gaussian_epsilon(1e-6, noise_multiplier=5.0, count=4)
    assert exact.lower <= ours.upper <= 1.003 * exact.upper


def test_the_worse_direction_counts() -> None:
    """Subsampled noise has different losses for adding and for removing a unit."""
    asymmetric = pld.from_gaussian_mechanism(
        1.0, sampling_prob=0.1, value_discretization_interval=1e-3
    )
    guarantee = from_dp_accounting(asymmetric)
    for epsilon in (0.1, 0.5, 1.0):
        ours = fa.compose([guarantee]).delta_at(epsilon).upper
        assert ours >= asymmetric.get_delta_for_epsilon(epsilon) * (1 - 1e-9)


def test_two_directions_stay_apart() -> None:
    """Composed by either of us, or first here and then there: the same number."""
    sampled = pld.from_gaussian_mechanism(
        1.0, sampling_prob=0.1, value_discretization_interval=1e-3
    )
    theirs = sampled.self_compose(50).get_epsilon_for_delta(1e-6)
    guarantee = from_dp_accounting(sampled, step=2e-3)
    assert isinstance(guarantee, fa.TwoWayLoss)
    exact = fa.compose([(fa.Subsampled(fa.Gaussian(1.0), 0.1), 50)]).epsilon_at(1e-6)
    ours = fa.compose([(guarantee, 50)], tolerance=1e-2).epsilon_at(1e-6)
    assert exact.lower <= ours.upper <= 1.01 * theirs
    block = to_dp_accounting([(fa.Subsampled(fa.Gaussian(1.0), 0.1), 25)], interval=INTERVAL)
    assert exact.lower <= block.self_compose(2).get_epsilon_for_delta(1e-6) <= 1.005 * exact.upper


def test_moments_only_have_no_distribution() -> None:
    with pytest.raises(fa.Unsupported, match="known worst case"):
        to_dp_accounting([fa.ZeroConcentratedDP(0.1)])


def test_a_broken_loss_distribution_is_refused() -> None:
    with pytest.raises(fa.InvalidInput, match="increase"):
        fa.LossDistribution((1.0, 0.0), (0.5, 0.5))
    with pytest.raises(fa.InvalidInput, match="add up to 1"):
        fa.LossDistribution((-0.1, 0.1), (0.4, 0.5))
    with pytest.raises(fa.InvalidInput, match="at most 1"):
        fa.LossDistribution((-1.0, 0.1), (0.5, 0.5))
