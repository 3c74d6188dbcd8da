"""The same question to Google's dp-accounting, by privacy loss distributions."""

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import farthing as fa

DELTA = 1e-6


def _theirs(make, count, delta=DELTA, **how):
    """(optimistic, pessimistic) ε of `count` equal mechanisms."""
    return tuple(
        make(pessimistic_estimate=side, use_connect_dots=side, **how)
        .self_compose(count)
        .get_epsilon_for_delta(delta)
        for side in (False, True)
    )


def _nested(ours, theirs):
    """One bracket inside the other, up to the peer's float arithmetic."""
    low, high = theirs
    slack = 1e-9 * high
    contains = ours.lower <= low + slack and high <= ours.upper + slack
    contained = low <= ours.lower + slack and ours.upper <= high + slack
    return contains or contained


@pytest.mark.parametrize("count", [1, 10, 100])
@pytest.mark.parametrize("sigma", [1.0, 8.0, 30.0])
def test_gaussian(sigma, count):
    theirs = _theirs(
        lambda **how: pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-3, **how),
        count,
    )
    for adaptivity in ("none", "adaptive"):
        ours = fa.compose([(fa.Gaussian(sigma), count)], adaptivity=adaptivity).epsilon_at(DELTA)
        assert ours.lower <= theirs[1]
        assert theirs[0] <= ours.upper
        assert _nested(ours, theirs)


@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 20), (0.05, 100), (0.3, 30), (1.0, 8)])
def test_laplace(epsilon, count):
    theirs = _theirs(
        lambda **how: pld.from_laplace_mechanism(
            1 / epsilon, value_discretization_interval=2e-3 * epsilon, **how
        ),
        count,
    )
    ours = fa.compose([(fa.Laplace(epsilon), count)], tolerance=5e-7).epsilon_at(DELTA)
    assert ours.lower <= theirs[1]
    assert theirs[0] <= ours.upper
    assert abs(ours.upper - theirs[1]) <= 2e-3 * theirs[1]


@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 20), (0.05, 100), (0.3, 30)])
def test_one_laplace_bracket_lies_in_the_other(epsilon, count):
    """Their upper side is far tighter than their lower one; ours, refined, lies between them."""
    theirs = _theirs(
        lambda **how: pld.from_laplace_mechanism(
            1 / epsilon, value_discretization_interval=2e-2 * epsilon, **how
        ),
        count,
    )
    ours = fa.compose([(fa.Laplace(epsilon), count)], tolerance=5e-7).epsilon_at(DELTA)
    assert _nested(ours, theirs)


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 25), (0.2, 200), (1.0, 5)])
def test_randomized_response(epsilon, count):
    noise = 2 / (1 + math.exp(epsilon))
    theirs = _theirs(
        lambda pessimistic_estimate, **_: pld.from_randomized_response(
            noise, 2, pessimistic_estimate=pessimistic_estimate, value_discretization_interval=1e-4
        ),
        count,
    )
    ours = fa.compose([(fa.PureDP(epsilon), count)]).epsilon_at(DELTA)
    assert ours.lower <= theirs[1]
    assert theirs[0] <= ours.upper
    assert ours.upper == pytest.approx(theirs[1], rel=2e-3)


def test_a_mixture_of_laplace_and_gaussian():
    def together(pessimistic_estimate):
        how = {
            "pessimistic_estimate": pessimistic_estimate,
            "use_connect_dots": pessimistic_estimate,
            "value_discretization_interval": 1e-3,
        }
        laplace = pld.from_laplace_mechanism(5.0, **how).self_compose(20)
        return laplace.compose(pld.from_gaussian_mechanism(4.0, **how)).get_epsilon_for_delta(DELTA)

    ours = fa.compose([(fa.Laplace(0.2), 20), fa.Gaussian(4.0)]).epsilon_at(DELTA)
    assert ours.lower <= together(True)
    assert together(False) <= ours.upper
    assert ours.upper <= together(True) * 1.001


def test_privacy_parameters_of_an_approximate_mechanism():
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    theirs = pld.from_privacy_parameters(
        DifferentialPrivacyParameters(0.2, 1e-8), value_discretization_interval=1e-4
    ).self_compose(30)
    ours = fa.compose([(fa.ApproximateDP(0.2, 1e-8), 30)]).epsilon_at(DELTA)
    assert ours.lower <= theirs.get_epsilon_for_delta(DELTA)
    assert ours.upper == pytest.approx(theirs.get_epsilon_for_delta(DELTA), rel=2e-3)


@pytest.mark.parametrize("count", [1, 20])
def test_tradeoff(count):
    """Lines from their profiles, which are above or below the truth, around our curve."""
    sides = [
        pld.from_laplace_mechanism(
            2.0,
            value_discretization_interval=1e-3,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        ).self_compose(count)
        for pessimistic in (True, False)
    ]
    lines = [
        [(z, one.get_delta_for_epsilon(math.log(z))) for z in (1.02**i for i in range(300))]
        for one in sides
    ]
    ours = fa.compose([(fa.Laplace(0.5), count)]).tradeoff()
    for alpha in (0.001, 0.05, 0.3, 0.7):
        least, most = (
            max(max(1 - delta - z * alpha, (1 - delta - alpha) / z) for z, delta in side)
            for side in lines
        )
        bracket = ours.beta_at(alpha)
        assert least <= bracket.upper
        assert bracket.lower <= most + 5e-3  # their lines are 2 % apart
        assert bracket.upper - bracket.lower < 2e-3
