"""Errors in the source documents, each shown by numbers. The list is in docs/errata.md."""

import numpy as np
import pytest

import farthing as fa
from farthing.composition.bounds.nonadaptive import delta_nonadaptive
from oracle import recursion
from oracle.reference import (
    down_probability,
    mixed_at,
    mixed_equal,
    mp,
    positive_part,
    ranged_at,
    ranged_subset_sum,
    truth,
    up_probability,
)
from oracle.test_order_effects import dp_first, dp_later


def test_lemma_5_3_needs_the_z_of_its_appendix():
    """[CR22]: with z(t) as printed in section 5 the formulas miss the brute force by far."""
    e, g = mp.mpf(1), mp.mpf("0.2")
    first = float(recursion.optimum([("dp", 1.0), ("br", 1.0), ("br", 1.0)], 0.2, 3000))
    later = float(recursion.optimum([("br", 1.0), ("dp", 1.0), ("br", 1.0)], 0.2, 3000))
    assert float(dp_first(e, g)) == pytest.approx(first, rel=1e-6)
    assert float(dp_later(e, g)) == pytest.approx(later, rel=1e-6)
    assert float(dp_first(e, g, as_printed=True)) > 1.1 * first
    assert float(dp_later(e, g, as_printed=True)) > 1.1 * later


def test_corollary_5_1_holds_with_all_but_one_pure():
    """[CR22]: one bounded-range mechanism among k means m = k − 1 in Theorem 3, not m = 1."""
    order = [("dp", 0.5), ("dp", 0.5), ("br", 0.5), ("dp", 0.5)]
    value = float(recursion.optimum(order, 0.4, 3000))
    assert float(mixed_equal(0.5, 3, 1, 0.4)) == pytest.approx(value, rel=1e-6)
    assert float(mixed_equal(0.5, 1, 3, 0.4)) < 0.9 * value


def test_the_exponent_in_f_before_lemma_4_5():
    """[CR22]: (1 − q)^j must be (1 − q)^i; only then F_ℓ is the double sum of eq. (5)."""
    e, pure, ranged, x = mp.mpf("0.5"), 2, 3, mp.mpf("0.3")
    t = mp.mpf("0.22")
    q, honest = up_probability(e, t), truth(e)

    def total(exponent):
        value = mp.mpf(0)
        for i in range(ranged + 1):
            for j in range(pure + 1):
                excess = e * (pure - i - 2 * j) + t * ranged - x
                weight = mp.binomial(ranged, i) * mp.binomial(pure, j)
                weight *= honest ** (pure - j) * (1 - honest) ** j
                weight *= q ** (ranged - i) * (1 - q) ** (i if exponent == "i" else j)
                value += weight * positive_part(-mp.expm1(-excess))
        return value

    right = mixed_at(0.5, pure, ranged, t, x)
    assert abs(total("i") - right) < mp.mpf("1e-40")
    assert abs(total("j") - right) > mp.mpf("0.01")


def test_the_losses_of_generalized_randomized_response():
    """[DDR20], section 7: L is ln of the answer to 1 over the answer to 0, and is printed as t
    for y = 1; by Definition 2.4 that ratio is ε − t at y = 1 and −t at y = 0."""
    e, t = mp.mpf(1), mp.mpf("0.3")
    q, p = up_probability(e, t), down_probability(e, t)
    assert abs(mp.log((1 - p) / (1 - q)) - (e - t)) < mp.mpf("1e-40")
    assert abs(mp.log(p / q) + t) < mp.mpf("1e-40")
    assert abs(mp.log((1 - p) / (1 - q)) - t) > mp.mpf("0.1")


def test_partial_sums_lie_below_the_profile():
    """[DDR20, Cor. 5.3; supplement, Cor. C.2]: the proof says F_ℓ ≥ δ^k; it is F_ℓ ≤ δ^k."""
    e, t, x, count = mp.mpf(1), mp.mpf("0.45"), mp.mpf("0.2"), 4
    whole = ranged_at(e, count, t, x)
    p = down_probability(e, t)
    partial, strictly_below = mp.mpf(0), 0
    for i in range(count + 1):
        term = mp.binomial(count, i) * p ** (count - i) * (1 - p) ** i
        partial += term * (mp.exp(count * t - i * e) - mp.exp(x))
        assert partial <= whole + mp.mpf("1e-40")
        strictly_below += partial < whole - mp.mpf("1e-3")
    assert strictly_below >= 2


def test_the_shifted_threshold_of_lemma_c_8():
    """[DDR20, supplement, Lemma C.8]: ε′_g = ε_g + |S|ε − Σt; the ε after |S| is missing."""
    e, x = mp.mpf("0.5"), mp.mpf("0.2")
    ts = [mp.mpf("0.1"), mp.mpf("0.3"), mp.mpf("0.4")]

    def pair(threshold):
        total = mp.mpf(0)
        for first in (0, 1):
            for second in (0, 1):
                up, down = mp.mpf(1), mp.mpf(1)
                for t, c in zip(ts[:2], (first, second), strict=True):
                    q, p = up_probability(e, t), down_probability(e, t)
                    up, down = (up * (1 - q), down * (1 - p)) if c else (up * q, down * p)
                total += positive_part(up - mp.exp(threshold) * down)
        return total

    q = up_probability(e, ts[2])
    whole = q * pair(x - ts[2]) + (1 - q) * pair(x + e - ts[2])
    exact = ranged_subset_sum([0.5] * 3, ts, x)
    assert abs(whole - exact) < mp.mpf("1e-40")
    printed = q * pair(x - ts[2]) + (1 - q) * pair(x + 1 - ts[2])
    assert abs(printed - exact) > mp.mpf("1e-3")


def test_the_common_event_of_lemma_3_4_is_an_intersection():
    """[CR22, proof of Lemma 3.4]: given ∪E_i one leak may still happen; given ∩E_i none does."""
    leaks = [0.3, 0.2]
    union, intersection = 1 - 0.3 * 0.2, 0.7 * 0.8
    leak = 1 - (1 - leaks[0]) * (1 - leaks[1])
    assert 1 - intersection == pytest.approx(leak)
    items = [fa.ZeroConcentratedDP(0.0, 0.0, d) for d in leaks]
    assert fa.compose(items).delta_at(1.0).lower == pytest.approx(leak, rel=1e-12)
    assert 1 - union < leak - 0.1


def test_the_clipped_densities_of_the_lecture_are_minima():
    """[Smith25, section 3.3]: P′ = min{P, e^ε Q} has mass 1 − δ; the printed max has more."""
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    epsilon = 0.3
    delta = np.sum(np.maximum(p - np.exp(epsilon) * q, 0))
    assert np.sum(np.minimum(p, np.exp(epsilon) * q)) == pytest.approx(1 - delta)
    assert np.sum(np.maximum(p, np.exp(epsilon) * q)) > 1


def test_theorem_4_fails_at_three_mechanisms():
    """[DDR20, Thm 4] claims a gap on [0, (k − 3)ε], so at k = 3, ε_g = 0; Lemma 6.6 needs k ≥ 4.

    There t = ε/2 leads to k = 2, ε_g = ±ε/2, where t = ε/2 is still best: adaptivity is free.
    """
    for epsilon in (0.1, 1.0, 4.0):
        fixed = delta_nonadaptive(0.0, epsilon=epsilon, count=3)
        dense = float(recursion.optimum([("br", epsilon)] * 3, 0.0, 400))
        assert dense <= fixed.upper * (1 + 1e-13)
        assert dense >= fixed.lower * (1 - 1e-13)
        four = float(recursion.optimum([("br", epsilon)] * 4, 0.0, 60))
        assert four > delta_nonadaptive(0.0, epsilon=epsilon, count=4).upper * (1 + 1e-7)


@pytest.mark.parametrize("part", [0.5, 0.6, 0.9])
def test_two_mechanisms_beyond_half_of_epsilon(part):
    """[DDR20, section 6] says that the gap exists for all k ≥ 2 and almost all ε_g; for k = 2 it
    ends at ε/2, half-way to where Lemma 6.10 starts."""
    dense = float(recursion.optimum([("br", 1.0)] * 2, part, 60000))
    fixed = delta_nonadaptive(part, epsilon=1.0, count=2)
    assert dense == pytest.approx(fixed.upper, rel=1e-8)
    inner = float(recursion.optimum([("br", 1.0)] * 2, 0.45, 60000))
    assert inner > delta_nonadaptive(0.45, epsilon=1.0, count=2).upper * (1 + 1e-4)
