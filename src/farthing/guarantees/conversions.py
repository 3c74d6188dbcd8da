"""What each guarantee implies in the weaker terms that composition theorems speak.

Every function sees one application of one mechanism; a kind that implies nothing in the
terms asked for gives None. Values are enclosed in ball arithmetic.

    delta_of, without_delta    (ε, δ) and δ-approximate kinds split into their δ and the rest
    attained_delta_of     the part of that δ which somebody attains
    pure_epsilon          ε-DP
    concentrated          (μ, τ²)-CDP           [CR22, Lemma 3.2]
    zero_concentrated     (ξ, ρ)-zCDP           [CR22, Lemma 2.2]
    log_moment            (α − 1)·D_α           [DDR20, Lemma 7.1]
"""

from __future__ import annotations

import math
from functools import lru_cache, singledispatch

import numpy as np
from flint import arb

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import (
    ApproximateDP,
    BoundedRange,
    ConcentratedDP,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    LossDistribution,
    OneWay,
    PureDP,
    RenyiDP,
    Subsampled,
    SubsampledWithoutReplacement,
    TruncatedConcentratedDP,
    TwoWayLoss,
    ZeroConcentratedDP,
)
from farthing.numerics.ball import Ball, up
from farthing.numerics.rounding import UNIT, inflated

#: Whole orders of a sampled mechanism are expanded up to this one.
MOST_ORDERS = 64


def delta_of(guarantee: Guarantee) -> float:
    """The probability δ with which the mechanism may give everything away."""
    match guarantee:
        case ApproximateDP(delta=delta) | ZeroConcentratedDP(delta=delta):
            return delta
        case LossDistribution(infinity=infinity):
            return infinity
        case OneWay(TwoWayLoss(), leakless=False):
            return guarantee.loss.infinity
        case (
            OneWay(Subsampled() as sampled)
            | (Subsampled() as sampled)
            | (SubsampledWithoutReplacement() as sampled)
        ):
            return inflated(sampled.rate * delta_of(sampled.guarantee), 4)
        case _:
            return 0.0


def attained_delta_of(guarantee: Guarantee) -> float:
    """The probability with which some mechanism of this kind does give everything away.

    An infinite loss in one direction is outcomes that the other neighbour never gives. In the other
    direction a loss distribution has 1 − `mirrored_mass` of them, and the smaller side counts.
    Of what only one direction or a sample leaks, nothing is counted.
    """
    if isinstance(guarantee, OneWay | SubsampledWithoutReplacement):
        return 0.0
    if isinstance(guarantee, LossDistribution):
        return min(guarantee.infinity, max(0.0, 1 - guarantee.mirrored_mass - 1e-12))
    return delta_of(guarantee)


def without_delta(guarantee: Guarantee) -> Guarantee:
    """What remains when the leak does not happen.

    An (ε, δ)-DP mechanism is a post-processing of leaky randomized response (simulation
    lemma, [Smith25, Lemma 3.1]): with probability δ it tells all, else it is ε-DP. A
    δ-approximate zCDP mechanism is zCDP outside an event of probability δ by definition. A sample
    of an (ε, δ)-DP mechanism leaks with q·δ at most, in either direction
    (docs/theory/subsampling.md, "Leaks").
    """
    match guarantee:
        case ApproximateDP(epsilon=epsilon):
            return PureDP(epsilon)
        case ZeroConcentratedDP(rho=rho, xi=xi, delta=delta) if delta > 0:
            return ZeroConcentratedDP(rho, xi)
        case LossDistribution(infinity=infinity) if infinity > 0:
            return guarantee.finite_part()
        case OneWay(TwoWayLoss() as pair, with_unit):
            return OneWay(pair, with_unit, leakless=True)
        case OneWay(Subsampled(ApproximateDP(epsilon=epsilon), rate), with_unit):
            return OneWay(Subsampled(PureDP(epsilon), rate), with_unit)
        case Subsampled(ApproximateDP(epsilon=epsilon), rate):
            return Subsampled(PureDP(epsilon), rate)
        case SubsampledWithoutReplacement(ApproximateDP(epsilon=epsilon), rate):
            return SubsampledWithoutReplacement(PureDP(epsilon), rate)
        case _:
            return guarantee


def pure_epsilon(guarantee: Guarantee) -> float | None:
    """The ε for which the mechanism is ε-DP, by Lemma 2.1 of [CR22] for bounded range."""
    match guarantee:
        case LossDistribution(losses=losses, infinity=0.0):
            return max(losses[-1], 0.0)
        case PureDP(epsilon) | BoundedRange(epsilon) | Laplace(epsilon):
            return epsilon
        case Subsampled(inner, rate) | SubsampledWithoutReplacement(inner, rate):
            before = pure_epsilon(inner)
            return None if before is None else sampled_epsilon(before, rate)
        case OneWay(Subsampled() as sampled):
            return pure_epsilon(sampled)
        case _:
            return None


def sampled_epsilon(epsilon: float, rate: float) -> float:
    """ln(1 − q + q·e^ε), rounded up: what a sample of an ε-DP mechanism has, in both directions."""
    return up((arb(rate) * arb(epsilon).expm1()).log1p())


def max_kl(epsilon: float) -> Ball:
    """The largest mean loss of an ε-bounded-range mechanism: x − 1 − ln x, x = ε/(e^ε − 1).

    [DDR20, section 7]; attained at t = ln((e^ε − 1)/ε). The paper prints Corollary 3.1 with
    x = ε/(1 − e^−ε), which is the same number.
    """
    if epsilon == 0:
        return arb(0)
    x = arb(epsilon) / arb(epsilon).expm1()
    return x - 1 - x.log()


@singledispatch
def concentrated(guarantee: object) -> tuple[Ball, Ball] | None:  # noqa: ARG001 # the default
    """(μ, τ²): mean loss at most μ, centred loss subgaussian with variance proxy τ²."""
    return None


@concentrated.register
def _(guarantee: PureDP) -> tuple[Ball, Ball]:
    epsilon = arb(guarantee.epsilon)
    return epsilon * (epsilon / 2).tanh(), epsilon**2


@concentrated.register
def _(guarantee: Laplace) -> tuple[Ball, Ball]:
    epsilon = arb(guarantee.epsilon)
    return epsilon + (-epsilon).expm1(), epsilon**2


@concentrated.register
def _(guarantee: BoundedRange) -> tuple[Ball, Ball]:
    return max_kl(guarantee.epsilon), arb(guarantee.epsilon) ** 2 / 4


@concentrated.register(Gaussian)
@concentrated.register(DiscreteGaussian)
def _(guarantee: Gaussian | DiscreteGaussian) -> tuple[Ball, Ball]:
    """Discrete noise has exactly this mean, and is subgaussian like this [CKS20, Thm 4]."""
    variance = 1 / arb(guarantee.noise_multiplier) ** 2
    return variance / 2, variance


@concentrated.register
def _(guarantee: ConcentratedDP) -> tuple[Ball, Ball]:
    return arb(guarantee.mu), arb(guarantee.tau) ** 2


def zero_concentrated(guarantee: Guarantee) -> tuple[Ball, Ball] | None:
    """(ξ, ρ) with D_α ≤ ξ + ρα for every α > 1; (μ, τ)-CDP gives ξ = μ − τ²/2, ρ = τ²/2."""
    if isinstance(guarantee, ZeroConcentratedDP):
        return arb(guarantee.xi), arb(guarantee.rho)
    pair = concentrated(guarantee)
    return None if pair is None else (pair[0] - pair[1] / 2, pair[1] / 2)


def orders_below(guarantee: Guarantee) -> float:
    """The Rényi orders α that are bounded: 1 < α < this."""
    match guarantee:
        case TruncatedConcentratedDP(omega=omega):
            return omega
        case RenyiDP(orders_below=limit):
            return limit
        case _:
            return math.inf


@singledispatch
def log_moment(guarantee: Guarantee, alpha: float) -> Ball:
    """ln E[e^{(α−1)L}] = (α − 1)·D_α at most, for an order 1 < α < `orders_below`.

    The default reads the kind as (ξ, ρ)-zCDP; kinds with a known worst case do better.
    """
    pair = zero_concentrated(guarantee)
    if pair is None:
        raise InvalidInput(f"no Rényi divergence is known for {guarantee!r}")
    order = arb(alpha)
    return (order - 1) * (pair[0] + pair[1] * order)


@log_moment.register
def _(guarantee: PureDP, alpha: float) -> Ball:
    """Randomized response is the worst ε-DP mechanism at every order."""
    epsilon, power = arb(guarantee.epsilon), arb(alpha) - 1
    truth = 1 / (1 + (-epsilon).exp())
    return (truth * (power * epsilon).exp() + (1 - truth) * (-power * epsilon).exp()).log()


@log_moment.register
def _(guarantee: Laplace, alpha: float) -> Ball:
    epsilon, order = arb(guarantee.epsilon), arb(alpha)
    weight = order / (2 * order - 1)
    return (weight * ((order - 1) * epsilon).exp() + (1 - weight) * (-order * epsilon).exp()).log()


@log_moment.register
def _(guarantee: BoundedRange, alpha: float) -> Ball:
    """h_ε(λ) of Theorem 5 in [DDR20], λ = α − 1, with the sup over t in closed form.

    With w = e^t the objective is λ ln w + ln(A − Bw), concave in t, where A − Bw is the
    factor q_t + (1 − q_t)e^{−λε}; its maximum w = λA/((λ + 1)B) always lies in [1, e^ε].
    No e^{+λε} is formed, which is what the paper's numerical remark asks for.
    """
    if guarantee.epsilon == 0:
        return arb(0)
    epsilon, power = arb(guarantee.epsilon), arb(alpha) - 1
    spread = -(-power * epsilon).expm1()
    slope = spread / epsilon.expm1()
    height = 1 + slope
    return power * (power * height / ((power + 1) * slope)).log() + (height / (power + 1)).log()


@log_moment.register
def _(guarantee: TruncatedConcentratedDP, alpha: float) -> Ball:
    order = arb(alpha)
    return (order - 1) * order * arb(guarantee.rho)


@log_moment.register
def _(guarantee: LossDistribution, alpha: float) -> Ball:
    """In floats relative to the largest term, with their rounding as the radius."""
    losses, masses = np.array(guarantee.losses), np.array(guarantee.masses)
    losses, masses = losses[masses > 0], masses[masses > 0]
    logs = np.log(masses) + (alpha - 1) * losses
    largest = float(logs.max())
    value = largest + math.log(float(np.sum(np.exp(logs - largest))))
    error = 4 * UNIT * (1500 + len(logs) + alpha * float(np.abs(losses).max()))
    return arb(value, error) + (1 + arb(10) ** -9).log()


@log_moment.register
def _(guarantee: OneWay, alpha: float) -> Ball:
    match guarantee.guarantee:
        case TwoWayLoss():
            return log_moment(guarantee.loss.finite_part(), alpha)
        case Subsampled(inner, rate) if guarantee.with_unit:
            return _sampled_moment(inner, rate, alpha)
        case Subsampled(inner, rate):
            return _unsampled_moment(inner, rate, alpha)


@log_moment.register
def _(guarantee: SubsampledWithoutReplacement, alpha: float) -> Ball:
    """Both halves of the profile: r ↦ r^α on r ≥ 1 is at most that of one direction, on r ≤ 1 of
    the other; so the sum of both, less the 1 that either has at least."""
    inner, rate = guarantee.guarantee, guarantee.rate
    one, other = _sampled_moment(inner, rate, alpha), _unsampled_moment(inner, rate, alpha)
    return (one.exp() + other.exp() - 1).log()


def _sampled_moment(inner: Guarantee, rate: float, alpha: float) -> Ball:
    """ln E_Q[(1 − q + qr)^α], r = P/Q, from the moments of `inner`.

    For whole orders the binomial theorem; between them a chord, since it is convex in α. For large
    ones Minkowski's inequality: the α-norm of 1 − q + qr is at most 1 − q + q‖r‖.
    """
    q, order = arb(rate), arb(alpha)
    by_norm = order * (1 - q + q * (log_moment(inner, alpha) / order).exp()).log()
    if alpha > MOST_ORDERS:
        return by_norm
    low = math.floor(alpha)
    share = order - low
    whole = (1 - share) * _binomial_moment(inner, rate, low)
    whole += share * _binomial_moment(inner, rate, low + 1)
    return whole.min(by_norm)


@lru_cache(maxsize=1024)
def _binomial_moment(inner: Guarantee, rate: float, order: int) -> Ball:
    if order == 1:
        return arb(0)
    q, total = arb(rate), arb(0)
    for i in range(order + 1):
        term = arb.bin_uiui(order, i) * q**i * (1 - q) ** (order - i)
        total += term * (log_moment(inner, float(i)).exp() if i > 1 else 1)
    return total.log()


def _unsampled_moment(inner: Guarantee, rate: float, alpha: float) -> Ball:
    """ln E_Q[(1 − q + qr)^{1−α}]: no loss exceeds −ln(1 − q), and by Taylor's theorem at r = 1 it
    is at most ln(1 + α(α − 1)/2·q²(1 − q)^{−α−1}(E_Q[r²] − 1))."""
    q, order = arb(rate), arb(alpha)
    top = -(order - 1) * (-q).log1p()
    square = log_moment(inner, 2.0).exp() - 1
    bend = order * (order - 1) / 2 * q**2 * (-(order + 1) * (-q).log1p()).exp()
    return (1 + bend * square).log().min(top)


@log_moment.register
def _(guarantee: RenyiDP, alpha: float) -> Ball:
    divergence = float(guarantee.curve(alpha))
    if math.isnan(divergence) or divergence < 0:
        raise InvalidInput(f"the Rényi curve must be at least 0, got {divergence} at α = {alpha}")
    return (arb(alpha) - 1) * arb(divergence)


def example(guarantee: Guarantee) -> Guarantee | None:
    """A mechanism with a known worst case that has this guarantee; None if only a silent one.

    For lower bounds on kinds that only bound moments: the Gaussian mechanism with the largest
    ρ that fits, its noise multiplier rounded up.
    """
    match guarantee:
        case ZeroConcentratedDP(rho=rho, xi=xi):
            fitting = min(rho, rho + xi)
        case ConcentratedDP(mu=mu, tau=tau):
            fitting = min(mu, tau * tau / 2)
        case TruncatedConcentratedDP(rho=rho):
            fitting = rho
        case RenyiDP():
            return None
        case _:
            return guarantee
    if fitting <= 0:
        return None
    return Gaussian(inflated((0.5 / fitting) ** 0.5, 8))
