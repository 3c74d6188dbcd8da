"""A private quantile of whole numbers, by the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from farthing.errors import InvalidInput, require_count
from farthing.guarantees.kinds import BoundedRange
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.noise.exact_sampling import Integers, system_bits
from farthing.mechanisms.protocol import (
    DEFAULT_CONFIDENCE,
    Accuracy,
    Contribution,
    Expectation,
    Mechanism,
    Release,
    Uses,
    check,
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
