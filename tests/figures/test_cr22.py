"""What [CR22] says in words about its seven figures."""

import math

import numpy as np
import pytest

from farthing.composition.bounds.closed_forms import epsilon_equal, zcdp_noise_multiplier
from farthing.composition.bounds.nonadaptive import Mix, epsilon_nonadaptive
from farthing.lab.figures.cr22 import (
    COUNTS,
    DELTA,
    EPSILON,
    EPSILONS,
    LIMIT,
    MECHANISMS,
    REPEATS,
    equal_noise,
    gaussian,
    gaussian_by_zcdp,
    laplace,
    laplace_exactly,
    macbeth_trials,
    mixture,
    one_by_one,
    setwise,
    thresholds,
    truncation_level,
    two_orders,
)
from farthing.lab.figures.ddr20_smith25 import six_bounds
from farthing.mechanisms.noise.exact_sampling import _seeded
from oracle.reference import mp
from oracle.test_order_effects import dp_first, dp_later


def test_figure_1_ends_in_the_two_known_bounds() -> None:
    """ "When m = k we get the traditional advanced composition, when m = 0 Corollary 3.1"."""
    spread = EPSILON * math.sqrt(2 * 100 * math.log(1 / DELTA))
    assert setwise(100, 0) == pytest.approx(100 * EPSILON * math.tanh(EPSILON / 2) + spread)
    assert setwise(0, 100) == pytest.approx(six_bounds(EPSILON, 100)["OptKL"], rel=1e-12)


def test_figure_1_optimal_dp_is_almost_the_formula_for_half() -> None:
    for count in COUNTS:
        if count >= 16:
            best = epsilon_equal(DELTA, epsilon=EPSILON, count=count).upper
            assert 0.9 < best / setwise(count // 2, count - count // 2) < 1.11


def test_figure_2_interpolates() -> None:
    """m = k is [KOV15], m = 0 is [DDR20]; a quarter of DP costs less than the quarter before."""
    pure, ranged = (Mix(EPSILON, m, MECHANISMS - m).epsilon_at(DELTA).upper for m in (100, 0))
    assert pure == pytest.approx(epsilon_equal(DELTA, epsilon=EPSILON, count=100).upper, rel=1e-8)
    known = epsilon_nonadaptive(DELTA, epsilon=EPSILON, count=100).upper
    assert ranged == pytest.approx(known, rel=1e-8)
    steps = [Mix(EPSILON, m, MECHANISMS - m).epsilon_at(DELTA).upper for m in range(0, 101, 25)]
    assert np.all(np.diff(steps) > 0)
    assert np.all(np.diff(steps, 2) < 0)
    assert mixture(50, 1.0).upper == pytest.approx(0.0605585, rel=1e-5)


@pytest.mark.parametrize("epsilon_g", [0.0, 0.2, 0.48, 0.52, 0.8])
def test_figure_3_is_lemma_5_4(epsilon_g: float) -> None:
    """The recursion meets the closed forms of Lemma 5.4 (with the z(t) of the appendix)."""
    first, between = two_orders(epsilon_g)
    one, at = mp.mpf(1), mp.mpf(epsilon_g)
    assert first.lower <= float(dp_first(one, at)) * (1 + 1e-12)
    assert float(dp_first(one, at)) <= first.upper * (1 + 1e-12)
    assert between.lower <= float(dp_later(one, at)) * (1 + 1e-12)
    assert float(dp_later(one, at)) <= between.upper * (1 + 1e-12)
    assert first.lower > between.upper


def test_figure_3_ends_in_one() -> None:
    """Lemma 5.3: from ε_g = ε on the orders agree."""
    first, between = two_orders(1.0)
    assert between.upper / first.upper == pytest.approx(1, abs=2e-6)


@pytest.mark.parametrize(
    ("epsilon", "last", "by_zcdp"), [(0.01, 6, 40), (0.1, 8, 14), (1.0, 18, 24)]
)
def test_figure_4_laplace_first_then_gaussian(epsilon: float, last: int, by_zcdp: int) -> None:
    """ "For relatively small ℓ0-sensitivities Laplace, then Gaussian noise seems to win out"."""
    better = [laplace(epsilon, n).upper < gaussian(epsilon, n).upper for n in range(1, 41)]
    assert better == [n <= last for n in range(1, 41)]
    assert laplace(epsilon, by_zcdp).upper < gaussian_by_zcdp(epsilon, by_zcdp)
    assert laplace(epsilon, 50).upper > gaussian_by_zcdp(epsilon, 50)


def test_figure_4_has_equal_standard_deviations() -> None:
    """ "The variance of Lap(b) is 2b²"."""
    assert equal_noise(0.1) ** 2 == pytest.approx(2 / 0.1**2)


def test_figure_5_spans_what_is_said() -> None:
    """ "k·Δ-mechanisms which varies from 20 to 100"."""
    assert (LIMIT * REPEATS[0], LIMIT * REPEATS[-1]) == (20, 100)


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_figure_5_with_the_bounds_of_the_paper(epsilon: float) -> None:
    """Laplace is better for few histograms, zCDP for many, and one by one is the worst."""
    assert laplace(epsilon, 20).upper < gaussian_by_zcdp(epsilon, 20)
    assert laplace(epsilon, 100).upper > gaussian_by_zcdp(epsilon, 100)
    assert one_by_one(epsilon, 10) > 1.5 * laplace(epsilon, 100).upper


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_figure_5_composed_exactly(epsilon: float) -> None:
    """Errata: the Gaussian mechanism is better than Laplace noise throughout, and never bad."""
    for repeats in (REPEATS[0], REPEATS[-1]):
        counts = LIMIT * repeats
        assert gaussian(epsilon, counts).upper < laplace_exactly(epsilon, counts).lower
        assert gaussian(epsilon, counts).upper < one_by_one(epsilon, repeats)


def test_figure_6_parameters() -> None:
    """ "ε′(δ) = 2.08", "σ = 13.1"."""
    budget = laplace(0.1, 25).upper
    assert f"{budget:.2f}" == "2.08"
    assert f"{zcdp_noise_multiplier(budget, 1e-6, contribution_limit=25):.1f}" == "13.1"


def test_figure_6_smaller_error_for_smaller_counts() -> None:
    """100 trials of the top 25 words; CountMLE is better on the smaller half, by a quarter."""
    with _seeded(6):
        words, errors = macbeth_trials()
    assert words[:5] == ("the", "and", "to", "of", "i")
    assert errors["Laplace"].shape == errors["CountMLE"].shape == (100, 25)
    root_mean_square = {name: np.sqrt((error**2).mean(axis=0)) for name, error in errors.items()}
    smaller = {name: value[13:].mean() for name, value in root_mean_square.items()}
    assert smaller["CountMLE"] < 0.75 * smaller["Laplace"]
    first = {name: value[:2].mean() for name, value in root_mean_square.items()}
    assert first["CountMLE"] == pytest.approx(first["Laplace"], rel=0.25)  # far apart: no help


@pytest.mark.parametrize("limit", [1, 10])
def test_figure_7_solves_equation_10(limit: int) -> None:
    sigma, delta = 40.0 * math.sqrt(limit), 1e-10
    level = truncation_level(sigma, limit, delta)
    with mp.workdps(40):

        def below(x: float) -> mp.mpf:
            return mp.ncdf(mp.mpf(x) / sigma)

        inside = (below(level) - below(1 - level)) / (below(level) - below(-level))
        assert float(limit * (1 - inside)) == pytest.approx(delta, rel=1e-6)


def test_figure_7_where_truncation_overtakes() -> None:
    """Errata: at Δ = 4 as printed, at Δ = 11 with thresholds that hold."""
    lap, sound_lap, gauss, sound_gauss = thresholds(1)
    for limit in range(1, 16):
        found = thresholds(limit)
        assert (found[gauss] < found[lap]) == (limit >= 4)
        assert (found[sound_gauss] < found[sound_lap]) == (limit >= 11)
        assert found[sound_gauss] == pytest.approx(2 * found[gauss], rel=0.01)
