"""Chords and supporting lines evaluated by their definition, in 50 digits."""

from __future__ import annotations

import math

import numpy as np

from farthing.numerics.curves import Chords, Grid, Supports
from oracle.reference import mp


def grid_point(grid: Grid, place: int):
    return mp.mpf(grid.step) * (place - grid.below)


def chord_value(chords: Chords, x):
    """The polygon in z: left of the grid the chord to (0, 1), right of it the last value."""
    grid, x = chords.grid, mp.mpf(x)
    place = int(mp.floor(x / mp.mpf(grid.step))) + grid.below
    if place >= grid.size - 1:
        return mp.mpf(float(chords.values[-1]))
    if place < 0:
        first = mp.mpf(min(float(chords.values[0]), 1.0))
        return 1 - (1 - first) * mp.exp(x - grid_point(grid, 0))
    left, right = (mp.mpf(float(v)) for v in chords.values[place : place + 2])
    weight = mp.expm1(x - grid_point(grid, place)) / mp.expm1(mp.mpf(grid.step))
    return left + weight * (right - left)


def line_value(supports: Supports, place: int, x):
    """The line of one grid point, as a function of z."""
    value, slope = (mp.mpf(float(a[place])) for a in (supports.values, supports.slopes))
    return value - slope * mp.expm1(mp.mpf(x) - grid_point(supports.grid, place))


def support_value(supports: Supports, x):
    """The largest of all lines, of 0 and of 1 − z: everything that is known from below."""
    lines = [line_value(supports, place, x) for place in range(supports.grid.size)]
    return max(*lines, mp.mpf(0), -mp.expm1(mp.mpf(x)))


def range_step(profile, epsilon: float, t, x):
    """q_t V(x − t) + (1 − q_t) V(x + ε − t)."""
    epsilon, t, x = mp.mpf(epsilon), mp.mpf(t), mp.mpf(x)
    q = mp.expm1(t - epsilon) / mp.expm1(-epsilon)
    return q * profile(x - t) + (1 - q) * profile(x + epsilon - t)


def range_supremum(profile, epsilon: float, x, choices: int = 60):
    """The sup over t: a dense search, then golden sections around the best three."""
    epsilon = mp.mpf(epsilon)
    ts = [epsilon * i / choices for i in range(choices + 1)]
    values = [range_step(profile, epsilon, t, x) for t in ts]
    best = max(values)
    ratio = (mp.sqrt(5) - 1) / 2
    for i in sorted(range(choices + 1), key=lambda i: values[i])[-2:]:
        low, high = ts[max(i - 1, 0)], ts[min(i + 1, choices)]
        for _ in range(40):
            a, b = high - ratio * (high - low), low + ratio * (high - low)
            at_a, at_b = range_step(profile, epsilon, a, x), range_step(profile, epsilon, b, x)
            best = max(best, at_a, at_b)
            low, high = (a, high) if at_a < at_b else (low, b)
    return best


def chords_of(grid: Grid, profile) -> Chords:
    """Chords through a profile, values rounded up."""
    values = [float(profile(grid_point(grid, j))) for j in range(grid.size)]
    return Chords(grid, np.array([math.nextafter(v, 2.0) if v > 0 else 0.0 for v in values]))


def supports_of(grid: Grid, profile) -> Supports:
    """Tangents of a profile, values rounded down far enough to cover the slope's error."""
    values, slopes = [], []
    for j in range(grid.size):
        x = grid_point(grid, j)
        slope = -mp.diff(profile, x)
        values.append(max(0.0, float(profile(x)) * (1 - 1e-12)))
        slopes.append(max(0.0, float(slope)))
    return Supports(grid, np.array(values), np.array(slopes))
