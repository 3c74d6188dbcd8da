"""What noisy totals say about means, variances, covariances and correlations, in half steps.

For the true means the sum of (x − x̄)(y − ȳ) is a combination of the totals with known weights; and
so is what it exceeds C·(n − 1) by, which is 0 if C is the covariance. The same combination of drawn
totals is then one of the noises. A small share of the chance to be wrong goes to where the means
are. They hardly matter, because near its extremes a sum of squares changes little. Then C is
possible where the tail of the noises does not rule it out, whatever the means are there
(Theorem 15 of docs/theory/mechanisms.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from farthing.mechanisms.counts.noisy_totals import NoisyTotals, around
from farthing.mechanisms.protocol import Interval

#: The share of the chance to be wrong that is for what is only needed roughly.
SMALL_SHARE = 1 / 20

#: Weights of totals that are known up to intervals, by their terms.
Weights = Mapping[tuple[int, ...], Interval]


@dataclass(frozen=True, slots=True)
class Combination:
    """A combination of drawn totals: the range that it lies in, and those of its weights."""

    range: Interval
    weights: Weights


@dataclass(frozen=True, slots=True)
class Drawn:
    """The noisy totals of one label, in half steps: what was drawn is `grains` times as much.

    `reaches` are the half steps from the middle of each column to its bounds, and `moved` is how
    far rounding can have moved each total, for each row.
    """

    terms: Sequence[tuple[int, ...]]
    numbers: Sequence[float]
    totals: NoisyTotals
    grains: Sequence[int]
    confidence: float
    reaches: Sequence[int]
    moved: Sequence[float]

    @property
    def missed(self) -> float:
        """The chance to be wrong, less the small share."""
        return (1 - self.confidence) * (1 - SMALL_SHARE)

    def rough(self, parts: int) -> float:
        """The confidence of each of so many things that are only needed roughly."""
        return 1 - (1 - self.confidence) * SMALL_SHARE / parts

    def most_rows(self, level: float) -> float:
        """No more rows than this count."""
        one = [1.0, *(0.0 for _ in self.terms[1:])]
        return max(self.numbers[0] + self.half_width(one, level), 0.0)

    def half_width(self, weights: Sequence[float], confidence: float) -> float:
        """Of a combination of the noises."""
        return self.totals.half_width(self._drawn(weights), confidence)

    def _drawn(self, weights: Sequence[float]) -> list[float]:
        """The weights of what was drawn."""
        return [weight / grain for weight, grain in zip(weights, self.grains, strict=True)]

    def mean(self, column: int, level: float) -> Interval:
        """Of one column."""
        place = self.terms.index((column,))
        grain, off = self.grains[place], self.moved[place]
        drawn = [self.numbers[0], *(0.0 for _ in self.terms[1:])]
        drawn[place] = grain * self.numbers[place]
        reach = float(grain * self.reaches[column])
        low, high = self.totals.ratio(drawn, level, reach, place=place)
        return low / grain - off, high / grain + off

    def may_be(self, value: Interval, weights: Weights, rows: float, missed: float) -> bool:
        """Whether a combination can be 0 for the true totals, if it is in this range for the drawn
        ones."""
        sizes = [max(map(abs, weights.get(term, (0.0, 0.0)))) for term in self.terms]
        distance = max(value[0], -value[1], 0.0)
        rounded = rows * sum(size * off for size, off in zip(sizes, self.moved, strict=True))
        return self.totals.outside(self._drawn(sizes), distance - rounded) > missed

    def deviations(self, one: int, other: int, means: Mapping[int, Interval]) -> Combination:
        """The sum of (x − x̄)(y − ȳ), for means in these intervals; the noisy rows are above 0."""
        drawn = dict(zip(self.terms, self.numbers, strict=True))
        rows, first, second = drawn[()], drawn[one,], drawn[other,]
        away = [
            [m - total / rows for m in means[i]] for i, total in ((one, first), (other, second))
        ]
        if one == other:
            (low, high), square = means[one], self.reaches[one] ** 2 / 2
            ends = sorted(offset**2 for offset in away[0])
            ends[0] = 0.0 if away[0][0] <= 0 <= away[0][1] else ends[0]
            least = drawn[one, one] / 2 + square * rows - first**2 / rows
            squares = sorted((low**2, high**2))
            squares[0] = 0.0 if low <= 0 <= high else squares[0]
            weights = {
                (): (square + squares[0], square + squares[1]),
                (one,): (-2 * high, -2 * low),
                (one, one): (0.5, 0.5),
            }
        else:
            ends = sorted(x * y for x, y in product(*away))
            least = drawn[one, other] - first * second / rows
            weights = {
                (): times(means[one], means[other]),
                (one,): times((-1.0, -1.0), means[other]),
                (other,): times((-1.0, -1.0), means[one]),
                (one, other): (1.0, 1.0),
            }
        return Combination((least + rows * ends[0], least + rows * ends[-1]), weights)

    def covariance(self, one: int, other: int, largest: float) -> Interval:
        """As of a sample; of a column and itself the variance. Within ±largest, or 0 and that."""
        rows, smallest = self.numbers[0], 0.0 if one == other else -largest
        if rows <= 1 or self.may_be((rows - 1, rows - 1), {(): (1.0, 1.0)}, 0.0, self.missed):
            return smallest, largest
        level = self.rough(len({one, other}) + 1)
        means = {column: self.mean(column, level) for column in (one, other)}
        sums, most = self.deviations(one, other, means), self.most_rows(level)

        def possible(covariance: float) -> bool:
            excess = covariance * (rows - 1)
            value = sums.range[0] - excess, sums.range[1] - excess
            less: Weights = {(): (-covariance, -covariance)}
            return self.may_be(value, plus(sums.weights, less), most, self.missed)

        middle = sum(sums.range) / 2 / (rows - 1)
        return around(possible, min(max(middle, smallest), largest), smallest, largest)

    def correlation(self, one: int, other: int) -> Interval:
        """Of two columns.

        Σxy − r/2·(λ·Σxx + Σyy/λ) is 0 for the true λ, the ratio of the deviations of y and x. That
        is least near the true λ too, so that it matters as little as the means.
        """
        nothing, level = (-1.0, 1.0), self.rough(4)
        if self.numbers[0] <= 1:
            return nothing
        means, most = {c: self.mean(c, level) for c in (one, other)}, self.most_rows(level)
        xx, yy = (self.deviations(c, c, means) for c in (one, other))
        both = self.deviations(one, other, means)
        for square in (xx, yy):
            if square.range[0] <= 0 or self.may_be(square.range, square.weights, most, 1 - level):
                return nothing

        def same(ratio: float) -> bool:
            value = yy.range[0] - ratio * xx.range[1], yy.range[1] - ratio * xx.range[0]
            weights = plus(yy.weights, multiplied(xx.weights, (-ratio, -ratio)))
            return self.may_be(value, weights, most, 1 - level)

        likely = yy.range[0] / xx.range[0]
        squares = around(same, likely, 0.0, 1e6 * likely)
        if squares[0] == 0 or squares[1] == 1e6 * likely:
            return nothing
        low, high = map(math.sqrt, squares)
        best = min(max(math.sqrt(likely), low), high)
        spread = (
            best * xx.range[0] + yy.range[0] / best,
            max(x * xx.range[1] + yy.range[1] / x for x in (low, high)),
        )
        weights = plus(
            multiplied(xx.weights, (low, high)), multiplied(yy.weights, (1 / high, 1 / low))
        )

        def possible(r: float) -> bool:
            ends = sorted(r / 2 * end for end in spread)
            value = both.range[0] - ends[1], both.range[1] - ends[0]
            whole = plus(both.weights, multiplied(weights, (-r / 2, -r / 2)))
            return self.may_be(value, whole, most, self.missed)

        middle = sum(both.range) / spread[0]
        return around(possible, min(max(middle, -1.0), 1.0), *nothing)


def times(one: Interval, other: Interval) -> Interval:
    """All products of a number of one and a number of the other."""
    products = [x * y for x in one for y in other]
    return min(products), max(products)


def multiplied(weights: Weights, factor: Interval) -> Weights:
    """The weights times a number of an interval."""
    return {term: times(weight, factor) for term, weight in weights.items()}


def plus(one: Weights, other: Weights) -> Weights:
    """The weights of a sum."""
    none = (0.0, 0.0)
    return {
        term: (
            one.get(term, none)[0] + other.get(term, none)[0],
            one.get(term, none)[1] + other.get(term, none)[1],
        )
        for term in (*one, *(term for term in other if term not in one))
    }
