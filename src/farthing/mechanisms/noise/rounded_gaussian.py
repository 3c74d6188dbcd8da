"""Rounded Gaussian noise: Z = round(G) for a continuous normal number G.

round(n + G) = n + round(G) for a whole number n, so what is released is a function of the output
of the continuous Gaussian mechanism and promises what that promises, whatever the sensitivity
(Theorem 2a of docs/theory/mechanisms.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from flint import arb

from farthing.errors import InvalidInput
from farthing.mechanisms.noise.exact_sampling import (
    WORD_BITS,
    Acceptance,
    BitSource,
    Integers,
    accepted_draws,
    exact_ball,
    first_look,
    geometric,
    symmetric_half_width,
)
from farthing.numerics.ball import Ball

#: With counts below 2^62 sums stay inside 64 bits: noise beyond 2^62 has probability e^−(2^27).
LARGEST_DEVIATION = 1 << 48

#: Up to this s moments are summed term by term; above it they are those of G.
_SUMMED = 256
#: A word is 63 bits of the fraction and a sign.
_FRACTION_BITS = WORD_BITS - 1
_COIN = Acceptance(Fraction(1))
_WHOLE = geometric(Fraction(1, 2), None)


@dataclass(frozen=True, slots=True)
class RoundedGaussianNoise:
    """Z = round(G), G normal with mean 0 and an exact rational standard deviation s.

    |G|/s is a whole part k and a fraction x that is known to as many bits as are needed. They are
    proposed with k geometric of ratio e^−½ and x uniform, and kept with probability
    e^−(k(k−1) + x(2k+x))/2 [Kar16]: the product with e^(−k/2) is e^−(k+x)²/2.
    """

    deviation: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "deviation", Fraction(self.deviation))
        if not 0 < self.deviation <= LARGEST_DEVIATION:
            raise InvalidInput(
                "the standard deviation of the noise must be greater than 0 and at most 2^48, "
                f"got {float(self.deviation):g}"
            )

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent exact draws."""
        return accepted_draws(
            count, lambda missing: self._kept_of(2 * missing + missing // 4 + 16, source)
        )

    def _kept_of(self, proposals: int, source: BitSource) -> Integers:
        """The accepted ones of `proposals` proposals, scaled and rounded.

        Fractions enter as their first 53 bits. For the coins: that moves an exponent by less than
        (k + 1)·2^−53, and where it is at most 64, so that k ≤ 12, rounding adds less than 2^−45:
        within EXPONENT_ERROR. For rounding: x, k + x, s and the product are each off by a unit of
        2^−53 at most, together by less than s(k + 1)·2^−50; what is that close to a half is
        settled exactly.
        """
        whole = _WHOLE.draw(proposals, source)
        words = source.words(proposals)
        fraction = (words >> np.uint64(11)) * 2.0**-53
        exponents = (whole * (whole - 1) + fraction * (2 * whole + fraction)) / 2
        coins = source.words(proposals)
        keep, undecided = first_look(exponents, coins)
        refined: dict[int, _Fraction] = {}
        for index in undecided.tolist():
            refined[index] = _Fraction(int(words[index]) >> 1, _FRACTION_BITS)
            keep[index] = refined[index].accepted(int(whole[index]), int(coins[index]), source)
        scaled = (whole + fraction) * float(self.deviation)
        rounded = np.rint(scaled)
        margin = (whole + 1) * (float(self.deviation) * 2.0**-50)
        close = keep & (np.abs(scaled - rounded) >= 0.5 - margin)
        values = np.where(keep, rounded, 0.0).astype(np.int64)
        for index in np.flatnonzero(close).tolist():
            known = refined.get(index) or _Fraction(int(words[index]) >> 1, _FRACTION_BITS)
            values[index] = known.rounded(self.deviation, int(whole[index]), source)
        signed: Integers = np.where(words & np.uint64(1), -values, values)
        return signed[keep]

    @property
    def variance(self) -> float:
        """E[Z²] = Σ_j (2j − 1)·Pr[|Z| ≥ j]; s² + 1/12 as soon as s is not small."""
        if self.deviation > _SUMMED:
            return float(self.deviation**2) + 1 / 12
        return math.fsum((2 * j + 1) * tail for j, tail in enumerate(self._tails()))

    def expected_absolute(self, times: int = 1) -> float:
        """E|Z| = Σ_j Pr[|Z| ≥ j]; for a mean of n draws that of a normal number."""
        if times > 1:
            return math.sqrt(self.variance * 2 / math.pi / times)
        if self.deviation > _SUMMED:
            return float(self.deviation) * math.sqrt(2 / math.pi)
        return math.fsum(self._tails())

    def _tails(self) -> list[float]:
        """Pr[|Z| ≥ j] for j = 1, 2, …, as far as they matter."""
        scale = float(self.deviation) * math.sqrt(2)
        return [math.erfc((j - 0.5) / scale) for j in range(1, math.ceil(9 * scale) + 2)]

    def tail(self, least: int) -> Ball:
        """Pr[Z ≥ least] = Pr[G ≥ least − ½]."""
        at = Fraction(2 * least - 1, 2) / self.deviation
        return (exact_ball(at.numerator, at.denominator) / arb(2).sqrt()).erfc() / 2

    def half_width(self, confidence: float, times: int = 1) -> float:
        """The smallest w with Pr[|Z| ≤ w] ≥ confidence; for a mean at most ½ more than that.

        Each Z lies within ½ of its G, so the mean of n lies within ½ of a normal number with
        deviation s/√n.
        """
        if times == 1:
            return symmetric_half_width(self.tail, confidence)
        quantile = -NormalDist().inv_cdf((1 - confidence) / 2) * (1 + 1e-9)
        return quantile * float(self.deviation) / math.sqrt(times) + 0.5


@dataclass(slots=True)
class _Fraction:
    """A uniform real number x, of which `bits` bits are known: it lies in [known, known+1)·2^−bits.

    A comparison is concluded where it comes out the same for every x of that interval; else more
    bits are read. So each conclusion is about the real number.
    """

    known: int
    bits: int

    def extend(self, source: BitSource) -> None:
        """Read one word more."""
        self.known = self.known << WORD_BITS | source.word()
        self.bits += WORD_BITS

    def accepted(self, whole: int, coin: int, source: BitSource) -> bool:
        """A coin with probability e^−(k(k−1) + x(2k+x))/2, of whose uniform one word is known."""
        size = WORD_BITS
        while True:
            low, high = (self._exponent(whole, end) for end in (self.known, self.known + 1))
            if coin + 1 <= _COIN.weight(high, size):
                return True
            if coin > _COIN.weight(low, size):
                return False
            coin, size = coin << WORD_BITS | source.word(), size + WORD_BITS
            self.extend(source)

    def _exponent(self, whole: int, end: int) -> Fraction:
        x = Fraction(end, 1 << self.bits)
        return (whole * (whole - 1) + x * (2 * whole + x)) / 2

    def rounded(self, deviation: Fraction, whole: int, source: BitSource) -> int:
        """round(s(k + x)): floor(s(k + x) + ½), the same at both ends of the interval."""
        while True:
            first, last = (
                deviation * (whole + Fraction(end, 1 << self.bits)) + Fraction(1, 2)
                for end in (self.known, self.known + 1)
            )
            if math.floor(first) == math.ceil(last) - 1:
                return math.floor(first)
            self.extend(source)
