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


@njit(cache=True, nogil=True)
def chord_supremum(
    values: FloatArray, origin: int, step: float, epsilon: float, cuts: FloatArray
) -> FloatArray:
    """The supremum over all t in [0, ε] for chords V.

    `cuts` are the t at which one of the two arguments crosses a grid point, from 0 to ε.
    Between two cuts the objective is A + Bw + C/w in w = e^t, and with bend = −C, tilt = −B
    (up to a common positive factor) it has an inner maximum only if w² = bend/tilt falls
    between them; otherwise the larger end counts. At t = 0 and t = ε the objective is V(x_j).
    """
    width, norm, shrink = math.expm1(step), -math.expm1(-epsilon), math.exp(-epsilon)
    size, cells = len(values) - 2 * origin, len(cuts) - 1
    near_cell, far_cell = np.empty(cells, np.int64), np.empty(cells, np.int64)
    near_scale, far_scale = np.empty(cells), np.empty(cells)
    near_part, far_part = np.empty(cells), np.empty(cells)
    stay, leave = np.empty(cells), np.empty(cells)
    w = np.exp(cuts)
    for c in range(cells):
        between = 0.5 * (cuts[c] + cuts[c + 1])
        near_cell[c] = math.floor(-between / step)
        far_cell[c] = math.floor((epsilon - between) / step)
        near_scale[c] = math.exp(-near_cell[c] * step)
        far_scale[c] = math.exp(-far_cell[c] * step)
        near_part[c] = math.expm1(-cuts[c] - near_cell[c] * step) / width
        far_part[c] = math.expm1(epsilon - cuts[c] - far_cell[c] * step) / width
        stay[c] = -math.expm1(cuts[c] - epsilon) / norm
        leave[c] = math.exp(cuts[c] - epsilon) * -math.expm1(-cuts[c]) / norm
    best = np.empty(size)
    for j in range(size):
        top = values[origin + j]
        for c in range(cells):
            a, b = origin + j + near_cell[c], origin + j + far_cell[c]
            near, near_fall = values[a], values[a] - values[a + 1]
            far, far_fall = values[b], values[b] - values[b + 1]
            value = stay[c] * (near - near_fall * near_part[c]) + leave[c] * (
                far - far_fall * far_part[c]
            )
            top = max(top, value)
            bend = near_fall * near_scale[c] - far_fall * far_scale[c]
            tilt = shrink * (width * (near - far) + near_fall - far_fall)
            if tilt * w[c] * w[c] < bend < tilt * w[c + 1] * w[c + 1]:
                place = math.sqrt(bend / tilt)
                at_near = near - near_fall * ((near_scale[c] / place - 1) / width)
                at_far = far - far_fall * ((far_scale[c] / (shrink * place) - 1) / width)
                value = ((1 - shrink * place) * at_near + shrink * (place - 1) * at_far) / norm
                top = max(top, value)
        best[j] = top
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
    size, choices = len(values) - 2 * origin, whole + 1
    stay, leave = np.empty(choices), np.empty(choices)
    for m in range(choices):
        t = min(m * step, epsilon)
        stay[m] = -math.expm1(t - epsilon) / norm
        leave[m] = math.exp(t - epsilon) * -math.expm1(-t) / norm
    aligned = rest == 0.0
    here_by, here_scale = math.expm1(rest) * (1 + 8 * UNIT), math.exp(rest)
    there_by, there_scale = -math.expm1(rest - step) * (1 - 8 * UNIT), math.exp(rest - step)
    best, best_slope, chosen = np.empty(size), np.empty(size), np.empty(size)
    for j in range(size):
        top, top_slope, top_choice = -1.0, 0.0, 0
        for m in range(choices):
            near, b = origin + j - m, origin + j + whole - m
            far, far_slope = values[b], slopes[b]
            if not aligned:
                far = far * (1 - 8 * UNIT) - far_slope * here_by
                far_slope *= here_scale
                other = values[b + 1] * (1 - 8 * UNIT) + slopes[b + 1] * there_by
                if other > far:
                    far, far_slope = other, slopes[b + 1] * there_scale
            value = stay[m] * values[near] + leave[m] * far
            if value > top:
                top, top_choice = value, m
                top_slope = stay[m] * slopes[near] + leave[m] * far_slope
        best[j], best_slope[j], chosen[j] = top, top_slope, min(top_choice * step, epsilon)
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
