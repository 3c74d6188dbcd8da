"""The Gaussian mechanism: exact profile, exact composition, calibration both ways.

Gaussian mechanisms compose to one Gaussian mechanism: 1/σ² adds up. Histograms are the same
thing by coordinates: a unit that changes at most Δ counts by at most τ each, with noise
N(0, τ²σ²) on every count, meets one Gaussian mechanism with noise multiplier σ/√Δ.
"""

from __future__ import annotations

import math

from flint import arb

from farthing.composition.bounds.bound import Bound, Sides
from farthing.composition.items import Losses, losses_of
from farthing.errors import require_count, require_real
from farthing.guarantees.bracket import Bracket
from farthing.guarantees.kinds import Gaussian
from farthing.numerics.ball import Ball, down, in_balls, up
from farthing.numerics.search import crossing

THEOREM = "analytic Gaussian [BW18; CR22, Lemma 6.1]"


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
    one = crossing(lambda sigma: _profile(arb(epsilon), arb(sigma)), delta, start=1.0)[1]
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


def _profile(epsilon: Ball, sigma: Ball) -> Ball:
    half = 1 / (2 * sigma)
    root = arb(2).sqrt()
    above = ((epsilon * sigma - half) / root).erfc() / 2
    shadow = ((epsilon * sigma + half) / root).erfc() / 2
    return above - epsilon.exp() * shadow


@in_balls
def _delta(epsilon: float, sigma: Ball) -> Sides:
    value = _profile(arb(epsilon), sigma)
    return max(0.0, down(value)), min(1.0, up(value))


@in_balls
def _epsilon(delta: float, sigma: Ball) -> Sides:
    if delta == 0:
        return 0.0, math.inf
    if _profile(arb(0), sigma) <= delta:
        return 0.0, 0.0
    return crossing(lambda x: _profile(arb(x), sigma), delta, start=1.0)
