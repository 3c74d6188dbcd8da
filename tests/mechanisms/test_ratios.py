"""Intervals of a ratio of two noisy totals: exact probabilities, and how often they hold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.guarantees.kinds import DiscreteGaussian, Gaussian, PureDP
from farthing.mechanisms.counts.known_counts import NoisyTotals, difference_half_width
from farthing.mechanisms.noise.discrete import (
    CoordinateNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
)
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise


def probabilities(noise: CoordinateNoise, reach: int) -> np.ndarray:
    """Pr[Z = z] for |z| ≤ reach, by the tails."""
    tails = [float(noise.tail(z)) for z in range(reach + 2)]
    half = [tails[z] - tails[z + 1] for z in range(1, reach + 1)]
    return np.array([*reversed(half), 1 - 2 * tails[1], *half])


FAMILIES = {
    "laplace": lambda s: DiscreteLaplaceNoise(Fraction(s)),
    "discrete": lambda s: DiscreteGaussianNoise(Fraction(s) ** 2),
    "rounded": lambda s: RoundedGaussianNoise(Fraction(s)),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scales", [(40, 1), (40, 4), (60, 12), (9, 9)])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_half_widths_of_differences(
    family: str, scales: tuple[int, int], share: float, confidence: float
) -> None:
    """Added up over all pairs of values: never below the confidence, and not far above it."""
    one, other = (FAMILIES[family](scale) for scale in scales)
    weight = share * scales[0] / scales[1]
    width = difference_half_width(one, other, weight, confidence)
    reaches = [math.ceil(scale * (30 if family == "laplace" else 9)) for scale in scales]
    first, second = (probabilities(n, r) for n, r in zip((one, other), reaches, strict=True))
    values = np.arange(-reaches[0], reaches[0] + 1)
    weighed = weight * np.arange(-reaches[1], reaches[1] + 1)
    inside = np.abs(values[:, None] - weighed[None, :]) <= width
    held = float(first @ inside @ second)
    assert held >= confidence - 1e-9
    if share < 1 and scales[1] > 1:
        assert held <= confidence + 0.04


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
