"""Intervals hold for what they claim: after thresholds, after choosing the largest, and together.

Coverage after a threshold is computed from the exact law, not sampled; the rest is sampled, at
rates that a too narrow variant fails.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from farthing.guarantees.kinds import DiscreteGaussian, PureDP
from farthing.mechanisms import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Histogram,
    KnownCounts,
    Largest,
    Repeated,
    ThresholdedCounts,
    UnknownCounts,
)
from farthing.mechanisms.counts.unknown_counts import intervals_after
from farthing.mechanisms.noise.discrete import TruncatedGaussianNoise
from farthing.mechanisms.protocol import joint_level

LIMITS = {"contribution_limit": 1, "per_key_limit": 1}
NOISES = {
    "Laplace": DiscreteLaplaceNoise(Fraction(5)),
    "Gaussian": DiscreteGaussianNoise(Fraction(36)),
    "truncated": TruncatedGaussianNoise(DiscreteGaussianNoise(Fraction(36)), 25),
}
THRESHOLD = 60


def law(noise, true: int) -> tuple[np.ndarray, np.ndarray]:
    """Released values of a count that is `true`, and the probability of each given release."""
    values = np.arange(THRESHOLD, max(true, THRESHOLD) + 160)
    tails = np.array([float(noise.tail(int(v) - true)) for v in (*values, values[-1] + 1)])
    return values, (tails[:-1] - tails[1:]) / tails[0]


def coverage(noise, true: int, intervals) -> float:
    values, chances = law(noise, true)
    ends = np.array(intervals(values.tolist()))
    return float(chances[(ends[:, 0] <= true) & (true <= ends[:, 1])].sum())


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_after_a_threshold_they_hold_given_release(name: str, confidence: float) -> None:
    noise = NOISES[name]

    def honest(values):
        return intervals_after(noise, THRESHOLD, values, confidence)

    def narrower(values):
        ends = zip(values, honest(values), strict=True)
        return [(v - 0.7 * (v - low), v + 0.7 * (high - v)) for v, (low, high) in ends]

    width = noise.half_width(confidence)
    reachable = THRESHOLD - 24 if name == "truncated" else 20
    for true in (reachable, 45, 55, 59, 60, 61, 70, 90, 200):
        assert coverage(noise, true, honest) >= confidence - 1e-12, true
    below = coverage(noise, 40, lambda values: [(v - width, v + width) for v in values])
    assert below < confidence - 0.03, "what came out large by chance is far from the truth"
    assert coverage(noise, 200, narrower) < confidence


@pytest.mark.parametrize("name", NOISES)
def test_far_above_the_threshold_it_is_forgotten(name: str) -> None:
    noise = NOISES[name]
    width = noise.half_width(0.95)
    for value in (10 * THRESHOLD, 100 * THRESHOLD):
        ((low, high),) = intervals_after(noise, THRESHOLD, [value], 0.95)
        assert value - low in (width, width + 1)
        assert high - value in (width, width + 1)
    for value in range(THRESHOLD, 300):
        ((low, high),) = intervals_after(noise, THRESHOLD, [value], 0.95)
        assert 1 <= low <= high <= value + width + 1


def spread(rate: float, trials: int) -> float:
    return 4 * np.sqrt(rate * (1 - rate) / trials)


@pytest.mark.parametrize(
    "mechanism",
    [
        Largest(KnownCounts(coordinate=PureDP(0.2), **LIMITS), 3),
        Largest(ThresholdedCounts(coordinate=PureDP(0.2), delta=1e-2, **LIMITS), 3),
        Largest(ThresholdedCounts(coordinate=DiscreteGaussian(5.0), delta=1e-2, **LIMITS), 3),
        Largest(UnknownCounts(coordinate=PureDP(0.2), delta=1e-2, candidates=40, **LIMITS), 3),
    ],
)
def test_the_largest_hold_although_they_were_chosen_by_their_noise(mechanism) -> None:
    """Forty equal counts: the three that come out largest have the largest noise of all."""
    histogram = Histogram(range(40), [100] * 40)
    trials, held, one_by_one = 400, 0, 0
    width = mechanism.mechanism.noise.half_width(0.9)
    for _ in range(trials):
        release = mechanism.run(histogram)
        errors = mechanism.errors(release, 0.9)
        counts = release.counts
        ends = (
            [(c - errors, c + errors) for c in counts] if not isinstance(errors, tuple) else errors
        )
        held += all(low <= 100 <= high for low, high in ends)
        one_by_one += all(abs(c - 100) <= width for c in counts)
    assert held / trials >= 0.9 - spread(0.9, trials)
    assert one_by_one / trials < 0.5, "one by one they would mislead"


@pytest.mark.parametrize("times", [1, 4])
def test_for_all_bars_together(times: int) -> None:
    mechanism = Repeated(KnownCounts(coordinate=PureDP(0.2), **LIMITS), times)
    histogram = Histogram(range(30), [50] * 30)
    trials = 800
    most = np.array(
        [np.abs(np.array(mechanism.run(histogram).counts) - 50).max() for _ in range(trials)]
    )
    release = mechanism.run(histogram)
    together = mechanism.errors(release, 0.9, together=True)
    single = mechanism.errors(release, 0.9)
    assert (most <= together).mean() >= 0.9 - spread(0.9, trials)
    assert (most <= 0.8 * together).mean() < 0.9 - spread(0.9, trials)
    assert (most <= single).mean() < 0.2


def test_together_after_a_threshold() -> None:
    mechanism = ThresholdedCounts(coordinate=PureDP(0.2), delta=1e-2, **LIMITS)
    true = mechanism.threshold + 3
    histogram = Histogram(range(30), [true] * 30)
    trials, held, single = 400, 0, 0
    for _ in range(trials):
        release = mechanism.run(histogram)
        held += all(a <= true <= b for a, b in mechanism.errors(release, 0.9, together=True))
        single += all(a <= true <= b for a, b in mechanism.errors(release, 0.9))
    assert held / trials >= 0.9 - spread(0.9, trials)
    assert single / trials < 0.5


def test_joint_levels() -> None:
    assert joint_level(0.95, 1) == 0.95
    for count in (2, 33, 10**6):
        assert joint_level(0.95, count) ** count >= 0.95
        assert joint_level(0.95, count) ** count == pytest.approx(0.95)
    assert joint_level(0.95, 10**30) < 1
