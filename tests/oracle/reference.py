"""Naive reference values: the formulas as printed, in 50 digits, by enumeration.

Floats enter exactly. Nothing here is clever; that is its only virtue.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import comb

from mpmath import MPContext

mp = MPContext()
mp.dps = 50


def positive_part(x):
    return x if x > 0 else mp.mpf(0)


def truth(epsilon):
    """Probability with which ε-DP randomized response tells the truth."""
    return 1 / (1 + mp.exp(-mp.mpf(epsilon)))


def up_probability(epsilon, t):
    """q_{ε,t} of Definition 2.4 in [DDR20]."""
    epsilon, t = mp.mpf(epsilon), mp.mpf(t)
    return (1 - mp.exp(t - epsilon)) / (1 - mp.exp(-epsilon))


def down_probability(epsilon, t):
    """p_{ε,t} of Definition 2.4 in [DDR20]."""
    epsilon, t = mp.mpf(epsilon), mp.mpf(t)
    return (mp.exp(-t) - mp.exp(-epsilon)) / (1 - mp.exp(-epsilon))


def pure_subset_sum(epsilons: Sequence[float], x):
    """Theorem 1.5 of [MV16] without δ: a sum over all subsets."""
    epsilons = [mp.mpf(e) for e in epsilons]
    scale = mp.mpf(1)
    for e in epsilons:
        scale *= 1 + mp.exp(e)
    total = mp.mpf(0)
    for chosen in product((0, 1), repeat=len(epsilons)):
        inside = sum((e for e, c in zip(epsilons, chosen, strict=True) if c), mp.mpf(0))
        outside = sum((e for e, c in zip(epsilons, chosen, strict=True) if not c), mp.mpf(0))
        total += positive_part(mp.exp(inside) - mp.exp(mp.mpf(x) + outside))
    return total / scale


def pure_equal(epsilon: float, count: int, x):
    """The same for equal parameters, subsets grouped by size."""
    epsilon, x = mp.mpf(epsilon), mp.mpf(x)
    q = truth(epsilon)
    total, weight = mp.mpf(0), q**count
    for i in range(count + 1):
        excess = (count - 2 * i) * epsilon - x
        if excess <= 0:
            break
        total -= weight * mp.expm1(-excess)
        weight *= mp.mpf(count - i) / (i + 1) * mp.exp(-epsilon)
    return total


def leaky_enumeration(items: Sequence[tuple[float, float]], x):
    """Leaky randomized responses, outcome by outcome: 0, 1, or "I am U" [Smith25, section 3.1]."""
    laws = []
    for epsilon, delta in items:
        q, delta = truth(epsilon), mp.mpf(delta)
        laws.append(
            [
                ((1 - delta) * q, (1 - delta) * (1 - q)),
                ((1 - delta) * (1 - q), (1 - delta) * q),
                (delta, mp.mpf(0)),
            ]
        )
    total = mp.mpf(0)
    for outcome in product(*laws):
        p, q = mp.mpf(1), mp.mpf(1)
        for one, other in outcome:
            p, q = p * one, q * other
        total += positive_part(p - mp.exp(mp.mpf(x)) * q)
    return total


def ranged_subset_sum(epsilons: Sequence[float], ts: Sequence, x):
    """Lemma 3.1 of [DDR20] for one choice of t: a sum over all subsets."""
    total = mp.mpf(0)
    pairs = [
        (up_probability(e, t), down_probability(e, t)) for e, t in zip(epsilons, ts, strict=True)
    ]
    for chosen in product((0, 1), repeat=len(epsilons)):
        up, down = mp.mpf(1), mp.mpf(1)
        for (q, p), c in zip(pairs, chosen, strict=True):
            up, down = (up * (1 - q), down * (1 - p)) if c else (up * q, down * p)
        total += positive_part(up - mp.exp(mp.mpf(x)) * down)
    return total


def ranged_at(epsilon: float, count: int, t, x):
    """The same for equal parameters and one common t, subsets grouped by size (eq. 6)."""
    epsilon, t, x = mp.mpf(epsilon), mp.mpf(t), mp.mpf(x)
    if t <= 0 or t >= epsilon:
        return positive_part(-mp.expm1(x))
    q = up_probability(epsilon, t)
    total, weight, odds = mp.mpf(0), q**count, (1 - q) / q
    for i in range(count + 1):
        excess = count * t - i * epsilon - x
        if excess <= 0:
            break
        total -= weight * mp.expm1(-excess)
        weight *= odds * (count - i) / (i + 1)
    return total


def ranged_equal(epsilon: float, count: int, x):
    """Theorem 3 of [DDR20]: the largest of the k + 1 candidates."""
    epsilon, x = mp.mpf(epsilon), mp.mpf(x)
    best = positive_part(-mp.expm1(x))
    for place in range(count + 1):
        t = min(max((x + (place + 1) * epsilon) / (count + 1), mp.mpf(0)), epsilon)
        best = max(best, ranged_at(epsilon, count, t, x))
    return best


def mixed_at(epsilon: float, pure: int, ranged: int, t, x):
    """Eq. (5) of [CR22]: the double sum for one t."""
    epsilon, t, x = mp.mpf(epsilon), mp.mpf(t), mp.mpf(x)
    honest, q = truth(epsilon), up_probability(epsilon, t)
    total = mp.mpf(0)
    for i in range(ranged + 1):
        for j in range(pure + 1):
            excess = epsilon * (pure - 2 * j - i) + t * ranged - x
            if excess > 0:
                weight = comb(ranged, i) * comb(pure, j) * honest ** (pure - j)
                weight *= (1 - honest) ** j * q ** (ranged - i) * (1 - q) ** i
                total -= weight * mp.expm1(-excess)
    return total


def mixed_equal(epsilon: float, pure: int, ranged: int, x):
    """Theorem 3 of [CR22]: the largest over ℓ = 0, …, k + m."""
    epsilon, x = mp.mpf(epsilon), mp.mpf(x)
    best = mp.mpf(0)
    for place in range(2 * pure + ranged + 1):
        t = (x + epsilon * (place + 1 - pure)) / (ranged + 1)
        t = min(max(t, mp.mpf(0)), epsilon)
        best = max(best, mixed_at(epsilon, pure, ranged, t, x))
    return best


def gaussian(noise_multiplier, x):
    """Lemma 6.1 of [CR22]: Φ(1/(2σ) − xσ) − e^x Φ(−1/(2σ) − xσ)."""
    sigma, x = mp.mpf(noise_multiplier), mp.mpf(x)
    with mp.workdps(80):
        half = 1 / (2 * sigma)
        root = mp.sqrt(2)
        return (
            mp.erfc((x * sigma - half) / root) - mp.exp(x) * mp.erfc((x * sigma + half) / root)
        ) / 2


def laplace(epsilon, x):
    """The profile of one Laplace mechanism."""
    epsilon, x = mp.mpf(epsilon), mp.mpf(x)
    if x >= epsilon:
        return mp.mpf(0)
    if x <= -epsilon:
        return -mp.expm1(x)
    return -mp.expm1((x - epsilon) / 2)


def laplace_next(epsilon, later, x, breaks: Sequence[int]):
    """E[later(x − L)], L the loss of one Laplace mechanism; `later` bends at `breaks`·ε."""
    epsilon, x = mp.mpf(epsilon), mp.mpf(x)
    total = later(x - epsilon) / 2 + later(x + epsilon) * mp.exp(-epsilon) / 2
    bends = sorted({x - b * epsilon for b in breaks if -epsilon < x - b * epsilon < epsilon})
    return total + mp.quad(
        lambda loss: later(x - loss) * mp.exp((loss - epsilon) / 2) / 4, [-epsilon, *bends, epsilon]
    )


def atoms_profile(atoms, x):
    """∞ + Σ m(1 − e^{x − loss})₊ of a discrete loss."""
    x, total = mp.mpf(x), mp.mpf(float(atoms.infinity))
    for loss, mass in zip(atoms.losses, atoms.masses, strict=True):
        if mp.mpf(float(loss)) > x:
            total -= mp.mpf(float(mass)) * mp.expm1(x - mp.mpf(float(loss)))
    return total


def inside(bracket, value) -> bool:
    """lower ≤ value ≤ upper, compared in 50 digits."""
    return mp.mpf(bracket.lower) <= value <= mp.mpf(bracket.upper)
