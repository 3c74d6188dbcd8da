"""Bounded range: the adversary chooses the loss, so it is a choice and not a fixed loss."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from farthing.guarantees.kinds import BoundedRange, Guarantee, PureDP
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import Ball, middle
from farthing.numerics.rounding import float_up


@dataclass(frozen=True, slots=True)
class RangeLoss(Loss, sold=True):
    """Losses t and t − ε, where 0 ≤ t ≤ ε is chosen from all earlier answers."""

    guarantee: BoundedRange

    @property
    def chosen_range(self) -> float:
        return self.guarantee.epsilon

    @property
    def pure_epsilon(self) -> float:
        """By Lemma 2.1 of [CR22]."""
        return self.guarantee.epsilon

    def concentrated(self) -> tuple[Ball, Ball]:
        return max_kl(self.guarantee.epsilon), arb(self.guarantee.epsilon) ** 2 / 4

    def log_moment(self, alpha: float) -> Ball:
        """h_ε(λ) of Theorem 5 in [DDR20], λ = α − 1, with the sup over t in closed form.

        With w = e^t the objective is λ ln w + ln(A − Bw), concave in t, where A − Bw is the
        factor q_t + (1 − q_t)e^{−λε}; its maximum w = λA/((λ + 1)B) always lies in [1, e^ε].
        No e^{+λε} is formed, which is what the paper's numerical remark asks for.
        """
        if self.guarantee.epsilon == 0:
            return arb(0)
        epsilon, power = arb(self.guarantee.epsilon), arb(alpha) - 1
        spread = -(-power * epsilon).expm1()
        slope = spread / epsilon.expm1()
        height = 1 + slope
        return power * (power * height / ((power + 1) * slope)).log() + (height / (power + 1)).log()

    def mean_and_variance(self) -> tuple[float, float]:
        return middle(max_kl(self.guarantee.epsilon)), self.guarantee.epsilon**2 / 4

    def covers(self, used: Guarantee) -> bool:
        return isinstance(used, BoundedRange) and used.epsilon <= self.guarantee.epsilon

    def carried(self, negligible: float) -> Loss:
        return RangeLoss(BoundedRange(max(self.guarantee.epsilon, negligible)))

    def replaces(self, other: Loss, times: int) -> bool:
        """Randomized response with ε is the choice t = ε of 2ε."""
        pure = other.guarantee
        return isinstance(pure, PureDP) and times >= 1 and self.chosen_range >= 2 * pure.epsilon

    def for_group(self, units: int) -> Guarantee:
        return BoundedRange(float_up(units * Fraction(self.guarantee.epsilon)))


def max_kl(epsilon: float | Ball) -> Ball:
    """The largest mean loss of an ε-bounded-range mechanism: x − 1 − ln x, x = ε/(e^ε − 1).

    [DDR20, section 7]; attained at t = ln((e^ε − 1)/ε). The paper prints Corollary 3.1 with
    x = ε/(1 − e^−ε), which is the same number.
    """
    if epsilon == 0:
        return arb(0)
    x = arb(epsilon) / arb(epsilon).expm1()
    return x - 1 - x.log()
