"""Lists whose optimum has a closed form.

Equal ε-DP mechanisms [KOV15]: the worst one is randomized response, for every adaptivity, and the
losses of k of them are (k − 2i)ε with i binomial.

Gaussian mechanisms compose to one Gaussian mechanism: 1/σ² adds up. Histograms are the same
thing by coordinates: a unit that changes at most Δ counts by at most τ each, with noise
N(0, τ²σ²) on every count, meets one Gaussian mechanism with noise multiplier σ/√Δ.

Bounded range, alone or with ε-DP, is computed in modules of its own.
"""

from __future__ import annotations

import math
from dataclasses import replace

from flint import arb

from farthing.composition.bounds import Bound, Bracket, Sides, lower_only
from farthing.composition.bounds.nonadaptive import (
    MIXED,
    RANGED,
    Mix,
    adaptivity_is_free,
    delta_nonadaptive,
    epsilon_nonadaptive,
)
from farthing.composition.items import Losses, losses_of
from farthing.errors import require_count, require_real
from farthing.guarantees.kinds import BoundedRange, Gaussian, PureDP
from farthing.numerics.ball import Ball, down, in_balls, middle, up
from farthing.numerics.binomial import MOST_TRIALS, HockeyStick, binomial_hockey_stick
from farthing.numerics.search import crossing, invert

THEOREM = "analytic Gaussian [BW18; CR22, Lemma 6.1]"

EQUAL_PURE = "optimal composition of equal ε-DP mechanisms [KOV15; CR22, Thm 1]"
HISTOGRAM = "Laplace histogram as Δ mechanisms of ε-DP [CR22, Lemma 6.2]"
#: Outside this range of ε most candidates of [DDR20, Thm 3] stay undecided; few can all be tried.
SMALL, LARGE, FEW = 1e-20, 20.0, 1000
#: Bounded-range times ε-DP items of a mixture: above this their convolution takes too long.
MOST_PRODUCT = 4 * 10**8


@in_balls
def analytic_gaussian(items: Losses) -> Bound | None:
    """The exact profile of any list of Gaussian mechanisms, whatever the adaptivity."""
    if not items.pairs:
        return None
    precision = arb(0)
    for loss, count in items:
        variance = loss.gaussian_variance()
        if variance is None:
            return None
        precision += count / variance
    sigma = 1 / precision.sqrt()
    return Bound(
        name="analytic-gaussian",
        theorem=THEOREM,
        epsilon_at=lambda delta: _epsilon(delta, sigma),
        delta_at=lambda epsilon: _delta(epsilon, sigma),
        optimal=True,
    )


def gaussian_delta(epsilon: float, *, noise_multiplier: float, count: int = 1) -> Bracket:
    """δ(ε) of `count` Gaussian mechanisms; Φ(1/(2σ) − εσ) − e^ε Φ(−1/(2σ) − εσ)."""
    bound = _one(noise_multiplier, count)
    return Bracket(*bound.delta_at(require_real("epsilon", epsilon, at_least=0)), THEOREM)


def gaussian_epsilon(delta: float, *, noise_multiplier: float, count: int = 1) -> Bracket:
    """ε(δ) of `count` Gaussian mechanisms."""
    bound = _one(noise_multiplier, count)
    return Bracket(*bound.epsilon_at(require_real("delta", delta, above=0, below=1)), THEOREM)


@in_balls
def gaussian_noise_multiplier(epsilon: float, delta: float, *, count: int = 1) -> float:
    """The smallest noise multiplier, rounded up, with which `count` mechanisms are (ε, δ)-DP."""
    epsilon = require_real("epsilon", epsilon, at_least=0)
    delta = require_real("delta", delta, above=0, below=1)
    count = require_count("count", count, at_least=1)
    one = crossing(lambda sigma: gaussian_profile(arb(epsilon), arb(sigma)), delta, start=1.0)[1]
    return up(arb(one) * arb(count).sqrt())


@in_balls
def zcdp_epsilon(delta: float, *, noise_multiplier: float, contribution_limit: int = 1) -> float:
    """Lemma 6.3 of [CR22]: Δ/(2σ²) + √(2Δ ln(1/δ))/σ for noise N(0, τ²σ²) on every count."""
    delta = require_real("delta", delta, above=0, below=1)
    sigma = arb(require_real("noise_multiplier", noise_multiplier, above=0))
    keys = arb(require_count("contribution_limit", contribution_limit, at_least=1))
    return up(keys / (2 * sigma**2) + (-2 * keys * arb(delta).log()).sqrt() / sigma)


@in_balls
def zcdp_noise_multiplier(epsilon: float, delta: float, *, contribution_limit: int = 1) -> float:
    """The noise multiplier for which Lemma 6.3 of [CR22] gives (ε, δ), rounded up."""
    epsilon = require_real("epsilon", epsilon, above=0)
    delta = require_real("delta", delta, above=0, below=1)
    keys = arb(require_count("contribution_limit", contribution_limit, at_least=1))
    tail = -2 * arb(delta).log()
    return up(keys.sqrt() / ((tail + 2 * arb(epsilon)).sqrt() - tail.sqrt()))


def _one(noise_multiplier: float, count: int) -> Bound:
    count = require_count("count", count, at_least=1)
    bound = analytic_gaussian(losses_of([(Gaussian(noise_multiplier), count)]))
    assert bound is not None
    return bound


def gaussian_profile(epsilon: Ball, sigma: Ball) -> Ball:
    half = 1 / (2 * sigma)
    root = arb(2).sqrt()
    above = ((epsilon * sigma - half) / root).erfc() / 2
    shadow = ((epsilon * sigma + half) / root).erfc() / 2
    return above - epsilon.exp() * shadow


@in_balls
def _delta(epsilon: float, sigma: Ball) -> Sides:
    value = gaussian_profile(arb(epsilon), sigma)
    return max(0.0, down(value)), min(1.0, up(value))


@in_balls
def _epsilon(delta: float, sigma: Ball) -> Sides:
    if delta == 0:
        return 0.0, math.inf
    if gaussian_profile(arb(0), sigma) <= delta:
        return 0.0, 0.0
    return crossing(lambda x: gaussian_profile(arb(x), sigma), delta, start=1.0)


def closed_forms(items: Losses, adaptivity: str) -> list[Bound]:
    """The closed forms that bound this list from above, optimal ones marked."""
    bounds = [
        analytic_gaussian(items),
        _equal_dp(items),
        _equal_range(items, adaptivity),
        _mixture(items, adaptivity),
    ]
    return [bound for bound in bounds if bound is not None]


@in_balls
def basic(items: Losses) -> Bound | None:
    """Σ ε_i at δ = 0, for any adaptivity [Smith25, Exercise 3.5]; needs ε-DP mechanisms."""
    total = items.epsilon_sum()
    if total is None:
        return None
    limit = up(total)
    return Bound(
        name="basic",
        theorem="basic composition [Smith25, Exercise 3.5]",
        epsilon_at=lambda _: (0.0, limit),
        delta_at=lambda epsilon: (0.0, 0.0 if epsilon >= limit else 1.0),
    )


def _equal_dp(items: Losses) -> Bound | None:
    """Kairouz–Oh–Viswanath, reading bounded range and Laplace as ε-DP."""
    epsilon = _common_epsilon(items)
    if epsilon is None:
        return None
    exact, count = items.only(PureDP), items.total
    return Bound(
        "optimal-dp",
        EQUAL_PURE,
        lambda delta: _sides(epsilon_equal(delta, epsilon=epsilon, count=count), exact),
        lambda at: _sides(delta_equal(at, epsilon=epsilon, count=count), exact),
        optimal=exact,
    )


def _equal_range(items: Losses, adaptivity: str) -> Bound | None:
    """Theorem 3 of [DDR20]; one mechanism alone is the same adaptively."""
    if not items.only(BoundedRange) or len(items.unordered()) != 1:
        return None
    if adaptivity != "none" and items.total > 1:
        return None
    epsilon, count = _common_epsilon(items), items.total
    if epsilon is None or (count > FEW and not SMALL < epsilon < LARGE):
        return None
    return Bound(
        "optimal-br",
        RANGED,
        lambda delta: _sides(epsilon_nonadaptive(delta, epsilon=epsilon, count=count)),
        lambda at: _sides(delta_nonadaptive(at, epsilon=epsilon, count=count)),
        optimal=True,
    )


def _mixture(items: Losses, adaptivity: str) -> Bound | None:
    """Theorem 3 of [CR22]; with a single bounded-range item also adaptively (Cor. 5.1 there)."""
    epsilon = _common_epsilon(items)
    if epsilon is None or items.kinds != {BoundedRange, PureDP}:
        return None
    ranged = sum(count for _, count in items.choices())
    if (adaptivity != "none" and ranged > 1) or ranged * (items.total - ranged) > MOST_PRODUCT:
        return None
    mix = Mix(epsilon, pure=items.total - ranged, ranged=ranged)
    adaptive = "one bounded-range item may be adaptive [CR22, Cor. 5.1 with m = k − 1]"
    theorem = MIXED if adaptivity == "none" else adaptive
    return Bound(
        "optimal-mixed",
        theorem,
        lambda delta: _sides(mix.epsilon_at(delta)),
        lambda at: _sides(mix.delta_at(at)),
        optimal=True,
    )


def _common_epsilon(items: Losses) -> float | None:
    """The one ε that all items share, unless they are too many or e^ε is too large for floats."""
    epsilons = {loss.pure_epsilon for loss, _ in items}
    epsilon = epsilons.pop() if len(epsilons) == 1 and items.total <= MOST_TRIALS else None
    return epsilon if epsilon is not None and epsilon < 600 else None


def _sides(bracket: Bracket, exact: bool = True) -> Sides:
    return (bracket.lower if exact else 0.0), bracket.upper


def fixed_in_advance(items: Losses) -> Bound | None:
    """The non-adaptive closed form of a list whose adaptive optimum has none.

    It bounds the adaptive optimum from below, and equals it for equal bounded-range items from
    ε_g = (k − 1)ε on [DDR20, Lemma 6.10].
    """
    if (mixture := _mixture(items, "none")) is not None:
        return lower_only(mixture)
    ranged = _equal_range(items, "none")
    if ranged is None:
        return None
    epsilon, count = items.pairs[0][0].pure_epsilon, items.total
    assert epsilon is not None

    def epsilon_at(delta: float) -> Sides:
        lower, upper = ranged.epsilon_at(delta)
        free = adaptivity_is_free(lower, epsilon=epsilon, count=count)
        return lower, upper if free else math.inf

    def delta_at(at: float) -> Sides:
        lower, upper = ranged.delta_at(at)
        return lower, upper if adaptivity_is_free(at, epsilon=epsilon, count=count) else math.inf

    return Bound(
        name="optimal-br",
        theorem="adaptive equals non-adaptive bounded range here [DDR20, Lemma 6.10, Thm 3]",
        epsilon_at=epsilon_at,
        delta_at=delta_at,
        optimal=True,
    )


@in_balls
def delta_equal(epsilon_g: float, *, epsilon: float, count: int) -> Bracket:
    """Optimal δ of `count` ε-DP mechanisms, for every real ε_g.

    Theorem 1 of [CR22], due to [KOV15]; exact, both sides attained, valid for adaptive,
    set-wise and concurrent composition. Checked against the subset sum in tests/oracle.
    """
    at = arb(epsilon_g)
    if abs(at) >= count * arb(epsilon):
        value = -at.expm1() if epsilon_g < 0 else arb(0)
    else:
        value = _stick(epsilon_g, epsilon, count).value
    return Bracket(max(0.0, down(value)), min(1.0, up(value)), EQUAL_PURE)


@in_balls
def epsilon_equal(delta: float, *, epsilon: float, count: int) -> Bracket:
    """The smallest ε_g ≥ 0 whose optimal δ is at most `delta`."""
    sides = invert(
        lambda x: _stick(x, epsilon, count),
        lambda x: _stick(x, epsilon, count).value.upper(),
        delta,
        total=arb(epsilon) * count,
        mean=count * epsilon * math.tanh(epsilon / 2),
        deviation=epsilon * math.sqrt(count),
    )
    return Bracket(*sides, EQUAL_PURE)


def _stick(epsilon_g: float, epsilon: float, count: int) -> HockeyStick:
    each = arb(epsilon)
    last = min(max(math.floor(middle((count - arb(epsilon_g) / each) / 2)) + 1, 0), count)
    while (gap := (count - 2 * last) * each - arb(epsilon_g)) < 0:
        last -= 1
    return binomial_hockey_stick(count=count, log_odds=each, step=2 * each, gap=gap, last=last)


def laplace_histogram_epsilon(delta: float, *, epsilon: float, contribution_limit: int) -> Bracket:
    """ε_g at `delta` of a histogram with Lap(τ/ε) noise, by Lemma 6.2 of [CR22].

    A unit that changes at most Δ counts by at most τ each meets Δ mechanisms of ε-DP and nothing
    else: the other counts are the same on both datasets. The bracket is the optimum for any Δ
    mechanisms of ε-DP. For continuous Laplace noise
    `compose([(Laplace(epsilon), contribution_limit)])` is smaller still.
    """
    delta = require_real("delta", delta, at_least=0, below=1)
    epsilon = require_real("epsilon", epsilon, at_least=0)
    count = require_count("contribution_limit", contribution_limit, at_least=1)
    return replace(epsilon_equal(delta, epsilon=epsilon, count=count), theorem=HISTOGRAM)
