"""Convex decreasing functions of z = e^x on a uniform grid in x, bounded from both sides.

A profile V is convex and decreasing in z, 1 at z = 0. Two representations keep a certain
side of it, and both are closed under the operators of composition/adaptive/operators.py:

    Chords    values at the grid points; between them the chord in z, which lies above a
              convex function. Left of the grid the chord to (z = 0, V = 1), right of it the
              last value.
    Supports  a line in z at each grid point that lies below V everywhere; between two
              points the larger of their two lines. Left of the grid 1 − z, right of it 0.

Because the grid is uniform in x, moving by a fixed amount meets every cell at the same
fraction, so a move is a few multiply-adds on shifted arrays.

Rounding: all numbers are non-negative and combined by sums and products, so one operation
costs a few units relative. Operators inflate or deflate their results by a stated factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farthing.numerics.rounding import UNIT, FloatArray, deflated, inflated


@dataclass(frozen=True, slots=True)
class Grid:
    """The points x_j = origin + (j − below)·step for 0 ≤ j ≤ below + above."""

    step: float
    below: int
    above: int
    origin: float = 0.0

    @property
    def size(self) -> int:
        return self.below + self.above + 1

    def points(self) -> FloatArray:
        return self.origin + np.arange(-self.below, self.above + 1, dtype=np.float64) * self.step

    def split(self, shift: float) -> tuple[int, float]:
        """`shift` as whole cells plus a remainder in [0, step)."""
        rest = math.fmod(shift, self.step)  # exact
        cells = round((shift - rest) / self.step)
        return (cells, rest) if rest >= 0 else (cells - 1, rest + self.step)

    def split_all(self, shifts: FloatArray) -> tuple[npt.NDArray[np.int64], FloatArray]:
        """`split` for many shifts at once."""
        rests = np.fmod(shifts, self.step)  # exact
        cells = np.rint((shifts - rests) / self.step).astype(np.int64)
        below = rests < 0
        return np.where(below, cells - 1, cells), np.where(below, rests + self.step, rests)


@dataclass(frozen=True, slots=True)
class Chords:
    """An upper bound on a profile: values at the grid points, chords in z between them."""

    grid: Grid
    values: FloatArray

    @staticmethod
    def of_nothing(grid: Grid) -> Chords:
        """V_0(x) = max(1 − e^x, 0): the profile before anything has happened."""
        return Chords(grid, inflated(np.maximum(-np.expm1(grid.points()), 0.0), 4))

    def padded(self, left: int, right: int) -> FloatArray:
        """The values with `left` and `right` more points, by the rules outside the grid."""
        outside = np.arange(left, 0, -1, dtype=np.float64) * self.grid.step
        head = 1 - (1 - min(self.values[0], 1.0)) * deflated(np.exp(-outside), 8)
        return np.concatenate((head, self.values, np.full(right, self.values[-1])))

    def larger(self, other: Chords) -> Chords:
        """Chords above both."""
        return Chords(self.grid, np.maximum(self.values, other.values))

    def at(self, x: float) -> float:
        """An upper bound on V(x)."""
        cells, rest = self.grid.split(x - self.grid.origin)
        place = cells + self.grid.below
        if place >= self.grid.size - 1:
            return float(self.values[-1])
        weight = math.expm1(rest) / math.expm1(self.grid.step)
        if place < 0:
            left, right = self.padded(-place, 0)[:2]
        else:
            left, right = self.values[place], self.values[place + 1]
        return min(1.0, inflated(float((1 - weight) * left + weight * right), 16))

    def log_peak(self, power: float) -> float:
        """ln of the largest V(x)e^{power·x} up to the right end of the grid, rounded up.

        On a cell V is A − Bz, and (A − Bz)z^power is largest at z = A·power/(B(1 + power)) or at
        an end. Left of the grid V is at most 1.
        """
        x, values = self.grid.points(), self.values
        falls = np.maximum(values[:-1] - values[1:], 1e-300) / math.expm1(self.grid.step)
        heights = values[:-1] + falls  # A, with z measured from the left end of the cell
        best = np.clip(heights * power / (falls * (1 + power)), 1.0, math.exp(self.grid.step))
        inside = np.maximum(heights - falls * best, 0.0) + 64 * UNIT * heights
        with np.errstate(divide="ignore"):
            logs = np.log(inside) + power * (x[:-1] + np.log(best))
        return max(float(np.max(logs)), power * float(x[0])) + 1e-9

    def first_below(self, delta: float) -> float | None:
        """A point x ≥ 0, near the smallest, with V(x) ≤ `delta` certainly; None if off the grid.

        For grids whose origin is 0.
        """
        values = inflated(self.values[self.grid.below :], 32)
        small = np.flatnonzero(values <= delta)
        if len(small) == 0:
            return None
        place = int(small[0])
        if place == 0:
            return 0.0
        left, right = float(values[place - 1]), float(values[place])
        fraction = (left - delta) / (left - right)
        rest = inflated(math.log1p(fraction * math.expm1(self.grid.step)), 16)
        return inflated((place - 1) * self.grid.step + rest, 8)


@dataclass(frozen=True, slots=True)
class Supports:
    """A lower bound on a profile: at each grid point a value and −dV/dx of a supporting line."""

    grid: Grid
    values: FloatArray
    slopes: FloatArray

    @staticmethod
    def of_nothing(grid: Grid) -> Supports:
        """V_0(x) = max(1 − e^x, 0), with the lines 1 − z left of 0 and 0 from there on."""
        points = grid.points()
        z = np.exp(points)
        left = points < 0
        values = np.where(left, deflated(-np.expm1(points), 4), 0.0)
        return Supports(grid, values, np.where(left, z, 0.0))

    def padded(self, left: int, right: int) -> tuple[FloatArray, FloatArray]:
        """Values and slopes with more points on both sides, by the rules outside the grid."""
        first = self.grid.origin - self.grid.below * self.grid.step
        outside = first - np.arange(left, 0, -1, dtype=np.float64) * self.grid.step
        nothing = np.zeros(right)
        return (
            np.concatenate((deflated(-np.expm1(outside), 4), self.values, nothing)),
            np.concatenate((np.exp(outside), self.slopes, nothing)),
        )

    def at(self, x: float) -> float:
        """A lower bound on V(x)."""
        cells, rest = self.grid.split(x - self.grid.origin)
        place = cells + self.grid.below
        if not 0 <= place < self.grid.size - 1:
            return max(0.0, deflated(-math.expm1(x), 8)) if place < 0 else 0.0
        here = self.values[place] - self.slopes[place] * math.expm1(rest)
        there = self.values[place + 1] - self.slopes[place + 1] * math.expm1(rest - self.grid.step)
        slack = 16 * UNIT * (self.values[place] + self.slopes[place])
        return max(0.0, float(max(here, there)) - float(slack))

    def larger(self, other: Supports) -> Supports:
        """At each point the higher of the two lines."""
        use_self = self.values >= other.values
        return Supports(
            self.grid,
            np.where(use_self, self.values, other.values),
            np.where(use_self, self.slopes, other.slopes),
        )

    def last_above(self, delta: float) -> float:
        """A point x ≥ 0, near the largest, with V(x) > `delta` certainly; 0 if there is none.

        For grids whose origin is 0.
        """
        values = deflated(self.values[self.grid.below :], 32)
        slopes = self.slopes[self.grid.below :]
        large = np.flatnonzero(values > delta)
        if len(large) == 0:
            return 0.0
        place = int(large[-1])
        slope = float(slopes[place])
        rest = math.log1p((float(values[place]) - delta) / slope) if slope > 0 else self.grid.step
        return max(0.0, deflated(place * self.grid.step + min(rest, self.grid.step), 16))
