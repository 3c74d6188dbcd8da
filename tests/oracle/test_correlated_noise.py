"""Sensitivities of strategies against every set of steps, and errors against least squares."""

from __future__ import annotations

import math
import operator
import random
from fractions import Fraction
from itertools import combinations, product
from statistics import NormalDist

import numpy as np
import pytest

import farthing as fa
from farthing.composition.bounds import correlated_noise
from farthing.errors import InvalidInput, NotCertified, Unsupported

Rows = tuple[tuple[int, ...], ...]


def may_take_part(steps: tuple[int, ...], part: fa.Participation) -> bool:
    """The definition, by comparing every pair."""
    return len(steps) <= part.times and all(
        b - a >= part.separation and b // part.period != a // part.period
        for a, b in combinations(steps, 2)
    )


def signed(rows: Rows, steps: tuple[int, ...]) -> int:
    """The largest square over all signs: what a unit with numbers can do."""
    taken = [[row[step] for step in steps] for row in rows]
    return max(
        sum(sum(map(operator.mul, signs, row)) ** 2 for row in taken)
        for signs in product((1, -1), repeat=len(steps))
    )


def worst(rows: Rows, part: fa.Participation) -> tuple[int, int]:
    """Over every set of steps: what signs attain, and what absolute products bound."""
    count, attained, above = len(rows[0]), 0, 0
    gram = [[sum(row[i] * row[j] for row in rows) for j in range(count)] for i in range(count)]
    for size in range(1, min(part.times, count) + 1):
        for steps in combinations(range(count), size):
            if may_take_part(steps, part):
                attained = max(attained, signed(rows, steps))
                above = max(above, sum(abs(gram[i][j]) for i, j in product(steps, repeat=2)))
    return attained, above


PARTS = [
    fa.Participation(),
    fa.Participation(times=2),
    fa.Participation(times=7),
    fa.Participation(times=3, separation=2),
    fa.Participation(times=9, separation=3),
    fa.Participation(times=2, period=3),
    fa.Participation(times=4, period=2, separation=2),
]


def some_strategies(seed: int) -> list[fa.Strategy]:
    draw = random.Random(seed)
    steps = draw.randrange(1, 8)
    fractions = [[Fraction(draw.randrange(-6, 7), 5) for _ in range(steps)] for _ in range(steps)]
    falling = sorted((draw.random() for _ in range(steps)), reverse=True)
    return [
        fa.Strategy.matrix(fractions),
        fa.Strategy.matrix([[abs(entry) for entry in row] for row in fractions]),
        fa.Strategy.toeplitz(falling, steps),
        fa.Strategy.toeplitz([draw.uniform(-1, 1) for _ in range(steps)], steps),
        fa.Strategy.square_root(steps),
        fa.Strategy.square_root(steps, bands=2),
        fa.Strategy.binary_tree(steps),
    ]


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("part", PARTS)
def test_every_set_of_steps(
    part: fa.Participation, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways to bound a strategy that is not decreasing: each set, and row by row."""
    if not listed:
        monkeypatch.setattr(correlated_noise, "MOST_SETS", 0)
    for seed in range(4):
        for strategy in some_strategies(seed):
            bracket = fa.matrix_mechanism(strategy, part).sensitivity
            one = strategy.denominator**2
            attained, above = (Fraction(x, one) for x in worst(strategy.listed, part))
            assert Fraction(bracket.lower) ** 2 <= attained <= Fraction(bracket.upper) ** 2
            if "beside" in bracket.theorem:  # row by row
                assert Fraction(bracket.upper) ** 2 >= above
            else:
                assert bracket.upper == pytest.approx(math.sqrt(above), rel=1e-15)
                if "absolute" not in bracket.theorem:
                    assert bracket.lower == pytest.approx(bracket.upper, rel=1e-15)


def test_vectors_stay_below_absolute_products() -> None:
    """Units with vectors can do more than units with signs, and not more than is certified."""
    draw = np.random.default_rng(3)
    rows = [[1.0, -0.5, -0.5], [0.0, 0.9, -0.5], [0.0, 0.0, 0.8]]
    mechanism = fa.matrix_mechanism(rows, fa.Participation(times=3))
    assert "absolute" in mechanism.sensitivity.theorem
    best = 0.0
    for _ in range(2000):
        vectors = draw.normal(size=(3, 2))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        best = max(best, float(np.linalg.norm(np.array(rows) @ vectors)))
    assert mechanism.sensitivity.lower * 0.9 < best <= mechanism.sensitivity.upper


def test_a_total_is_spent_at_one_step() -> None:
    draw = np.random.default_rng(5)
    for strategy in some_strategies(4):
        bracket = fa.matrix_mechanism(strategy, fa.Participation(total=2.5)).sensitivity
        matrix = strategy.floats()
        amounts = draw.dirichlet(np.full(strategy.steps, 0.3), size=200) * 2.5
        signs = draw.choice([-1, 1], size=amounts.shape)
        assert np.linalg.norm(matrix @ (amounts * signs).T, axis=0).max() <= bracket.upper * (
            1 + 1e-12
        )
        longest = np.linalg.norm(matrix, axis=0).max() * 2.5
        assert bracket.lower == pytest.approx(bracket.upper) == pytest.approx(longest)


def test_the_square_root_is_the_exact_one() -> None:
    """C(2k, k)/4^k to 64 bits; its square is the matrix of running sums."""
    exact = [Fraction(math.comb(2 * k, k), 4**k) for k in range(60)]
    strategy = fa.Strategy.square_root(60)
    for entry, wanted in zip(strategy.column, exact, strict=True):
        assert abs(Fraction(entry, strategy.denominator) - wanted) <= Fraction(1, 2**65)
    assert all(sum(exact[j] * exact[k - j] for j in range(k + 1)) == 1 for k in range(60))
    for part in PARTS[:5]:
        rounded = fa.matrix_mechanism(strategy, part).sensitivity
        whole = fa.matrix_mechanism(fa.Strategy.toeplitz(exact, 60), part).sensitivity
        assert rounded.upper == pytest.approx(whole.upper, rel=1e-15)


def test_the_matrices_are_what_they_are_called() -> None:
    assert fa.Strategy.toeplitz([1, Fraction(1, 2)], 3).listed == ((2, 0, 0), (1, 2, 0), (0, 1, 2))
    assert fa.Strategy.binary_tree(5).listed == (
        *(tuple(int(i == j) for j in range(5)) for i in range(5)),
        (1, 1, 0, 0, 0),
        (0, 0, 1, 1, 0),
        (1, 1, 1, 1, 0),
    )
    assert fa.Strategy.square_root(4, bands=2).column[2:] == (0, 0)


def test_bands_no_wider_than_the_separation_are_exact() -> None:
    """Steps that a unit takes part in do not overlap, so their squares add up."""
    steps, bands = 200, 7
    draw = random.Random(1)
    column = [draw.random() for _ in range(bands)]
    part = fa.Participation(times=9, separation=bands)
    bracket = fa.matrix_mechanism(fa.Strategy.toeplitz(column, steps), part).sensitivity
    expected = math.sqrt(9 * sum(entry**2 for entry in column))
    assert bracket.lower == pytest.approx(expected, rel=1e-14)
    assert bracket.upper == pytest.approx(expected, rel=1e-14)


def test_known_errors() -> None:
    """Prefix sums of the square root: √Σ f²; of the tree: one sum of each size, refined."""
    f = [math.comb(2 * k, k) / 4**k for k in range(32)]
    root = fa.matrix_mechanism(fa.Strategy.square_root(32)).errors(3.0)
    assert root == pytest.approx([3 * math.sqrt(sum(x * x for x in f[: t + 1])) for t in range(32)])
    refined = [1.0]
    for _ in range(5):
        refined.append(1 / (1 + 1 / (2 * refined[-1])))
    tree = fa.matrix_mechanism(fa.Strategy.binary_tree(32)).errors(1.0)
    for t in range(1, 33):
        blocks = [refined[size] for size in range(6) if t >> size & 1]
        assert tree[t - 1] ** 2 == pytest.approx(sum(blocks))
    alone = fa.matrix_mechanism(np.eye(5)).errors(2.0)
    assert alone == pytest.approx([2 * math.sqrt(t) for t in range(1, 6)])


@pytest.mark.parametrize("window", [None, 1, 3, 7, 50])
def test_windows_and_user_matrices(window: int | None) -> None:
    """A·C⁻¹ by inverting, and the Toeplitz series against the same matrix given in rows."""
    steps = 12
    strategy = fa.Strategy.square_root(steps, bands=5)
    matrix = strategy.floats()
    sums = np.tril(np.ones((steps, steps)))
    if window is not None and window < steps:
        sums -= np.tril(np.ones((steps, steps)), -window)
    expected = np.linalg.norm(sums @ np.linalg.inv(matrix), axis=1)
    for given in (strategy, fa.Strategy.matrix(matrix)):
        errors = fa.matrix_mechanism(given).errors(1.0, window=window)
        assert errors == pytest.approx(expected)


@pytest.mark.parametrize(
    ("times", "stated"),
    [
        (1, [(80.7, 114.1, 114.1), (80.7, 11.2, 4.2), (27.8, 19.0, 12.7), (12.4, 11.4, 8.2)]),
        (30, [(2356, 3332), (442, 61), (623, 425), (284, 261)]),
    ],
)
def test_the_year_of_the_page(times: int, stated: list[tuple[float, ...]]) -> None:
    """The table of docs/theory/correlated-noise.md."""
    days, sigma = 365, fa.gaussian_noise_multiplier(1, 1e-6)
    every = [fa.Strategy.toeplitz(column, days) for column in ([1] * days, [1])]
    strategies = [*every, fa.Strategy.binary_tree(days), fa.Strategy.square_root(days)]
    for strategy, row in zip(strategies, stated, strict=True):
        mechanism = fa.matrix_mechanism(strategy, fa.Participation(times=times))
        deviation = mechanism.deviation(sigma)
        for window, number in zip((None, 7, 1), row, strict=False):
            errors = mechanism.errors(deviation, window=window)
            assert errors.max() == pytest.approx(number, abs=0.051 if times == 1 else 0.51)


@pytest.mark.parametrize("window", [None, 1, 3])
def test_errors_are_those_of_least_squares(window: int | None) -> None:
    """From the rows that are complete, at every step, for more rows than steps."""
    steps, draw = 9, np.random.default_rng(2)
    rows = np.vstack(
        [np.tril(draw.normal(size=(steps, steps))) + np.eye(steps), np.eye(steps)[::2]]
    )
    errors = fa.matrix_mechanism(rows).errors(1.0, window=window)
    for t in range(steps):
        complete = rows[(rows[:, t + 1 :] == 0).all(axis=1), : t + 1]
        wanted = np.zeros(t + 1)
        wanted[-(window or steps) :] = 1
        weights = np.linalg.lstsq(complete.T, wanted, rcond=None)[0]
        assert errors[t] == pytest.approx(np.linalg.norm(weights))


def test_the_guarantee_is_gaussian() -> None:
    mechanism = fa.matrix_mechanism(fa.Strategy.square_root(365), fa.Participation(times=30))
    deviation = mechanism.deviation(4.0)
    guarantee = mechanism.guarantee(deviation)
    assert guarantee == fa.Gaussian(guarantee.noise_multiplier)
    assert 4.0 <= guarantee.noise_multiplier <= 4.0 * (1 + 1e-15)
    assert mechanism.guarantee(deviation / 2).noise_multiplier <= 2.0 * (1 + 1e-15)


def test_a_wrong_sensitivity_would_be_seen() -> None:
    """One column alone is not enough for a unit that comes back."""
    strategy = fa.Strategy.square_root(16)
    one = fa.matrix_mechanism(strategy).sensitivity.upper
    again = fa.matrix_mechanism(strategy, fa.Participation(times=4)).sensitivity.lower
    assert again > 3 * one


def gaussian_profile(mu: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """δ(ε) of N(μ, 1) against N(0, 1), for every real ε and μ ≥ 0."""
    normal = np.vectorize(NormalDist().cdf)
    positive = np.maximum(mu, 1e-12)
    with np.errstate(over="ignore"):
        above = normal(positive / 2 - epsilon / positive)
        below = np.exp(epsilon) * normal(-positive / 2 - epsilon / positive)
    return np.where(mu > 1e-9, above - below, np.maximum(0, 1 - np.exp(epsilon)))


@pytest.mark.parametrize("first", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("turn", [-1.0, 0.2, 1.5])
def test_a_unit_that_reacts_to_what_was_told_gains_nothing(first: float, turn: float) -> None:
    """Two steps: what is left is added or taken away at the second, by what the first one told."""
    rows = [[1.0, 0.0], [0.6, 1.0]]
    mechanism = fa.matrix_mechanism(rows, fa.Participation(total=1))
    mu_in_all = 1 / mechanism.guarantee(0.9).noise_multiplier
    one, told = first / 0.9, np.linspace(-9, 10, 4001)
    density = np.exp(-((told - one) ** 2) / 2) * (told[1] - told[0]) / math.sqrt(2 * math.pi)
    second = np.where(told > turn, 1 - first, first - 1)
    other = np.abs(0.6 * first + second) / 0.9
    for epsilon in (-0.5, 0.0, 0.5, 1.5):
        left = epsilon - (one * told - one**2 / 2)
        played = float((density * gaussian_profile(other, left)).sum())
        stated = gaussian_profile(np.array([mu_in_all]), np.array([epsilon]))[0]
        assert played <= stated + 1e-6
        assert first < 1 or played == pytest.approx(stated, abs=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: fa.matrix_mechanism([]),
        lambda: fa.matrix_mechanism([[]]),
        lambda: fa.matrix_mechanism([[1.0], [1.0, 2.0]]),
        lambda: fa.matrix_mechanism([[math.nan]]),
        lambda: fa.matrix_mechanism([[math.inf]]),
        lambda: fa.matrix_mechanism([["1"]]),
        lambda: fa.matrix_mechanism([[True]]),
        lambda: fa.Strategy(2, 1, rows=((1, 0), (0, 1)), column=(1, 0)),
        lambda: fa.Strategy(2, 1, column=(1,)),
        lambda: fa.Strategy(2, 0, column=(1, 0)),
        lambda: fa.Strategy(0, 1),
        lambda: fa.Strategy.toeplitz([], 3),
        lambda: fa.Strategy.toeplitz([1, 1], 1),
        lambda: fa.Strategy.square_root(0),
        lambda: fa.Strategy.binary_tree(-1),
        lambda: fa.Participation(times=0),
        lambda: fa.Participation(total=0),
        lambda: fa.Participation(total=math.nan),
        lambda: fa.Participation(times=2, total=1),
        lambda: fa.matrix_mechanism([[0.0]]).guarantee(1.0),
        lambda: fa.matrix_mechanism([[0.0]]).errors(1.0),
        lambda: fa.matrix_mechanism([[1.0, 1.0], [0.0, 0.0]]).errors(1.0),
        lambda: fa.matrix_mechanism([[1.0]]).errors(0.0),
        lambda: fa.matrix_mechanism([[1.0]]).errors(1.0, window=0),
        lambda: fa.matrix_mechanism([[1e300]], fa.Participation(total=1e300)),
        lambda: fa.matrix_mechanism([[1e300, 1e300]], fa.Participation(times=2)).errors(1.0),
    ],
)
def test_trouble_raises(wrong) -> None:
    with pytest.raises((InvalidInput, NotCertified)):
        wrong()


def test_too_many_steps_are_refused() -> None:
    assert correlated_noise.MOST_SETS == 20_000  # as docs/theory/correlated-noise.md says
    with pytest.raises(Unsupported):
        fa.matrix_mechanism(fa.Strategy.toeplitz([1, 2], 4000), fa.Participation(times=2))


def test_extreme_entries_stay_above() -> None:
    """Numbers below and near the ends of the floats, through the bound in floats."""
    tiny = fa.matrix_mechanism([[5e-324, 5e-324], [0.0, 5e-324]], fa.Participation(times=2))
    assert tiny.sensitivity.upper >= 5e-324
    large = fa.matrix_mechanism([[1e150, 0.0], [1e150, 1e150]], fa.Participation(times=2))
    assert large.sensitivity.upper == pytest.approx(math.sqrt(5) * 1e150)
