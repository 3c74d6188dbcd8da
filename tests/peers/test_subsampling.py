"""Samples beside dp-accounting and the PRV accountant: 500 random cases must meet our bracket."""

from __future__ import annotations

import random

import prv_accountant as prv
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import farthing as fa

#: Blocks of cases, so that a failure names a few of them.
BLOCKS, EACH = 20, 20
PRV_BLOCKS, PRV_EACH = 10, 10


def some_case(source: random.Random) -> tuple[float, float, int, float]:
    """Noise, rate, steps, δ: few steps mostly, some hundreds at times."""
    sigma = 10 ** source.uniform(-0.2, 0.6)
    rate = 10 ** source.uniform(-2.5, -0.1)
    steps = int(10 ** source.uniform(0, 1.5 if source.random() < 0.8 else 2.7))
    return sigma, rate, steps, 10 ** source.uniform(-9, -3)


def ours(guarantee: fa.Guarantee, steps: int, delta: float) -> fa.Bracket:
    return fa.compose([(guarantee, steps)], tolerance=5e-3).epsilon_at(delta)


def theirs(make, delta: float, steps: int) -> tuple[float, float]:
    """(optimistic, pessimistic)."""
    return tuple(
        make(
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
            value_discretization_interval=2e-3,
        )
        .self_compose(steps)
        .get_epsilon_for_delta(delta)
        for pessimistic in (False, True)
    )


@pytest.mark.parametrize("block", range(BLOCKS))
def test_dp_accounting(block: int) -> None:
    """Three Gaussian mechanisms to one of Laplace; their truncation is allowed 1e-9 relative."""
    source = random.Random(block)
    for case in range(EACH):
        sigma, rate, steps, delta = some_case(source)
        gaussian = case % 4 != 0
        inner = fa.Gaussian(sigma) if gaussian else fa.Laplace(1 / sigma)
        make = pld.from_gaussian_mechanism if gaussian else pld.from_laplace_mechanism

        def sampled(make=make, sigma=sigma, rate=rate, **how):
            return make(sigma, sampling_prob=rate, **how)

        low, high = theirs(sampled, delta, steps)
        bracket = ours(fa.Subsampled(inner, rate), steps, delta)
        seen = (inner, rate, steps, delta, bracket, low, high)
        assert bracket.lower <= high * (1 + 1e-9) + 1e-12, seen
        assert low <= bracket.upper * (1 + 1e-9) + 1e-12, seen
        assert bracket.width <= 0.02 or bracket.upper <= 0.05, seen


@pytest.mark.parametrize("block", range(PRV_BLOCKS))
def test_prv_accountant(block: int) -> None:
    source = random.Random(1000 + block)
    met = 0
    while met < PRV_EACH:
        sigma, rate, steps, delta = some_case(source)
        try:
            accountant = prv.PRVAccountant(
                prv.PoissonSubsampledGaussianMechanism(rate, sigma),
                max_self_compositions=steps,
                eps_error=0.05,
                delta_error=delta / 1000,
            )
        except RuntimeError:  # it gives up where its discretisation misses the mean
            continue
        met += 1
        low, _, high = accountant.compute_epsilon(delta, steps)
        bracket = ours(fa.Subsampled(fa.Gaussian(sigma), rate), steps, delta)
        assert bracket.lower <= high, (sigma, rate, steps, delta, bracket, low, high)
        assert low <= bracket.upper, (sigma, rate, steps, delta, bracket, low, high)
