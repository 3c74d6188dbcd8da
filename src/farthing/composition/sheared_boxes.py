"""What no t of a box exceeds, for bounded-range mechanisms that are fixed in advance.

With T = Σ n_k t_k the loss of an outcome is T plus a number that does not depend on t. So a box is
an interval of T and one of t_k for every parameter but one, the pivot, whose t follows. Inside it
the probabilities of both neighbours change by the same factor, e^−T excepted
(docs/theory/in-advance.md):

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

#: A t for every parameter; or T and a t for every parameter but the pivot; or half widths of these.
Place = tuple[float, ...]
Groups = tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Every outcome from the largest loss to the smallest.

    ln of what does not depend on t, how often each of `ranged` gave its smaller loss, and the loss
    if T were 0.
    """

    ranged: Groups
    logs: FloatArray
    counts: tuple[FloatArray, ...]
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
        lost = tuple(mesh[order] for mesh in meshes[: len(ranged)])
        return Outcomes(ranged, logs[order], lost, losses[order])

    @property
    def pivot(self) -> int:
        """The parameter whose t follows from T and the others: it moves least for its range."""
        sizes = [epsilon * n for epsilon, n in self.ranged]
        return sizes.index(max(sizes))

    @property
    def others(self) -> Groups:
        """All parameters but the pivot."""
        return (*self.ranged[: self.pivot], *self.ranged[self.pivot + 1 :])

    def masses(self, place: Place, most: int) -> FloatArray:
        """Probabilities of the first `most` outcomes at these t."""
        logs = self.logs[:most].copy()
        for (epsilon, n), t, lost in zip(self.ranged, place, self.counts, strict=True):
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
class Box:
    """T and the t of all parameters but the pivot, each with half its width."""

    outcomes: Outcomes
    centre: Place
    half: Place

    @staticmethod
    def of_everything(outcomes: Outcomes) -> Box:
        ends = (outcomes.total(tuple(e for e, _ in outcomes.ranged)),)
        middle = tuple(0.5 * end for end in (*ends, *(e for e, _ in outcomes.others)))
        return Box(outcomes, middle, middle)

    @property
    def place(self) -> Place:
        """The t of every parameter at the centre; that of the pivot may lie outside its range."""
        taken = math.fsum(n * t for (_, n), t in zip(self.outcomes.others, self.t, strict=True))
        pivot = self.outcomes.pivot
        follows = (self.centre[0] - taken) / self.outcomes.ranged[pivot][1]
        return (*self.t[:pivot], follows, *self.t[pivot:])

    @property
    def t(self) -> Place:
        """Of all but the pivot."""
        return self.centre[1:]

    @property
    def halves_of_t(self) -> Place:
        """How far the t of each parameter is from the centre at most."""
        pairs = zip(self.outcomes.others, self.half[1:], strict=True)
        reach = self.half[0] + math.fsum(n * h for (_, n), h in pairs)
        pivot = self.outcomes.pivot
        follows = reach / self.outcomes.ranged[pivot][1] * (1 + 1e-12)
        return (*self.half[1 : pivot + 1], follows, *self.half[pivot + 1 :])

    def cut(self) -> list[Box]:
        """Two halves, across where it is widest beside the spread that its count shows."""
        spread = 0.25 * math.sqrt(math.fsum(n * e * e for e, n in self.outcomes.ranged))
        pairs = zip(self.half[1:], self.outcomes.others, strict=True)
        widths = [self.half[0] / spread, *(h / e * math.sqrt(n) for h, (e, n) in pairs)]
        i = widths.index(max(widths))
        narrow = (*self.half[:i], 0.5 * self.half[i], *self.half[i + 1 :])
        return [
            Box(
                self.outcomes,
                (*self.centre[:i], self.centre[i] + side * narrow[i], *self.centre[i + 1 :]),
                narrow,
            )
            for side in (-1, 1)
        ]

    def monotone(self, x: float) -> float:
        """D ≤ Σ P_t(o)[1 − e^{x − loss}]₊ at the largest T and the smallest t, rounded up.

        With a smaller t a mechanism gives its smaller loss less often.
        """
        lows, highs = [], []
        for (epsilon, _), t, h in zip(
            self.outcomes.ranged, self.place, self.halves_of_t, strict=True
        ):
            if t - h > epsilon or t + h < 0:
                return 0.0  # there is no such t
            lows.append(max(0.0, t - h))
            highs.append(min(epsilon, t + h))
        most = min(self.centre[0] + self.half[0], self.outcomes.total(tuple(highs)))
        value, error = self.outcomes.difference(x, tuple(lows), inflated(most, 8))
        return value + error

    def curved(self, x: float) -> float:
        """Taylor's third order on every event that is best for some t of the box, and its rest.

        Rounded up; 1 where some t may leave its range.
        """
        outcomes, width, pivot = self.outcomes, self.half[0], self.outcomes.pivot
        place, halves = self.place, self.halves_of_t
        for (epsilon, _), t, h in zip(outcomes.ranged, place, halves, strict=True):
            if t - h <= 1e-9 * epsilon or t + h >= (1 - 1e-9) * epsilon:
                return 1.0
        excess = x - self.centre[0] - outcomes.losses
        fewest, most = np.searchsorted(excess, (-width - 1e-9, width + 1e-9)).tolist()
        order = [pivot, *(i for i in range(len(place)) if i != pivot)]
        slopes = [_slopes(outcomes.ranged[i][0], place[i], halves[i]) for i in order]
        highest = compiled().event_ceiling(
            outcomes.masses(place, most),
            excess[:most],
            np.array([outcomes.counts[i][:most] for i in order]),
            np.array([float(outcomes.ranged[i][1]) for i in order]),
            np.array(slopes),
            np.array(self.half),
            max(fewest, 1),
        )
        return inflated(highest, 2 * len(excess))


def _slopes(epsilon: float, t: float, half: float) -> list[float]:
    """Of ln P for one t, as factors of how often the smaller loss came and of how often not: three
    derivatives at the centre, the first at both ends of the interval, and the sizes of the second,
    third and fourth inside it, each times a power of `half`."""
    inside = zip(_derivatives(t), _derivatives(epsilon - t), (-1, 1), (-1, -1), strict=False)
    centre = [one for low, high, s, r in inside for one in (s * low, r * high)]
    first = [factor for end in (t, t - half, t + half) for factor in _first(epsilon, end)]
    ends = zip(_derivatives(t - half), _derivatives(epsilon - t - half), (2, 3, 4), strict=True)
    sizes = [half**k * one for low, high, k in ends for one in (low, high)]
    return [*first[:2], *centre, *first[2:], *sizes]


def _first(epsilon: float, t: float) -> tuple[float, float]:
    return 1 / -math.expm1(-t), -1 / math.expm1(epsilon - t)


def _derivatives(u: float) -> tuple[float, float, float]:
    """Sizes of the first three derivatives of 1/(e^u − 1)."""
    y, z = math.expm1(u), math.exp(u)
    return z / y**2, z * (z + 1) / y**3, z * (z * z + 4 * z + 1) / y**4
