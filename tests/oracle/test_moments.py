"""Moments of each kind, and the two conversions, against integrals and searches."""

import pytest

import farthing as fa
from farthing.composition.bounds.moments import MomentBound
from farthing.composition.items import losses_of
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.bounded_range import max_kl
from farthing.numerics.ball import in_balls
from oracle.reference import down_probability, mp, truth, up_probability

ORDERS = [1.001, 1.5, 2.0, 7.3, 60.0]


@in_balls
def _moment(guarantee, alpha):
    return mp.mpf(loss_of(guarantee).log_moment(alpha).mid().str(40, radius=False))


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_randomized_response(epsilon, alpha):
    q = truth(epsilon)
    value = mp.log(
        q**alpha * (1 - q) ** (1 - mp.mpf(alpha)) + (1 - q) ** alpha * q ** (1 - mp.mpf(alpha))
    )
    assert abs(_moment(fa.PureDP(epsilon), alpha) - value) < mp.mpf("1e-30")


@pytest.mark.parametrize("alpha", [1.5, 2.0, 7.3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_laplace_by_integration(epsilon, alpha):
    """ln ∫ p^α q^{1−α} for two Laplace densities at distance 1."""
    e, a = mp.mpf(epsilon), mp.mpf(alpha)

    def integrand(y):
        return e / 2 * mp.exp(-a * e * abs(y) - (1 - a) * e * abs(y - 1))

    with mp.workdps(25):
        value = mp.log(mp.quad(integrand, [-80 / e, -5 / e, 0, 1, 1 + 5 / e, 1 + 80 / e]))
    assert abs(_moment(fa.Laplace(epsilon), alpha) - value) < mp.mpf("1e-12")


@pytest.mark.parametrize("alpha", [1.5, 2.0, 7.3])
@pytest.mark.parametrize("sigma", [0.7, 5.0])
def test_gaussian_by_integration(sigma, alpha):
    s, a = mp.mpf(sigma), mp.mpf(alpha)

    def integrand(y):
        return mp.exp(-(a * y**2 + (1 - a) * (y - 1) ** 2) / (2 * s**2)) / (s * mp.sqrt(2 * mp.pi))

    centre = 1 - a
    with mp.workdps(25):
        value = mp.log(mp.quad(integrand, [centre - 14 * s, centre, centre + 14 * s]))
    assert abs(_moment(fa.Gaussian(sigma), alpha) - value) < mp.mpf("1e-12")


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_bounded_range_is_the_sup_over_t(epsilon, alpha):
    """h_ε(λ) of Theorem 5 as the largest Rényi divergence of two Bernoullis (Lemma 7.3)."""
    a = mp.mpf(alpha)

    def at(t):
        q, p = up_probability(epsilon, t), down_probability(epsilon, t)
        return mp.log(q**a * p ** (1 - a) + (1 - q) ** a * (1 - p) ** (1 - a))

    dense = [at(mp.mpf(epsilon) * i / 400) for i in range(1, 400)]
    value = _moment(fa.BoundedRange(epsilon), alpha)
    assert max(dense) <= value
    assert value - max(dense) <= value * mp.mpf("1e-3")


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 6.0])
@in_balls
def test_max_kl_is_the_sup_of_the_mean_loss(epsilon):
    """Section 7 of [DDR20], and Corollary 3.1's other form of the same number."""
    e = mp.mpf(epsilon)
    value = mp.mpf(max_kl(epsilon).mid().str(36, radius=False))
    means = []
    for i in range(1, 600):
        q, p = up_probability(e, e * i / 600), down_probability(e, e * i / 600)
        means.append(q * mp.log(q / p) + (1 - q) * mp.log((1 - q) / (1 - p)))
    assert max(means) <= value * (1 + mp.mpf("1e-25"))
    assert value - max(means) <= value * mp.mpf("1e-4")
    printed = e / (1 - mp.exp(-e))
    assert abs(printed - 1 - mp.log(printed) - value) < mp.mpf("1e-25")


KNOWN = [
    (fa.PureDP(1.0), lambda e: e * mp.tanh(e / 2)),
    (fa.Laplace(1.0), lambda e: e + mp.exp(-e) - 1),
    (fa.BoundedRange(1.0), lambda e: e / mp.expm1(e) - 1 - mp.log(e / mp.expm1(e))),
]


@pytest.mark.parametrize(("guarantee", "mean"), KNOWN)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_exact_zcdp_constant_is_the_mean_loss(guarantee, mean, epsilon):
    """sup over α of D_α/α is the limit α → 1, for each worst case with ε ≤ 3."""
    guarantee = type(guarantee)(epsilon)
    limit = mean(mp.mpf(epsilon))
    ratios = []
    for i in range(-60, 61):
        alpha = 1 + 2.0 ** (i / 4)
        ratios.append(_moment(guarantee, alpha) / (mp.mpf(alpha) - 1) / mp.mpf(alpha))
    assert max(ratios) <= limit
    assert ratios[0] == max(ratios)
    assert abs(ratios[0] / limit - 1) < 1e-4


@pytest.mark.parametrize("kind", [fa.PureDP, fa.BoundedRange, fa.Laplace, fa.Gaussian])
@in_balls
def test_concentrated_kinds_dominate_their_moments(kind):
    """ξ + ρα is never below D_α: Lemma 2.2 and Lemma 3.2 of [CR22]."""
    for parameter in (0.05, 0.7, 3.0):
        xi, rho = loss_of(kind(parameter)).zero_concentrated()
        for alpha in ORDERS:
            exact = loss_of(kind(parameter)).log_moment(alpha)
            assert not exact > (alpha - 1) * (xi + rho * alpha) * (1 + 1e-30)


LIST = [(fa.BoundedRange(0.3), 20), (fa.PureDP(0.1), 5), fa.Gaussian(4.0), (fa.Laplace(0.2), 3)]


def _total(alpha):
    return sum(count * _moment(loss.guarantee, alpha) for loss, count in losses_of(LIST))


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_the_tight_conversion_minimised_over_the_order(delta):
    """[CKS20, Prop. 12]: ε = D + ln(1 − 1/α) − (ln δ + ln α)/(α − 1)."""
    found = MomentBound(losses_of(LIST)).epsilon_at(delta)
    values = []
    for i in range(400):
        a = mp.mpf(1 + 10 ** (-2 + i / 80))
        divergence = _total(float(a)) / (mp.mpf(float(a)) - 1)
        values.append(
            divergence + mp.log(1 - 1 / a) - (mp.log(mp.mpf(delta)) + mp.log(a)) / (a - 1)
        )
    assert found <= min(values) * (1 + mp.mpf("1e-9"))
    assert found >= min(values) * (1 - mp.mpf("1e-3"))


@pytest.mark.parametrize("delta", [1e-12, 1e-2])
def test_the_chernoff_conversion_minimised_over_the_order(delta):
    found = MomentBound(losses_of(LIST), tight=False).epsilon_at(delta)
    values = []
    for i in range(400):
        alpha = 1 + 10 ** (-2 + i / 80)
        values.append((_total(alpha) - mp.log(mp.mpf(delta))) / (mp.mpf(alpha) - 1))
    assert found <= min(values) * (1 + mp.mpf("1e-9"))
    assert found >= min(values) * (1 - mp.mpf("1e-3"))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_delta_and_epsilon_of_the_moment_bound_are_inverse(epsilon):
    bound = MomentBound(losses_of(LIST))
    delta = bound.delta_at(epsilon)
    assert bound.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("omega", [1 + 1e-12, 1 + 1e-9, 1 + 1e-7, 1.001, 2.0, 50.0])
def test_only_orders_that_are_promised_are_used(omega):
    """Below ω nothing better than the order ω itself can be had when the conversion wants more."""
    bound = MomentBound(losses_of([fa.TruncatedConcentratedDP(0.01, omega)]), tight=False)
    power = mp.mpf(omega) - 1
    wanted = mp.sqrt(mp.log(mp.mpf(10) ** 6) / mp.mpf("0.01"))  # α − 1 without a limit
    best = min(power, wanted)
    limit = mp.mpf("0.01") * (1 + best) + mp.log(mp.mpf(10) ** 6) / best
    assert bound.epsilon_at(1e-6) >= limit * (1 - mp.mpf("1e-9"))
    assert bound.epsilon_at(1e-6) <= limit * (1 + mp.mpf("1e-2"))


def test_a_renyi_curve_may_be_unknown_at_some_orders():
    def curve(alpha):
        return 0.1 * alpha if 2 < alpha < 30 else float("inf")

    partial = fa.compose([fa.RenyiDP(curve)]).epsilon_at(1e-6).upper
    whole = fa.compose([fa.ZeroConcentratedDP(0.1)]).bounds_at(1e-6)["zcdp-tight"].upper
    assert whole <= partial <= 1.01 * whole


def test_a_renyi_curve_that_says_nothing_proves_nothing():
    with pytest.raises(fa.Unattainable):
        fa.compose([fa.RenyiDP(lambda _: float("inf"))]).epsilon_at(1e-6)
