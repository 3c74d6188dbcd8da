"""Buying a count n times and averaging: the error of the mean.

A discrete Laplace number is ⌊E⌋ − ⌊E′⌋ for two exponential times, so it lies within 1 of the
continuous one E − E′, and the mean of n of them within 1 of the mean of n continuous ones.
The sum S of n continuous ones of scale 1 is a difference of two Gamma(n) times:

    Pr[|S| > t] = 2·e^−t · Σ_{m<n} t^m/m! · Σ_{j<n−m} C(n−1+j, j)/2^{n+j},
    E|S| = 2n·C(2n, n)/4^n.

A discrete Gaussian is σ-subgaussian, so the mean of n exceeds t with probability at most
2·e^{−nt²/2σ²}.
"""

from __future__ import annotations

import math

from farthing.mechanisms import Accuracy, DiscreteGaussian, DiscreteLaplace
from farthing.mechanisms.accuracy import noise_accuracy


def mean_accuracy(
    noise: DiscreteLaplace | DiscreteGaussian, repeats: int, confidence: float
) -> Accuracy:
    """Accuracy of the mean of `repeats` counts, each with this noise."""
    one = noise_accuracy(noise, confidence)
    if repeats == 1:
        return one
    if isinstance(noise, DiscreteGaussian):
        sigma = math.sqrt(noise.sigma_squared)
        width = sigma * math.sqrt(2 * math.log(2 / (1 - confidence)) / repeats)
        return Accuracy(one.expected_error / math.sqrt(repeats), width, confidence)
    scale = float(noise.scale) / repeats
    expected = 2 * repeats * math.comb(2 * repeats, repeats) / 4**repeats * scale
    return Accuracy(expected, _sum_half_width(repeats, confidence) * scale + 1, confidence)


def laplace_sum_tail(repeats: int, at: float) -> float:
    """Pr[|S| > at] for the sum of `repeats` continuous Laplace numbers of scale 1."""
    total = 0.0
    for m in range(repeats):
        inner = sum(math.comb(repeats - 1 + j, j) / 2 ** (repeats + j) for j in range(repeats - m))
        total += math.exp(m * math.log(at) - at - math.lgamma(m + 1)) * inner
    return 2 * total


def _sum_half_width(repeats: int, confidence: float) -> float:
    low, high = 1e-9, 1.0
    while laplace_sum_tail(repeats, high) > 1 - confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if laplace_sum_tail(repeats, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high
