"""The distribution that is drawn is the one that is stated.

Goodness of fit at the error rate of `fit.py`; each test must also reject a scale that is
wrong by 30 %. Undecided comparisons are forced by feeding words that hit a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from farthing.errors import InvalidInput
from farthing.mechanisms.noise.discrete import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    TruncatedGaussianNoise,
    _digits,
    geometric,
)
from farthing.mechanisms.noise.exact_sampling import (
    EXPONENT_ERROR,
    Acceptance,
    BitSource,
    Inversion,
    _exponential,
    accept,
    bernoulli,
    exact_ball,
    scaled_floor,
)

from .fit import fits

DRAWS = 40_000


def laplace_law(scale: float) -> dict[int, float]:
    a = math.exp(-1 / scale)
    reach = math.ceil(40 * scale) + 2
    return {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-reach, reach + 1)}


def gaussian_law(sigma: float, bound: int | None = None) -> dict[int, float]:
    reach = math.ceil(12 * sigma) + 2 if bound is None else bound
    weights = {z: math.exp(-(z**2) / (2 * sigma**2)) for z in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(100)])
def test_discrete_laplace(scale: Fraction, source: BitSource) -> None:
    drawn = DiscreteLaplaceNoise(scale).draw(DRAWS, source).tolist()
    assert fits(drawn, laplace_law(float(scale)))
    assert not fits(drawn, laplace_law(1.3 * float(scale)))
    assert not fits(drawn, laplace_law(0.7 * float(scale)))


@pytest.mark.parametrize("scale", [10**5, 10**9, 2**40])
def test_discrete_laplace_with_several_digits(scale: int, source: BitSource) -> None:
    """Binned into 20 cells of equal probability; the lowest digit alone must be uniform too."""
    drawn = DiscreteLaplaceNoise(Fraction(scale)).draw(DRAWS, source)
    cells = np.floor(
        20 * np.where(drawn < 0, 0.5 * np.exp(drawn / scale), 1 - 0.5 * np.exp(-drawn / scale))
    )
    assert fits(cells.tolist(), dict.fromkeys(range(20), 0.05))
    wrong = 1.3 * scale
    cells = np.floor(
        20 * np.where(drawn < 0, 0.5 * np.exp(drawn / wrong), 1 - 0.5 * np.exp(-drawn / wrong))
    )
    assert not fits(cells.tolist(), dict.fromkeys(range(20), 0.05))
    assert fits((drawn % 16).tolist(), dict.fromkeys(range(16), 1 / 16))


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.7, 13.1])
def test_discrete_gaussian(sigma: float, source: BitSource) -> None:
    drawn = DiscreteGaussianNoise(Fraction(sigma) ** 2).draw(DRAWS, source).tolist()
    assert fits(drawn, gaussian_law(sigma))
    assert not fits(drawn, gaussian_law(1.3 * sigma))
    assert not fits(drawn, gaussian_law(0.7 * sigma))


def test_wide_discrete_gaussian(source: BitSource) -> None:
    sigma = 1e6
    drawn = DiscreteGaussianNoise(Fraction(sigma) ** 2).draw(DRAWS, source)
    normal = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))
    for factor, expected in ((1.0, True), (1.3, False), (0.7, False)):
        cells = [int(16 * normal(z / (factor * sigma))) for z in drawn.tolist()]
        assert fits(cells, dict.fromkeys(range(16), 1 / 16)) is expected


def test_truncated_gaussian(source: BitSource) -> None:
    drawn = (
        TruncatedGaussianNoise(DiscreteGaussianNoise(Fraction(9)), 4).draw(DRAWS, source).tolist()
    )
    assert max(map(abs, drawn)) == 4
    assert fits(drawn, gaussian_law(3, 4))
    assert not fits(drawn, gaussian_law(3.9, 4))
    assert not fits(drawn, gaussian_law(2.1, 4))


def test_draws_are_independent(source: BitSource) -> None:
    drawn = DiscreteLaplaceNoise(Fraction(1)).draw(DRAWS, source).tolist()
    law = laplace_law(1.0)
    joint = {(x, y): law[x] * law[y] for x in range(-8, 9) for y in range(-8, 9)}
    assert fits(zip(drawn[::2], drawn[1::2], strict=True), joint)


@pytest.mark.parametrize("scale", [0, -1, 2**40 + 1])
def test_scales_out_of_range(scale: int) -> None:
    with pytest.raises(InvalidInput, match="scale"):
        DiscreteLaplaceNoise(Fraction(scale))
    with pytest.raises(InvalidInput, match="standard deviation"):
        DiscreteGaussianNoise(Fraction(scale) * abs(scale))


class Scripted:
    """A source that replays given words: to reach comparisons that chance never reaches."""

    def __init__(self, *words: int) -> None:
        self.queue = list(words)

    def source(self) -> BitSource:
        return BitSource(self.read)

    def read(self, size: int) -> bytes:
        count = size // 8
        taken, self.queue = self.queue[:count], self.queue[count:]
        taken += [0] * (count - len(taken))
        return np.array(taken, dtype=np.uint64).tobytes()


def exact_draw(below: Callable[[int], mpmath.mpf], words: list[int]) -> int:
    """The number of j ≥ 1 with F(j) ≤ u, in 300-digit arithmetic."""
    u = sum(mpmath.mpf(w) / mpmath.mpf(2) ** (64 * (i + 1)) for i, w in enumerate(words))
    j = 1
    while below(j) <= u:
        j += 1
    return j - 1


@pytest.mark.parametrize("size", [None, 12])
@pytest.mark.parametrize("second", [0, 2**63, 2**64 - 1])
def test_a_word_on_a_threshold_is_refined(size: int | None, second: int) -> None:
    rate = Fraction(2, 7)
    law = geometric(rate, size)
    with mpmath.workdps(300):
        r = mpmath.mpf(2) / 7
        whole = 1 if size is None else 1 - mpmath.exp(-r * size)
        below = lambda j: (1 - mpmath.exp(-r * j)) / whole if j != size else mpmath.mpf(1)
        for word in law.thresholds[:11].tolist():
            refined = law.draw(1, Scripted(word, second).source())[0]
            assert refined == exact_draw(below, [word, second])


def test_refinement_follows_the_second_and_third_word() -> None:
    law = geometric(Fraction(1, 3), None)
    with mpmath.workdps(300):
        third = mpmath.mpf(1) / 3
        below = lambda j: 1 - mpmath.exp(-third * j)
        for j in (1, 4, 9):
            exact = below(j)
            first = int(mpmath.floor(exact * 2**64))
            second = int(mpmath.floor(exact * 2**128)) - (first << 64)
            third_word = int(mpmath.floor(exact * mpmath.mpf(2) ** 192)) - (
                (first << 128) + (second << 64)
            )
            for words in (
                [first, second - 1, 0],
                [first, second + 1, 0],
                [first, second, third_word - 1],
                [first, second, third_word + 1],
            ):
                source = Scripted(*words[1:], *([0] * 70)).source()
                assert law._refine(first, source) == exact_draw(below, words)


def test_the_far_tail_is_reached() -> None:
    """All-ones words lie beyond every tabulated threshold; the draw is still the exact one."""
    law = geometric(Fraction(1), None)
    ones = 2**64 - 1
    assert law._refine(ones, Scripted(*([ones] * 3), *([0] * 70)).source()) == int(
        mpmath.floor(mpmath.log(2) * 64 * 4)
    )


def test_thresholds_are_exact_floors() -> None:
    for place, digit in _digits(Fraction(1000)):
        with mpmath.workdps(60):
            r = mpmath.mpf(place) / 1000
            whole = 1 - mpmath.exp(-r * 1024) if digit.size else mpmath.mpf(1)
            for j in (1, 2, 40, digit.thresholds.size):
                exact = (1 - mpmath.exp(-r * j)) / whole
                assert int(digit.thresholds[j - 1]) == int(mpmath.floor(exact * 2**64))


def test_bernoulli_decides_on_the_bit_where_numbers_part() -> None:
    third = lambda: exact_ball(1, 3)  # 1/3 = 0.0101…
    floor = (2**64 - 1) // 3
    assert bernoulli(third, Scripted(floor - 1).source())
    assert not bernoulli(third, Scripted(floor + 1).source())
    assert bernoulli(third, Scripted(floor, floor - 1).source())
    assert not bernoulli(third, Scripted(floor, floor + 1).source())
    assert not bernoulli(lambda: exact_ball(0, 1), Scripted(0, 0, 1).source())
    assert bernoulli(lambda: exact_ball(1, 1), Scripted(2**64 - 1).source())


def test_scaled_floor_raises_precision_until_it_is_decided() -> None:
    close = Fraction(2**400 + 1, 2**401)  # just above one half: 64 guard bits do not show it
    assert scaled_floor(lambda: exact_ball(close.numerator, close.denominator), 1) == 1
    below = Fraction(2**400 - 1, 2**401)
    assert scaled_floor(lambda: exact_ball(below.numerator, below.denominator), 1) == 0


def test_float_exponential_is_within_its_bound() -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate(([0.0, 1 / 1024, 64.0], rng.uniform(0, 64, 2000), rng.uniform(0, 1e-3, 200)))
    with mpmath.workdps(40):
        for value, got in zip(x.tolist(), _exponential(x).tolist(), strict=True):
            exact = mpmath.exp(-mpmath.mpf(value))
            assert abs(mpmath.mpf(got) / exact - 1) < mpmath.mpf(2) ** -48


def test_float_exponents_of_the_gaussian_are_within_their_bound() -> None:
    """What `_keep` promises to `accept`, recomputed with exact fractions."""
    for sigma in (0.03, 0.4, 1.0, 13.1, 1234.5, 3e8):
        noise = DiscreteGaussianNoise(Fraction(sigma) ** 2)
        centre = noise.sigma_squared / noise._envelope
        for z in (0, 1, 2, int(sigma), int(3.3 * sigma), int(11 * sigma)):
            exact = (z - centre) ** 2 / (2 * noise.sigma_squared)
            distance = float(z) - float(centre)
            got = distance * distance / float(2 * noise.sigma_squared)
            assert abs(Fraction(got) - exact) < Fraction(EXPONENT_ERROR) or exact > 64


def test_coins_in_an_array_match_single_coins(source: BitSource) -> None:
    exponents = [
        Fraction(0),
        Fraction(1, 10),
        Fraction(1),
        Fraction(3),
        Fraction(70),
        Fraction(10**6),
    ]
    for exponent in exponents:
        many = accept(np.full(20_000, float(exponent)), lambda _: exponent, source)  # noqa: B023 # runs at once
        p = math.exp(-float(exponent))
        if p in (0.0, 1.0) or p < 1e-20:
            assert bool(many.all()) is (p == 1.0)
        else:
            assert fits(many.tolist(), {True: p, False: 1 - p})
            single = [Acceptance(exponent).accepts(1, source) for _ in range(2000)]
            assert fits(single, {True: p, False: 1 - p})


def test_an_undecided_coin_asks_for_the_exact_exponent() -> None:
    exponent = Fraction(1, 3)
    with mpmath.workdps(60):
        threshold = int(mpmath.floor(mpmath.exp(-mpmath.mpf(1) / 3) * 2**64))
    asked: list[int] = []

    def exact(index: int) -> Fraction:
        asked.append(index)
        return exponent

    for word, expected in ((threshold - 1, True), (threshold + 1, False)):
        coin = accept(np.array([float(exponent)]), exact, Scripted(word).source())
        assert bool(coin[0]) is expected
    assert asked == [0, 0]


def test_inversion_of_a_single_value() -> None:
    law = Inversion(lambda j: exact_ball(j, 1), 1)
    assert law.draw(5, BitSource()).tolist() == [0] * 5
