"""Exact coins with probability e^−x: the acceptance step of rejection samplers.

One coin at a time (`Acceptance`), or an array of them (`accept`). The array version looks at
53 random bits and at a float64 enclosure of e^−x; what those do not decide is handed to the
exact version, which reads further bits.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from farthing.mechanisms.inverse_transform import Integers, exact_ball, scaled_floor
from farthing.mechanisms.randomness import WORD_BITS, BitSource, Words
from farthing.numerics.ball import middle

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

#: Exponents above this are not evaluated: e^−64 only serves as an upper bound for them.
_LARGEST = 64.0
#: Relative error of `_exponential` plus the largest error in x that `accept` tolerates.
_ERROR = 2.0**-37
#: What callers of `accept` must guarantee about their exponents.
EXPONENT_ERROR = 2.0**-38


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
        """True with probability e^−(rate·distance), exactly (see `inverse_transform`)."""
        if distance == 0:
            return True
        threshold = self._thresholds.get(distance)
        if threshold is None:
            threshold = self._thresholds[distance] = self.weight(distance, WORD_BITS)
        word, bits = source.word(), WORD_BITS
        while word == threshold:
            word = word << WORD_BITS | source.word()
            bits += WORD_BITS
            threshold = self.weight(distance, bits)
        return word < threshold


def accept(exponents: Floats, exact: Callable[[int], Fraction], source: BitSource) -> Booleans:
    """Independent coins: the i-th is True with probability e^−exact(i), exactly.

    `exponents[i]` must be within EXPONENT_ERROR of the rational number `exact(i)` ≥ 0, or both
    at least 64. With p the float64 value of `_exponential`, the true probability then lies in
    [p(1 − e), p(1 + e)], e = _ERROR. A coin shows 53 bits v of its uniform, which lies in
    [v, v+1)·2^−53; it is decided where that cell lies on one side of the interval.
    """
    words = source.words(exponents.size)
    accepted, undecided = first_look(exponents, words)
    for index in undecided.tolist():
        accepted[index] = _refine(int(words[index]), exact(index), source)
    return accepted


def first_look(exponents: Floats, words: Words) -> tuple[Booleans, Integers]:
    """What the first word of each coin decides: those accepted so far, and which are open."""
    value = _exponential(np.clip(exponents, 0.0, _LARGEST)) * 2.0**53
    low = np.where(exponents < _LARGEST, value * (1 - _ERROR), 0.0)
    high = value * (1 + _ERROR)
    cells = (words >> np.uint64(11)).astype(np.float64)
    accepted = cells + 1 <= low
    return accepted, np.flatnonzero(~accepted & (cells < high))


def _refine(word: int, exponent: Fraction, source: BitSource) -> bool:
    weight = Acceptance(exponent).weight
    bits = WORD_BITS
    while word == weight(1 if exponent else 0, bits):
        word = word << WORD_BITS | source.word()
        bits += WORD_BITS
    return word < weight(1 if exponent else 0, bits)


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


_SIXTH = 1.0 / 6.0
_TWENTY_FOURTH = 1.0 / 24.0
_COARSE = _table(Fraction(1, 4), 257)
_FINE = _table(Fraction(1, 1024), 256)
