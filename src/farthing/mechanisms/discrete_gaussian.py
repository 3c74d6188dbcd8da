"""Discrete Gaussian noise: Pr[Z = z] proportional to e^(−z²/2σ²) on the whole numbers [CKS20]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from farthing.errors import InvalidInput
from farthing.mechanisms.acceptance import Booleans, accept
from farthing.mechanisms.discrete_laplace import LARGEST_SCALE, DiscreteLaplaceNoise
from farthing.mechanisms.inverse_transform import Integers, exact_ball
from farthing.mechanisms.randomness import BitSource
from farthing.mechanisms.tails import symmetric_half_width
from farthing.numerics.ball import Ball, hull, in_balls

#: Up to this σ tails are summed term by term; above it they are enclosed by integrals.
_SUMMED = 256


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
        kept = [np.zeros(0, dtype=np.int64)]
        missing = count
        while missing > 0:
            batch = proposals.draw(missing + missing // 2 + 16, source)
            accepted = batch[self._keep(batch, source)]
            kept.append(accepted)
            missing -= accepted.size
        return np.concatenate(kept)[:count]

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
        return self.weight_from(least) / self.total_weight()

    def weight_from(self, least: int) -> Ball:
        """The sum of g(j) over j ≥ least ≥ 1."""
        if self.sigma_squared <= _SUMMED**2:
            return _summed_from(self.sigma_squared, least)
        return self._integrated_from(least)

    def total_weight(self) -> Ball:
        """The sum of g over all whole numbers.

        For large σ by Poisson summation: σ√2π·(1 + 2·Σ e^(−2π²σ²k²)), where the last sum is below
        e^(−σ²) for σ > 1.
        """
        if self.sigma_squared <= _SUMMED**2:
            return 1 + 2 * self.weight_from(1)
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
