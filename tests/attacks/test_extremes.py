"""Extreme parameters raised errors that were not ours, or computed for minutes without a word.

Every list gets a bracket or a FarthingError. What an answer costs is counted before it is begun.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import farthing as fa
from farthing.composition.adaptive.grid_choice import WORK_LIMIT, Layout
from farthing.composition.adaptive.profiles import curves
from farthing.composition.items import losses_of

BR, DP = fa.BoundedRange, fa.PureDP

epsilons = st.sampled_from(
    [0.0, 1e-300, 1e-60, 2e-60, 1e-20, 1e-7, 0.045, 0.5, 5.0, 37.0, 300.0, 599.0, 700.0, 1e300]
)
multipliers = st.sampled_from(
    [1e-300, 1e-60, 1e-7, 0.011, 0.3, 1.0, 37.0, 300.0, 1e5, 1e60, 1e100, 1e300]
)
leaks = st.sampled_from([0.0, 1e-300, 1e-16, 1e-7, 0.3, 0.999])
counts = st.sampled_from([1, 1, 2, 3, 30, 1000, 10**5, 10**9, 10**10, 10**12, 10**16, 10**18])


def some_loss(below: float, above: float, share: float, infinity: float) -> fa.LossDistribution:
    """Losses −below and above; the share of the upper one is raised until it is a loss at all."""
    fair = -math.expm1(-below) / -math.expm1(-below - above)
    upper = min(1.0, fair + share * (1 - fair) + 1e-15)
    if (1 - upper) * math.exp(below) + upper * math.exp(-above) > 1:
        upper = 1.0
    masses = ((1 - upper) * (1 - infinity), upper * (1 - infinity))
    return fa.LossDistribution((-below, above), masses, infinity)


losses = st.builds(
    some_loss,
    st.sampled_from([1e-7, 0.1, 1.0, 37.0, 300.0, 690.0]),
    st.sampled_from([1e-300, 1e-7, 0.1, 1.0, 37.0, 600.0]),
    st.floats(0, 1),
    st.sampled_from([0.0, 0.0, 1e-300, 1e-6, 0.3, 0.99]),
)
kinds = st.one_of(
    st.builds(DP, epsilons),
    st.builds(BR, epsilons),
    st.builds(fa.ApproximateDP, epsilons, leaks),
    st.builds(fa.Laplace, epsilons),
    st.builds(fa.Gaussian, multipliers),
    st.builds(fa.DiscreteGaussian, multipliers, st.sampled_from([1, 2, 100, 10**6, 10**18])),
    st.builds(fa.ConcentratedDP, epsilons, epsilons),
    st.builds(lambda rho, delta: fa.ZeroConcentratedDP(rho, 0.0, delta), epsilons, leaks),
    st.builds(fa.TruncatedConcentratedDP, epsilons, st.sampled_from([1 + 1e-9, 1.5, 12, 1e300])),
    losses,
)
lists = st.lists(st.tuples(kinds, counts), min_size=1, max_size=4)
adaptivities = st.sampled_from(fa.ADAPTIVITIES)


@settings(max_examples=120)
@given(lists, adaptivities, st.sampled_from([0.0, 1e-300, 1e-200, 1e-30, 1e-6, 0.1, 0.5, 0.999]))
@example([(BR(1e-9), 1), (DP(1e-8), 1)], "adaptive", 0.9)  # total variation far below δ
@example([(fa.Gaussian(1e300), 1), (BR(0.1), 1)], "adaptive", 1e-6)
@example([(fa.Gaussian(1e-300), 1), (BR(0.1), 1)], "adaptive", 1e-6)
@example([(DP(1e-8), 10**16), (BR(0.1), 1)], "adaptive", 1e-6)
@example([(BR(1e-8), 10**16)], "none", 1e-6)
@example([(BR(300.0), 10**6)], "adaptive", 1e-9)
@example([(BR(1e-300), 10**6)], "none", 0.1)
@example([(BR(1e-6), 10**6), (DP(5.0), 1)], "adaptive", 1e-6)
@example([(BR(1e-4), 10**9)], "adaptive", 1e-6)
@example([(BR(599.0), 10**18), (fa.ApproximateDP(2e-60, 1e-60), 10**6)], "none", 1e-30)
@example([(fa.LossDistribution((-37.0, 1.0), (0.0, 1.0)), 200)], "adaptive", 0.1)
@example([(fa.Gaussian(1e-300), 1)], "concurrent", 0.1)
@example([(fa.Gaussian(1e300), 1)], "concurrent", 0.1)
@example(  # millions of atoms, one after the other
    [(fa.Laplace(1e-20), 10**9), (fa.Laplace(5.0), 10**9), (fa.Laplace(300.0), 10**12)],
    "setwise",
    0.1,
)
@example([(fa.Laplace(37.0), 1000), (DP(0.5), 10**18)], "none", 0.1)  # more trials than memory
@example([(fa.Laplace(5.0), 1000), (fa.Gaussian(0.011), 10**9)], "none", 0.1)
@example(  # a window of sums that lies far from 0
    [(BR(1e-20), 1000), (some_loss(300.0, 600.0, 0.5, 1e-300), 10**18), (DP(299.0), 10**9)],
    "none",
    0.1,
)
def test_epsilon_is_a_bracket_or_one_of_our_errors(items, adaptivity, delta):
    try:
        bracket = fa.compose(items, adaptivity=adaptivity, tolerance=1e-1).epsilon_at(delta)
    except fa.FarthingError as error:
        refused = str(error)
    else:
        refused = ""
        assert 0 <= bracket.lower <= bracket.upper < math.inf
    assert "contradict" not in refused


@settings(max_examples=120)
@given(lists, adaptivities, st.sampled_from([0.0, 1e-300, 1e-9, 0.3, 1.0, 10.0, 599.0, 700.0, 1e6]))
@example([(DP(0.0), 3), (BR(0.0), 1), (fa.Laplace(0.0), 1)], "setwise", 0.0)
@example(
    [
        (fa.ApproximateDP(599.0, 0.999), 10**16),
        (DP(1e-300), 7),
        (some_loss(1.0, 1e-7, 0.0, 1e-6), 1),
    ],
    "concurrent",
    1e-300,
)
@example([(fa.Laplace(2e-60), 10**16), (fa.ConcentratedDP(5.0, 2e-60), 10**16)], "adaptive", 0.0)
@example([(fa.ZeroConcentratedDP(300.0), 2), (BR(1e300), 2)], "adaptive", 0.3)
@example([(some_loss(0.1, 37.0, 0.5, 0.99), 10**16), (fa.Laplace(1e-7), 10**12)], "none", 1e6)
def test_delta_is_a_bracket_or_one_of_our_errors(items, adaptivity, epsilon):
    try:
        bracket = fa.compose(items, adaptivity=adaptivity, tolerance=1e-1).delta_at(epsilon)
    except fa.FarthingError as error:
        refused = str(error)
    else:
        refused = ""
        assert 0 <= bracket.lower <= bracket.upper <= 1
    assert "contradict" not in refused


def test_losses_far_below_zero():
    with pytest.raises(fa.InvalidInput, match="at most 1"):
        fa.LossDistribution((-1000.0, 0.1), (0.1, 0.9))
    silent_there = fa.LossDistribution((-1000.0, 0.1), (0.0, 1.0))
    bracket = fa.compose([silent_there, BR(0.1)], tolerance=1e-2).epsilon_at(1e-6)
    as_pure = fa.compose([DP(0.1), BR(0.1)], tolerance=1e-2).epsilon_at(1e-6)
    assert bracket.lower <= as_pure.upper
    assert bracket.upper >= as_pure.lower


def test_what_is_left_out_below_still_counts_above():
    """Noise that floats cannot tell from silence: the lower side is that of the rest."""
    alone = fa.compose([BR(0.1)]).epsilon_at(1e-6)
    beside = fa.compose([BR(0.1), fa.Gaussian(1e300)]).epsilon_at(1e-6)
    assert alone.lower * (1 - 2e-3) <= beside.lower <= beside.upper
    assert beside.upper >= alone.lower


@pytest.mark.parametrize(
    ("items", "adaptivity"),
    [
        ([(BR(1e-6), 10**6), (DP(5.0), 1)], "adaptive"),
        ([(BR(1e-4), 10**9)], "adaptive"),
        ([(BR(0.045), 1600)], "adaptive"),
    ],
)
def test_blocks_and_trials_are_counted_as_work(items, adaptivity):
    """A block costs its steps and the convolution of all blocks; too much is not begun."""
    listed = losses_of(items)
    layout = Layout.of(listed, 1e-5, 1e-6, whole=False)
    work = math.inf if layout is None else layout.work(listed, adaptivity)
    assert work > WORK_LIMIT
    assert curves(listed, adaptivity, 1e-5, 1e-6) is None


def test_a_plan_with_a_large_delta_ends():
    """Once the search of minutes; the count fits, and five per cent more does not."""
    found = fa.largest_count(BR(0.045), epsilon=0.148, delta=0.3, tolerance=1e-2)
    assert fa.compose([(BR(0.045), found)], tolerance=1e-2).epsilon_at(0.3).upper <= 0.148
    more = fa.compose([(BR(0.045), math.ceil(1.05 * found))], tolerance=1e-2).epsilon_at(0.3)
    assert more.upper > 0.148
