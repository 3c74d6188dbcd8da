"""Samples as printed: the two densities, outcome by outcome or by quadrature, in 50 digits."""

from __future__ import annotations

from itertools import product

from oracle.reference import mp, positive_part


def mixed(pairs, rate):
    """Outcomes (with the unit, without it) of a Poisson sample, from those of the mechanism."""
    rate = mp.mpf(rate)
    return [((1 - rate) * q + rate * p, q) for p, q in pairs]


def randomized_response(epsilon):
    truth = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
    return [(truth, 1 - truth), (1 - truth, truth)]


def leaky_response(epsilon, delta):
    delta = mp.mpf(delta)
    hidden = [((1 - delta) * p, (1 - delta) * q) for p, q in randomized_response(epsilon)]
    return [*hidden, (delta, mp.mpf(0)), (mp.mpf(0), delta)]


def discrete_gaussian(sigma, shift, far=60):
    spread = mp.mpf(sigma) * shift
    weights = {z: mp.exp(-((mp.mpf(z) / spread) ** 2) / 2) for z in range(-far - shift, far + 1)}
    total = sum(mp.exp(-((mp.mpf(z) / spread) ** 2) / 2) for z in range(-400, 401))
    return [(weights[z] / total, weights[z - shift] / total) for z in range(-far, far + 1)]


def enumerated(laws, x):
    """Σ (P − e^x Q)₊ over all outcomes of independent mechanisms."""
    z, total = mp.exp(mp.mpf(x)), mp.mpf(0)
    for outcome in product(*laws):
        p = q = mp.mpf(1)
        for one in outcome:
            p, q = p * one[0], q * one[1]
        total += positive_part(p - z * q)
    return total


def reverse(pairs):
    return [(q, p) for p, q in pairs]


class SampledGaussian:
    """(1 − q)N(0, σ²) + qN(1, σ²) against N(0, σ²), or the reverse."""

    def __init__(self, sigma, rate, with_unit):
        self.sigma, self.rate, self.with_unit = mp.mpf(sigma), mp.mpf(rate), with_unit

    def ratio(self, y):
        value = 1 - self.rate + self.rate * mp.exp((2 * y - 1) / (2 * self.sigma**2))
        return value if self.with_unit else 1 / value

    def density(self, y):
        q = mp.npdf(y, 0, self.sigma)
        return q * self.ratio(y) if self.with_unit else q

    def place(self, z):
        """Where the ratio is z; None if it never is."""
        z = z if self.with_unit else 1 / z
        inside = (z - 1 + self.rate) / self.rate
        return None if inside <= 0 else self.sigma**2 * mp.log(inside) + mp.mpf(1) / 2

    def profile(self, x):
        z = mp.exp(mp.mpf(x))
        y = self.place(z)
        if y is None:
            return 1 - z if self.with_unit else mp.mpf(0)

        def tail(shift):
            below = mp.ncdf((y - shift) / self.sigma)
            return 1 - below if self.with_unit else below

        base, moved = tail(0), tail(1)
        mixture = (1 - self.rate) * base + self.rate * moved
        return mixture - z * base if self.with_unit else base - z * mixture

    def twice(self, x):
        """Two of them, by quadrature over the outcome of the first."""
        far = 14 * self.sigma
        edges = [-far + i * (2 * far + 1) / 24 for i in range(25)]

        def value(y):
            return self.density(y) * self.profile(mp.mpf(x) - mp.log(self.ratio(y)))

        return mp.quad(value, edges)
