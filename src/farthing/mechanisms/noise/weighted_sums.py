"""Weighted sums of independent noise: the error of what is computed linearly from noisy numbers.

Let S = Σ w·(a sum of draws of whole noise). Pr[|S| > x] is that of continuous noise (Laplace of the
scale 1/(2·tanh(1/2s)), slightly above s; normal with the variance of the whole noise and 1/12) at
x less half a step for each different |w| (Theorem 17 of docs/theory/mechanisms.md). A sum of
Laplace and normal numbers has the characteristic function φ(t) = e^(−σ²t²/2)·Π (1 + b²t²)^−n, which
is inverted numerically; a few Laplace numbers alone have a closed form (`laplace_tail`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from flint import arb, ctx

from farthing.mechanisms.noise.discrete import (
    CoordinateNoise,
    DiscreteLaplaceNoise,
    laplace_sum_tail,
)
from farthing.numerics.ball import PRECISION, up
from farthing.numerics.search import turning_point

#: A weight, the noise that it multiplies, and how many draws of it are added up.
Term: TypeAlias = tuple[float, CoordinateNoise, int]

#: The inversion sums this many values of φ over one period, in standard deviations of S; what it
#: leaves out is below the error.
_POINTS, _PERIOD, _ERROR = 2048, 60.0, 2e-7
#: Up to so many Laplace numbers have a closed form that is quick: equal ones, and any.
_FEW, _FEW_SCALES = 64, 6
#: Scales of Laplace noise are told apart by this part of them; that loses _BITS bits each.
_APART, _BITS = 2.0**-12, 16


def outside(terms: Iterable[Term], at: float) -> float:
    """Pr[|S| > at], or slightly more."""
    merged: dict[tuple[float, CoordinateNoise], int] = {}
    for weight, noise, times in terms:
        if weight != 0:
            merged[abs(weight), noise] = merged.get((abs(weight), noise), 0) + times
    at -= sum({weight for weight, _ in merged}) / 2
    if at <= 0 or not merged:
        return float(at < 0 or bool(merged))
    variance, scales = 0.0, dict[float, int]()
    for (weight, noise), times in merged.items():
        if isinstance(noise, DiscreteLaplaceNoise):
            scale = weight * continuous_scale(noise)
            scales[scale] = scales.get(scale, 0) + times
        else:
            variance += weight**2 * times * (_variance(noise) + 1 / 12)
    return _tail(variance, scales, at)


def half_width(terms: Iterable[Term], confidence: float) -> float:
    """A w with Pr[|S| ≤ w] ≥ confidence; for one draw the smallest."""
    listed = tuple((weight, noise, times) for weight, noise, times in terms if weight != 0)
    if not listed:
        return 0.0
    if len(listed) == 1 and listed[0][2] == 1:
        weight, noise, _ = listed[0]
        return abs(weight) * noise.half_width(confidence)
    high = math.sqrt(sum(w**2 * times * (_variance(noise) + 1) for w, noise, times in listed))
    while outside(listed, high) > 1 - confidence:
        high *= 2
    return turning_point(
        lambda width: outside(listed, width) > 1 - confidence, 0.0, high, width=1e-9
    )[1]


@lru_cache(maxsize=1024)
def _variance(noise: CoordinateNoise) -> float:
    return noise.variance


def _tail(variance: float, scales: dict[float, int], at: float) -> float:
    """Pr[|S| > at] of a normal number and Laplace numbers of these scales, each so often."""
    if not scales:
        return math.erfc(at / math.sqrt(2 * variance))
    if variance == 0 and len(scales) == 1:
        ((scale, times),) = scales.items()
        if times <= _FEW:
            return min(1.0, laplace_sum_tail(times, at / scale))
    if variance == 0 and sum(scales.values()) <= _FEW_SCALES:
        return laplace_tail([scale for scale, times in scales.items() for _ in range(times)], at)
    deviation = math.sqrt(variance + sum(2 * n * b**2 for b, n in scales.items()))
    x = at / deviation
    step = 2 * math.pi / max(_PERIOD, 4 * x)
    t = step * np.arange(1, _POINTS + 1)
    squares = (t / deviation) ** 2
    logarithm = -variance * squares / 2
    for scale, times in scales.items():
        logarithm -= times * np.log1p(scale**2 * squares)
    inside = 2 / math.pi * step * (x / 2 + float((np.sin(x * t) / t * np.exp(logarithm)).sum()))
    return min(1.0, max(0.0, 1 - inside) + _ERROR)


def continuous_scale(noise: DiscreteLaplaceNoise) -> float:
    """The scale of Laplace noise that is no less spread than this noise and a uniform number of
    [−½, ½]: 1/(2·tanh(1/2s)), slightly above s (Lemma D of docs/theory/mechanisms.md)."""
    return 1 / (2 * math.tanh(1 / (2 * float(noise.scale))))


def laplace_tail(scales: Sequence[float], distance: float) -> float:
    """At least Pr[|S| > distance] for a sum S of independent Laplace numbers of these scales.

    Σᵢ Aᵢ·e^(−distance/bᵢ) with Aᵢ = Π_{j≠i} 1/(1 − (bⱼ/bᵢ)²), by partial fractions of the
    characteristic function Π 1/(1 + bᵢ²t²). Scales that are too near to one another are made
    larger, which makes no |S| smaller.
    """
    apart: list[float] = []
    for scale in sorted(scales):
        apart.append(max(scale, apart[-1] * (1 + _APART)) if apart else scale)
    with ctx.workprec(PRECISION + _BITS * len(apart)):
        squares = [arb(scale) ** 2 for scale in apart]
        total = arb(0)
        for i, scale in enumerate(apart):
            share = arb(1)
            for j, square in enumerate(squares):
                if j != i:
                    share *= squares[i] / (squares[i] - square)
            total += share * (-arb(distance) / arb(scale)).exp()
        return min(max(up(total), 0.0), 1.0)
