"""Bounds from the moments of the privacy loss: they hold set-wise, in any order.

All of them bound ln E[e^{(α−1)L}] of each mechanism, add up, and turn the sum into (ε, δ).
Two conversions exist: the Chernoff form that the papers use, δ = e^{K(α) − (α−1)ε}, and the
tight one of [CKS20, Prop. 12], smaller by the factor (1 − 1/α)^{α−1}/α.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from flint import arb

from farthing.composition.bounds.bound import Bound
from farthing.composition.items import Losses
from farthing.errors import NotCertified
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import Ball, in_balls, middle, up
from farthing.numerics.search import golden_section

#: α ↦ (α − 1)·D_α of one mechanism
Moment = Callable[[Loss, float], Ball]


def concentrated_moment(loss: Loss, alpha: float) -> Ball:
    """(α − 1)(ξ + ρα): the moment as [CR22, Lemma 3.4] sees it."""
    pair = loss.zero_concentrated()
    if pair is None:
        raise NotCertified(f"{loss.guarantee!r} is not zero-concentrated")
    order = arb(alpha)
    return (order - 1) * (pair[0] + pair[1] * order)


def exact_moment(loss: Loss, alpha: float) -> Ball:
    """The moment as the loss knows it."""
    return loss.log_moment(alpha)


def moment_bounds(items: Losses) -> list[Bound]:
    """The bounds of this form that apply to `items`, each minimised over the order."""
    chernoff = MomentBound(items, tight=False)
    kept = [_named("mgf", "moment generating function [DDR20, Thm 5]", chernoff), renyi(items)]
    if all(loss.zero_concentrated() is not None for loss, _ in items):
        sums = MomentBound(items, concentrated_moment)
        kept.insert(0, _named("zcdp-tight", "zCDP, tight conversion [CKS20, Prop. 12]", sums))
    return kept


def renyi(items: Losses) -> Bound:
    """Exact moments with the tight conversion: never above any other bound of this module,
    nor above those of composition/bounds/subgaussian.py, which bound the same moments."""
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

        def value(alpha: float) -> Ball:
            power = arb(alpha) - 1
            return (self._total(alpha) - arb(delta).log() + self._gain(alpha)) / power

        best = value(self._best_order(value))
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
        return self._best_order(
            lambda alpha: (
                (self._total(alpha) - arb(delta).log() + self._gain(alpha)) / (arb(alpha) - 1)
            )
        )

    def _total(self, alpha: float) -> Ball:
        return sum((count * self.moment(loss, alpha) for loss, count in self.items), arb(0))

    def _gain(self, alpha: float) -> Ball:
        """ln of the factor by which the tight conversion is smaller: (1 − 1/α)^{α−1}/α."""
        if self.gain is not None:
            return arb(self.gain(alpha))
        if not self.tight:
            return arb(0)
        order = arb(alpha)
        return (order - 1) * (1 - 1 / order).log() - order.log()

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
