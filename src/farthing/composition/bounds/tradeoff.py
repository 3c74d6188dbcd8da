"""What a profile says about guesses: false alarms against misses, chances of being right, μ.

Somebody sees everything that is released and guesses whether a unit is in the data. P is the law
of what they see with the unit and Q without it; α is the chance of a false alarm and β that of a
miss. With V(z) = sup_S P(S) − z·Q(S) every guess has β ≥ 1 − V(z) − zα for every z ≥ 0, and the
largest of these lines is the least β [DRS22, Prop. 2.12]. From z = e^ε ≥ 1 on V is the profile with
the unit. The profile W without it gives the rest: V(1/z) = 1 − 1/z + W(z)/z.

V is convex, so chords between known points lie above it and the chords beside a cell, drawn on,
below it. Both are kept as polygons in z; all else is read off them. Proofs are in
docs/theory/tradeoff.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from flint import arb

from farthing.composition.bounds import Bracket
from farthing.composition.bounds.closed_forms import gaussian_profile
from farthing.errors import Unattainable, require_real
from farthing.numerics.ball import Ball, down, in_balls, up
from farthing.numerics.rounding import UNIT
from farthing.numerics.search import crossing

#: ε and both sides of δ, for increasing ε from 0 on; the last lower side holds from there on.
Profile = Sequence[tuple[float, float, float]]
#: Points (z, V) from (0, 1) on, connected by chords; right of the last one V stays.
Polygon = tuple[tuple[float, float], ...]
#: False alarms and misses.
Errors = tuple[Ball, Ball]

THEOREM = "the profile as a trade-off between false alarms and misses [DRS22, Prop. 2.12]"
#: A bound on the rounding of what is read; all of it is probabilities.
SLACK = 32 * UNIT


@dataclass(frozen=True, slots=True, repr=False)
class Tradeoff:
    """How well anybody can guess from everything that is released, each number from both sides.

    `above` and `below` are polygons around the profile of the unit's presence against its absence.
    """

    above: Polygon
    below: Polygon
    theorem: str = THEOREM

    @staticmethod
    def of(with_unit: Profile, without_unit: Profile) -> Tradeoff:
        """From the profiles of both directions of neighbours."""
        points = _points(with_unit, without_unit)
        above = [(0.0, 1.0), *((z, high) for z, _, high in points)]
        return Tradeoff(_hull(above), ((0.0, 1.0), *_from_below(points)))

    def __repr__(self) -> str:
        right = self.guess_membership()
        return f"Tradeoff(from even odds right at most {right.upper:.6g} of the time)"

    def beta_at(self, alpha: float) -> Bracket:
        """The least chance of a miss of whoever has false alarms with probability `alpha`."""
        alpha = require_real("alpha", alpha, at_least=0, at_most=1)
        low, high = (max(1 - v - z * alpha for z, v in one) for one in (self.above, self.below))
        return self._bracket(low, min(high, 1 - alpha))  # as good as a coin

    @property
    def advantage(self) -> Bracket:
        """The largest 1 − α − β: total variation, δ at ε = 0."""
        return self._bracket(_value(self.below, 1.0), _value(self.above, 1.0))

    def guess_membership(self, prior: float = 0.5) -> Bracket:
        """The largest chance of being right about whether the unit is in the data.

        `prior` is the probability that it is, for whoever has not looked: the largest
        (1 − prior)·(1 − α) + prior·(1 − β) is (1 − prior) + prior·V((1 − prior)/prior).
        """
        prior = require_real("prior", prior, above=0, below=1)
        sides = (_value(one, (1 - prior) / prior) for one in (self.below, self.above))
        low, high = (1 - prior + prior * value for value in sides)
        return self._bracket(low, high)

    def guess_record(self, prior: float) -> Bracket:
        """The largest chance of being right about which of several records the unit has.

        `prior` is the probability of the likeliest one: 1/n for n records that are equally likely.
        At most 1 − f(prior), f being the least β. The lower side is reached by a mechanism that
        looks for one of the records.
        """
        prior = require_real("prior", prior, above=0, at_most=1)
        second = min(prior, 1 - prior)
        found = _value(self.below, prior / second) if second > 0 else 0.0
        return self._bracket(prior + second * found, 1 - self.beta_at(prior).lower)

    @in_balls
    def mu(self, least: float = 1e-4) -> Bracket:
        """How it compares with Gaussian noise, wherever α and β are at least `least`.

        There everything is μ-GDP with the upper end, and no better than μ-GDP with the lower one.
        The ends are far apart where the curve is not that of Gaussian noise. No μ covers a leak, so
        `least` must be above 0.
        """
        least = require_real("least", least, above=0, below=0.5)
        upper = [mu for _, *ends in _segments(self.above, least) for mu in map(_mu, ends)]
        lower = [_least_mu(*segment) for segment in _segments(self.below, least)]
        if not upper:
            raise Unattainable(f"both errors can be less than {least:g} at once")
        high = max(0.0, *(up(mu) for mu in upper))
        return Bracket(min(high, max(0.0, min(lower, default=0.0))), high, self.theorem)

    def _bracket(self, low: float, high: float) -> Bracket:
        low, high = max(0.0, low - SLACK), min(1.0, high + SLACK)
        return Bracket(min(low, 1.0), max(high, 0.0), self.theorem)


def _points(with_unit: Profile, without_unit: Profile) -> list[tuple[float, float, float]]:
    """(z, lower, upper) for increasing z, with what floats z = e^ε and 1/z cost: |zV'| ≤ 1."""
    mirrored = [
        ((z := math.exp(-x)), 1 - z + z * low, 1 - z + z * high)
        for x, low, high in reversed(without_unit)
        if x > 0
    ]
    ahead = [(math.exp(x), low, high) for x, low, high in with_unit]
    return [
        (z, max(0.0, low - SLACK), min(1.0, high + SLACK)) for z, low, high in (*mirrored, *ahead)
    ]


def _hull(points: Sequence[tuple[float, float]]) -> Polygon:
    """The lower convex hull; the products that decide are exact."""
    kept: list[tuple[float, float]] = []
    for point in points:
        while len(kept) > 1 and _slope(kept[-2], kept[-1]) >= _slope(kept[-1], point):
            kept.pop()
        kept.append(point)
    return tuple(kept)


def _slope(left: tuple[float, float], right: tuple[float, float]) -> Fraction:
    """Exactly."""
    return Fraction(right[1] - Fraction(left[1])) / (Fraction(right[0]) - Fraction(left[0]))


def _from_below(points: list[tuple[float, float, float]]) -> Iterator[tuple[float, float]]:
    """Points of a polygon below V: in each cell the chords of the cells beside it, drawn on.

    From (z₋, upper) to (z, lower) a chord is at least as steep as V left of z, so V lies above it
    right of z; the same from the other side. Right of the last point V stays.
    """
    before = (0.0, 1.0, 1.0)
    for place, (here, there) in enumerate(pairwise(points)):
        yield here[:2]
        after = points[place + 2] if place + 2 < len(points) else None
        left = _slope((before[0], before[2]), here[:2])
        falling = Fraction(0) if after is None else _slope(there[:2], (after[0], after[2]))
        right = min(falling, Fraction(0))  # V decreases
        before = here
        if left < right:
            width, rise = Fraction(there[0]) - Fraction(here[0]), Fraction(there[1])
            step = (rise - Fraction(here[1]) - right * width) / (left - right)
            z, value = float(here[0] + step), float(here[1] + left * step)
            if here[0] < z < there[0]:
                yield z, max(0.0, value - SLACK)
    yield points[-1][:2]


def _value(polygon: Polygon, z: float) -> float:
    """The polygon at z."""
    for (left, v), (right, w) in pairwise(polygon):
        if z <= right:
            return v + (w - v) * ((z - left) / (right - left))
    return polygon[-1][1]


def _segments(
    polygon: Polygon, least: float
) -> Iterator[tuple[tuple[float, float], Errors, Errors]]:
    """The lines 1 − V − zα whose maximum is the curve, each with the ends of its part of it.

    Cut off where an error is less than `least`. The end with more false alarms comes first.
    """
    polygon = _hull(polygon)
    corners = [
        ((arb(v) - w) / (arb(right) - z), 1 - v - z * (arb(v) - w) / (arb(right) - z))
        for (z, v), (right, w) in pairwise(polygon)
    ]
    corners.append((arb(0), 1 - arb(polygon[-1][1])))
    for line, ((a, b), (c, d)) in zip(polygon[1:], pairwise(corners), strict=True):
        first = arb(0) if b >= least else (least - b) / (d - b)
        last = arb(1) if c >= least else (a - least) / (a - c)
        if first < last:
            start, end = ((a + (c - a) * t, b + (d - b) * t) for t in (first, last))
            yield line, start, end


def _mu(errors: Errors) -> Ball:
    """The μ whose curve goes through these errors: Φ⁻¹(1 − α) + Φ⁻¹(1 − β)."""
    return arb(2).sqrt() * sum((2 * error).erfcinv() for error in errors)


def _least_mu(line: tuple[float, float], first: Errors, last: Errors) -> float:
    """The largest μ whose curve G lies nowhere below this part of a line.

    G is convex, so the μ through a point of the line falls and then rises along it. It rises from
    the end with the fewest false alarms on if G is less steep there than the line, up to the other
    end if G is steeper there. Otherwise the whole line lies below G if δ of μ-GDP is at most V.
    """
    z, value = line
    for (alpha, beta), side in ((last, -1), (first, 1)):
        mu = _mu((alpha, beta))
        steep = mu * (arb(2).sqrt() * (2 * alpha).erfcinv() - mu / 2) - arb(z).log()
        if steep * side > 0:
            return down(mu)
    if value <= max(0.0, 1 - z) + SLACK:
        return 0.0
    sigma = crossing(
        lambda noise: gaussian_profile(arb(z).log(), arb(noise)), value, start=1.0, width=1e-7
    )
    return down(1 / arb(sigma[1]))
