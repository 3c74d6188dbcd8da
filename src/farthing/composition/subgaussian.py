"""Bounds of the form ε = mean + √(2·variance·ln(1/δ)).

Each theorem here bounds the mean of the total privacy loss and the variance proxy of what is
left after the mean is taken out, and applies Lemma 3.1 of [CR22] (Azuma–Hoeffding with
parameters that may be chosen as you go). They differ only in the two numbers, and all of them
hold set-wise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flint import arb

from farthing.composition.bound import Bound
from farthing.composition.items import Items
from farthing.guarantees.conversions import concentrated, max_kl, pure_epsilon, zero_concentrated
from farthing.guarantees.kinds import BoundedRange, Guarantee
from farthing.numerics.ball import Ball, in_balls, up

#: one mechanism ↦ (mean, variance proxy) of its loss, or None if the theorem does not apply
Parts = Callable[[Guarantee], tuple[Ball, Ball] | None]


def subgaussian_bounds(items: Items) -> list[Bound]:
    """Every bound of this form that applies to `items`."""
    rules: list[tuple[str, str, Parts]] = [
        ("drv10", "advanced composition [DRV10]", _drv10),
        ("improved-drv10", "advanced composition, mean ε²/2 [DDR20, section 7]", _improved_drv10),
        ("strong", "strong composition, mean ε·tanh(ε/2) [Smith25, Thm 1.1]", _strong),
        ("dr19", "bounded range with mean ε²/2 [DR19; DDR20, section 7]", _dr19),
        ("optimal-kl", "bounded range with the optimal mean [DDR20, Cor. 3.1]", _optimal_kl),
        ("cdp", "set-wise concentrated DP [CR22, Lemma 3.3, eq. 3]", concentrated),
        ("zcdp", "set-wise zero-concentrated DP [CR22, Lemma 3.4]", _zero_concentrated),
    ]
    bounds = [_bound(name, theorem, parts, items) for name, theorem, parts in rules]
    return [bound for bound in bounds if bound is not None]


@in_balls
def _bound(name: str, theorem: str, parts: Parts, items: Items) -> Bound | None:
    mean, variance = arb(0), arb(0)
    for guarantee, count in items:
        pair = parts(guarantee)
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


def _drv10(guarantee: Guarantee) -> tuple[Ball, Ball] | None:
    epsilon = _ball_epsilon(guarantee)
    return None if epsilon is None else (epsilon * epsilon.expm1(), epsilon**2)


def _improved_drv10(guarantee: Guarantee) -> tuple[Ball, Ball] | None:
    epsilon = _ball_epsilon(guarantee)
    return None if epsilon is None else (epsilon**2 / 2, epsilon**2)


def _strong(guarantee: Guarantee) -> tuple[Ball, Ball] | None:
    epsilon = _ball_epsilon(guarantee)
    return None if epsilon is None else (epsilon * (epsilon / 2).tanh(), epsilon**2)


def _dr19(guarantee: Guarantee) -> tuple[Ball, Ball] | None:
    if not isinstance(guarantee, BoundedRange):
        return None
    epsilon = arb(guarantee.epsilon)
    return epsilon**2 / 2, epsilon**2 / 4


def _optimal_kl(guarantee: Guarantee) -> tuple[Ball, Ball] | None:
    if not isinstance(guarantee, BoundedRange):
        return None
    return max_kl(guarantee.epsilon), arb(guarantee.epsilon) ** 2 / 4


def _zero_concentrated(guarantee: Guarantee) -> tuple[Ball, Ball] | None:
    pair = zero_concentrated(guarantee)
    return None if pair is None else (pair[0] + pair[1], 2 * pair[1])


def _ball_epsilon(guarantee: Guarantee) -> Ball | None:
    epsilon = pure_epsilon(guarantee)
    return None if epsilon is None else arb(epsilon)
