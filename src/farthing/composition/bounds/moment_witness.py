"""Witnesses: mechanisms that reveal nearly as much as bounds on their moments allow.

With probability p the outcome has the loss l, with probability p·e^−l the loss −l, else the loss 0.
This is (ξ, ρ)-zCDP up to the order ω if

    ln(1 + p(e^{βl} − 1)(1 − e^{−(1+β)l})) ≤ r(β) = β(ξ + ρ) + ρβ²      for all 0 < β < ω − 1,

which is confirmed here for every β in ball arithmetic. Where p is small the largest one is where
ln p + βl touches the right side, and so δ = p(1 − e^{ε−l}), for the best l, is the tight conversion
[CKS20, Prop. 12] but for a factor next to 1 (docs/theory/moments.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flint import arb

from farthing.guarantees.kinds import LossDistribution
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import Ball, down, in_balls
from farthing.numerics.rounding import FloatArray
from farthing.numerics.search import golden_section, turning_point

#: What p gives up, as a logarithm, until the inequality is confirmed.
GIVEN_UP = (1e-3, 1e-2, 0.1, 0.5)
#: Ratio of neighbouring orders between which both sides are compared.
RATIO = 1.01
#: p beside δ, for the losses that are tried.
MULTIPLES = tuple(1.1 * 2.5**i for i in range(15))


@dataclass(frozen=True, slots=True)
class Moments:
    """D_α ≤ ξ + ρα for 1 < α < `orders_below`."""

    xi: float
    rho: float
    orders_below: float

    @staticmethod
    def of(loss: Loss) -> Moments | None:
        """The moments of a kind that promises only these; None for others and extreme values."""
        line = loss.moment_line()
        if line is None:
            return None
        xi, rho, orders_below = line
        fits = 1e-12 < rho < 100 and 1e-12 < xi + rho < 100 and orders_below > 1.01
        return Moments(xi, rho, orders_below) if fits else None

    def slope(self, beta: float) -> float:
        """r′(β): the loss whose line touches r there."""
        return self.xi + self.rho * (1 + 2 * min(beta, self.orders_below - 1))

    def log_chance(self, loss: float) -> float:
        """About ln of the largest p: the smallest (e^r(β) − 1)/((e^{βl} − 1)(1 − e^{−(1+β)l}))."""
        touching = max((loss - self.xi - self.rho) / (2 * self.rho), 1.0)
        last = min(4 * touching + 10, self.orders_below - 1)
        first, least = 1e-4 * last, 0.0
        for _ in range(3):  # each time around the best so far
            beta = np.geomspace(first, last, 60)
            right = beta * (self.xi + self.rho) + self.rho * beta**2
            logs = _log_expm1(right) - _log_expm1(beta * loss)
            logs -= np.log(-np.expm1(-(1 + beta) * loss))
            place = int(np.argmin(logs))
            least = min(least, float(logs[place]))
            first, last = float(beta[max(place - 1, 0)]), float(beta[min(place + 1, 59)])
        return least

    def losses_for(self, delta: float) -> list[float]:
        """Losses whose p is a multiple of δ."""
        goals = [math.log(multiple) + math.log(delta) for multiple in MULTIPLES]
        losses = [self._loss_for(goal) for goal in goals if goal < 0]
        return [loss for loss in losses if loss is not None]

    def _loss_for(self, log_chance: float) -> float | None:
        """The loss with this ln p; None if there is none."""

        def too_likely(loss: float) -> bool:
            return self.log_chance(loss) > log_chance

        high = 1.0
        while too_likely(high) and high < 500:
            high *= 2
        if too_likely(high):
            return None
        return turning_point(too_likely, 1e-9, high, width=1e-7)[1]

    @in_balls
    def witness(self, loss: float) -> LossDistribution | None:
        """The mechanism with this loss, or None if nothing is confirmed."""
        for given_up in GIVEN_UP:
            chance = math.exp(self.log_chance(loss) - given_up)
            opposite = chance * math.exp(-loss) * (1 + 1e-12)
            if chance < 1e-290 or chance + opposite > 0.9:
                return None
            if self._allows(loss, chance, given_up):
                masses = (opposite, 1 - chance - opposite, chance * (1 - 1e-12))
                return LossDistribution((-loss, 0.0, loss), masses)
        return None

    def chosen_last(self, delta: float) -> LossDistribution | None:
        """The loss of an adversary who chooses among witnesses once everything else is known.

        For z = e^ε ≥ 1 the largest of their profiles p(1 − z/e^l)₊: a polygon, whose bends are
        masses. Each profile is its own mirror image, and so is the largest: a mass m at the loss x
        has one of m·e^−x at −x. The rest is silent; all is rounded so that the profile is lower.
        """
        goals = np.linspace(math.log(1e-3 * delta), math.log(0.3), 40).tolist()
        losses = [loss for loss in map(self._loss_for, goals) if loss is not None]
        witnesses = [one for one in map(self.witness, losses) if one is not None]
        lines = [(one.masses[-1], one.masses[-1] * math.exp(-one.losses[-1])) for one in witnesses]
        masses: dict[float, float] = {}
        height, fall = 0.0, 0.0
        while True:  # from the right, each time to the line that is met first
            steeper = [
                ((top - height) / (steep - fall), top, steep)
                for top, steep in lines
                if steep > fall * (1 + 1e-9) and top > height
            ]
            z, top, steep = max(steeper, default=(0.0, 0.0, 0.0))
            if z <= 1 + 1e-6:
                break
            masses[math.log(z) * (1 - 1e-12)] = z * (steep - fall) * (1 - 1e-9)
            height, fall = top, steep
        opposite = {-x: m * math.exp(-x) * (1 + 1e-12) for x, m in masses.items()}
        silent = 1 - math.fsum((*masses.values(), *opposite.values()))
        if not masses or silent < 0:
            return None
        ordered = sorted((masses | opposite | {0.0: silent}).items())
        return LossDistribution(tuple(x for x, _ in ordered), tuple(m for _, m in ordered))

    def _allows(self, loss: float, chance: float, given_up: float) -> bool:
        """Whether the inequality holds for every β.

        Near 0 by convexity; up to some β in pieces, on each of which the left side is below its
        chord and the right side above its tangent in the middle, both straight; and from there on
        because a quadratic function has no root.
        """
        p, far = arb(chance), arb(loss)
        linear, rho = arb(self.xi) + arb(self.rho), arb(self.rho)

        def above_1(beta: Ball) -> Ball:
            return -p * (beta * far).expm1() * (-(1 + beta) * far).expm1()

        low = 0.5 * (self.xi + self.rho) / (chance * loss + self.rho) / max(1.0, loss)
        while not above_1(arb(low)) <= linear * arb(low):
            low *= 0.5
            if low < 1e-12:
                return False
        last = (-math.log(chance) + math.log(4 / given_up)) / loss
        rest = (-arb(last) * far).exp() / p
        roots = (far - linear) ** 2 - 4 * rho * (-p.log() - rest)
        end = self.orders_below - 1
        if not roots <= 0 and last < end:
            if end == math.inf:
                return False
            last = end
        last = min(last, end)
        while low < last:
            high = min(low * RATIO, last)
            middle = (arb(low) + arb(high)) / 2
            for end_of_piece in (arb(low), arb(high)):
                tangent = linear * end_of_piece + rho * middle * (2 * end_of_piece - middle)
                if not above_1(end_of_piece).log1p() <= tangent:
                    return False
            low = high
        return True


def _log_expm1(x: FloatArray) -> FloatArray:
    """ln(e^x − 1)."""
    logs: FloatArray = x + np.log(-np.expm1(-x))
    return logs


@in_balls
def attained_epsilon(moments: Moments, delta: float) -> float:
    """An ε at which one such mechanism alone has more than δ: l + ln(1 − δ/p), rounded down."""

    def reached(loss: float) -> float:
        share = delta / math.exp(max(moments.log_chance(loss) - GIVEN_UP[0], -700.0))
        return loss + math.log1p(-share) if share < 1 else -math.inf

    witness = _best(moments, reached, delta)
    if witness is None or not witness.masses[-1] > delta:
        return 0.0
    return max(0.0, down(arb(witness.losses[-1]) + (-arb(delta) / witness.masses[-1]).log1p()))


@in_balls
def attained_delta(moments: Moments, epsilon: float, about: float) -> float:
    """A δ that one such mechanism alone has at ε, near `about`: p(1 − e^{ε−l}), rounded down."""

    def reached(loss: float) -> float:
        if loss <= epsilon:
            return -math.inf
        return moments.log_chance(loss) + math.log(-math.expm1(epsilon - loss))

    witness = _best(moments, reached, about)
    if witness is None or not witness.losses[-1] > epsilon:
        return 0.0
    return max(0.0, down(-(arb(epsilon) - witness.losses[-1]).expm1() * witness.masses[-1]))


def _best(
    moments: Moments, reached: Callable[[float], float], delta: float
) -> LossDistribution | None:
    """The mechanism with the best loss: the best of a few, then narrowed down around it."""
    losses = sorted(moments.losses_for(delta))
    if not losses:
        return None
    place = max(range(len(losses)), key=lambda i: reached(losses[i]))
    low, high = losses[max(place - 1, 0)], losses[min(place + 1, len(losses) - 1)]
    low, _, _, high = golden_section(lambda x: -reached(x), low, high, width=1e-3 * (high - low))
    return moments.witness(0.5 * (low + high))
