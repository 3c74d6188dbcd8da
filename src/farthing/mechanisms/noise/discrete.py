"""Discrete noise: Laplace, Gaussian, Gaussian that is cut off, and the one a guarantee asks for.

Pr[Z = z] is proportional to e^(−|z|/scale) or to e^(−z²/2σ²) on the whole numbers. Laplace noise is
a difference of geometric numbers; Gaussian noise is drawn from it by rejection [CKS20].

Noise that never exceeds a bound T makes "no label that a neighbour lacks is ever released"
certain instead of likely. The price is δ for the ends of the support that only one of two
neighbours can reach; what is left is no worse than the whole Gaussian. Lemma C and
Theorems 6 and 7 of docs/theory/mechanisms.md. As printed in [CR22] the mechanism is not private.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Protocol, TypeAlias

import numpy as np
from flint import arb

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import DiscreteGaussian, Gaussian, PureDP
from farthing.mechanisms.noise.exact_sampling import (
    BitSource,
    Booleans,
    Integers,
    Inversion,
    accept,
    accepted_draws,
    exact_ball,
    geometric,
    symmetric_half_width,
)
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise
from farthing.numerics.ball import Ball, hull, in_balls
from farthing.numerics.search import least_reaching, turning_point

#: With counts below 2^62 and scales up to this, sums stay inside 64 bits: noise beyond 2^62
#: has probability below e^−(2^22).
LARGEST_SCALE = 1 << 40

_RADIX = 1024
#: The top digit is tabulated in full; 44.4 scales reach probability 2^−64.
_TOP_SCALE = 32

#: Up to this σ tails are summed term by term; above it they are enclosed by integrals.
_SUMMED = 256


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


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise:
    """Z with Pr[Z = z] proportional to g(z) = e^(−z²/2σ²), for an exact rational σ².

    Drawn by rejection from discrete Laplace noise of scale t = floor(σ) + 1: a proposal z is
    kept with probability e^(−(|z| − σ²/t)²/2σ²) [CKS20, Algorithm 3]. The product of that with
    e^(−|z|/t) is g(z) times a constant, so what is kept has the distribution g exactly.
    """

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma_squared", Fraction(self.sigma_squared))
        if not 0 < self.sigma_squared <= LARGEST_SCALE**2 // 4:
            raise InvalidInput(
                "the standard deviation of the noise must be greater than 0 and at most 2^39, "
                f"got the square {float(self.sigma_squared):g}"
            )

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent exact draws."""
        proposals = DiscreteLaplaceNoise(Fraction(self._envelope))

        def batch(missing: int) -> Integers:
            drawn = proposals.draw(missing + missing // 2 + 16, source)
            return drawn[self._keep(drawn, source)]

        return accepted_draws(count, batch)

    @property
    def _envelope(self) -> int:
        return math.isqrt(math.floor(self.sigma_squared)) + 1

    def _keep(self, batch: Integers, source: BitSource) -> Booleans:
        """One exact coin per proposal.

        The exponent in float64: the centre, 2σ² and the four operations are each rounded once.
        Where the exponent is at most 64, the distance of |z| from σ²/t is at most 11.4σ, and
        σ²/t < σ, so the errors add up to less than 11.4·12.4 + 3·64 < 512 units of 2^−53, which
        is below EXPONENT_ERROR.
        """
        centre = self.sigma_squared / self._envelope
        distance = np.abs(batch).astype(np.float64) - float(centre)
        exponents = distance * distance / float(2 * self.sigma_squared)
        return accept(
            exponents,
            lambda i: (abs(int(batch[i])) - centre) ** 2 / (2 * self.sigma_squared),
            source,
        )

    @property
    def variance(self) -> float:
        """At most σ² [CKS20]; equal to it up to 10^−8 as soon as σ ≥ 1."""
        return self._moment(2)

    def expected_absolute(self, times: int = 1) -> float:
        """E|Z|; for the mean of n draws, as of continuous ones, 1/√n of it."""
        return self._moment(1) / math.sqrt(times)

    def _moment(self, order: int) -> float:
        sigma = math.sqrt(self.sigma_squared)
        if sigma > _SUMMED:
            return sigma * math.sqrt(2 / math.pi) if order == 1 else sigma**2
        values = np.arange(1, math.ceil(40 * sigma) + 2, dtype=np.float64)
        weights = np.exp(-(values**2) / (2 * sigma**2))
        return float(2 * (values**order * weights).sum() / (1 + 2 * weights.sum()))

    def tail(self, least: int) -> Ball:
        """Pr[Z ≥ least]."""
        if least < 1:
            return 1 - self.tail(1 - least)
        return self._weight_from(least) / self._total_weight()

    def _weight_from(self, least: int) -> Ball:
        """The sum of g(j) over j ≥ least ≥ 1."""
        if self.sigma_squared <= _SUMMED**2:
            return _summed_from(self.sigma_squared, least)
        return self._integrated_from(least)

    def _total_weight(self) -> Ball:
        """The sum of g over all whole numbers.

        For large σ by Poisson summation: σ√2π·(1 + 2·Σ e^(−2π²σ²k²)), where the last sum is below
        e^(−σ²) for σ > 1.
        """
        if self.sigma_squared <= _SUMMED**2:
            return 1 + 2 * self._weight_from(1)
        return self._sigma() * (2 * arb.pi()).sqrt() * (1 + hull(arb(0), (-arb(_SUMMED**2)).exp()))

    def _integrated_from(self, least: int) -> Ball:
        """The same sum between integrals.

        Where g is convex (beyond σ), the trapezoid rule lies above the integral and the midpoint
        rule below it: ∫_a^∞ g + g(a)/2 ≤ Σ_{j≥a} g(j) ≤ ∫_{a−½}^∞ g. Elsewhere g only decreases,
        which gives ∫_a^∞ g ≤ Σ ≤ ∫_a^∞ g + g(a).
        """
        first = (-(arb(least) ** 2) / (2 * self._variance())).exp()
        if least > self._sigma() + 1:
            return hull(
                self._integral(arb(least)) + first / 2, self._integral(arb(least) - arb(0.5))
            )
        return self._integral(arb(least)) + hull(arb(0), first)

    def _integral(self, start: Ball) -> Ball:
        root = self._sigma() * arb(2).sqrt()
        return root * arb.pi().sqrt() / 2 * (start / root).erfc()

    def _variance(self) -> Ball:
        return exact_ball(self.sigma_squared.numerator, self.sigma_squared.denominator)

    def _sigma(self) -> Ball:
        return self._variance().sqrt()

    def half_width(self, confidence: float, times: int = 1) -> float:
        """The smallest w with Pr[|Z| ≤ w] ≥ confidence; for a mean of n draws a larger one.

        Z is σ-subgaussian, so that mean exceeds w with probability at most 2·e^(−nw²/2σ²).
        """
        if times == 1:
            return symmetric_half_width(self.tail, confidence)
        return math.sqrt(2 * self.sigma_squared * math.log(2 / (1 - confidence)) / times)


@lru_cache(maxsize=4096)
@in_balls
def _summed_from(sigma_squared: Fraction, least: int) -> Ball:
    """Σ_{j≥least} e^(−j²/2σ²), term by term.

    Consecutive terms have the ratio e^(−(2j+1)/2σ²), itself falling by e^(−1/σ²) each time; once a
    term is below 2^−160 of the first, the rest is below a geometric series with that ratio.
    """
    variance = exact_ball(sigma_squared.numerator, sigma_squared.denominator)
    term = (-(arb(least) ** 2) / (2 * variance)).exp()
    ratio = (-(arb(2 * least + 1)) / (2 * variance)).exp()
    step = (-1 / variance).exp()
    total, small = arb(0), term * arb(2) ** -160
    while not term < small:
        total += term
        term *= ratio
        ratio *= step
    return total + hull(arb(0), term / (1 - ratio))


#: The guarantee of one noisy count, from which its noise follows.
Coordinate: TypeAlias = PureDP | Gaussian | DiscreteGaussian


class Noise(Hashable, Protocol):
    """A symmetric distribution on the whole numbers that is drawn from exactly."""

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent exact draws."""

    def tail(self, least: int) -> Ball:
        """Pr[Z ≥ least]."""

    def expected_absolute(self, times: int = 1) -> float:
        """E|Z|, or that of the mean of `times` draws."""

    def half_width(self, confidence: float, times: int = 1) -> float:
        """A w with Pr[|Z| ≤ w] ≥ confidence, or that of the mean; the smallest for one draw."""


#: The noise of one noisy count.
CoordinateNoise: TypeAlias = DiscreteLaplaceNoise | DiscreteGaussianNoise | RoundedGaussianNoise


def coordinate_noise(coordinate: Coordinate, per_key_limit: int) -> CoordinateNoise:
    """The noise to add to a whole number that a unit changes by at most per_key_limit.

    PureDP(ε): discrete Laplace noise of scale per_key_limit/ε. Gaussian(σ): a rounded normal number
    of standard deviation σ·per_key_limit. DiscreteGaussian(σ, per_key_limit): discrete Gaussian
    noise with the same σ·per_key_limit. Floats are taken as exact fractions.
    """
    match coordinate:
        case PureDP(epsilon):
            if epsilon == 0:
                raise InvalidInput("the epsilon of the coordinate must be greater than 0, got 0")
            return DiscreteLaplaceNoise(per_key_limit / Fraction(epsilon))
        case Gaussian(noise_multiplier):
            return RoundedGaussianNoise(Fraction(noise_multiplier) * per_key_limit)
        case DiscreteGaussian(noise_multiplier, sensitivity):
            if sensitivity != per_key_limit:
                raise InvalidInput(
                    "the sensitivity of the coordinate must be per_key_limit, "
                    f"got {sensitivity} and {per_key_limit}"
                )
            return DiscreteGaussianNoise((Fraction(noise_multiplier) * sensitivity) ** 2)
    raise InvalidInput(
        "the coordinate must be PureDP, Gaussian or DiscreteGaussian, "
        f"got {type(coordinate).__name__}"
    )


def require_joint(coordinate: Coordinate) -> None:
    """The price of noise on several numbers that a unit changes together is that of one number if
    a unit changes one of them; not for discrete Gaussian noise, which is not round."""
    if isinstance(coordinate, DiscreteGaussian):
        raise InvalidInput("a limit on all counts together needs a PureDP or Gaussian coordinate")


@dataclass(frozen=True, slots=True)
class TruncatedGaussianNoise:
    """Discrete or rounded Gaussian noise conditioned on |Z| ≤ bound.

    The condition makes |Z| smaller, so the errors and widths of `whole` still hold.
    """

    whole: DiscreteGaussianNoise | RoundedGaussianNoise
    bound: int

    def draw(self, count: int, source: BitSource) -> Integers:
        """`count` independent exact draws: draws of the whole noise, kept if within the bound."""
        kept = self.whole.draw(count, source)
        outside = np.flatnonzero(np.abs(kept) > self.bound)
        while outside.size:
            kept[outside] = self.whole.draw(outside.size, source)
            outside = outside[np.abs(kept[outside]) > self.bound]
        return kept

    def tail(self, least: int) -> Ball:
        """Pr[Z ≥ least]."""
        if least < 1:
            return 1 - self.tail(1 - least)
        if least > self.bound:
            return arb(0)
        beyond = self.whole.tail(self.bound + 1)
        return (self.whole.tail(least) - beyond) / (1 - 2 * beyond)

    def difference_tail(self, least: int) -> Ball:
        """At most 2·Pr[Z ≥ least/2] for Pr[Z − Z' ≥ least]: one of the two must go half the way."""
        return 2 * self.tail((least + 1) // 2)

    def expected_absolute(self, times: int = 1) -> float:
        """At most that of the whole noise."""
        return self.whole.expected_absolute(times)

    def half_width(self, confidence: float, times: int = 1) -> float:
        """At most that of the whole noise, and never beyond the bound."""
        return min(self.whole.half_width(confidence, times), self.bound)


@lru_cache(maxsize=256)
@in_balls
def truncated_noise(
    whole: DiscreteGaussianNoise | RoundedGaussianNoise,
    *,
    per_key_limit: int,
    contribution_limit: int,
    delta: float,
) -> TruncatedGaussianNoise:
    """With the smallest bound T for which the supports overlap enough: 1 − (1 − η)^Δ ≤ δ.

    η = Pr[Z > T − per_key_limit] is the part of the support around one count that lies outside
    the support around a count that is per_key_limit lower. It replaces equation (10) of [CR22]
    for noise on whole numbers, with independent coordinates instead of a union bound.
    """

    def outside(bound: int) -> Ball:
        one = TruncatedGaussianNoise(whole, bound).tail(bound - per_key_limit + 1)
        return at_least_one(one, contribution_limit)

    return TruncatedGaussianNoise(whole, least_reaching(outside, arb(delta), start=per_key_limit))


def at_least_one(probability: Ball, count: int) -> Ball:
    """1 − (1 − p)^count: the probability that one of `count` independent events happens."""
    if probability >= 1:
        return arb(1)
    return -(count * (-probability).log1p()).expm1()
