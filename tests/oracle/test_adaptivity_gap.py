"""Where choosing adaptively helps and where it does not: Theorem 4 of [DDR20]."""

import pytest

import farthing as fa
from farthing.composition.bounds.nonadaptive import adaptivity_is_free, delta_nonadaptive
from oracle.reference import mp, up_probability


def _adaptive(epsilon, count, x, tolerance=2e-5):
    return fa.compose([(fa.BoundedRange(epsilon), count)], tolerance=tolerance).delta_at(x)


@pytest.mark.parametrize(
    ("count", "x"), [(2, 0.0), (2, 0.3), (4, 0.0), (4, 0.6), (4, 1.0), (5, 1.9), (6, 2.5)]
)
def test_the_gap_is_strict(count, x):
    """Lemmas 6.4 and 6.6: certified, because the two brackets do not touch."""
    assert adaptivity_is_free(x, epsilon=1.0, count=count) is False
    fixed = delta_nonadaptive(x, epsilon=1.0, count=count)
    assert fixed.upper < _adaptive(1.0, count, x).lower


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.8])
def test_near_basic_composition_adaptivity_is_free(count, part):
    """Lemmas 6.7–6.10: for ε_g ≥ (k − 1)ε only one outcome counts."""
    x = (count - 1 + part) * 1.0
    assert adaptivity_is_free(x, epsilon=1.0, count=count) is True
    assert adaptivity_is_free(-x, epsilon=1.0, count=count) is True
    fixed, adaptive = delta_nonadaptive(x, epsilon=1.0, count=count), _adaptive(1.0, count, x)
    assert adaptive.lower <= fixed.upper
    assert fixed.lower <= adaptive.upper
    assert adaptive.upper <= fixed.upper * (1 + 1e-3)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_lemma_6_8_as_a_formula(count):
    """δ = sup Π q_t (1 − e^{ε_g − Σt})₊ with all t equal to (ε_g + ε)/(k + 1)."""
    x = mp.mpf(count) - mp.mpf("0.4")
    t = (x + 1) / (count + 1)
    value = up_probability(1, t) ** count * -mp.expm1(x - count * t)
    bracket = delta_nonadaptive(float(x), epsilon=1.0, count=count)
    assert float(value) == pytest.approx(bracket.upper, rel=1e-12)


def test_beyond_the_sum_nothing_is_left():
    """Lemma 6.7."""
    assert _adaptive(1.0, 3, 3.0).upper == 0.0
    assert delta_nonadaptive(3.0, epsilon=1.0, count=3).upper == 0.0
    below = delta_nonadaptive(-3.0, epsilon=1.0, count=3)
    assert below.lower <= -mp.expm1(-3) <= below.upper


def test_the_paper_is_silent_in_between():
    assert adaptivity_is_free(1.5, epsilon=1.0, count=4) is None
    assert adaptivity_is_free(0.7, epsilon=1.0, count=2) is None
    assert adaptivity_is_free(0.0, epsilon=1.0, count=1) is True


@pytest.mark.parametrize("count", [2, 3, 5, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_adaptive_is_never_less(epsilon, count):
    for part in (0.0, 0.1, 0.35, 0.7):
        x = part * count * epsilon
        fixed = delta_nonadaptive(x, epsilon=epsilon, count=count)
        adaptive = fa.compose([(fa.BoundedRange(epsilon), count)]).delta_at(x)
        assert fixed.lower <= adaptive.lower * (1 + 1e-12)
