"""Bounded-range mechanisms with unequal ε, and ε-DP ones, all fixed in advance.

Equal mechanisms share one t ([CR22, Lemma 4.4]), so the optimum is the largest value of a function
of one t per parameter, each in [0, ε]. Boxes of t are bounded from above in two ways and halved
until none can hold more than a value that was found (docs/theory/in-advance.md):

    wide    for t in [a, b], RR_{ε,t} is a post-processing of RR_{ε + b − a, b}
    smooth  ln of every probability is concave in t with known slope and curvature; the bound is
            the largest corner of a multilinear function and errs by the square of the box

Sums run over how often each parameter gave its smaller loss, so lists must be short.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import count as counting
from itertools import product

import numpy as np

from farthing.composition.bound import Bound, Sides
from farthing.composition.items import Items
from farthing.composition.moments import MomentBound
from farthing.composition.profiles import worst_fixed_t
from farthing.guarantees.kinds import BoundedRange, PureDP
from farthing.numerics.bisection import turning_point
from farthing.numerics.rounding import FloatArray, inflated

#: Parameters and outcomes at most, and numbers that the boxes of one search may take.
MOST_PARAMETERS, MOST_OUTCOMES, MOST_NUMBERS = 4, 20_000, 1.5e8
#: What one sum costs besides its numbers.
OVERHEAD = 2_000
#: Of the probability that is added up: floats err by far less.
ROUNDING = 1e-11

#: A t for every parameter, or half the width of a box in each.
Place = tuple[float, ...]


def unequal_in_advance(items: Items, tolerance: float) -> Bound | None:
    """Both sides of the non-adaptive optimum of unequal bounded range, if its outcomes are few."""
    merged = items.unordered()
    ranged = tuple((g.epsilon, n) for g, n in merged if isinstance(g, BoundedRange))
    pure = tuple((g.epsilon, n) for g, n in merged if isinstance(g, PureDP))
    if not items.only(BoundedRange, PureDP) or not 1 <= len(ranged) <= MOST_PARAMETERS:
        return None
    outcomes = math.prod(float(n + 1) for _, n in merged)
    if outcomes > MOST_OUTCOMES or not all(
        1e-6 < e < 50 and n <= 2000 and n * e < 500 for e, n in (*ranged, *pure)
    ):
        return None
    optimum = InAdvance(ranged, pure)
    return Bound(
        name="in-advance",
        theorem="non-adaptive optimum [DDR20, Lemma 3.1; CR22, Lemma 4.4], by boxes of t",
        epsilon_at=lambda delta: _epsilon(optimum, delta, tolerance),
        delta_at=lambda epsilon: optimum.delta_at(epsilon, tolerance),
        optimal=True,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """The best t that was met, its δ, and what no t exceeds."""

    place: Place
    value: float
    ceiling: float


@dataclass(frozen=True, slots=True)
class InAdvance:
    """(ε, count) of the bounded-range mechanisms, and of the ε-DP ones."""

    ranged: tuple[tuple[float, int], ...]
    pure: tuple[tuple[float, int], ...]

    def delta_at(self, x: float, tolerance: float) -> Sides:
        """(lower, upper) of the largest δ over all t."""
        if x >= self._total:
            return 0.0, 0.0
        found = self._search(
            x, self._climb(x, self._likely(0.05 * self._at_most(x))), math.inf, 0.5 * tolerance
        )
        return max(0.0, found.value), min(1.0, found.ceiling)

    def epsilon_at(self, delta: float, tolerance: float) -> Sides:
        """(lower, upper) of the smallest ε ≥ 0 with δ(ε) ≤ `delta`; nothing for a tiny `delta`."""
        if not 1e-200 < delta < 1:
            return 0.0, math.inf
        place, lower, share = self._likely(delta), 0.0, 0.5 * tolerance
        while share < 8 * tolerance:
            for _ in range(3):
                lower = max(lower, self._crossing(place, delta))
                place = self._climb(lower, place)
            lower = max(lower, self._crossing(place, delta))
            upper = min(inflated(lower, 2) * (1 + share) + 1e-9 * self._total, self._total)
            found = self._search(upper, place, delta, 0.0)
            if found.ceiling <= delta or upper >= self._total:
                return lower, upper
            place = found.place
            if found.value <= delta:  # undecided: ask for less
                share *= 4
        return lower, math.inf

    def _at_most(self, x: float) -> float:
        """About the δ at x, not 0."""
        listed = [(BoundedRange(e), n) for e, n in self.ranged]
        return max(MomentBound(Items(tuple(listed))).delta_at(x), 1e-200)

    @property
    def _total(self) -> float:
        return inflated(math.fsum(e * n for e, n in (*self.ranged, *self.pure)), 8)

    def _likely(self, delta: float) -> Place:
        """The t with the largest moments, of the order near the usual one that is best here."""
        pairs = [(BoundedRange(e), n) for e, n in self.ranged]
        pures = [(PureDP(e), n) for e, n in self.pure]
        order = MomentBound(Items((*pairs, *pures))).best_order(delta)
        tried = [
            tuple(worst_fixed_t(e, 1 + (order - 1) * 1.15**i) for e, _ in self.ranged)
            for i in range(-5, 6)
        ]
        x = max(self._crossing(place, delta) for place in tried)
        return max((self._climb(x, place) for place in tried), key=lambda p: self.at(x, p))

    def _crossing(self, place: Place, delta: float) -> float:
        """An ε ≥ 0 at which these t certainly have more than `delta`; 0 if there is none."""
        if not self.at(0.0, place) > delta:
            return 0.0
        ends = turning_point(lambda x: self.at(x, place) > delta, 0.0, self._total, width=1e-9)
        return ends[0]

    def _climb(self, x: float, place: Place) -> Place:
        """From these t to better ones nearby, one parameter after the other."""
        best = self.at(x, place)
        step = 0.1
        while step > 1e-4:
            before = best
            for i, (epsilon, _) in enumerate(self.ranged):
                for side in (-step, step):
                    t = min(max(place[i] + side * epsilon, 1e-6 * epsilon), (1 - 1e-6) * epsilon)
                    tried = (*place[:i], t, *place[i + 1 :])
                    if (value := self.at(x, tried)) > best:
                        best, place = value, tried
            if best <= before:
                step *= 0.5
        return place

    def _search(self, x: float, start: Place, threshold: float, relative: float) -> _Found:
        """Boxes of t, the one with the highest ceiling first.

        Ends when no ceiling exceeds the best value by more than `relative`, or `threshold`; when
        the best value exceeds `threshold`; or when it has taken too long.
        """
        middle = tuple(0.5 * e for e, _ in self.ranged)
        best = max(((self.at(x, p), p) for p in (start, middle)), key=lambda pair: pair[0])
        number, left = counting(), MOST_NUMBERS
        if len(self.ranged) > 2:  # which seldom ends
            left *= 0.1
        boxes = [(-1.0, next(number), middle, middle)]
        dropped = 0.0
        each, corners = OVERHEAD + len(self._outcomes[0]), 2 ** len(self.ranged)
        while boxes:
            top = -boxes[0][0]
            enough = max(best[0] * (1 + relative), threshold if threshold < math.inf else 0.0)
            if top <= enough or best[0] > threshold or left < 0:
                break
            _, _, centre, half = heapq.heappop(boxes)
            for place, narrow in self._halves(centre, half):
                ceiling = min(top, self.at(x, place, narrow))
                left -= each
                if ceiling > enough:
                    best = max(best, (self.at(x, place), place))
                    ceiling = min(ceiling, self.smooth(x, place, narrow))
                    left -= (1 + corners) * each
                if ceiling > enough:
                    heapq.heappush(boxes, (-ceiling, next(number), place, narrow))
                else:
                    dropped = max(dropped, ceiling)
        ceiling = max(dropped, -boxes[0][0] if boxes else 0.0, best[0])
        return _Found(best[1], best[0], inflated(ceiling, 8))

    def _halves(self, centre: Place, half: Place) -> list[tuple[Place, Place]]:
        """A box cut across where it is widest beside the spread that its count shows."""
        widths = [h / e * math.sqrt(n) for h, (e, n) in zip(half, self.ranged, strict=True)]
        i = widths.index(max(widths))
        narrow = (*half[:i], 0.5 * half[i], *half[i + 1 :])
        return [
            ((*centre[:i], centre[i] + side * narrow[i], *centre[i + 1 :]), narrow)
            for side in (-1, 1)
        ]

    def at(self, x: float, place: Place, half: Place | None = None) -> float:
        """δ at these t, rounded down; with `half`, for every t of the box, rounded up."""
        wider = half or (0.0,) * len(place)
        masses, losses = self._masses(place, wider)
        used = losses > x
        masses = masses[used]
        value = float(np.sum(masses * -np.expm1(x - losses[used])))
        error = ROUNDING * float(np.sum(masses))
        return value - error if half is None else value + error

    def smooth(self, x: float, place: Place, half: Place) -> float:
        """The largest corner of a multilinear function above δ in the box, rounded up."""
        masses, losses = self._masses(place, (0.0,) * len(place))
        slopes, bend = [], np.zeros_like(losses)
        counts = self._outcomes[1]
        for i, ((epsilon, n), t, h) in enumerate(zip(self.ranged, place, half, strict=True)):
            low, high = t - h, t + h
            if low <= 1e-12 * epsilon or high >= (1 - 1e-12) * epsilon:
                return 1.0
            slopes.append(counts[i] / -math.expm1(-t) - (n - counts[i]) / math.expm1(epsilon - t))
            fall, rise = math.expm1(epsilon - high), -math.expm1(-low)
            bend += (
                0.5
                * h**2
                * ((n - counts[i]) * (1 + fall) / fall**2 + counts[i] * math.exp(-low) / rise**2)
            )
        others = masses * np.exp(np.minimum(x - losses - bend, 600.0))
        largest = 0.0
        for signs in product((-1, 1), repeat=len(place)):
            moved = [sign * h for sign, h in zip(signs, half, strict=True)]
            rise_by = sum(slope * s for slope, s in zip(slopes, moved, strict=True))
            shift = sum(n * s for (_, n), s in zip(self.ranged, moved, strict=True))
            first = masses * np.exp(np.minimum(rise_by, 600.0))
            second = others * (1 + rise_by - shift)
            error = ROUNDING * (first + np.abs(second))
            largest = max(largest, float(np.sum(np.maximum(first - second + error, 0.0))))
        return inflated(largest, 2 * len(masses))

    def _masses(self, place: Place, half: Place) -> tuple[FloatArray, FloatArray]:
        """Probabilities and losses of all outcomes, each RR_{ε + 2·half, t + half}."""
        log_weights, counts, pure_losses = self._outcomes
        logs, losses = log_weights.copy(), pure_losses.copy()
        for i, ((epsilon, n), centre, h) in enumerate(zip(self.ranged, place, half, strict=True)):
            wide = epsilon + 2 * h
            t = min(max(centre + h, 1e-300), wide)
            norm = -math.expm1(-wide)
            stay = -math.expm1(t - wide) / norm
            leave = math.exp(t - wide) * -math.expm1(-t) / norm
            logs += (n - counts[i]) * math.log(max(stay, 1e-300))
            logs += counts[i] * math.log(max(leave, 1e-300))
            losses += n * t - counts[i] * wide
        return np.exp(logs), losses

    @property
    def _outcomes(self) -> tuple[FloatArray, tuple[FloatArray, ...], FloatArray]:
        return _outcomes(self.ranged, self.pure)


@lru_cache(maxsize=64)
def _epsilon(optimum: InAdvance, delta: float, tolerance: float) -> Sides:
    return optimum.epsilon_at(delta, tolerance)


@lru_cache(maxsize=4)
def _outcomes(
    ranged: tuple[tuple[float, int], ...], pure: tuple[tuple[float, int], ...]
) -> tuple[FloatArray, tuple[FloatArray, ...], FloatArray]:
    """Of every outcome: ln of what does not depend on t, the counts of `ranged`, loss of `pure`."""
    counts = [np.arange(n + 1, dtype=np.float64) for _, n in (*ranged, *pure)]
    meshes = [mesh.ravel() for mesh in np.meshgrid(*counts, indexing="ij")]
    logs, losses = np.zeros_like(meshes[0]), np.zeros_like(meshes[0])
    for (_, n), mesh in zip((*ranged, *pure), meshes, strict=True):
        ways = np.array([math.log(math.comb(n, i)) for i in range(n + 1)])
        logs += ways[mesh.astype(np.int64)]
    for (epsilon, n), mesh in zip(pure, meshes[len(ranged) :], strict=True):
        logs += -(n - mesh) * math.log1p(math.exp(-epsilon)) - mesh * math.log1p(math.exp(epsilon))
        losses += (n - 2 * mesh) * epsilon
    return logs, tuple(meshes[: len(ranged)]), losses
