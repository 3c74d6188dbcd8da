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

from farthing.composition.bounds.bound import Bound
from farthing.composition.items import Losses
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.losses.bounded_range import max_kl
from farthing.numerics.ball import Ball, in_balls, up

#: one mechanism ↦ (mean, variance proxy) of its loss, or None if the theorem does not apply
Parts = Callable[[Loss], tuple[Ball, Ball] | None]


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
