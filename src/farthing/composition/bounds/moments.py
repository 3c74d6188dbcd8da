"""Bounds from the moments of the privacy loss: they hold set-wise, in any order.

All of them bound ln E[e^{(α−1)L}] of each mechanism, add up, and turn the sum into (ε, δ).
Two conversions exist: the Chernoff form that the papers use, δ = e^{K(α) − (α−1)ε}, and the
tight one of [CKS20, Prop. 12], smaller by the factor (1 − 1/α)^{α−1}/α.

The oldest ones have the form ε = mean + √(2·variance·ln(1/δ)): each bounds the mean of the total
privacy loss and the variance proxy of what is left after the mean is taken out, and applies Lemma
3.1 of [CR22] (Azuma–Hoeffding with parameters that may be chosen as you go). They differ only in
the two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from flint import arb

from farthing.composition.bounds import Bound
from farthing.composition.items import Losses
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.losses.bounded_range import max_kl
from farthing.numerics.ball import Ball, in_balls, middle, up
from farthing.numerics.search import golden_section

#: α ↦ (α − 1)·D_α of one mechanism
Moment = Callable[[Loss, float], Ball]
#: one mechanism ↦ (mean, variance proxy) of its loss, or None if the theorem does not apply
Parts = Callable[[Loss], tuple[Ball, Ball] | None]


def tight_gain(order: Ball) -> Ball:
    """ln of the factor by which the tight conversion is smaller: (1 − 1/α)^{α−1}/α."""
    return (order - 1) * (1 - 1 / order).log() - order.log()


def exact_moment(loss: Loss, alpha: float) -> Ball:
    """The moment of the loss itself."""
    return loss.log_moment(alpha)


def moment_bounds(items: Losses) -> list[Bound]:
    """The bounds of this form that apply to `items`, each minimised over the order."""
    chernoff = MomentBound(items, tight=False)
    kept = [_named("mgf", "moment generating function [DDR20, Thm 5]", chernoff), renyi(items)]
    if all(loss.zero_concentrated() is not None for loss, _ in items):
        sums = MomentBound(items, Loss.log_moment)  # (α − 1)(ξ + ρα), as [CR22, Lemma 3.4] sees it
        kept.insert(0, _named("zcdp-tight", "zCDP, tight conversion [CKS20, Prop. 12]", sums))
    return kept


def renyi(items: Losses) -> Bound:
    """Exact moments with the tight conversion: never above any other bound of this module."""
    theorem = "Rényi moments, tight conversion [CKS20, Prop. 12]"
    return _named("renyi", theorem, MomentBound(items))


@dataclass(frozen=True, slots=True)
class MomentBound:
    """Adds up one kind of moment and converts it, by one of the two conversions, or with `gain`:
    α ↦ ln sup V(y)e^{(α−1)y} for the profile V of what comes after (moments_beside_others.py).
    """

    items: Losses
    moment: Moment = exact_moment
    tight: bool = True
    gain: Callable[[float], float] | None = None

    @in_balls
    def epsilon_at(self, delta: float) -> float:
        """The smallest ε found over all orders; every order is valid, so this is safe."""
        if delta == 0:
            return math.inf
        best = self._epsilon(delta, self.best_order(delta))
        return max(0.0, up(best)) if best.is_finite() else math.inf

    @in_balls
    def delta_at(self, epsilon: float) -> float:
        """The smallest δ found over all orders."""

        def value(alpha: float) -> Ball:
            return self._total(alpha) - (arb(alpha) - 1) * arb(epsilon) + self._gain(alpha)

        best = value(self._best_order(value))
        return min(1.0, up(best.exp())) if best.is_finite() else 1.0

    def best_order(self, delta: float) -> float:
        """The order that `epsilon_at` uses."""
        return self._best_order(lambda alpha: self._epsilon(delta, alpha))

    def _epsilon(self, delta: float, alpha: float) -> Ball:
        power = arb(alpha) - 1
        return (self._total(alpha) - arb(delta).log() + self._gain(alpha)) / power

    def _total(self, alpha: float) -> Ball:
        return sum((count * self.moment(loss, alpha) for loss, count in self.items), arb(0))

    def _gain(self, alpha: float) -> Ball:
        if self.gain is not None:
            return arb(self.gain(alpha))
        return tight_gain(arb(alpha)) if self.tight else arb(0)

    def _best_order(self, value: Callable[[float], Ball]) -> float:
        """The best of a few orders, then a golden-section search in ln(α − 1) around it."""
        limit = min((loss.orders_below for loss, _ in self.items), default=math.inf)
        last = min(math.log(1e9), math.log(limit - 1) - 1e-9)
        first = min(math.log(1e-6), last - 20)

        def height(log_power: float) -> float:
            ball = value(1 + math.exp(log_power))
            return middle(ball) if ball.is_finite() else math.inf

        spacing = (last - first) / 16
        best = min((first + spacing * i for i in range(17)), key=height)
        low, high = max(best - spacing, first), min(best + spacing, last)
        _, left, right, _ = golden_section(height, low, high, width=1e-3)
        return 1 + math.exp(min((best, left, right), key=height))


def _named(name: str, theorem: str, bound: MomentBound) -> Bound:
    return Bound(
        name,
        theorem,
        epsilon_at=lambda delta: (0.0, bound.epsilon_at(delta)),
        delta_at=lambda epsilon: (0.0, bound.delta_at(epsilon)),
    )


def subgaussian_bounds(items: Losses) -> list[Bound]:
    """Every bound of this form that applies to `items`."""
    rules: list[tuple[str, str, Parts]] = [
        ("drv10", "advanced composition [DRV10]", _drv10),
        ("improved-drv10", "advanced composition, mean ε²/2 [DDR20, section 7]", _improved_drv10),
        ("strong", "strong composition, mean ε·tanh(ε/2) [Smith25, Thm 1.1]", _strong),
        ("dr19", "bounded range with mean ε²/2 [DR19; DDR20, section 7]", _dr19),
        ("optimal-kl", "bounded range with the optimal mean [DDR20, Cor. 3.1]", _optimal_kl),
        ("cdp", "set-wise concentrated DP [CR22, Lemma 3.3, eq. 3]", _concentrated),
        ("zcdp", "set-wise zero-concentrated DP [CR22, Lemma 3.4]", _zero_concentrated),
    ]
    bounds = [_bound(name, theorem, parts, items) for name, theorem, parts in rules]
    return [bound for bound in bounds if bound is not None]


@in_balls
def _bound(name: str, theorem: str, parts: Parts, items: Losses) -> Bound | None:
    mean, variance = arb(0), arb(0)
    for loss, count in items:
        pair = parts(loss)
        if pair is None:
            return None
        mean, variance = mean + count * pair[0], variance + count * pair[1]

    @in_balls
    def epsilon_at(delta: float) -> tuple[float, float]:
        if delta == 0:
            return 0.0, math.inf
        return 0.0, max(0.0, up(mean + (-2 * variance * arb(delta).log()).sqrt()))

    @in_balls
    def delta_at(epsilon: float) -> tuple[float, float]:
        excess = arb(epsilon) - mean
        if not excess > 0:
            return 0.0, 1.0
        if variance == 0:
            return 0.0, 0.0
        return 0.0, min(1.0, up((-(excess**2) / (2 * variance)).exp()))

    return Bound(name, theorem, epsilon_at, delta_at)


def _drv10(loss: Loss) -> tuple[Ball, Ball] | None:
    epsilon = _ball_epsilon(loss)
    return None if epsilon is None else (epsilon * epsilon.expm1(), epsilon**2)


def _improved_drv10(loss: Loss) -> tuple[Ball, Ball] | None:
    epsilon = _ball_epsilon(loss)
    return None if epsilon is None else (epsilon**2 / 2, epsilon**2)


def _strong(loss: Loss) -> tuple[Ball, Ball] | None:
    epsilon = _ball_epsilon(loss)
    return None if epsilon is None else (epsilon * (epsilon / 2).tanh(), epsilon**2)


def _dr19(loss: Loss) -> tuple[Ball, Ball] | None:
    if loss.chosen_range is None:
        return None
    epsilon = arb(loss.chosen_range)
    return epsilon**2 / 2, epsilon**2 / 4


def _optimal_kl(loss: Loss) -> tuple[Ball, Ball] | None:
    if loss.chosen_range is None:
        return None
    return max_kl(loss.chosen_range), arb(loss.chosen_range) ** 2 / 4


def _concentrated(loss: Loss) -> tuple[Ball, Ball] | None:
    return loss.concentrated()


def _zero_concentrated(loss: Loss) -> tuple[Ball, Ball] | None:
    pair = loss.zero_concentrated()
    return None if pair is None else (pair[0] + pair[1], 2 * pair[1])


def _ball_epsilon(loss: Loss) -> Ball | None:
    return None if loss.pure_epsilon is None else arb(loss.pure_epsilon)
