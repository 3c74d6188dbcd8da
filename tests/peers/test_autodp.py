"""Rényi divergences as autodp knows them."""

import math

import pytest
from autodp import rdp_bank

import farthing as fa
from farthing.guarantees.losses import loss_of
from farthing.numerics.ball import in_balls, middle

ORDERS = [1.5, 2.0, 5.0, 32.0]


@in_balls
def _divergence(guarantee, alpha):
    return middle(loss_of(guarantee).log_moment(alpha) / (alpha - 1))


@pytest.mark.parametrize("alpha", ORDERS)
def test_gaussian(alpha):
    assert _divergence(fa.Gaussian(3.0), alpha) == pytest.approx(
        rdp_bank.RDP_gaussian({"sigma": 3.0}, alpha), rel=1e-12
    )


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_laplace(epsilon, alpha):
    assert _divergence(fa.Laplace(epsilon), alpha) == pytest.approx(
        rdp_bank.RDP_laplace({"b": 1 / epsilon}, alpha), rel=1e-9
    )


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_randomized_response(epsilon, alpha):
    honest = 1 / (1 + math.exp(-epsilon))
    assert _divergence(fa.PureDP(epsilon), alpha) == pytest.approx(
        rdp_bank.RDP_randresponse({"p": honest}, alpha), rel=1e-9
    )


@pytest.mark.filterwarnings(
    # its search over orders starts at α = 1 and divides inf by inf; the result is unaffected
    "ignore:invalid value encountered:RuntimeWarning"
)
@pytest.mark.parametrize("epsilon", [0.1, 0.3])
def test_composition_by_moments(epsilon):
    """The same moments and a tight conversion: our best order is at least as good."""
    from autodp.mechanism_zoo import LaplaceMechanism
    from autodp.transformer_zoo import Composition

    theirs = Composition()([LaplaceMechanism(b=1 / epsilon)], [40]).get_approxDP(1e-6)
    ours = fa.compose([(fa.Laplace(epsilon), 40)], tolerance=0.5)
    bounds = ours.bounds_at(1e-6)
    assert bounds["renyi"].upper <= theirs * (1 + 1e-6)
    assert ours.epsilon_at(1e-6).lower <= theirs
