"""Private quantiles of whole numbers by the exponential mechanism: one, or several for fewer
selections than one each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from farthing.errors import InvalidInput, require_count
from farthing.guarantees.kinds import BoundedRange
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.noise.exact_sampling import Acceptance, BitSource, Integers, system_bits
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Accuracy,
    Contribution,
    Expectation,
    Mechanism,
    Release,
    Uses,
    check,
    joint_level,
    selection_accuracy,
)
from farthing.mechanisms.selection.exponential import Selection

#: Probabilities are fractions with denominators up to this.
LARGEST_DENOMINATOR = 1000
#: Scores below this are moved to it, so that they stay within 64 bits.
_LEAST_SCORE = -(1 << 62)
_LARGEST_VALUE = 1 << 61


def exact_probability(probability: float) -> Fraction:
    """The fraction a/b that a quantile is about: the nearest with a denominator up to 1000."""
    exact = Fraction(probability).limit_denominator(LARGEST_DENOMINATOR)
    if not 0 < exact < 1 and probability not in (0, 1):
        raise InvalidInput(f"probability must be between 1/1000 and 999/1000, got {probability}")
    return exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(Mechanism[Histogram]):
    """A whole number between `lower` and `upper` near the given quantile.

    The histogram's labels are the values (those outside are moved to the nearest bound). With
    q = a/b the probability, as a fraction with denominator at most 1000, value v has the score

        u(v) = −max(0, (b − a)·#{x < v} − a·#{x ≥ v}, a·#{x > v} − (b − a)·#{x ≤ v}),

    which is 0 at the quantile itself, however many values are equal to it. One more value changes
    u(v) by at most a for v below it, b − a for v above it and max(a, b − a) at it, so the range of
    u is at most 2·max(a, b − a) per added value and contribution_limit·per_key_limit times that
    per unit (Theorem 8 of docs/theory/mechanisms.md). Scores below −2^62 count as that: no size of
    the data makes it fail.

    With the probability 0 or 1 it is near the least or the largest value: `beyond` lie beyond it,
    about. That is so many that a value beyond all of the data is chosen rarely.
    """

    probability: float
    epsilon: float
    lower: int
    upper: int
    contribution_limit: int
    per_key_limit: int

    def __post_init__(self) -> None:
        check(self, "epsilon", "contribution_limit", "per_key_limit")
        if self.probability not in (0, 1):
            check(self, "probability")
        lower = require_count("lower", self.lower, at_least=-_LARGEST_VALUE)
        upper = require_count("upper", self.upper, at_least=lower)
        if upper > _LARGEST_VALUE:
            raise InvalidInput(f"upper must be at most 2^61, got {upper}")
        _ = self.fraction

    @property
    def fraction(self) -> Fraction:
        """The probability a/b."""
        return exact_probability(self.probability)

    @property
    def score_range(self) -> int:
        """The range of u over neighbours that differ in one unit."""
        a, b = self.fraction.as_integer_ratio()
        return 2 * max(a, b - a) * self.contribution_limit * self.per_key_limit

    @property
    def beyond(self) -> int:
        """How much should lie beyond a value near the least or the largest. It is public: the
        accuracy of a draw, from the price and the bounds."""
        if 0 < self.probability < 1:
            return 0
        return math.ceil(self._accuracy(DEFAULT_CONFIDENCE).half_width)

    @property
    def assumes(self) -> Contribution:
        """Spans of the score add, so only what a unit adds in total matters."""
        most = self.contribution_limit * self.per_key_limit
        return Contribution(None, most, total=most)

    @property
    def guarantees(self) -> Uses:
        """One ε-bounded-range draw."""
        return ((BoundedRange(self.epsilon), 1),)

    def run(self, histogram: Histogram) -> Release:
        """One value, as the only label."""
        return Release((self.draw(*weights_in(histogram, self.lower, self.upper)),))

    def draw(self, values: Integers, counts: Integers) -> int:
        """One value, from those that have any weight."""
        first, last, scores = self.runs(values, counts)
        source = system_bits()
        race = Selection(scores, self.rate, source, sizes=last - first + 1)
        chosen = race.draw()
        offset = source.below(int(last[chosen] - first[chosen]) + 1)
        return int(first[chosen]) + offset

    @property
    def rate(self) -> Fraction:
        """The factor of the score in the exponent."""
        return Fraction(self.epsilon) / self.score_range

    def runs(self, values: Integers, counts: Integers) -> tuple[Integers, Integers, Integers]:
        """Runs of whole numbers with equal score: the data values and the gaps between them.

        Exact: in Python's whole numbers where 64 bits might be too few.
        """
        most = float(counts.sum()) * self.fraction.denominator + self.beyond
        counts = counts.astype(np.int64 if most < -_LEAST_SCORE else object)
        below = np.concatenate((np.zeros(1, counts.dtype), np.cumsum(counts)))
        total = below[-1]
        a, b = self.fraction.as_integer_ratio()
        excess = (b - a) * below - a * (total - below)  # of what lies below over what lies above
        excess = excess + (2 * a - b) * self.beyond
        at = -np.maximum(0, np.maximum(excess[:-1], -excess[1:]))
        between = -np.abs(excess)
        first = np.concatenate((values, [self.lower], values + 1))
        last = np.concatenate((values, values - 1, [self.upper]))
        scores = np.maximum(np.concatenate((at, between)), _LEAST_SCORE).astype(np.int64)
        real = first <= last
        return first[real], last[real], scores[real]

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """How far the score may fall below 0, its best: in ranks, between value and quantile.

        Between an extreme and the value lies what should lie beyond besides.
        """
        accuracy = self._accuracy(confidence)
        error, wide = accuracy.expected_error + self.beyond, accuracy.half_width + self.beyond
        return Expectation(selection=replace(accuracy, expected_error=error, half_width=wide))

    def _accuracy(self, confidence: float) -> Accuracy:
        rate = float(self.rate) * self.fraction.denominator
        return selection_accuracy(rate, self.upper - self.lower, confidence)


def weights_in(histogram: Histogram, lower: int, upper: int) -> tuple[Integers, Integers]:
    """The values that have any weight, moved to within two bounds, and their weights."""
    present = histogram.counts > 0
    if not present.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    labels, given = histogram.labels[present], histogram.counts[present]
    if labels.dtype.kind not in "iu":
        raise InvalidInput(f"values must be whole numbers, got labels of type {labels.dtype}")
    clipped = np.clip(labels, lower, upper).astype(np.int64)
    values, inverse = np.unique(clipped, return_inverse=True)
    fits = float(given.astype(np.float64).sum()) < -_LEAST_SCORE
    counts = np.zeros(values.size, dtype=np.int64 if fits else object)
    np.add.at(counts, inverse, given.astype(counts.dtype))
    return values, counts


#: How many cells a value has, so that equal values can be divided between two parts.
CELLS = 1 << 20
#: Bounds are at most this, so that cells are counted within 64 bits.
_LARGEST_BOUND = 1 << 40
#: Bands of scores on each side of the quantile. Beyond them all 2^62 cells weigh next to nothing.
_BANDS = 96


def exact_probabilities(given: tuple[float, ...]) -> tuple[Fraction, ...]:
    """The fractions that several quantiles are about. Those relative to a part have denominators
    up to 1000 too."""
    exact = tuple(map(exact_probability, given))
    if not exact or sorted(set(exact)) != list(exact) or not 0 < exact[0] <= exact[-1] < 1:
        raise InvalidInput("probabilities must grow, above 0 and below 1, and be at least one")
    if math.lcm(*(one.denominator for one in exact)) > LARGEST_DENOMINATOR:
        raise InvalidInput(
            f"probabilities must have a common denominator up to {LARGEST_DENOMINATOR}: use "
            "thousandths"
        )
    return exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(Mechanism[Histogram]):
    """Whole numbers near several quantiles, in order: the middle one first, then on both sides of
    it those of the two parts of the data, and so on [KSS22].

    Each value is `CELLS` cells, over which its weight is spread evenly, to whole numbers. The
    middle quantile is a cell: s with probability proportional to e^(−rate·|b·F(s) − a·N|), where
    F(s) is what lies before s, N is everything, and a/b is the probability relative to the part.
    The parts are what lies before s and what does not. So the weight of a unit is divided between
    them, and all draws of one level together are one ε-bounded-range draw (Theorem 18 of
    docs/theory/mechanisms.md). Where nothing is left to divide, the draw is that of a `Quantile`.
    """

    probabilities: tuple[float, ...]
    epsilon: float
    lower: int
    upper: int
    contribution_limit: int
    per_key_limit: int

    def __post_init__(self) -> None:
        exact_probabilities(self.probabilities)
        _ = self.assumes
        if max(abs(self.lower), abs(self.upper)) > _LARGEST_BOUND:
            raise InvalidInput("lower and upper must be at most 2^40")

    def _draws(self) -> Iterator[tuple[int, int, int]]:
        """Each draw after the one that makes its part: (low, middle, high), places in the list of
        0, the probabilities and 1. It finds the middle one in the part between the other two."""
        waiting = [(0, len(self.probabilities) + 1)]
        while waiting:
            low, high = waiting.pop()
            if high - low > 1:
                middle = (low + high) // 2
                yield low, middle, high
                waiting += [(low, middle), (middle, high)]

    def _one(self, draw: tuple[int, int, int], lower: int, upper: int) -> Quantile:
        """The quantile that a draw finds in its part, which lies between these bounds."""
        points = (Fraction(0), *exact_probabilities(self.probabilities), Fraction(1))
        low, middle, high = (points[place] for place in draw)
        return Quantile(
            probability=float((middle - low) / (high - low)),
            epsilon=self.epsilon,
            lower=lower,
            upper=upper,
            contribution_limit=self.contribution_limit,
            per_key_limit=self.per_key_limit,
        )

    @property
    def levels(self) -> int:
        """How many draws any of them depends on, at most: its own, and those of the parts."""
        return len(self.probabilities).bit_length()

    @property
    def assumes(self) -> Contribution:
        return self._one(next(self._draws()), self.lower, self.upper).assumes

    @property
    def guarantees(self) -> Uses:
        """One ε-bounded-range draw for each level."""
        return ((BoundedRange(self.epsilon), self.levels),)

    def run(self, histogram: Histogram) -> Release:
        """The values, as labels."""
        source, weights = system_bits(), weights_in(histogram, self.lower, self.upper)
        whole = Part(self.lower * CELLS, self.upper * CELLS + CELLS - 1, *weights)
        parts, found = {(0, len(self.probabilities) + 1): whole}, {}
        for low, middle, high in self._draws():
            part = parts.pop((low, high))
            one = self._one((low, middle, high), part.first // CELLS, part.last // CELLS)
            if high - low == 2:
                found[middle] = one.draw(part.values, part.counts)
                continue
            cell = part.draw(one.fraction, one.rate, source)
            found[middle] = cell // CELLS
            parts[low, middle], parts[middle, high] = part.divided(cell)
        return Release(tuple(found[place] for place in sorted(found)))

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """The largest error, in ranks. A draw aims between the ends of its part, so it adds to its
        own error those of the two ends, in the proportion of its distances from them."""
        level, values = joint_level(confidence, self.levels), self.upper - self.lower + 1
        errors = {0: (0.0, 0.0), len(self.probabilities) + 1: (0.0, 0.0)}
        for low, middle, high in self._draws():
            one = self._one((low, middle, high), self.lower, self.upper)
            rate = float(one.rate) * one.fraction.denominator
            others = (values if high - low == 2 else values * CELLS) - 1
            own, share = selection_accuracy(rate, others, level), float(one.fraction)
            ends = zip(errors[low], errors[high], strict=True)
            mean, wide = ((1 - share) * left + share * right for left, right in ends)
            errors[middle] = own.expected_error + mean, own.half_width + wide
        mean, wide = (max(column) for column in zip(*errors.values(), strict=True))
        return Expectation(selection=Accuracy(mean, wide, confidence))


class Part:
    """Cells from `first` to `last`, and the weights of the values in them, all above 0."""

    def __init__(self, first: int, last: int, values: Integers, counts: Integers) -> None:
        self.first, self.last, self.values, self.counts = first, last, values, counts
        self._below = np.concatenate((np.zeros(1, counts.dtype), np.cumsum(counts)))

    def _cells(self, place: int) -> tuple[int, int]:
        """The first cell of a value in this part, and how many it has."""
        first = int(self.values[place]) * CELLS
        last = min(first + CELLS - 1, self.last)
        first = max(first, self.first)
        return first, last - first + 1

    def before(self, cell: int) -> int:
        """F: what lies before a cell."""
        place = int(np.searchsorted(self.values, cell // CELLS))
        below = int(self._below[place])
        if place == self.values.size or int(self.values[place]) != cell // CELLS:
            return below
        first, cells = self._cells(place)
        return below + int(self.counts[place]) * (cell - first) // cells

    def reach(self, weight: int) -> int:
        """The first cell before which so much lies; the one after the last if there is none."""
        if weight <= 0:
            return self.first
        if weight > int(self._below[-1]):
            return self.last + 1
        place = int(np.searchsorted(self._below, weight)) - 1
        first, cells = self._cells(place)
        missing = weight - int(self._below[place])
        return min(first - (-missing * cells // int(self.counts[place])), self.last + 1)

    def draw(self, probability: Fraction, rate: Fraction, source: BitSource) -> int:
        """A cell s with probability proportional to e^(−rate·|b·F(s) − a·N|).

        Exact: cells are put into bands by their score, one of which is drawn as if all of its
        cells had the largest score there; a cell of it is kept with probability e^(−rate·less).
        """
        a, b = probability.as_integer_ratio()
        wanted = a * int(self._below[-1])

        def off(cell: int) -> int:
            return abs(b * self.before(cell) - wanted)

        middle = self.reach(-(-wanted // b))
        best = min(off(cell) for cell in (middle - 1, middle) if self.first <= cell <= self.last)
        step = max(math.floor(Fraction(math.log(2)) / rate), 1)
        far = range(_BANDS)
        marks = [-best - step * i for i in reversed(far)] + [best + step * i for i in far]
        starts = [self.first, *(self.reach(-(-(wanted + mark) // b)) for mark in marks)]
        edges = np.array([*starts, self.last + 1], dtype=np.int64)
        cells = edges[1:] - edges[:-1]
        steps = np.array([*reversed(far), 0, *far])  # from the best score to that of a band
        real = np.flatnonzero(cells)
        bands = Selection(-steps[real], rate * step, source, sizes=cells[real])
        coins = Acceptance(rate)
        while True:
            band = int(real[bands.draw()])
            cell = starts[band] + source.below(int(cells[band]))
            if coins.accepts(off(cell) - best - step * int(steps[band]), source):
                return cell

    def divided(self, cell: int) -> tuple[Part, Part]:
        """What lies before a cell, and the rest. Both may have values in the cell itself."""
        value = cell // CELLS
        left = np.where(self.values < value, self.counts, 0)
        place = int(np.searchsorted(self.values, value))
        if place < self.values.size and int(self.values[place]) == value:
            left[place] = self.before(cell) - int(self._below[place])
        right = self.counts - left
        return (
            Part(self.first, cell, self.values[left > 0], left[left > 0]),
            Part(cell, self.last, self.values[right > 0], right[right > 0]),
        )
