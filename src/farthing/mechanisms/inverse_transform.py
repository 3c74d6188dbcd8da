"""Exact draws by inverting a distribution function with lazily refined random bits.

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from farthing.errors import NotCertified
from farthing.mechanisms.randomness import WORD_BITS, BitSource, Words
from farthing.numerics.ball import Ball
from farthing.numerics.search import last_whole

Integers: TypeAlias = npt.NDArray[np.int64]

_GUARD_BITS = 64
_MOST_PRECISION = 1 << 20


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


def bernoulli(probability: Callable[[], Ball], source: BitSource) -> bool:
    """True with the exact probability that `probability` encloses."""
    word, bits = source.word(), WORD_BITS
    while True:
        threshold = scaled_floor(probability, bits)
        if word != threshold:
            return word < threshold
        word = word << WORD_BITS | source.word()
        bits += WORD_BITS
