"""Concurrent composition: what the theorems cover, and what they do not."""

import pytest

import farthing as fa


@pytest.mark.parametrize(
    "items", [[fa.BoundedRange(0.1)], [fa.PureDP(1.0), (fa.BoundedRange(0.1), 3)]]
)
def test_bounded_range_raises_and_says_why(items):
    with pytest.raises(fa.Unsupported) as caught:
        fa.compose(items, adaptivity="concurrent")
    message = str(caught.value)
    assert "bounded range cannot be composed concurrently" in message
    assert "answers once" in message
    assert "dp:0.1" in message  # what to use instead


def test_concentrated_dp_raises_and_points_to_zcdp():
    with pytest.raises(fa.Unsupported, match="zcdp"):
        fa.compose([fa.ConcentratedDP(0.1, 0.1)], adaptivity="concurrent")


@pytest.mark.parametrize(
    "guarantee",
    [
        fa.PureDP(0.1),
        fa.ApproximateDP(0.1, 1e-9),
        fa.ZeroConcentratedDP(0.01),
        fa.TruncatedConcentratedDP(0.01, 30.0),
        fa.RenyiDP(lambda alpha: 0.01 * alpha),
    ],
)
def test_interleaving_gains_nothing_where_a_theorem_says_so(guarantee):
    concurrent = fa.compose([(guarantee, 10)], adaptivity="concurrent").epsilon_at(1e-6)
    adaptive = fa.compose([(guarantee, 10)]).epsilon_at(1e-6)
    assert concurrent.upper == adaptive.upper
    assert "Lyu22" in concurrent.theorem
    assert "Lyu22" not in adaptive.theorem


@pytest.mark.parametrize("guarantee", [fa.Laplace(1.0), fa.Gaussian(3.0)])
def test_noise_is_read_as_the_notion_that_the_theorem_covers(guarantee):
    concurrent = fa.compose([(guarantee, 10)], adaptivity="concurrent").epsilon_at(1e-3)
    adaptive = fa.compose([(guarantee, 10)]).epsilon_at(1e-3)
    assert concurrent.upper >= adaptive.upper * (1 - 1e-9)
    assert concurrent.lower <= adaptive.upper  # one-shot mechanisms attain no more than that


def test_mixed_notions_meet_in_renyi_dp():
    items = [(fa.PureDP(0.2), 5), (fa.ZeroConcentratedDP(0.02), 3), fa.RenyiDP(lambda a: 0.01 * a)]
    bracket = fa.compose(items, adaptivity="concurrent").epsilon_at(1e-6)
    assert bracket.upper < 5 * 0.2 + 4
    assert "Rényi" in bracket.theorem or "zCDP" in bracket.theorem
