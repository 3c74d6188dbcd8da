"""Bounded-range mechanisms with unequal ε, and ε-DP ones, all fixed in advance.

Equal mechanisms share one t ([CR22, Lemma 4.4]), so the optimum is the largest value of a function
of one t per parameter, each in [0, ε]. Boxes of t are bounded from above and halved until none can
hold more than a value that was found (composition/sheared_boxes.py, docs/theory/in-advance.md).
Sums run over how often each parameter gave its smaller loss, so lists must be short.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from farthing.composition.bound import Bound, Sides
from farthing.composition.box_search import BoxSearch
from farthing.composition.boxed_adversary import BoxedAdversary
from farthing.composition.items import Items
from farthing.composition.moments import MomentBound
from farthing.composition.profiles import worst_fixed_t
from farthing.composition.sheared_boxes import Groups, Outcomes, Place
from farthing.guarantees.kinds import BoundedRange, PureDP
from farthing.numerics.bisection import turning_point
from farthing.numerics.rounding import inflated
from farthing.progress import about

#: Parameters and outcomes at most.
MOST_PARAMETERS, MOST_OUTCOMES = 8, 20_000
#: Width that is aimed at where a wider one was asked for: it takes hardly longer.
NARROW = 2e-4
#: Searches at one δ; the second and later ones follow a better place or an undecided one.
MOST_SEARCHES = 3


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
    optimum, tolerance = InAdvance(ranged, pure), min(tolerance, NARROW)
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

    ranged: Groups
    pure: Groups

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
        for _ in range(MOST_SEARCHES):
            for _ in range(3):
                lower = max(lower, self._crossing(place, delta))
                place = self._climb(lower, place)
            lower = max(lower, self._crossing(place, delta))
            upper = min(inflated(lower, 2) * (1 + share) + 1e-9 * self._total, self._total)
            with about(f"ε at least {lower:.5g}, at most {upper:.5g}?"):
                found = self._search(upper, place, delta, 0.0)
            if found.ceiling <= delta or upper >= self._total:
                return lower, upper
            place = found.place
            if found.value <= delta:  # undecided: ask for much less
                share *= 20
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
        adversary = BoxedAdversary.of(self.ranged, self.pure, self.at(x, start))
        search = BoxSearch(self._outcomes, adversary, x, threshold, relative, start)
        ceiling = search.ceiling()
        return _Found(search.place, search.value, ceiling)

    def at(self, x: float, place: Place) -> float:
        """δ at these t, rounded down."""
        return self._outcomes.at(x, place)

    @property
    def _outcomes(self) -> Outcomes:
        return Outcomes.of(self.ranged, self.pure)


@lru_cache(maxsize=64)
def _epsilon(optimum: InAdvance, delta: float, tolerance: float) -> Sides:
    return optimum.epsilon_at(delta, tolerance)
