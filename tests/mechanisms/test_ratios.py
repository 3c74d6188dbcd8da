"""Combinations of noisy totals: exact probabilities, and how often intervals of ratios hold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.guarantees.kinds import DiscreteGaussian, Gaussian, PureDP
from farthing.mechanisms.counts.noisy_totals import NoisyTotals
from farthing.mechanisms.noise.discrete import (
    CoordinateNoise,
    DiscreteLaplaceNoise,
    laplace_sum_tail,
)
from farthing.mechanisms.noise.weighted_sums import laplace_tail


def probabilities(noise: CoordinateNoise, reach: int) -> np.ndarray:
    """Pr[Z = z] for |z| ≤ reach, by the tails."""
    tails = [float(noise.tail(z)) for z in range(reach + 2)]
    half = [tails[z] - tails[z + 1] for z in range(1, reach + 1)]
    return np.array([*reversed(half), 1 - 2 * tails[1], *half])


FAMILIES = {"laplace": PureDP(1.0), "rounded": Gaussian(1.0), "discrete": DiscreteGaussian(1.0, 9)}
WIDE = {"laplace": 30, "rounded": 9, "discrete": 9}
CASES = [
    ((40, 1), (1.0, 12.0)),
    ((40, 4), (1.0, -10.0)),
    ((60, 12), (1.0, 1.5)),
    ((9, 9), (1.0, -1.0)),
    ((9, 9), (0.3, 0.0)),
    ((30, 12, 5), (1.0, 2.0, -3.0)),
    ((12, 12, 12), (1.0, 1.0, 1.0)),
    ((40, 7, 2), (-0.5, 3.0, 0.0)),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("limits", "weights"), CASES)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_half_widths_of_combinations(
    family: str, limits: tuple[int, ...], weights: tuple[float, ...], confidence: float
) -> None:
    """Added up over all values: never below the confidence, and not far above it."""
    if family == "discrete" and set(limits) != {9}:
        limits = (9,) * len(limits)
    totals = NoisyTotals(coordinate=FAMILIES[family], limits=limits)
    width = totals.half_width(weights, confidence)
    sums, chances = np.zeros(1), np.ones(1)
    for noise, limit, weight in zip(totals.noises, limits, weights, strict=True):
        reach = math.ceil(limit * WIDE[family])
        values = weight * np.arange(-reach, reach + 1)
        pairs = (np.add.outer(sums, values).ravel(), np.outer(chances, probabilities(noise, reach)))
        sums, places = np.unique(np.round(pairs[0], 6), return_inverse=True)
        chances = np.bincount(places.ravel(), weights=pairs[1].ravel())
    held = float(chances[np.abs(sums) <= width].sum())
    assert held >= confidence - 1e-9
    assert held <= confidence + (0.03 if confidence > 0.9 else 0.07)
    beyond = float(chances[np.abs(sums) >= 0.7 * width].sum())
    assert totals.outside(weights, 0.7 * width) >= beyond - 1e-9


@pytest.mark.parametrize("times", [1, 2, 5, 27])
def test_tails_of_sums_of_laplace_numbers(times: int) -> None:
    """The closed form for equal scales, which are the hardest to tell apart."""
    for at in (0.5, 3.0, 3 * math.sqrt(2 * times), 40.0):
        wanted = laplace_sum_tail(times, at)
        assert wanted * (1 - 1e-9) <= laplace_tail([1.0] * times, at)
        assert laplace_tail([1.0] * times, at) <= min(1.0, wanted * (1 + 0.006 * at) + 1e-9)


def test_what_replaces_discrete_laplace_noise_is_no_narrower() -> None:
    """Pr[|Z + U| ≥ x] ≤ e^(−x/s′) for U uniform on [−½, ½], everywhere."""
    for scale in (0.2, 0.5, 1.0, 3.0, 50.0):
        noise = DiscreteLaplaceNoise(Fraction(scale))
        wider = 1 / (2 * math.tanh(1 / (2 * scale)))
        for x in np.linspace(0, 8 * scale + 3, 400):
            k, part = math.floor(x + 0.5), (x + 0.5) % 1.0
            tails = [1.0 if z == 0 else 2 * float(noise.tail(z)) for z in (k, k + 1)]
            at = (1 - part) * tails[0] + part * tails[1]
            if k == 0:  # between −½ and ½ the density is that of 0
                at = 1 - 2 * x * (1 - tails[1])
            assert at <= math.exp(-x / wider) + 1e-12


@pytest.mark.parametrize("coordinate", [PureDP(0.5), Gaussian(4.0), DiscreteGaussian(4.0, 1)])
@pytest.mark.parametrize("mean", [-0.9, 0.0, 0.4])
def test_coverage_of_a_ratio(coordinate: object, mean: float) -> None:
    """2000 draws are 3.5 deviations off at 0.933 and at 0.967."""
    reach = 1 if isinstance(coordinate, DiscreteGaussian) else 1000
    totals = NoisyTotals(coordinate=coordinate, limits=(1, reach))
    rows = 400
    true = (rows, round(mean * reach * rows))
    held = 0
    for _ in range(2000):
        drawn = totals.run(true).counts
        assert drawn is not None
        low, high = totals.ratio([float(n) for n in drawn], 0.95, reach)
        assert -reach <= low <= high <= reach
        held += low <= true[1] / rows <= high
    assert 0.933 <= held / 2000 <= 0.975


def test_nothing_is_known_of_a_ratio_without_rows() -> None:
    totals = NoisyTotals(coordinate=PureDP(0.5), limits=(1, 100))
    assert totals.ratio([0.0, 40.0], 0.95, 100) == (-100, 100)
    low, high = totals.ratio([500.0, 60_000.0], 0.95, 100)
    assert low <= high == 100
