"""What the order of DP and bounded range does: Propositions 1–2 and Lemmas 5.3–5.4 of [CR22]."""

import pytest

import farthing as fa
from oracle import recursion
from oracle.reference import mixed_equal, mp, truth, up_probability

DP, BR = ("dp", 1.0), ("br", 1.0)


def x_part(t, e, g):
    half = up_probability(e, (g - t) / 2) ** 2
    other = up_probability(e, (g + e - t) / 2) ** 2
    q = up_probability(e, t)
    return truth(e) * (1 - mp.exp(-e)) * (q * half + (1 - q) * other)


def y_part(t, e, g):
    other = up_probability(e, (g + e - t) / 2) ** 2 * (1 - mp.exp(-e))
    q = up_probability(e, t)
    return truth(e) * (q * (1 - mp.exp(g - e - t)) + (1 - q) * other)


def z_part(t, e, g, *, as_printed=False):
    shift = (g - t) / 2 if as_printed else e + (g - t) / 2
    square = up_probability(e, shift) ** 2
    return (1 - truth(e)) * up_probability(e, t) * square * (1 - mp.exp(-e))


def dp_first(e, g, **how):
    """Lemma 5.4, first formula."""
    first = x_part(e / 2, e, g) if g >= e / 2 else y_part((e + g) / 3, e, g)
    return first + z_part((2 * e + g) / 3, e, g, **how)


def dp_later(e, g, **how):
    """Lemma 5.4, second formula: DP in the middle or at the end."""
    if g >= e / 2:
        return max(x_part(e / 2, e, g), y_part(g, e, g) + z_part(g, e, g, **how))
    return max(x_part(g, e, g), y_part(e / 2, e, g) + z_part(e / 2, e, g, **how))


def _composed(order, epsilon=1.0, **how):
    kinds = {"dp": fa.PureDP, "br": fa.BoundedRange}
    return fa.compose([kinds[k](e * epsilon) for k, e in order], tolerance=1e-5, **how)


def _close(bracket, value):
    return bracket.lower <= float(value) * (1 + 1e-12) and float(value) <= bracket.upper * (
        1 + 1e-12
    )


def test_the_values_in_the_design():
    e, g = mp.mpf(1), mp.mpf("0.2")
    assert float(dp_first(e, g)) == pytest.approx(0.440662, abs=5e-7)
    assert float(dp_later(e, g)) == pytest.approx(0.435920, abs=5e-7)
    assert _close(_composed([DP, BR, BR]).delta_at(0.2), dp_first(e, mp.mpf(0.2)))
    assert _close(_composed([BR, DP, BR]).delta_at(0.2), dp_later(e, mp.mpf(0.2)))
    assert _close(_composed([BR, BR, DP]).delta_at(0.2), dp_later(e, mp.mpf(0.2)))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
@pytest.mark.parametrize("part", [0.0, 0.2, 0.49, 0.5, 0.75, 0.95])
def test_the_closed_forms_of_lemma_5_4(epsilon, part):
    e, g = mp.mpf(epsilon), mp.mpf(part * epsilon)
    first = _composed([DP, BR, BR], epsilon).delta_at(part * epsilon)
    middle = _composed([BR, DP, BR], epsilon).delta_at(part * epsilon)
    last = _composed([BR, BR, DP], epsilon).delta_at(part * epsilon)
    assert _close(first, dp_first(e, g))
    assert _close(middle, dp_later(e, g))
    assert _close(last, dp_later(e, g))
    assert first.width < 1e-3
    assert dp_first(e, g) > dp_later(e, g)


def test_the_strict_difference_is_certified():
    """Lemma 5.4: for ε_g < ε the order with DP first is strictly worse."""
    assert _composed([BR, DP, BR]).delta_at(0.2).upper < _composed([DP, BR, BR]).delta_at(0.2).lower


@pytest.mark.parametrize("x", [1.0, 1.4, 2.2])
def test_beyond_epsilon_the_three_orders_agree(x):
    """Lemma 5.3: for ε_g ≥ ε."""
    brackets = [_composed(o).delta_at(x) for o in ([DP, BR, BR], [BR, DP, BR], [BR, BR, DP])]
    assert max(b.lower for b in brackets) <= min(b.upper for b in brackets)
    assert all(b.width < 1e-3 for b in brackets)


@pytest.mark.parametrize("x", [0.1, 0.5, 0.9, 1.7])
def test_bounded_range_last_is_the_worst_order(x):
    """Proposition 1, with unequal ε and Laplace and Gaussian steps among them as well."""
    ranged = fa.BoundedRange(0.8)
    for fixed in (fa.PureDP(0.6), fa.Laplace(0.6), fa.Gaussian(2.0)):
        for rest in ([], [fa.BoundedRange(0.5)]):
            before = fa.compose([fixed, ranged, *rest], tolerance=1e-4).delta_at(x)
            after = fa.compose([ranged, fixed, *rest], tolerance=1e-4).delta_at(x)
            assert after.lower <= before.upper


def test_the_set_wise_optimum_is_the_worst_fixed_order_of_dp_and_range():
    steps = [DP, BR, BR]
    bracket = _composed(steps, adaptivity="setwise").delta_at(0.3)
    worst = float(recursion.worst_order(steps, 0.3, 1500))
    assert bracket.lower <= worst * (1 + 1e-5)
    assert worst <= bracket.upper
    assert bracket.upper <= worst * (1 + 1e-3)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("x", [0.0, 0.7, 2.1])
def test_one_range_mechanism_may_stand_anywhere(place, x):
    """Proposition 2 and Corollary 5.1 with m = k − 1."""
    order = [DP] * 3
    order.insert(place, BR)
    value = mixed_equal(1.0, 3, 1, x)
    assert _close(_composed(order).delta_at(x), value)
    assert float(recursion.optimum(order, x, 4000)) == pytest.approx(float(value), rel=1e-6)


def test_small_then_large_is_the_worst_order_of_ranges():
    """A conjecture that the lower bounds rely on for quality, not for soundness."""
    steps = [("br", 1.0), ("br", 0.5), ("br", 0.5)]
    for x in (0.1, 0.6, 1.2):
        worst = float(recursion.worst_order(steps, x, 200))
        small_first = float(recursion.optimum(sorted(steps, key=lambda s: s[1]), x, 200))
        assert small_first == pytest.approx(worst, rel=1e-9)
        bracket = fa.compose(
            [fa.BoundedRange(1.0), (fa.BoundedRange(0.5), 2)], adaptivity="setwise"
        ).delta_at(x)
        assert worst <= bracket.upper
