"""Concurrent composition: what the theorems cover, and what they do not."""

import pytest

import farthing as fa

DELTA = 1e-6


@pytest.mark.parametrize(
    "guarantee",
    [
        fa.PureDP(0.1),
        fa.ApproximateDP(0.1, 1e-9),
        fa.Laplace(0.1),
        fa.Gaussian(10.0),
        fa.DiscreteGaussian(10.0),
        fa.LossDistribution((-0.2, 0.2), (0.45, 0.55), 0.0),
    ],
)
def test_a_conversation_with_a_dominating_pair_is_one_draw(guarantee):
    concurrent = fa.compose([(guarantee, 5)], adaptivity="concurrent").epsilon_at(DELTA)
    adaptive = fa.compose([(guarantee, 5)]).epsilon_at(DELTA)
    assert (concurrent.lower, concurrent.upper) == (adaptive.lower, adaptive.upper)
    assert "VZ23" in concurrent.theorem
    assert "VZ23" not in adaptive.theorem


def test_five_gaussian_conversations():
    """Read as zCDP they would cost 1.014; the truth is that of five Gaussian mechanisms."""
    bracket = fa.compose([(fa.Gaussian(10), 5)], adaptivity="concurrent").epsilon_at(DELTA)
    assert 0.9405 < bracket.lower <= bracket.upper < 0.9406


@pytest.mark.parametrize(
    "guarantee",
    [
        fa.ZeroConcentratedDP(0.01),
        fa.TruncatedConcentratedDP(0.01, 30.0),
        fa.RenyiDP(lambda alpha: 0.01 * alpha),
    ],
)
def test_moments_of_conversations_add_up(guarantee):
    concurrent = fa.compose([(guarantee, 10)], adaptivity="concurrent").epsilon_at(DELTA)
    adaptive = fa.compose([(guarantee, 10)]).epsilon_at(DELTA)
    assert concurrent.upper >= adaptive.upper * (1 - 1e-12)
    assert "Lyu22" in concurrent.theorem


def test_bounded_range_answers_between_conversations():
    items = [(fa.Gaussian(20), 10), (fa.PureDP(0.1), 10), (fa.BoundedRange(0.1), 100)]
    concurrent = fa.compose(items, adaptivity="concurrent").epsilon_at(DELTA)
    assert concurrent.width <= 5e-3
    # in no order that is chosen in advance is more attained
    for order in (items, items[::-1], [items[2], items[0], items[1]]):
        fixed = fa.compose(order, adaptivity="adaptive").epsilon_at(DELTA)
        assert fixed.lower <= concurrent.upper


def test_mixed_notions_meet_in_renyi_dp():
    items = [
        (fa.PureDP(0.2), 5),
        (fa.ZeroConcentratedDP(0.02), 3),
        fa.RenyiDP(lambda a: 0.01 * a),
        (fa.BoundedRange(0.1), 4),
    ]
    bracket = fa.compose(items, adaptivity="concurrent").epsilon_at(DELTA)
    assert bracket.upper < 5 * 0.2 + 4
    assert "Rényi" in bracket.theorem
    assert "Lyu22" in bracket.theorem


def test_concentrated_dp_raises_and_points_to_zcdp():
    with pytest.raises(fa.Unsupported, match="zcdp"):
        fa.compose([fa.ConcentratedDP(0.1, 0.1)], adaptivity="concurrent")


def test_approximate_zcdp_raises_and_says_what_to_list_instead():
    with pytest.raises(fa.Unsupported, match="adp:0,1e-09"):
        fa.compose([fa.ZeroConcentratedDP(0.1, 0.0, 1e-9)], adaptivity="concurrent")
