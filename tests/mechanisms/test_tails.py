"""Tails, thresholds and moments against naive sums in 50-digit arithmetic."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx

from farthing.errors import NotCertified
from farthing.mechanisms.noise.discrete import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    at_least_one,
    truncated_noise,
)
from farthing.numerics.ball import Ball
from farthing.numerics.search import least_reaching


def contains(ball: Ball, exact: mpmath.mpf, relative: float = 1e-12) -> bool:
    low, high = (
        mpmath.mpf(str(ball.lower().str(40, radius=False))),
        mpmath.mpf(str(ball.upper().str(40, radius=False))),
    )
    slack = abs(exact) * mpmath.mpf(relative)
    return bool(low - slack <= exact <= high + slack and high - low <= 10 * slack + abs(exact) / 50)


@pytest.fixture(autouse=True)
def precise() -> object:
    with ctx.workprec(160), mpmath.workdps(50):
        yield


def laplace_pmf(scale: Fraction, reach: int) -> dict[int, mpmath.mpf]:
    a = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-reach, reach + 1)}


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(10)])
def test_laplace_tails(scale: Fraction) -> None:
    noise, reach = DiscreteLaplaceNoise(scale), int(150 * scale) + 10
    law = laplace_pmf(scale, reach)
    for least in (-7, -1, 0, 1, 2, 9, 40):
        assert contains(noise.tail(least), sum(p for z, p in law.items() if z >= least))
    difference = {}
    for z in range(-reach, reach + 1):
        if abs(z) <= 60:
            difference[z] = sum(law[y] * law.get(y - z, mpmath.mpf(0)) for y in law)
    for least in (-4, 0, 1, 2, 5, 20):
        inside = sum(p for z, p in difference.items() if least <= z <= 60)
        beyond = mpmath.mpf(float(noise.difference_tail(61).mid()))
        assert contains(noise.difference_tail(least), inside + beyond, 1e-9)
    assert noise.variance == pytest.approx(float(sum(p * z * z for z, p in law.items())))
    assert noise.expected_absolute() == pytest.approx(
        float(sum(p * abs(z) for z, p in law.items()))
    )


def test_difference_tail_tends_to_the_continuous_one() -> None:
    noise = DiscreteLaplaceNoise(Fraction(10**9))
    for x in (1, 5, 20):
        continuous = (2 + x) * mpmath.exp(-x) / 4
        assert contains(noise.difference_tail(x * 10**9), continuous, 1e-8)


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(1), Fraction(131, 10), Fraction(200)])
def test_gaussian_tails(sigma: Fraction) -> None:
    noise, reach = DiscreteGaussianNoise(sigma**2), int(16 * sigma) + 10
    exact = mpmath.mpf(sigma.numerator) / sigma.denominator
    weights = {z: mpmath.exp(-(z**2) / (2 * exact**2)) for z in range(-reach, reach + 1)}
    total = sum(weights.values())
    for least in (-3, 0, 1, 2, int(sigma), int(6 * sigma)):
        tail = sum(w for z, w in weights.items() if z >= least) / total
        assert contains(noise.tail(least), tail, 1e-9)
    assert noise.variance == pytest.approx(
        float(sum(w * z * z for z, w in weights.items()) / total)
    )
    mean = sum(w * abs(z) for z, w in weights.items()) / total
    assert noise.expected_absolute() == pytest.approx(float(mean))


@pytest.mark.parametrize("steps", [0.1, 0.9, 1.5, 4, 8])
def test_wide_gaussian_tails_are_enclosed_by_integrals(steps: float) -> None:
    noise, least = DiscreteGaussianNoise(Fraction(300) ** 2), int(300 * steps)
    weights = [mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * 300**2)) for z in range(-6000, 6001)]
    tail = sum(weights[6000 + least :]) / sum(weights)
    ball = noise.tail(least)
    assert ball.lower() <= arb(mpmath.nstr(tail, 30)) <= ball.upper()
    assert float((ball.upper() - ball.lower()) / ball.mid()) < (1e-2 if steps <= 1 else 1e-3)


@pytest.mark.parametrize(
    "noise", [DiscreteLaplaceNoise(Fraction(10)), DiscreteGaussianNoise(Fraction(13) ** 2)]
)
@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 0.999])
def test_half_width_is_the_smallest(
    noise: DiscreteLaplaceNoise | DiscreteGaussianNoise, confidence: float
) -> None:
    width = noise.half_width(confidence)
    inside = lambda w: 1 - 2 * noise.tail(w + 1)
    assert inside(width) >= confidence
    assert width == 0 or inside(width - 1) < confidence


@pytest.mark.parametrize(("sigma", "limit", "keys"), [(13.1, 1, 1), (3.0, 4, 2), (0.5, 1, 10)])
def test_truncation_bound_is_the_smallest(sigma: float, limit: int, keys: int) -> None:
    squared = (Fraction(sigma) * limit) ** 2
    whole = DiscreteGaussianNoise(squared)
    noise = truncated_noise(whole, per_key_limit=limit, contribution_limit=keys, delta=1e-6)
    bound = noise.bound

    def outside(at: int) -> mpmath.mpf:
        weights = {
            z: mpmath.exp(-(z**2) / (2 * (mpmath.mpf(sigma) * limit) ** 2))
            for z in range(-at, at + 1)
        }
        one = sum(w for z, w in weights.items() if z > at - limit) / sum(weights.values())
        return 1 - (1 - one) ** keys

    assert outside(bound) <= mpmath.mpf(1e-6) < outside(bound - 1)
    ball = noise.tail(bound - limit + 1)
    assert contains(at_least_one(ball, keys), outside(bound), 1e-9)


def test_truncation_bound_of_the_paper_setting() -> None:
    """σ = 13.1, Δ = τ = 1, δ = 1e-10: the continuous equation (10) gives T = 82.4 [CR22]."""
    whole = DiscreteGaussianNoise(Fraction(13.1) ** 2)
    noise = truncated_noise(whole, per_key_limit=1, contribution_limit=1, delta=1e-10)
    assert 80 <= noise.bound <= 84


def test_least_reaching_never_guesses() -> None:
    assert least_reaching(lambda w: arb(1) / (w + 1), arb(0.25)) == 3
    assert least_reaching(lambda w: arb(1) / (w + 1), arb(0.25), start=10) == 10
    undecided = lambda w: arb(0.25, 0.01) if w < 1000 else arb(0)
    assert least_reaching(undecided, arb(0.25)) == 1000
    with pytest.raises(NotCertified):
        least_reaching(lambda _: arb(1), arb(0.5))


def test_at_least_one() -> None:
    assert contains(at_least_one(arb(0.25), 3), 1 - mpmath.mpf(0.75) ** 3)
    assert at_least_one(arb(1), 5) == 1
