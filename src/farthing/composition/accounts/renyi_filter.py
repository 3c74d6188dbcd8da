"""A filter for guarantees that are chosen as you go: moments of orders that are fixed in advance.

For one Rényi order α the moments of the privacy loss multiply along every way to continue, so a cap
on Σ D_α that always holds bounds the moment of the whole [FZ21; WRRW23]. An order chosen afterwards
would not be covered. So several orders are fixed in advance and share δ; the order ∞, which is
basic composition, needs no share (docs/theory/accountant.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from farthing.composition.bounds.moments import tight_gain
from farthing.errors import Unsupported
from farthing.guarantees.kinds import Guarantee, replaces_one
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import down, in_balls, up

#: The δ of the first order is divided by this for each of the orders above it.
SIDE = 252
#: How much further from 1 than the first order they lie: for mechanisms of large pure ε.
SIDE_ORDERS = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Cap:
    """Σ D_α may reach `most` for this order α; infinite α is a cap on Σ ε."""

    order: float
    most: Fraction


def caps(epsilon: float, delta: float, order: float) -> tuple[Cap, ...]:
    """What may be spent in each order so that everything is (ε, δ)-DP; δ without leaks."""
    pure = Cap(math.inf, Fraction(epsilon))
    if delta == 0:
        return (pure,)
    side = Fraction(1, SIDE + len(SIDE_ORDERS))
    shares = [(order, SIDE * side)] + [(1 + n * (order - 1), side) for n in SIDE_ORDERS]
    renyi = (Cap(alpha, _most(epsilon, delta, alpha, share)) for alpha, share in shares)
    return (*(cap for cap in renyi if cap.most > 0), pure)


@in_balls
def _most(epsilon: float, delta: float, alpha: float, share: Fraction) -> Fraction:
    """The D_α whose tight conversion [CKS20, Prop. 12] is (ε, share × δ), rounded down."""
    order = arb(alpha)
    target = arb(delta) * share.numerator / share.denominator
    return Fraction(down(arb(epsilon) - (tight_gain(order) - target.log()) / (order - 1)))


def best_order(epsilon: float, delta: float, guarantee: Guarantee) -> float:
    """The order in which most of `guarantee` fits, about; any order is valid."""
    if delta == 0:
        return 2.0

    def how_many(power: float) -> float:
        order = 1 + power
        (moment, *_) = cost_of(guarantee, (order,)).moments
        most = _most(epsilon, delta, order, Fraction(1))
        if moment is None or most <= 0:
            return -1.0
        return math.inf if moment == 0 else float(most / moment)

    low, high = 1e-3, 1e7
    for points in (81, 31, 31):
        tried = np.geomspace(low, high, points).tolist()
        best = max(range(points), key=lambda place: how_many(tried[place]))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, points - 1)]
    return 1 + float(tried[best])


@dataclass(frozen=True, slots=True)
class Charge:
    """What one mechanism costs: Σ D_α for each order (None: no bound), and its leak."""

    moments: tuple[Fraction | None, ...]
    leak: Fraction


@lru_cache(maxsize=4096)
@in_balls
def cost_of(guarantee: Guarantee, orders: tuple[float, ...]) -> Charge:
    """The larger of both directions in every order, rounded up."""
    if replaces_one(guarantee):
        raise Unsupported(
            "an accountant holds for add/remove neighbours; samples without replacement have "
            "replace-one neighbours"
        )
    ways = [loss_of(guarantee, with_unit=way).whole() for way in (True, False)]
    rests = [way.without_leak() for way in ways]
    moments = []
    for order in orders:
        divergences = [_divergence(rest, order) for rest in rests]
        known = [Fraction(one) for one in divergences if one is not None]
        moments.append(max(known) if len(known) == len(rests) else None)
    return Charge(tuple(moments), Fraction(max(way.leak for way in ways)))


def _divergence(loss: Loss, order: float) -> float | None:
    """D_α of a loss without δ, rounded up; None if it has no bound."""
    most = loss.pure_epsilon
    if order >= loss.orders_below:
        return most
    moment = loss.log_moment(order)
    if not moment.is_finite():
        return most
    divergence = max(0.0, up(moment / (arb(order) - 1)))
    return divergence if most is None else min(divergence, most)
