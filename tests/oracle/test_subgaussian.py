"""The bounds mean + √(2·variance·ln(1/δ)), each recomputed from its paper."""

import pytest

import farthing as fa
from farthing.composition.bounds.moments import subgaussian_bounds
from farthing.composition.items import losses_of
from oracle.reference import mp

DELTA = 1e-6
LOG = mp.log(1 / mp.mpf(DELTA))


def kl(e):
    x = e / mp.expm1(e)
    return x - 1 - mp.log(x)


def _bound(items, name, adaptivity="setwise"):
    return fa.compose(items, adaptivity=adaptivity, tolerance=0.5).bounds_at(DELTA)[name].upper


def _equals(value, reference):
    """Equal to the formula, and rounded up."""
    assert mp.mpf(value) >= reference
    assert float(value) == pytest.approx(float(reference), rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("count", [1, 25, 1000])
class TestPure:
    def test_drv10(self, epsilon, count):
        e = mp.mpf(epsilon)
        reference = e * mp.sqrt(2 * count * LOG) + count * e * mp.expm1(e)
        _equals(_bound([(fa.PureDP(epsilon), count)], "drv10"), reference)

    def test_improved_drv10(self, epsilon, count):
        e = mp.mpf(epsilon)
        reference = e * mp.sqrt(2 * count * LOG) + count * e**2 / 2
        _equals(_bound([(fa.PureDP(epsilon), count)], "improved-drv10"), reference)

    def test_strong_composition_of_the_lecture(self, epsilon, count):
        e = mp.mpf(epsilon)
        drift = count * e * (mp.exp(e) - 1) / (mp.exp(e) + 1)
        _equals(
            _bound([(fa.PureDP(epsilon), count)], "strong"), e * mp.sqrt(2 * count * LOG) + drift
        )


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("count", [1, 30])
class TestRange:
    def test_dr19(self, epsilon, count):
        e = mp.mpf(epsilon)
        reference = count * e**2 / 2 + e * mp.sqrt(count * LOG / 2)
        _equals(_bound([(fa.BoundedRange(epsilon), count)], "dr19"), reference)

    def test_optimal_kl(self, epsilon, count):
        e = mp.mpf(epsilon)
        reference = count * kl(e) + e * mp.sqrt(count * LOG / 2)
        _equals(_bound([(fa.BoundedRange(epsilon), count)], "optimal-kl"), reference)


def test_set_wise_cdp_of_a_mixed_set():
    """Eq. (3) of [CR22] with all three classes."""
    items = [(fa.PureDP(0.2), 10), (fa.BoundedRange(0.3), 20), (fa.ConcentratedDP(0.05, 0.3), 5)]
    e, a = mp.mpf(0.2), mp.mpf(0.3)
    mean = 10 * e * mp.tanh(e / 2) + 20 * kl(a) + 5 * mp.mpf(0.05)
    variance = 10 * e**2 + 20 * a**2 / 4 + 5 * mp.mpf(0.3) ** 2
    _equals(_bound(items, "cdp"), mean + mp.sqrt(2 * variance * LOG))


def test_set_wise_approximate_zcdp():
    """Lemma 3.4 of [CR22]; the leaks are taken out exactly instead of by a union bound."""
    items = [(fa.ZeroConcentratedDP(0.01, 0.002, 1e-8), 10), (fa.ZeroConcentratedDP(0.03), 4)]
    rho, xi = 10 * mp.mpf(0.01) + 4 * mp.mpf(0.03), 10 * mp.mpf(0.002)
    survival = (1 - mp.mpf(1e-8)) ** 10
    inner = 1 - (1 - mp.mpf(DELTA)) / survival
    reference = xi + rho + 2 * mp.sqrt(rho * mp.log(1 / inner))
    value = _bound(items, "zcdp")
    assert value == pytest.approx(float(reference), rel=1e-13)
    union = mp.mpf(DELTA) - 10 * mp.mpf(1e-8)
    assert value <= xi + rho + 2 * mp.sqrt(rho * mp.log(1 / union))


def test_bounded_range_as_zcdp_has_a_negative_offset():
    """After Lemma 3.4 of [CR22]: α-BR is (ξ, α²/8)-zCDP with ξ = kl(α) − α²/8 ≤ 0."""
    for alpha in (0.1, 1.0, 3.0):
        a = mp.mpf(alpha)
        offset = kl(a) - a**2 / 8
        assert offset <= 0
        reference = offset + a**2 / 8 + 2 * mp.sqrt(a**2 / 8 * LOG)
        _equals(_bound([fa.BoundedRange(alpha)], "zcdp"), reference)


@pytest.mark.parametrize("name", ["strong", "cdp", "zcdp", "drv10"])
@pytest.mark.parametrize("epsilon_g", [0.1, 1.0, 4.0])
def test_delta_is_the_inverse_of_epsilon(name, epsilon_g):
    items = losses_of([(fa.PureDP(0.1), 30)])
    bound = next(b for b in subgaussian_bounds(items) if b.name == name)
    delta = bound.delta_at(epsilon_g)[1]
    if delta == 1:  # ε_g is not above the mean: the bound says nothing, for any δ
        assert bound.epsilon_at(1 - 1e-9)[1] > epsilon_g
    else:
        assert bound.epsilon_at(delta)[1] == pytest.approx(epsilon_g, rel=1e-9)


def test_a_mechanism_that_reveals_nothing_has_delta_zero():
    for guarantee in (fa.ZeroConcentratedDP(0.0), fa.ConcentratedDP(0.0, 0.0)):
        assert fa.compose([guarantee]).delta_at(1.0).upper <= 5e-324
        assert fa.compose([guarantee]).epsilon_at(1e-6).upper == 0.0


def test_a_constant_loss_below_the_threshold_costs_nothing():
    assert fa.compose([fa.ConcentratedDP(0.1, 0.0)]).delta_at(0.2).upper <= 5e-324
