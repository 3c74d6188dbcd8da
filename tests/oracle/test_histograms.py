"""Histograms under ℓ0 sensitivity: Lemmas 6.2 and 6.3 of [CR22] at the numbers of its Figure 6."""

from __future__ import annotations

import pytest

import farthing as fa


def test_laplace_by_lemma_6_2() -> None:
    bracket = fa.laplace_histogram_epsilon(1e-6, epsilon=0.1, contribution_limit=25)
    assert f"{bracket.upper:.2f}" == "2.08"
    plain = fa.compose([(fa.PureDP(0.1), 25)]).epsilon_at(1e-6)
    assert (bracket.lower, bracket.upper) == (plain.lower, plain.upper)
    sharper = fa.compose([(fa.Laplace(0.1), 25)]).epsilon_at(1e-6)
    assert sharper.upper < bracket.lower


def test_gaussian_by_lemma_6_3_and_exactly() -> None:
    sigma = fa.zcdp_noise_multiplier(2.08, 1e-6, contribution_limit=25)
    assert f"{sigma:.1f}" == "13.1"
    by_zcdp = fa.zcdp_epsilon(1e-6, noise_multiplier=sigma, contribution_limit=25)
    assert by_zcdp == pytest.approx(2.08, rel=1e-9)
    exact = fa.gaussian_epsilon(1e-6, noise_multiplier=sigma, count=25)
    assert exact.upper < by_zcdp


@pytest.mark.parametrize("limit", [0, -1, 2.5])
def test_the_contribution_limit_is_a_whole_number(limit: object) -> None:
    with pytest.raises(fa.InvalidInput, match="contribution_limit"):
        fa.laplace_histogram_epsilon(1e-6, epsilon=0.1, contribution_limit=limit)
