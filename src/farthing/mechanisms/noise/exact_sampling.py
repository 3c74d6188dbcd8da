"""Random bits of the operating system, and exact draws with them: inversion, coins for rejection.

Every run of a mechanism opens its own source of bits, so nothing is shared between threads or
inherited across a fork. Bits are read in blocks, because one system call per draw would cost more
than the draw. A seeded source exists for tests only: it is installed for the extent of a `with`
block by the private `_seeded`; no constructor and no `run` accepts a seed.

A uniform real u in [0, 1) is a stream of bits. To draw from a distribution on 0, 1, 2, … with
F(j) = Pr[X < j], return the number of j ≥ 1 with F(j) ≤ u. Only as many bits of u are looked at
as the comparison needs, and F(j) enters through the whole number floor(2^p·F(j)), taken from a
ball that provably determines it. No rounded number is ever compared.

*Proof that the draw is exact.* Let w be the first p bits of u, so that u lies in
[w, w+1)·2^−p, and let t = floor(2^p·F(j)). If w > t then w ≥ t + 1 > 2^p·F(j), hence
u > F(j). If w < t then w + 1 ≤ t ≤ 2^p·F(j), hence u < F(j). If w = t nothing is concluded and
more bits are read. So every comparison that is concluded is the comparison of the real number
u with the real number F(j), and the result has probability F(j+1) − F(j) exactly. It ends
with probability one, because u = F(j) has probability zero.

Coins with probability e^−x are drawn one at a time (`Acceptance`), or as an array (`accept`). The
array version looks at 53 random bits and at a float64 enclosure of e^−x; where those do not decide,
the exact version reads further bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from farthing.errors import NotCertified
from farthing.numerics.ball import Ball, in_balls, middle
from farthing.numerics.search import last_whole, least_reaching

Words = npt.NDArray[np.uint64]

WORD_BITS = 64
_FIRST_BLOCK = 64
_LARGEST_BLOCK = 1 << 14


class BitSource:
    """Independent uniform bits, as arrays of 64-bit words or as whole numbers of any size."""

    __slots__ = ("_block", "_next", "_read", "_words")

    def __init__(self, read: Callable[[int], bytes] = os.urandom) -> None:
        self._read = read
        self._block = _FIRST_BLOCK
        self._words: list[int] = []
        self._next = 0

    def words(self, count: int) -> Words:
        """`count` independent uniform 64-bit words."""
        return np.frombuffer(self._read(8 * count), dtype=np.uint64)

    def word(self) -> int:
        """One uniform 64-bit word."""
        if self._next == len(self._words):
            self._words = self.words(self._block).tolist()
            self._next = 0
            self._block = min(2 * self._block, _LARGEST_BLOCK)
        self._next += 1
        return self._words[self._next - 1]

    def bits(self, count: int) -> int:
        """A uniform whole number below 2^count."""
        number = 0
        for _ in range(0, count, WORD_BITS):
            number = number << WORD_BITS | self.word()
        return number >> -count % WORD_BITS

    def below(self, bound: int) -> int:
        """A uniform whole number in [0, bound), by rejection: exact, no modulo bias."""
        width = (bound - 1).bit_length()
        while True:
            number = self.bits(width)
            if number < bound:
                return number


_TEST_SOURCE: ContextVar[BitSource | None] = ContextVar("_TEST_SOURCE", default=None)


def system_bits() -> BitSource:
    """A source for one run: the operating system, except inside a test's `_seeded` block."""
    return _TEST_SOURCE.get() or BitSource()


@contextmanager
def _seeded(seed: int) -> Iterator[BitSource]:
    """For tests only: every source opened inside the block replays the same seed."""
    source = BitSource(np.random.Generator(np.random.PCG64(seed)).bytes)
    token = _TEST_SOURCE.set(source)
    try:
        yield source
    finally:
        _TEST_SOURCE.reset(token)


Integers: TypeAlias = npt.NDArray[np.int64]

_GUARD_BITS = 64
_MOST_PRECISION = 1 << 20

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
#: Exponents above this are not evaluated: e^−64 only serves as an upper bound for them.
_LARGEST = 64.0
#: Relative error of `_exponential` plus the largest error in x that `accept` tolerates.
_ERROR = 2.0**-37
#: What callers of `accept` must guarantee about their exponents.
EXPONENT_ERROR = 2.0**-38
_SIXTH = 1.0 / 6.0
_TWENTY_FOURTH = 1.0 / 24.0


def scaled_floor(evaluate: Callable[[], Ball], bits: int) -> int:
    """floor(2^bits·x) where `evaluate` encloses x ≥ 0 at the current precision.

    The precision is raised until the ball decides the floor. It does so for every x that is
    not itself a multiple of 2^−bits. The values farthing asks for are rational functions of
    e^r with r a non-zero rational; e^r is transcendental (Lindemann), so they never are, unless
    they are constant, and constants are exact balls.
    """
    precision = bits + _GUARD_BITS
    while precision <= _MOST_PRECISION:
        with ctx.workprec(precision):
            whole = (evaluate() * arb(2) ** bits).floor().unique_fmpz()
        if whole is not None:
            return int(whole)
        precision *= 2
    raise NotCertified("the ball arithmetic could not decide a threshold; nothing was drawn")


def exact_ball(numerator: int, denominator: int) -> Ball:
    """The rational number as a ball, as tight as the current precision allows."""
    return arb(fmpq(numerator, denominator))


@dataclass(frozen=True)
class Inversion:
    """A distribution on 0, 1, 2, … that is drawn from exactly, many at a time.

    `below(j)` encloses F(j) = Pr[X < j] at the current precision; `size` is the number of
    values, or None if there is no largest. The thresholds for the first word are tabulated
    until they reach 2^64 − 1, so a word that lies on no threshold is decided by the table and
    the rest (about one in 2^54) by `_refine`.
    """

    below: Callable[[int], Ball]
    size: int | None
    thresholds: Words = field(init=False)

    def __post_init__(self) -> None:
        thresholds: list[int] = []
        while self.size is None or len(thresholds) + 1 < self.size:
            thresholds.append(self._threshold(len(thresholds) + 1, WORD_BITS))
            if thresholds[-1] == 2**WORD_BITS - 1:
                break
        object.__setattr__(self, "thresholds", np.array(thresholds, dtype=np.uint64))

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent exact draws."""
        words = source.words(count)
        values = np.searchsorted(self.thresholds, words).astype(np.int64)
        if self.thresholds.size:
            nearest = self.thresholds[np.minimum(values, self.thresholds.size - 1)]
            for index in np.flatnonzero(nearest == words).tolist():
                values[index] = self._refine(int(words[index]), source)
        return values

    def _threshold(self, value: int, bits: int) -> int:
        return scaled_floor(lambda: self.below(value), bits)

    def _refine(self, prefix: int, source: BitSource) -> int:
        """The draw whose uniform starts with the word `prefix`."""
        bits = WORD_BITS
        while True:
            prefix = prefix << WORD_BITS | source.word()
            bits += WORD_BITS
            value = self._first_reaching(prefix, bits)
            if value == self.size or self._threshold(value, bits) != prefix:
                return value - 1

    def _first_reaching(self, prefix: int, bits: int) -> int:
        """The smallest j ≥ 1 with floor(2^bits·F(j)) ≥ prefix; `size` counts as reaching."""
        high = 1
        while high != self.size and self._threshold(high, bits) < prefix:
            high = 2 * high if self.size is None else min(2 * high, self.size)
        return last_whole(lambda j: self._threshold(j, bits) < prefix, high // 2, high) + 1


def _lies_below(word: int, threshold: Callable[[int], int], source: BitSource) -> bool:
    """Whether a uniform number that starts with `word` is below x, exactly (see the proof above).

    `threshold(bits)` is floor(2^bits·x).
    """
    bits = WORD_BITS
    while word == (edge := threshold(bits)):
        word, bits = word << WORD_BITS | source.word(), bits + WORD_BITS
    return word < edge


def bernoulli(probability: Callable[[], Ball], source: BitSource) -> bool:
    """True with the exact probability that `probability` encloses."""
    return _lies_below(source.word(), partial(scaled_floor, probability), source)


@in_balls
def symmetric_half_width(tail: Callable[[int], Ball], confidence: float) -> int:
    """The smallest w with Pr[|Z| ≤ w] ≥ confidence, where Pr[Z ≥ w] = Pr[Z ≤ −w] = tail(w)."""
    return least_reaching(lambda w: 2 * tail(w + 1), 1 - arb(confidence))


def geometric(rate: Fraction, size: int | None) -> Inversion:
    """Pr[X = j] proportional to e^(−rate·j) on 0 … size − 1, or on all j ≥ 0."""

    def missing(j: int) -> Ball:
        return -(-exact_ball(j * rate.numerator, rate.denominator)).expm1()

    if size is None:
        return Inversion(missing, None)
    return Inversion(lambda j: missing(j) / missing(size), size)


def accepted_draws(count: int, batch: Callable[[int], Integers]) -> Integers:
    """`count` draws by rejection; `batch(missing)` has those that were kept of a few proposals more
    than are missing."""
    kept = [np.zeros(0, dtype=np.int64)]
    missing = count
    while missing > 0:
        kept.append(batch(missing))
        missing -= kept[-1].size
    return np.concatenate(kept)[:count]


class Acceptance:
    """Coins with probability e^−(rate·distance), for distances that come back often."""

    __slots__ = ("_rate", "_thresholds")

    def __init__(self, rate: Fraction) -> None:
        self._rate = rate
        self._thresholds: dict[int | Fraction, int] = {}

    def weight(self, distance: int | Fraction, bits: int) -> int:
        """floor(2^bits·e^−(rate·distance)) for a distance ≥ 0, a whole or rational number."""
        if distance == 0:
            return 1 << bits
        numerator = self._rate.numerator * distance.numerator
        denominator = self._rate.denominator * distance.denominator
        return scaled_floor(lambda: (-exact_ball(numerator, denominator)).exp(), bits)

    def accepts(self, distance: int | Fraction, source: BitSource) -> bool:
        """True with probability e^−(rate·distance), exactly."""
        if distance == 0:
            return True
        threshold = self._thresholds.get(distance)
        if threshold is None:
            threshold = self._thresholds[distance] = self.weight(distance, WORD_BITS)
        word = source.word()
        if word != threshold:
            return word < threshold
        return _lies_below(word, partial(self.weight, distance), source)


def accept(exponents: Floats, exact: Callable[[int], Fraction], source: BitSource) -> Booleans:
    """Independent coins: the i-th is True with probability e^−exact(i), exactly.

    `exponents[i]` must be within EXPONENT_ERROR of the rational number `exact(i)` ≥ 0, or both
    at least 64. With p the float64 value of `_exponential`, the true probability then lies in
    [p(1 − e), p(1 + e)], e = _ERROR. A coin shows 53 bits v of its uniform, which lies in
    [v, v+1)·2^−53; it is decided where that cell lies on one side of the interval.
    """
    words = source.words(exponents.size)
    accepted, undecided = first_look(exponents, words)
    coin = Acceptance(Fraction(1))
    for index in undecided.tolist():
        threshold = partial(coin.weight, exact(index))
        accepted[index] = _lies_below(int(words[index]), threshold, source)
    return accepted


def first_look(exponents: Floats, words: Words) -> tuple[Booleans, Integers]:
    """What the first word of each coin decides: those accepted so far, and which are open."""
    value = _exponential(np.clip(exponents, 0.0, _LARGEST)) * 2.0**53
    low = np.where(exponents < _LARGEST, value * (1 - _ERROR), 0.0)
    high = value * (1 + _ERROR)
    cells = (words >> np.uint64(11)).astype(np.float64)
    accepted = cells + 1 <= low
    return accepted, np.flatnonzero(~accepted & (cells < high))


def _exponential(x: Floats) -> Floats:
    """e^−x for 0 ≤ x ≤ 64 with relative error below 2^−48.

    x = k/1024 + r with k whole and 0 ≤ r < 2^−10; k and r are exact in float64. e^−(k/1024) is
    the product of two table entries, each within half a unit in the last place (they come from
    balls); e^−r is its Taylor polynomial of degree 4, whose remainder is below r^5/120 < 2^−56.
    Every operation is an IEEE addition or multiplication, correctly rounded: 2 table errors,
    8 operations in the polynomial and 2 products amount to fewer than 16 units of 2^−53 in
    a result that is never cancelled, because e^−r > 0.999.
    """
    k = np.floor(x * 1024.0)
    r = x - k / 1024.0
    index = k.astype(np.int64)
    series = 1.0 - r * (1.0 - r * (0.5 - r * (_SIXTH - r * _TWENTY_FOURTH)))
    value: Floats = _COARSE[index >> 8] * _FINE[index & 255] * series
    return value


def _table(step: Fraction, size: int) -> Floats:
    with ctx.workprec(128):
        unit = exact_ball(step.numerator, step.denominator)
        return np.array([middle((-unit * arb(i)).exp()) for i in range(size)])


_COARSE = _table(Fraction(1, 4), 257)
_FINE = _table(Fraction(1, 1024), 256)
