"""The exponential mechanism, exactly: draws without replacement in Gumbel order.

Candidates have scores s_i; each draw picks a remaining candidate with probability proportional
to e^(rate·s_i). Adding independent Gumbel noise of scale 1/rate to every score and reading off
the candidates in decreasing order gives the same sequence [DR19], so k draws are the k first
labels in that order.

One draw costs about the same whether scores are equal or far apart. Candidates are cut into
*buckets* of neighbouring scores, each at most ln 2/rate wide, from the top down. A draw

1. picks a bucket with probability proportional to n·e^(rate·top), n the number of candidates
   still in it and `top` its largest score;
2. picks one of the n uniformly;
3. keeps it with probability e^(−rate·(top − s)), which is at least one half, else starts again.

*Proof.* A candidate with score s in a bucket (n, top) is proposed and kept with probability
proportional to n·e^(rate·top) · 1/n · e^(−rate·(top − s)) = e^(rate·s). ∎ Where the cuts lie does
not matter for this, only that no score in a bucket exceeds its top.

Step 1 is exact: each e^(rate·(top − first top)) is enclosed between two whole numbers over 2^P,
candidates beyond the last bucket that has been cut are bounded together, and the uniform
number that picks the bucket is refined, bits and weights alike, until its cell lies inside
one bucket's interval. Steps 2 and 3 are exact by `BitSource.below` and `Acceptance`.

Sorting ten million scores takes over a second, and a draw looks at a few hundred of them. So
`Descending` splits off a head by partitioning, in linear time, and sorts only the head.

Bounded range is Proposition 2 of [DDR20].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from farthing.errors import InvalidInput, require_count, require_real
from farthing.guarantees.kinds import BoundedRange
from farthing.mechanisms.histogram import Histogram, labels_at
from farthing.mechanisms.noise.exact_sampling import (
    WORD_BITS,
    Acceptance,
    BitSource,
    Integers,
    system_bits,
)
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

Score: TypeAlias = int | float
Scores: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_FIRST_HEAD = 1 << 12
_GROWTH = 8
_LOWEST = -(1 << 63)

#: Candidates in no bucket must weigh less than 2^−_SLACK_BITS of the last bit of the uniform.
_SLACK_BITS = 8
#: What a draw returns when the stop candidate (⊥) is picked.
STOP = -1
_NO_ENTRIES: Integers = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class Bucket:
    """`left` candidates with scores of at most `top`; entries beyond them have been drawn.

    `index` and `scores` describe the entries; where an entry stands for several candidates,
    `ends` counts the candidates up to and including each entry.
    """

    top: Score
    left: int
    index: Integers
    scores: Scores
    ends: Integers | None = None

    def entry(self, offset: int) -> int:
        """The entry that holds the candidate with this number."""
        if self.ends is None:
            return offset
        return int(np.searchsorted(self.ends, offset, side="right"))

    def take_out(self, entry: int) -> None:
        """Swap an entry with the last one and shorten the bucket."""
        self.left -= 1
        for array in (self.index, self.scores):
            array[entry], array[self.left] = array[self.left], array[entry]


class Descending:
    """Scores handed out bucket by bucket, highest first."""

    def __init__(self, scores: Scores, sizes: Integers | None = None) -> None:
        self.remaining = int(scores.size) if sizes is None else int(sizes.sum())
        self._sizes = sizes
        self._rest = scores
        self._rest_index: Integers | None = None
        self._head_index: Integers = np.zeros(0, dtype=np.int64)
        self._head: Scores = scores[:0]
        self._next_size = _FIRST_HEAD if sizes is None else int(scores.size)

    @property
    def top(self) -> Score:
        """The largest score that has not been handed out."""
        if self._head.size == 0:
            self._split_off_head()
        value: Score = self._head[-1].item()
        return value

    def take(self, width: float) -> Bucket:
        """All entries of the head with scores down to `width` below the top."""
        top = self.top
        start = int(np.searchsorted(self._head, _lowest_with(top, width)))
        index, scores = self._head_index[start:], self._head[start:]
        self._head_index, self._head = self._head_index[:start], self._head[:start]
        ends = None if self._sizes is None else np.cumsum(self._sizes[index])
        left = int(index.size) if ends is None else int(ends[-1])
        self.remaining -= left
        return Bucket(top, left, index, scores, ends)

    def _split_off_head(self) -> None:
        rest, size = self._rest, self._next_size
        index = np.arange(rest.size) if self._rest_index is None else self._rest_index
        if 2 * size >= rest.size:
            order = np.argsort(rest)
            self._head_index, self._head = index[order], rest[order]
            self._rest, self._rest_index = rest[:0], index[:0]
            return
        least = np.partition(rest, rest.size - size)[rest.size - size]
        above, ties = np.flatnonzero(rest > least), np.flatnonzero(rest == least)
        order = np.concatenate((ties, above[np.argsort(rest[above])]))
        below = np.flatnonzero(rest < least)
        self._head_index, self._head = index[order], rest[order]
        self._rest, self._rest_index = rest[below], index[below]
        self._next_size = size * _GROWTH


def _lowest_with(top: Score, width: float) -> Score:
    """The lowest score that shares a bucket with `top`."""
    if isinstance(top, float):
        return top - width
    return max(top - max(math.floor(width) - 1, 0), _LOWEST)


class Selection:
    """Draws from a set of candidates, one after the other.

    `scores` are whole numbers or floats, which are taken as the exact numbers they are. `stop`,
    given as (score, multiplicity), adds a candidate of weight multiplicity·e^(rate·score).
    `sizes` says how many equal candidates each entry stands for; then only one draw is allowed.
    """

    def __init__(
        self,
        scores: Scores,
        rate: Fraction,
        source: BitSource,
        *,
        sizes: Integers | None = None,
        stop: tuple[Score, int] | None = None,
    ) -> None:
        self._uncut = Descending(scores, sizes)
        self._source = source
        self._coins = Acceptance(rate)
        self._width = float(min(Fraction(math.log(2)) / rate, Fraction(2) ** 62))
        self._guard_bits = _SLACK_BITS + 8 + self._uncut.remaining.bit_length()
        self._buckets: list[Bucket] = []
        self._stop = None if stop is None else Bucket(*stop, _NO_ENTRIES, _NO_ENTRIES)
        self._first: Score = 0
        self._weights: dict[tuple[Score, int], int] = {}

    def draw(self) -> int:
        """The index of the next candidate, which is then removed, or STOP."""
        while True:
            bucket = self._pick_bucket()
            if bucket is self._stop:
                return STOP
            entry = bucket.entry(self._source.below(bucket.left))
            distance = _minus(bucket.top, bucket.scores[entry].item())
            if self._coins.accepts(distance, self._source):
                chosen = int(bucket.index[entry])
                if bucket.ends is None:
                    bucket.take_out(entry)
                return chosen

    def _pick_bucket(self) -> Bucket:
        uniform, bits = self._source.word(), WORD_BITS
        while True:
            precision = bits + self._guard_bits
            buckets = self._open_buckets(precision)
            lower, upper = [0], [0]
            for bucket in buckets:
                weight, slack = self._weight(bucket.top, precision)
                lower.append(lower[-1] + bucket.left * weight)
                upper.append(upper[-1] + bucket.left * (weight + slack))
            total_low, total_high = lower[-1], upper[-1] + self._rest(precision)
            for index, bucket in enumerate(buckets):
                if (uniform + 1) * total_high <= lower[index + 1] << bits:
                    if uniform * total_low >= upper[index] << bits:
                        return bucket
                    break
            uniform, bits = uniform << WORD_BITS | self._source.word(), bits + WORD_BITS

    def _open_buckets(self, precision: int) -> list[Bucket]:
        """Buckets that still hold candidates; more are cut until the rest weighs almost nothing."""
        self._buckets = [bucket for bucket in self._buckets if bucket.left]
        if not self._buckets and self._uncut.remaining:
            self._buckets.append(self._uncut.take(self._width))
        stop = [] if self._stop is None else [self._stop]
        first = max(bucket.top for bucket in [*stop, *self._buckets])
        if first != self._first:
            self._first = first
            self._weights.clear()
        while self._rest(precision) >> (self._guard_bits - _SLACK_BITS):
            self._buckets.append(self._uncut.take(self._width))
        return [*stop, *self._buckets]

    def _rest(self, precision: int) -> int:
        """An upper bound on the weight of the candidates that are in no bucket yet."""
        if self._uncut.remaining == 0:
            return 0
        weight, slack = self._weight(self._uncut.top, precision)
        return self._uncut.remaining * (weight + slack)

    def _weight(self, score: Score, precision: int) -> tuple[int, int]:
        """floor(2^P·e^(rate·(score − first))) and how much the exact value may exceed it by."""
        key = (score, precision)
        weight = self._weights.get(key)
        if weight is None:
            weight = self._coins.weight(_minus(self._first, score), precision)
            self._weights[key] = weight
        return weight, 0 if score == self._first else 1


def _minus(high: Score, low: Score) -> int | Fraction:
    if isinstance(high, int) and isinstance(low, int):
        return high - low
    return Fraction(high) - Fraction(low)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByScore:
    """A selection by scores u(y).

    `score_range` bounds, over all neighbours, how much more the score of one candidate may
    change than that of another: sup {u(x, y) − u(x', y) − u(x, y') + u(x', y')}.
    """

    epsilon: float
    score_range: float

    def __post_init__(self) -> None:
        check(self, "epsilon", "score_range")

    @property
    def rate(self) -> Fraction:
        """The exact factor of the score in the exponent."""
        return Fraction(self.epsilon) / Fraction(self.score_range)

    def accuracy(self, *, domain_size: int, confidence: float = DEFAULT_CONFIDENCE) -> Accuracy:
        """How far below the best score the chosen one lies, among `domain_size` candidates."""
        size = require_count("domain_size", domain_size, at_least=1)
        return selection_accuracy(float(self.rate), size - 1, confidence)


class ExponentialMechanism(ByScore):
    """Candidate y with probability proportional to e^(ε·u(y)/score_range): ε-bounded range."""

    __slots__ = ()

    @classmethod
    def from_sensitivity(
        cls, *, epsilon: float, sensitivity: float, monotone: bool = False
    ) -> ExponentialMechanism:
        """By Proposition 1 of [DDR20] the range is at most 2·sensitivity, or 1· if monotone.

        Monotone: adding a unit never lowers a score (or never raises one).
        """
        size = require_real("sensitivity", sensitivity, above=0)
        return cls(epsilon=epsilon, score_range=size if monotone else 2 * size)

    @property
    def guarantees(self) -> Uses:
        """One ε-bounded-range draw."""
        return ((BoundedRange(self.epsilon), 1),)

    def run(self, scores: ArrayLike) -> int:
        """The position of the chosen score."""
        return Selection(score_array(scores), self.rate, system_bits()).draw()


def score_array(scores: ArrayLike) -> Scores:
    """Scores as whole numbers or floats, all finite."""
    array = np.asarray(scores)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(f"scores must be a non-empty sequence, got shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise InvalidInput(f"scores must be numbers, got the type {array.dtype}")
    if array.dtype.kind != "f":
        if int(array.max()) >= 1 << 63:
            raise InvalidInput("whole-number scores must be below 2^63")
        return array.astype(np.int64)
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise InvalidInput(
            f"scores must be finite; {wrong.size} of {array.size} are not, "
            f"the first at position {wrong[0]}"
        )
    return array.astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastTotal(ByScore, Mechanism[Histogram]):
    """One label whose total is about the least: the exponential mechanism with score −total.

    A unit more changes all totals by amounts that differ from one another by at most
    `score_range`, so the draw is ε-bounded range (Definition of [DDR20]).
    """

    score_range: int

    def __post_init__(self) -> None:
        check(self, "epsilon")
        require_count("score_range", self.score_range, at_least=1)

    @property
    def assumes(self) -> Contribution:
        """All totals may change, within the range."""
        return Contribution(None, self.score_range)

    @property
    def guarantees(self) -> Uses:
        """One ε-bounded-range draw."""
        return ((BoundedRange(self.epsilon), 1),)

    def run(self, totals: Histogram) -> Release:
        """The chosen label alone."""
        chosen = Selection(-totals.counts, self.rate, system_bits()).draw()
        return Release(labels_at(totals, [chosen]))

    def expect(
        self, confidence: float = DEFAULT_CONFIDENCE, *, domain_size: int | None = None
    ) -> Expectation:
        """How far the chosen total may lie above the least, among `domain_size` labels."""
        size = require_count("domain_size", domain_size, at_least=1)
        return Expectation(selection=self.accuracy(domain_size=size, confidence=confidence))
