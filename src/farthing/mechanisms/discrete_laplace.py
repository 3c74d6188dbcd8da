"""Discrete Laplace noise: Pr[Z = z] proportional to e^(−|z|/scale) on the whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from farthing.errors import InvalidInput
from farthing.mechanisms.inverse_transform import Integers, Inversion, exact_ball
from farthing.mechanisms.randomness import BitSource
from farthing.mechanisms.tails import symmetric_half_width
from farthing.numerics.ball import Ball
from farthing.numerics.search import turning_point

#: With counts below 2^62 and scales up to this, sums stay inside 64 bits: noise beyond 2^62
#: has probability below e^−(2^22).
LARGEST_SCALE = 1 << 40

_RADIX = 1024
#: The top digit is tabulated in full; 44.4 scales reach probability 2^−64.
_TOP_SCALE = 32


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise:
    """Z with Pr[Z = z] = (1 − a)/(1 + a)·a^|z|, a = e^(−1/scale), for an exact rational scale.

    Z = G − G' with independent geometric G, G' (Pr[G = g] = (1 − a)a^g): the sum over g of
    (1 − a)²·a^(2g + |z|) is the formula above. Each G is drawn from its digits, see `_digits`.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", Fraction(self.scale))
        if not 0 < self.scale <= LARGEST_SCALE:
            got = "more" if self.scale > 0 else f"{self.scale}"  # more may be beyond every float
            raise InvalidInput(
                f"the scale of the noise must be greater than 0 and at most 2^40, got {got}"
            )

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent exact draws."""
        total = np.zeros(count, dtype=np.int64)
        for place, digit in _digits(self.scale):
            pair = digit.draw(2 * count, source)
            total += place * (pair[:count] - pair[count:])
        return total

    @property
    def variance(self) -> float:
        """2a/(1 − a)²."""
        a = math.exp(-1 / self.scale)
        return 2 * a / math.expm1(-1 / self.scale) ** 2

    def expected_absolute(self, times: int = 1) -> float:
        """E|Z| = 2a/(1 − a²); for a mean that of continuous ones, 2n·C(2n, n)/4^n·scale/n."""
        if times > 1:
            return float(2 * math.comb(2 * times, times) / Fraction(4) ** times * self.scale)
        return -2 * math.exp(-1 / self.scale) / math.expm1(-2 / self.scale)

    def tail(self, least: int) -> Ball:
        """Pr[Z ≥ least] = a^least/(1 + a) for least ≥ 0, and by symmetry below."""
        if least < 1:
            return 1 - self.tail(1 - least)
        return self._power(least) / (1 + self._power(1))

    def difference_tail(self, least: int) -> Ball:
        """Pr[Z − Z' ≥ least] for independent Z, Z' of this kind.

        Pr[Z − Z' = d] = ((1 − a)/(1 + a))²·a^|d|·(|d| + (1 + a²)/(1 − a²)): |d| + 1 middle terms
        of the convolution are equal, the two outer series are geometric. Summing over
        d ≥ least ≥ 1 gives the closed form below. For a large scale s and x = least/s it tends to
        (2 + x)e^−x/4, the continuous tail.
        """
        if least < 1:
            return 1 - self.difference_tail(1 - least)
        a = self._power(1)
        bracket = least + (1 + a * a) / (1 - a * a) + a / (1 - a)
        return (1 - a) * self._power(least) * bracket / (1 + a) ** 2

    def half_width(self, confidence: float, times: int = 1) -> float:
        """The smallest w with Pr[|Z| ≤ w] ≥ confidence; for a mean at most 1 more than that.

        Z is ⌊E⌋ − ⌊E′⌋ for two exponential times, so it lies within 1 of the continuous E − E′,
        and the mean of n of them within 1 of the mean of n continuous ones.
        """
        if times == 1:
            return symmetric_half_width(self.tail, confidence)
        return _sum_half_width(times, confidence) * float(self.scale / times) + 1

    def _power(self, exponent: int) -> Ball:
        """a^exponent."""
        ratio = exponent / self.scale
        return (-exact_ball(ratio.numerator, ratio.denominator)).exp()


@lru_cache(maxsize=64)
def _digits(scale: Fraction) -> tuple[tuple[int, Inversion], ...]:
    """(place value, distribution of that digit) of a geometric number, lowest digit first.

    Write g = d_0 + d_1·R + … + d_{n−1}·R^{n−1} + q·R^n. Then a^g is the product of a^(d_i·R^i) and
    a^(q·R^n), so the digits are independent: d_i is geometric with ratio a^(R^i), restricted
    to 0 … R − 1, and q is geometric with ratio a^(R^n). Places are added until the top digit
    fits its table.
    """
    place, digits = 1, []
    while scale / place > _TOP_SCALE:
        digits.append((place, geometric(place / scale, _RADIX)))
        place *= _RADIX
    digits.append((place, geometric(place / scale, None)))
    return tuple(digits)


def geometric(rate: Fraction, size: int | None) -> Inversion:
    """Pr[X = j] proportional to e^(−rate·j) on 0 … size − 1, or on all j ≥ 0."""

    def missing(j: int) -> Ball:
        return -(-exact_ball(j * rate.numerator, rate.denominator)).expm1()

    if size is None:
        return Inversion(missing, None)
    return Inversion(lambda j: missing(j) / missing(size), size)


def laplace_sum_tail(times: int, at: float) -> float:
    """Pr[|S| > at] for the sum of `times` continuous Laplace numbers of scale 1.

    S is a difference of two Gamma(n) times, n = `times`:
    Pr[|S| > t] = 2·e^−t · Σ_{m<n} t^m/m! · Σ_{j<n−m} C(n−1+j, j)/2^{n+j}.
    """
    return 2 * sum(
        math.exp(m * math.log(at) - at - math.lgamma(m + 1)) * weight
        for m, weight in enumerate(_inner_sums(times))
    )


@lru_cache(maxsize=64)
def _inner_sums(times: int) -> tuple[float, ...]:
    """The sums over j, for m = 0, 1, …; binomial coefficients from their recurrence."""
    binomial, terms = 1, []
    for j in range(times):
        terms.append(binomial / 2 ** (times + j))
        binomial = binomial * (times + j) // (j + 1)
    return tuple(accumulate(terms))[::-1]


def _sum_half_width(times: int, confidence: float) -> float:
    low, high = 1e-9, 1.0
    while laplace_sum_tail(times, high) > 1 - confidence:
        high *= 2
    return turning_point(
        lambda at: laplace_sum_tail(times, at) > 1 - confidence, low, high, width=1e-15
    )[1]
