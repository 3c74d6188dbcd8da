"""Totals of whole numbers, each with noise of its own, and what combinations of them can be.

A number that is computed from totals (a mean, a variance, a coefficient) makes a combination of the
true totals 0. The same combination of the drawn ones is then one of the noises alone, whatever the
totals are, and its tail says which numbers are possible (Theorem 15 of docs/theory/mechanisms.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from farthing.errors import InvalidInput, require_count
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms.noise.discrete import (
    Coordinate,
    CoordinateNoise,
    DiscreteLaplaceNoise,
    coordinate_noise,
)
from farthing.mechanisms.noise.exact_sampling import system_bits
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise
from farthing.mechanisms.noise.weighted_sums import continuous_scale, laplace_tail
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Contribution,
    Expectation,
    Interval,
    Mechanism,
    Release,
    Uses,
    require_confidence,
)
from farthing.numerics.search import turning_point

#: Ends of intervals are found to this part of their distance from the middle.
_FINE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTotals(Mechanism[tuple[int, ...]]):
    """Each total plus the noise that its guarantee asks for.

    A unit changes the i-th total by a whole number of at most `limits[i]`, up or down: one
    coordinate each, with noise as many times wider (Theorem 12 of docs/theory/mechanisms.md).
    """

    coordinate: Coordinate
    limits: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.limits:
            raise InvalidInput("there must be at least one total, got none")
        for limit in self.limits:
            require_count("a limit of a total", limit, at_least=1)
        _ = self.noises  # the scales are checked when the mechanism is made

    @property
    def noises(self) -> tuple[CoordinateNoise, ...]:
        """What is added to each total."""
        return tuple(coordinate_noise(self.coordinate, limit) for limit in self.limits)

    @property
    def assumes(self) -> Contribution:
        """One label, with that many numbers."""
        return Contribution(1, self.limits[0], self.limits[1:])

    @property
    def guarantees(self) -> Uses:
        """One coordinate for each total."""
        return ((self.coordinate, len(self.limits)),)

    def run(self, totals: tuple[int, ...]) -> Release:
        """The noisy totals, in Python's whole numbers: nothing overflows."""
        source = system_bits()
        drawn = tuple(
            total + int(noise.draw(1, source)[0])
            for total, noise in zip(totals, self.noises, strict=True)
        )
        return Release(tuple(range(len(drawn))), drawn)

    def half_widths(self, confidence: float) -> tuple[float, ...]:
        """Intervals around the totals that hold all together."""
        each = 1 - (1 - confidence) / len(self.limits)
        return tuple(noise.half_width(each) for noise in self.noises)

    def outside(self, weights: Sequence[float], distance: float) -> float:
        """At least Pr[|Σ wᵢZᵢ| ≥ distance] for the noises Zᵢ.

        Zᵢ plus a uniform number of [−½, ½] is no wider than a continuous number of its family, so
        the sum lies within Σ|wᵢ|/2 of one that is no wider than a sum of continuous ones.
        """
        far = distance - sum(map(abs, weights)) / 2
        if far <= 0:
            return 1.0
        pairs = zip(weights, _spreads(self.coordinate, self.limits), strict=True)
        spreads = [abs(weight) * spread for weight, spread in pairs if weight]
        if isinstance(self.coordinate, PureDP):
            return laplace_tail(spreads, far)
        return math.erfc(far / (math.sqrt(2) * math.hypot(*spreads))) if spreads else 0.0

    def half_width(self, weights: Sequence[float], confidence: float) -> float:
        """A w with Pr[|Σ wᵢZᵢ| ≤ w] ≥ confidence."""
        missed = 1 - require_confidence(confidence)
        high = 1.0
        while self.outside(weights, high) > missed:
            high *= 2
        return turning_point(
            lambda width: self.outside(weights, width) > missed, 0.0, high, width=_FINE
        )[1]

    def ratio(
        self,
        drawn: Sequence[float],
        confidence: float,
        largest: float | None = None,
        *,
        place: int = 1,
    ) -> Interval:
        """What a total (by its place) over the first may be, by what was drawn; within ±largest.

        For the true ratio m, s − m·n of the drawn totals is one noise less m times the other, so
        {m : |s − m·n| is not ruled out} holds it with this confidence (after Fieller). Where n may
        be 0 nothing is known: without `largest`, the ratio is then as large as if n were 1.
        """
        count, total, missed = drawn[0], drawn[place], 1 - confidence
        far = largest
        if far is None:
            far = abs(total) + 10 * self.noises[place].half_width(confidence)

        def weights(m: float, other: float = 1.0) -> list[float]:
            return [m, *(other if i == place else 0.0 for i in range(1, len(self.limits)))]

        if count <= 0 or self.outside(weights(1.0, 0.0), count) > missed:
            return -far, far

        def possible(m: float) -> bool:
            return self.outside(weights(m), abs(total - m * count)) > missed

        middle = min(max(total / count, -far), far)
        return around(possible, middle, -far, far)

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """Intervals around the totals."""
        return Expectation(totals=self.half_widths(require_confidence(confidence)))


def around(possible: Callable[[float], bool], middle: float, low: float, high: float) -> Interval:
    """Everything from low to high that is possible, or a little more, beginning in the middle."""
    if not possible(middle):
        return middle, middle

    def last(end: float) -> float:
        if end == middle or possible(end):
            return end
        way = end - middle
        within = turning_point(lambda s: possible(middle + s * way), 0.0, 1.0, width=_FINE)
        return middle + within[1] * way

    return last(low), last(high)


@lru_cache(maxsize=256)
def _spreads(coordinate: Coordinate, limits: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(_spread(coordinate_noise(coordinate, limit)) for limit in limits)


def _spread(noise: CoordinateNoise) -> float:
    """The scale (Laplace) or deviation of the continuous noise that `outside` takes instead. What
    was rounded is taken as it was before."""
    if isinstance(noise, DiscreteLaplaceNoise):
        return continuous_scale(noise)
    if isinstance(noise, RoundedGaussianNoise):
        return float(noise.deviation)
    return math.sqrt(noise.variance)
