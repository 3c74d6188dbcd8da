"""Numbers that the papers and the design print."""

import pytest

import farthing as fa

DELTA = 1e-6


def test_twenty_five_pure_mechanisms():
    """[CR22, section 6]: 25 × 0.1-DP at δ = 1e-6 is 2.08, and σ = 13.1 serves that ε."""
    bracket = fa.compose([(fa.PureDP(0.1), 25)]).epsilon_at(DELTA)
    assert f"{bracket.upper:.2f}" == f"{bracket.lower:.2f}" == "2.08"
    sigma = fa.zcdp_noise_multiplier(bracket.upper, DELTA, contribution_limit=25)
    assert f"{sigma:.1f}" == "13.1"
    assert fa.zcdp_epsilon(DELTA, noise_multiplier=sigma, contribution_limit=25) == pytest.approx(
        bracket.upper, rel=1e-12
    )


def test_four_times_as_many_range_mechanisms():
    """[DDR20, Figure 1]: the budget of 100 × 0.1-DP serves 384 × 0.1-BR."""
    budget = fa.compose([(fa.PureDP(0.1), 100)]).epsilon_at(DELTA).upper
    assert (
        fa.largest_count(fa.BoundedRange(0.1), epsilon=budget, delta=DELTA, adaptivity="none")
        == 384
    )


#: count, non-adaptive optimum, the design's adaptive bracket, MGF bound, zCDP ε²/8 tight
TABLE = [
    (10, 0.6286, (0.6340, 0.6344), 0.7672, 0.7002),
    (100, 2.2460, (2.2506, 2.2510), 2.7286, 2.4191),
    (1000, 8.3006, (8.303, 8.305), 9.5497, 8.8459),
]


@pytest.mark.parametrize(("count", "fixed", "adaptive", "mgf", "zcdp"), TABLE)
class TestTheTableOfTheDesign:
    def test_fixed_in_advance(self, count, fixed, adaptive, mgf, zcdp):
        bracket = fa.compose([(fa.BoundedRange(0.1), count)], adaptivity="none").epsilon_at(DELTA)
        assert bracket.upper == pytest.approx(fixed, abs=5e-5)
        assert bracket.width <= 1e-9
        assert fixed < adaptive[0] < zcdp < mgf

    def test_adaptive(self, count, fixed, adaptive, mgf, zcdp):
        bracket = fa.compose([(fa.BoundedRange(0.1), count)]).epsilon_at(DELTA)
        assert bracket.lower <= adaptive[1]
        assert adaptive[0] <= bracket.upper
        assert bracket.upper <= adaptive[1] * (1 + 1e-3)
        assert bracket.lower >= adaptive[0] * (1 - 1e-3)
        assert fixed < bracket.lower < bracket.upper < zcdp < mgf

    def test_moments(self, count, fixed, adaptive, mgf, zcdp):
        items = [(fa.BoundedRange(0.1), count)]
        bounds = fa.compose(items, tolerance=0.5).bounds_at(DELTA)
        assert bounds["mgf"].upper == pytest.approx(mgf, abs=5e-5)
        plain = fa.compose([(fa.ZeroConcentratedDP(0.1**2 / 8), count)]).bounds_at(DELTA)
        assert plain["zcdp-tight"].upper == pytest.approx(zcdp, abs=5e-5)
        assert fixed < adaptive[0] < bounds["renyi"].upper < bounds["mgf"].upper


def test_the_first_lines_of_the_package():
    composition = fa.compose([(fa.BoundedRange(0.1), 100), (fa.PureDP(0.1), 20)], adaptivity="none")
    bracket = composition.epsilon_at(DELTA)
    assert bracket.width <= 1e-9
    assert "Thm 3" in bracket.theorem
    assert composition.delta_at(bracket.upper).upper <= DELTA * (1 + 1e-6)
