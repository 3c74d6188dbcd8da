"""The inner loops of the operators, compiled once and cached on disk.

Those of bounded range take a profile padded by `origin` points on each side, on a grid of spacing
`step`, and work out, at each of the other points x_j, the best choice of t in

    q_t V(x_j − t) + (1 − q_t) V(x_j + ε − t),      q_t = (1 − e^{t−ε})/(1 − e^{−ε}).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from farthing.numerics.rounding import UNIT, FloatArray, IntArray

#: Points that are looked at together.
CHUNK = 512


@njit(cache=True, nogil=True)
def chord_supremum(
    values: FloatArray, origin: int, step: float, epsilon: float, cuts: FloatArray
) -> FloatArray:
    """The supremum over all t in [0, ε] for chords V.

    `cuts` are the t at which one of the two arguments crosses a grid point, from 0 to ε.
    Between two cuts the objective is A + Bw + C/w in w = e^t, and with bend = −C, tilt = −B
    (up to a common positive factor) it has an inner maximum only if w² = bend/tilt falls
    between them; otherwise the larger end counts. At t = 0 and t = ε the objective is V(x_j).

    Of CHUNK points at once the ends are compared, which the processor does several at a time;
    few of them have an inner maximum between the same two cuts.
    """
    width, norm, shrink = math.expm1(step), -math.expm1(-epsilon), math.exp(-epsilon)
    size = len(values) - 2 * origin
    best = values[origin : origin + size].copy()
    inside = np.empty(CHUNK, np.bool_)
    for start in range(0, size, CHUNK):
        top = best[start : start + CHUNK]
        some = len(top)
        for c in range(len(cuts) - 1):
            between = 0.5 * (cuts[c] + cuts[c + 1])
            near_cell = math.floor(-between / step)
            far_cell = math.floor((epsilon - between) / step)
            near_scale, far_scale = math.exp(-near_cell * step), math.exp(-far_cell * step)
            near_part = math.expm1(-cuts[c] - near_cell * step) / width
            far_part = math.expm1(epsilon - cuts[c] - far_cell * step) / width
            stay = -math.expm1(cuts[c] - epsilon) / norm
            leave = math.exp(cuts[c] - epsilon) * -math.expm1(-cuts[c]) / norm
            low, high = math.exp(2 * cuts[c]), math.exp(2 * cuts[c + 1])
            a, b = origin + start + near_cell, origin + start + far_cell
            nears, after_near = values[a : a + some], values[a + 1 : a + 1 + some]
            fars, after_far = values[b : b + some], values[b + 1 : b + 1 + some]
            maxima = 0
            for j in range(some):
                near, far = nears[j], fars[j]
                near_fall, far_fall = near - after_near[j], far - after_far[j]
                value = stay * (near - near_fall * near_part) + leave * (far - far_fall * far_part)
                top[j] = value if value > top[j] else top[j]
                bend = near_fall * near_scale - far_fall * far_scale
                tilt = shrink * (width * (near - far) + near_fall - far_fall)
                inner = (tilt * low < bend) & (bend < tilt * high)
                inside[j] = inner
                maxima += inner
            if maxima == 0:
                continue
            for j in range(some):
                if inside[j]:
                    near, far = nears[j], fars[j]
                    near_fall, far_fall = near - after_near[j], far - after_far[j]
                    bend = near_fall * near_scale - far_fall * far_scale
                    tilt = shrink * (width * (near - far) + near_fall - far_fall)
                    place = math.sqrt(bend / tilt)
                    at_near = near - near_fall * ((near_scale / place - 1) / width)
                    at_far = far - far_fall * ((far_scale / (shrink * place) - 1) / width)
                    value = ((1 - shrink * place) * at_near + shrink * (place - 1) * at_far) / norm
                    top[j] = max(top[j], value)
    return best


@njit(cache=True, nogil=True)
def support_maximum(
    values: FloatArray,
    slopes: FloatArray,
    origin: int,
    step: float,
    epsilon: float,
    whole: int,
    rest: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The best t among whole cells, for supporting lines; the new values, slopes and t.

    ε is at most `whole` cells and `rest`. x_j − t is a grid point; x_j + ε − t is one only if
    `rest` is 0, otherwise the better of the two lines around it is used, shortened by a few
    units of rounding.
    """
    norm = -math.expm1(-epsilon)
    size = len(values) - 2 * origin
    fars, far_slopes = values, slopes
    if rest != 0.0:
        here_by, here_scale = math.expm1(rest) * (1 + 8 * UNIT), math.exp(rest)
        there_by, there_scale = -math.expm1(rest - step) * (1 - 8 * UNIT), math.exp(rest - step)
        fars, far_slopes = values.copy(), slopes.copy()
        for i in range(len(values) - 1):
            from_here = values[i] * (1 - 8 * UNIT) - slopes[i] * here_by
            from_there = values[i + 1] * (1 - 8 * UNIT) + slopes[i + 1] * there_by
            use_here = from_here >= from_there
            fars[i] = from_here if use_here else from_there
            far_slopes[i] = slopes[i] * here_scale if use_here else slopes[i + 1] * there_scale
    best, chosen = np.full(size, -1.0), np.zeros(size)
    for start in range(0, size, CHUNK):
        top, choice = best[start : start + CHUNK], chosen[start : start + CHUNK]
        some = len(top)
        for m in range(whole + 1):
            t = min(m * step, epsilon)
            stay = -math.expm1(t - epsilon) / norm
            leave = math.exp(t - epsilon) * -math.expm1(-t) / norm
            a, b = origin + start - m, origin + start + whole - m
            nears, further = values[a : a + some], fars[b : b + some]
            for j in range(some):
                value = stay * nears[j] + leave * further[j]
                better = value > top[j]
                top[j] = value if better else top[j]
                choice[j] = float(m) if better else choice[j]
    best_slope = np.empty(size)
    for j in range(size):
        m = int(chosen[j])
        t = min(m * step, epsilon)
        stay = -math.expm1(t - epsilon) / norm
        leave = math.exp(t - epsilon) * -math.expm1(-t) / norm
        best_slope[j] = stay * slopes[origin + j - m] + leave * far_slopes[origin + j + whole - m]
        chosen[j] = t
    return best, best_slope, chosen


@njit(cache=True, nogil=True)
def support_average(
    values: FloatArray,
    slopes: FloatArray,
    starts: IntArray,
    rests: FloatArray,
    masses: FloatArray,
    size: int,
    step: float,
) -> tuple[FloatArray, FloatArray]:
    """Σ masses·(the better of the two lines around a point), for supporting lines.

    Of point j and atom a the point lies `rests[a]` past the grid point j + starts[a].
    """
    total, fall = np.zeros(size), np.zeros(size)
    for a in range(len(starts)):
        start, rest, mass = starts[a], rests[a], masses[a]
        if rest == 0.0:
            for j in range(size):
                total[j] += mass * values[start + j]
                fall[j] += mass * slopes[start + j]
            continue
        here_by, here_scale = math.expm1(rest) * (1 + 8 * UNIT), math.exp(rest)
        there_by, there_scale = -math.expm1(rest - step) * (1 - 8 * UNIT), math.exp(rest - step)
        for j in range(size):
            here, there = slopes[start + j], slopes[start + j + 1]
            from_here = values[start + j] * (1 - 8 * UNIT) - here * here_by
            from_there = values[start + j + 1] * (1 - 8 * UNIT) + there * there_by
            use_here = from_here >= from_there
            total[j] += mass * (from_here if use_here else from_there)
            fall[j] += mass * (here * here_scale if use_here else there * there_scale)
    return total, fall
