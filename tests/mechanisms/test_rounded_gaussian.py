"""Rounded Gaussian noise: its law, its tails, and that it promises what the continuous one does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb

import farthing as fa
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import DiscreteGaussian, Gaussian
from farthing.guarantees.losses import loss_of
from farthing.lab.audit import audit
from farthing.mechanisms import (
    ClippedSum,
    Histogram,
    KnownCounts,
    Repeated,
    RoundedGaussianNoise,
    ThresholdedCounts,
    TruncatedGaussianNoise,
    UnknownCounts,
    coordinate_noise,
)
from farthing.mechanisms.noise.exact_sampling import BitSource
from farthing.mechanisms.noise.rounded_gaussian import _Fraction
from farthing.mechanisms.protocol import noise_accuracy

from .fit import fits

DRAWS = 40_000
ONE = {"contribution_limit": 1, "per_key_limit": 1}


def law(s: float, bound: int | None = None) -> dict[int, float]:
    reach = math.ceil(12 * s) + 2 if bound is None else bound
    normal = lambda x: 0.5 * math.erfc(-x / (s * math.sqrt(2)))
    weights = {z: normal(z + 0.5) - normal(z - 0.5) for z in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


@pytest.mark.parametrize("s", [Fraction(2, 5), Fraction(1), Fraction(37, 10), Fraction(13)])
def test_the_law(s: Fraction, source: BitSource) -> None:
    drawn = RoundedGaussianNoise(s).draw(DRAWS, source).tolist()
    assert fits(drawn, law(float(s)))
    assert not fits(drawn, law(1.3 * float(s)))
    assert not fits(drawn, law(0.7 * float(s)))


@pytest.mark.parametrize("s", [10**6, 2**41 + 1, 2**48])
def test_the_law_where_it_is_wide(s: int, source: BitSource) -> None:
    """Cells of equal probability; and the last digits alone are uniform."""
    drawn = RoundedGaussianNoise(Fraction(s)).draw(DRAWS // 4, source).tolist()
    normal = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))
    for factor, expected in ((1.0, True), (1.3, False), (0.7, False)):
        cells = [int(16 * normal(z / (factor * s))) for z in drawn]
        assert fits(cells, dict.fromkeys(range(16), 1 / 16)) is expected
    assert fits([z % 16 for z in drawn], dict.fromkeys(range(16), 1 / 16))


def test_draws_are_independent_of_each_other_and_of_their_sign(source: BitSource) -> None:
    drawn = RoundedGaussianNoise(Fraction(1)).draw(DRAWS, source).tolist()
    one = law(1.0)
    joint = {(x, y): one[x] * one[y] for x in range(-6, 7) for y in range(-6, 7)}
    assert fits(zip(drawn[::2], drawn[1::2], strict=True), joint)


class Scripted:
    """Words that chance never gives."""

    def __init__(self, *words: int) -> None:
        self.queue = list(words)

    def read(self, size: int) -> bytes:
        taken, self.queue = self.queue[: size // 8], self.queue[size // 8 :]
        return np.array(taken + [0] * (size // 8 - len(taken)), dtype=np.uint64).tobytes()


@pytest.mark.parametrize(("second", "rounded"), [(0, 7), (2**63, 7), (2**64 - 1, 8)])
def test_a_fraction_at_a_half_is_refined(second: int, rounded: int) -> None:
    """The first 63 bits leave 7 and 8 open, the next word decides."""
    known = math.floor(Fraction(1, 2) * 2**63) - 1
    x = _Fraction(known, 63)
    s = Fraction(15, 2) / (1 + Fraction(4 * known + 3, 4 * 2**63))  # 7.5 at three quarters
    assert x.rounded(s, 1, BitSource(Scripted(second).read)) == rounded


def test_a_coin_that_the_first_word_leaves_open() -> None:
    """k = 1, x near 0.3: the coin's word is the threshold itself, later words of coin decide."""
    known = math.floor(Fraction(3, 10) * 2**63)
    with mpmath.workdps(60):
        x = mpmath.mpf(known) / mpmath.mpf(2) ** 63
        word = int(mpmath.floor(mpmath.exp(-x * (2 + x) / 2) * 2**64))
    for coin, expected in ((word - 3, True), (word + 3, False)):
        assert _Fraction(known, 63).accepted(1, coin, BitSource(Scripted().read)) is expected
    with mpmath.workdps(90):
        exact = mpmath.exp(-x * (2 + x) / 2)  # x with only zeros after the known bits
        second = int(mpmath.floor(exact * mpmath.mpf(2) ** 128)) - (word << 64)
    for after, expected in ((second - 9, True), (second + 9, False)):
        source = BitSource(Scripted(after, 0, 0, 0).read)
        assert _Fraction(known, 63).accepted(1, word, source) is expected


@pytest.mark.parametrize("s", [Fraction(1, 3), Fraction(2), Fraction(10**9, 7)])
def test_tails_and_moments(s: Fraction) -> None:
    noise = RoundedGaussianNoise(s)
    with mpmath.workdps(50):
        root = mpmath.mpf(s.numerator) / s.denominator * mpmath.sqrt(2)
        for least in (-3, 0, 1, 2, int(4 * s) + 1):
            exact = mpmath.erfc((least - mpmath.mpf("0.5")) / root) / 2
            ball = noise.tail(least)
            assert (
                ball.lower() <= arb(mpmath.nstr(exact, 40)) <= ball.upper()
                or float(abs(ball.mid() - arb(mpmath.nstr(exact, 40))) / ball.mid()) < 1e-14
            )
        if s < 100:
            chances = law(float(s))
            assert noise.expected_absolute() == pytest.approx(
                sum(abs(z) * p for z, p in chances.items())
            )
            assert noise.variance == pytest.approx(sum(z * z * p for z, p in chances.items()))
        else:
            assert noise.variance == pytest.approx(float(s) ** 2)


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 0.999])
def test_half_width_is_the_smallest(confidence: float) -> None:
    noise = RoundedGaussianNoise(Fraction(13))
    width = noise.half_width(confidence)
    inside = lambda w: 1 - 2 * noise.tail(w + 1)
    assert inside(width) >= confidence
    assert width == 0 or inside(width - 1) < confidence


@pytest.mark.parametrize("times", [1, 3, 10])
def test_intervals_of_means(times: int, source: BitSource) -> None:
    noise, trials, level, slack = RoundedGaussianNoise(Fraction(30)), 40_000, 0.9, 0.006
    stated = noise_accuracy(noise, level, times)
    means = np.abs(noise.draw(trials * times, source).reshape(trials, times).mean(axis=1))
    assert float((means <= stated.half_width).mean()) >= level - slack
    assert float((means <= 0.85 * stated.half_width).mean()) < level - slack
    assert stated.expected_error == pytest.approx(means.mean(), rel=0.05)


@pytest.mark.parametrize(("sigma", "limit"), [(0.4, 1), (1.0, 1), (1.0, 3), (2.5, 2)])
def test_the_profile_is_within_that_of_the_continuous_mechanism(sigma: float, limit: int) -> None:
    """Theorem 2a, by the exact law: every event of the rounded pair, at every ε."""
    chances = law(sigma * limit)
    shifted = {z + limit: p for z, p in chances.items()}
    price = fa.compose([(Gaussian(sigma), 1)])
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        exact = sum(max(0.0, p - math.exp(epsilon) * shifted.get(z, 0)) for z, p in chances.items())
        assert exact <= price.delta_at(epsilon).upper + 1e-12
    narrow = law(0.7 * sigma * limit)
    moved = {z + limit: p for z, p in narrow.items()}
    broken = sum(max(0.0, p - math.e * moved.get(z, 0)) for z, p in narrow.items())
    assert broken > price.delta_at(1.0).upper


@pytest.mark.parametrize(("s", "bound", "shift"), [(3.0, 9, 1), (3.0, 9, 3), (0.6, 4, 2)])
def test_the_common_support_is_no_worse_than_the_whole_noise(
    s: float, bound: int, shift: int
) -> None:
    """Lemma C for rounded noise: profiles given the common support."""
    chances = law(s, bound)
    common = range(shift - bound, bound + 1)
    first = {y: chances[y] for y in common}
    second = {y: chances[y - shift] for y in common}
    mass = sum(first.values())
    assert mass == pytest.approx(sum(second.values()))
    price = fa.compose([(Gaussian(s / shift), 1)])
    for epsilon in (0.0, 0.2, 1.0, 3.0):
        exact = sum(max(0.0, first[y] - math.exp(epsilon) * second[y]) for y in common) / mass
        assert exact <= price.delta_at(epsilon).upper + 1e-12


def test_the_noise_follows_from_the_guarantee() -> None:
    assert coordinate_noise(Gaussian(2.5), 4) == RoundedGaussianNoise(Fraction(10))
    limits = {"contribution_limit": 2, "per_key_limit": 3}
    counts = KnownCounts(coordinate=Gaussian(2.0), **limits)
    assert counts.noise == RoundedGaussianNoise(Fraction(6))
    assert counts.guarantees == ((Gaussian(2.0), 2),)
    thresholded = ThresholdedCounts(coordinate=Gaussian(2.0), delta=1e-6, **limits)
    assert thresholded.guarantees == (
        (Gaussian(2.0), 2),
        (fa.ApproximateDP(0, 1e-6), 1),
    )
    truncated = UnknownCounts(coordinate=Gaussian(2.0), delta=1e-6, candidates=9, **limits)
    assert isinstance(truncated.noise, TruncatedGaussianNoise)
    assert truncated.threshold == 3 + 2 * truncated.noise.bound + 1
    total = ClippedSum(coordinate=Gaussian(2.0), lower=-5, upper=3)
    assert total.noise == RoundedGaussianNoise(Fraction(10))
    assert Repeated(total, 3).guarantees == ((Gaussian(2.0), 3),)


def test_what_pays_for_it() -> None:
    assert loss_of(Gaussian(2.0)).covers(Gaussian(2.0))
    assert loss_of(Gaussian(2.0)).covers(Gaussian(3.0))
    assert not loss_of(Gaussian(2.0)).covers(Gaussian(1.9))
    assert not loss_of(Gaussian(2.0)).covers(DiscreteGaussian(2.0, 1))
    assert not loss_of(DiscreteGaussian(2.0, 1)).covers(Gaussian(2.0))


def audited(mechanism: Any, low: Any, high: Any, view: Callable[[Any], Any]) -> float:
    """ε at δ = 0.05 that an attack shows."""
    return audit(
        mechanism, low, high, trials=6_000, delta=0.05, confidence=0.999, view=view
    ).epsilon


def test_an_audit_stays_below_the_claim_and_catches_a_scale_of_0_7() -> None:
    claim = fa.compose([(Gaussian(1.0), 1)]).epsilon_at(0.05).upper
    sound = KnownCounts(coordinate=Gaussian(1.0), **ONE)
    broken = replace(sound, coordinate=Gaussian(0.7))
    pair = Histogram(["a"], [20]), Histogram(["a"], [21])
    view = lambda r: r.counts[0]
    assert 0.3 * claim < audited(sound, *pair, view) <= claim
    assert audited(broken, *pair, view) > claim
    total = ClippedSum(coordinate=Gaussian(1.0), lower=0, upper=40)
    narrow = ClippedSum(coordinate=Gaussian(0.7), lower=0, upper=40)
    coarse = lambda r: r.counts[0] // 10
    assert audited(total, 0, 40, coarse) <= claim
    assert audited(narrow, 0, 40, coarse) > claim


@pytest.mark.parametrize("s", [0, -1, 2**48 + 1])
def test_deviations_out_of_range(s: int) -> None:
    with pytest.raises(InvalidInput, match="standard deviation"):
        RoundedGaussianNoise(Fraction(s))
