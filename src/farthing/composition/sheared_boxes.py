"""What no t of a box exceeds, for bounded-range mechanisms that are fixed in advance.

With T = Σ n_k t_k the loss of an outcome is T plus a number that does not depend on t. So boxes are
sheared: one direction moves T and all others leave it as it is. Along those the probabilities
of both neighbours change by the same factor (docs/theory/in-advance.md):

    monotone  larger T and smaller t_k, each by itself, can only add: first order in the box
    curved    for every event that is best somewhere in the box, Taylor's third order and its rest:
              exact to the second order, the third bounded by its size
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.numerics.compiled import compiled
from farthing.numerics.rounding import SUMMED, FloatArray, inflated

#: A t for every parameter, or half a width for every coordinate of a box.
Place = tuple[float, ...]
#: Curvature relative to D, for a move by ε/√count, that a direction is taken to have.
FLATTEST, STEEPEST = 0.05, 1e6
Groups = tuple[tuple[float, int], ...]
#: The smallest and the largest t of every parameter.
Ranges = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Every outcome from the largest loss to the smallest.

    ln of what does not depend on t, how often each of `ranged` gave its smaller loss and then how
    often each did not, and the loss if T were 0.
    """

    ranged: Groups
    logs: FloatArray
    counts: FloatArray
    losses: FloatArray

    @staticmethod
    @lru_cache(maxsize=4)
    def of(ranged: Groups, pure: Groups) -> Outcomes:
        """Of bounded-range mechanisms and ε-DP ones, (ε, count) each."""
        counts = [np.arange(n + 1, dtype=np.float64) for _, n in (*ranged, *pure)]
        meshes = [mesh.ravel() for mesh in np.meshgrid(*counts, indexing="ij")]
        logs, losses = np.zeros_like(meshes[0]), np.zeros_like(meshes[0])
        for (_, n), mesh in zip((*ranged, *pure), meshes, strict=True):
            ways = np.array([math.log(math.comb(n, i)) for i in range(n + 1)])
            logs += ways[mesh.astype(np.int64)]
        for (epsilon, n), mesh in zip(pure, meshes[len(ranged) :], strict=True):
            logs -= (n - mesh) * math.log1p(math.exp(-epsilon))
            logs -= mesh * math.log1p(math.exp(epsilon))
            losses += (n - 2 * mesh) * epsilon
        for (epsilon, _), mesh in zip(ranged, meshes, strict=False):
            losses -= epsilon * mesh
        order = np.argsort(-losses, kind="stable")
        lost = [mesh[order] for mesh in meshes[: len(ranged)]]
        kept = [n - gone for (_, n), gone in zip(ranged, lost, strict=True)]
        return Outcomes(ranged, logs[order], np.array([*lost, *kept]), losses[order])

    def masses(self, place: Place, most: int) -> FloatArray:
        """Probabilities of the first `most` outcomes at these t."""
        logs = self.logs[:most].copy()
        for (epsilon, n), t, lost in zip(self.ranged, place, self.counts, strict=False):
            norm = -math.expm1(-epsilon)
            stay = math.log(max(-math.expm1(t - epsilon) / norm, 1e-300))
            leave = math.log(max(math.exp(t - epsilon) * -math.expm1(-t) / norm, 1e-300))
            logs += n * stay + (leave - stay) * lost[:most]
        return np.exp(logs)

    def difference(self, x: float, place: Place, total: float) -> tuple[float, float]:
        """Σ P_t(o)[1 − e^{x − loss}]₊ with this T, and by how much it errs at most."""
        excess = x - total - self.losses
        most = int(np.searchsorted(excess, 0.0))
        masses = self.masses(place, most)
        value = float(np.sum(masses * -np.expm1(excess[:most])))
        return value, SUMMED * float(np.sum(masses))

    def total(self, place: Place) -> float:
        """T = Σ n_k t_k."""
        return math.fsum(n * t for (_, n), t in zip(self.ranged, place, strict=True))

    def at(self, x: float, place: Place) -> float:
        """δ at these t, rounded down."""
        value, error = self.difference(x, place, self.total(place))
        return value - error


@dataclass(frozen=True, slots=True)
class Frame:
    """Directions in which boxes are cut: column i is how far each t goes with coordinate i.

    The first one moves T, all others leave it as it is; and where D is largest it bends alike, by
    1 relative, along each, and not across.
    """

    columns: FloatArray
    inverse: FloatArray

    @staticmethod
    def at(outcomes: Outcomes, x: float, place: Place) -> Frame:
        """From the second derivatives at `place`; how good they are affects time, not truth."""
        trials = np.array([float(n) for _, n in outcomes.ranged])
        scales = np.array([e / math.sqrt(n) for e, n in outcomes.ranged])
        bends = scales[:, None] * _bends(outcomes, x, place) * scales
        sizes, turned = np.linalg.eigh(bends)
        bends = turned * np.clip(sizes, FLATTEST, STEEPEST) @ turned.T
        moved = trials * scales
        _, _, level = np.linalg.svd(moved[None, :])
        level = level[1:].T  # T stays as it is along these
        sizes, turned = np.linalg.eigh(level.T @ bends @ level)
        across = level @ (turned / np.sqrt(sizes))
        onward = np.linalg.solve(bends, moved)
        onward /= math.sqrt(float(onward @ moved))
        columns = scales[:, None] * np.column_stack((onward, across))
        return Frame(columns, np.linalg.inv(columns))


def _bends(outcomes: Outcomes, x: float, place: Place) -> FloatArray:
    """Minus the second derivatives of D in t, for the event that is best here, relative to D."""
    excess = x - outcomes.total(place) - outcomes.losses
    most = int(np.searchsorted(excess, 0.0))
    masses, shadows = outcomes.masses(place, most), np.exp(excess[:most])
    kept = masses * (1 - shadows)
    slopes, bends = [], []
    for (epsilon, n), t, lost in zip(outcomes.ranged, place, outcomes.counts, strict=False):
        gone, stayed = lost[:most], n - lost[:most]
        one = _slopes(epsilon, t, 0.0)
        slopes.append(one[0] * gone + one[1] * stayed)
        bends.append(float(np.sum(kept * (one[2] * gone + one[3] * stayed))))
    steep, trials = np.array(slopes), np.array([float(n) for _, n in outcomes.ranged])
    across = steep @ (masses * shadows)
    found = (steep * kept) @ steep.T + np.diag(bends)
    found += np.outer(trials, across) + np.outer(across, trials)
    found -= float(np.sum(masses * shadows)) * np.outer(trials, trials)
    value = float(np.sum(kept))
    return -found / value if value > 1e-250 else np.zeros_like(found)


@dataclass(frozen=True, slots=True)
class Box:
    """All places centre + columns·s with |s_i| ≤ half_i, of which those inside `limits` count."""

    outcomes: Outcomes
    frame: Frame
    limits: Ranges
    place: Place
    half: Place

    @staticmethod
    def around(outcomes: Outcomes, frame: Frame, limits: Ranges) -> Box:
        """All places inside the limits."""
        centre = tuple(0.5 * (low + high) for low, high in limits)
        reach = np.array([0.5 * (high - low) for low, high in limits])
        half = (np.abs(frame.inverse) @ reach) * (1 + 1e-6) + 1e-12
        return Box(outcomes, frame, limits, centre, tuple(half.tolist()))

    @property
    def width(self) -> float:
        """How far T is from that of the centre at most."""
        trials = np.array([float(n) for _, n in self.outcomes.ranged])
        return float(np.abs(trials @ self.frame.columns) @ np.array(self.half)) * (1 + 1e-12)

    @property
    def halves_of_t(self) -> Place:
        """How far the t of each parameter is from the centre at most."""
        return tuple((np.abs(self.frame.columns) @ np.array(self.half) * (1 + 1e-12)).tolist())

    def cut(self) -> list[Box]:
        """Two halves, which overlap a little, across where it is widest."""
        i = self.half.index(max(self.half))
        move = 0.5 * self.half[i]
        narrow = (*self.half[:i], move * (1 + 1e-9), *self.half[i + 1 :])
        centre, column = np.array(self.place), self.frame.columns[:, i]
        return [
            Box(
                self.outcomes,
                self.frame,
                self.limits,
                tuple((centre + side * move * column).tolist()),
                narrow,
            )
            for side in (-1, 1)
        ]

    @property
    def ranges(self) -> Ranges:
        """The t of every parameter that the box may hold; those of an empty one are reversed."""
        return tuple(
            (max(low, t - h), min(high, t + h))
            for (low, high), t, h in zip(self.limits, self.place, self.halves_of_t, strict=True)
        )

    def monotone(self, x: float) -> float:
        """D ≤ Σ P_t(o)[1 − e^{x − loss}]₊ at the largest T and the smallest t, rounded up.

        With a smaller t a mechanism gives its smaller loss less often.
        """
        ranges = self.ranges
        if any(low > high for low, high in ranges):
            return 0.0
        lows, highs = zip(*ranges, strict=True)
        most = min(self.outcomes.total(self.place) + self.width, self.outcomes.total(highs))
        value, error = self.outcomes.difference(x, lows, inflated(most, 8))
        return value + error

    def curved(self, x: float) -> float:
        """Taylor's third order on every event that is best for some t of the box, and its rest.

        Rounded up; 1 where some t may leave its range.
        """
        outcomes, width, halves = self.outcomes, self.width, self.halves_of_t
        for (epsilon, _), t, h in zip(outcomes.ranged, self.place, halves, strict=True):
            if t - h <= 1e-9 * epsilon or t + h >= (1 - 1e-9) * epsilon:
                return 1.0
        excess = x - outcomes.total(self.place) - outcomes.losses
        fewest, most = np.searchsorted(excess, (-width - 1e-9, width + 1e-9)).tolist()
        highest = compiled().event_ceiling(
            outcomes.masses(self.place, most),
            excess[:most],
            np.ascontiguousarray(outcomes.counts[:, :most]),
            np.array(
                [
                    _slopes(epsilon, t, h)
                    for (epsilon, _), t, h in zip(outcomes.ranged, self.place, halves, strict=True)
                ]
            ),
            self.frame.columns * np.array(self.half),
            width,
            max(fewest, 1),
        )
        return inflated(highest, 2 * len(excess))


def _slopes(epsilon: float, t: float, half: float) -> list[float]:
    """Of ln P for one t, as factors of how often the smaller loss came and of how often not: three
    derivatives at the centre, and the sizes of the second, third and fourth in the interval around
    it, each times a power of `half`."""
    inside = zip(_derivatives(t), _derivatives(epsilon - t), (-1, 1), (-1, -1), strict=False)
    centre = [one for low, high, s, r in inside for one in (s * low, r * high)]
    first = (1 / -math.expm1(-t), -1 / math.expm1(epsilon - t))
    ends = zip(_derivatives(t - half), _derivatives(epsilon - t - half), (2, 3, 4), strict=True)
    sizes = [half**k * one for low, high, k in ends for one in (low, high)]
    return [*first, *centre, *sizes]


def _derivatives(u: float) -> tuple[float, float, float]:
    """Sizes of the first three derivatives of 1/(e^u − 1)."""
    y, z = math.expm1(u), math.exp(u)
    return z / y**2, z * (z + 1) / y**3, z * (z * z + 4 * z + 1) / y**4
