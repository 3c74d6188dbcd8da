"""Plans fit the budget, and one more would not."""

import pytest

import farthing as fa

PLANS = [
    (fa.BoundedRange(0.1), 3.0, 1e-6, "none"),
    (fa.BoundedRange(0.1), 1.0, 1e-6, "adaptive"),
    (fa.PureDP(0.1), 3.0, 1e-6, "adaptive"),
    (fa.ApproximateDP(0.1, 1e-8), 2.0, 1e-6, "adaptive"),
    (fa.Gaussian(20.0), 2.0, 1e-6, "adaptive"),
    (fa.Laplace(0.3), 2.0, 1e-4, "adaptive"),
    (fa.ZeroConcentratedDP(0.001), 2.0, 1e-6, "setwise"),
    (fa.PureDP(0.1), 0.95, 0.0, "adaptive"),
]


@pytest.mark.parametrize(("guarantee", "epsilon", "delta", "adaptivity"), PLANS, ids=str)
def test_the_largest_count_fits_and_one_more_does_not(guarantee, epsilon, delta, adaptivity):
    count = fa.largest_count(guarantee, epsilon=epsilon, delta=delta, adaptivity=adaptivity)
    assert count >= 1
    fits = fa.compose([(guarantee, count)], adaptivity=adaptivity).epsilon_at(delta)
    assert fits.upper <= epsilon
    try:
        over = fa.compose([(guarantee, count + 1)], adaptivity=adaptivity).epsilon_at(delta)
    except fa.Unattainable:
        return
    assert over.upper > epsilon


@pytest.mark.parametrize(
    ("kind", "epsilon", "delta"),
    [
        *((kind, 3.0, 1e-6) for kind in (fa.PureDP, fa.BoundedRange, fa.Laplace)),
        *((kind, 1.0, 0.0) for kind in (fa.PureDP, fa.BoundedRange, fa.Laplace)),
        (fa.PureDP, 1.0, 1e-300),
        (fa.BoundedRange, 1.0, 1e-300),
    ],
)
@pytest.mark.parametrize("count", [1, 10])
def test_the_largest_epsilon_fits_and_hardly_wastes(kind, epsilon, delta, count):
    each = fa.largest_epsilon(kind, count=count, epsilon=epsilon, delta=delta, adaptivity="none")
    items = [(kind(each), count)]
    assert fa.compose(items, adaptivity="none").epsilon_at(delta).upper <= epsilon
    more = fa.compose([(kind(each * 1.01), count)], adaptivity="none").epsilon_at(delta)
    assert more.upper > epsilon


def test_nothing_fits():
    assert fa.largest_count(fa.PureDP(2.0), epsilon=1.0, delta=1e-6) == 0
    assert fa.largest_count(fa.ApproximateDP(0.1, 1e-3), epsilon=1.0, delta=1e-6) == 0
    with pytest.raises(fa.Unattainable, match="epsilon must be greater than 0"):
        fa.largest_epsilon(fa.PureDP, count=3, epsilon=0.0, delta=1e-6)


def test_mechanisms_that_cost_nothing_are_unlimited():
    with pytest.raises(fa.Unattainable, match="unlimited"):
        fa.largest_count(fa.PureDP(0.0), epsilon=1.0, delta=1e-6)
