"""Laplace noise: atoms at ±ε and a density between them."""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from farthing.guarantees.kinds import Laplace
from farthing.guarantees.losses.base import ContinuousLoss, HeavyEnds
from farthing.numerics.ball import Ball, middle

#: So much Laplace noise is not moved to a lattice: shifted lines are as fast.
SEVERAL = 100


@dataclass(frozen=True, slots=True)
class LaplaceLoss(HeavyEnds, ContinuousLoss, sold=True, lumpy=True):
    """V(x) = 1 − e^{(x−ε)/2} for |x| ≤ ε."""

    guarantee: Laplace

    def tails(self, x: Ball) -> tuple[Ball, Ball]:
        epsilon = arb(self.guarantee.epsilon)
        if x >= epsilon:
            return arb(0), arb(0)
        if x < -epsilon:
            return arb(1), arb(1)
        return 1 - ((x - epsilon) / 2).exp() / 2, (-(x + epsilon) / 2).exp() / 2

    def concentrated(self) -> tuple[Ball, Ball]:
        epsilon = arb(self.guarantee.epsilon)
        return epsilon + (-epsilon).expm1(), epsilon**2

    def log_moment(self, alpha: float) -> Ball:
        epsilon, order = arb(self.guarantee.epsilon), arb(alpha)
        weight = order / (2 * order - 1)
        far, near = ((order - 1) * epsilon).exp(), (-order * epsilon).exp()
        return (weight * far + (1 - weight) * near).log()

    def mean_and_variance(self) -> tuple[float, float]:
        epsilon = self.guarantee.epsilon
        return middle(arb(epsilon) + (-arb(epsilon)).expm1()), min(epsilon, 2.0) ** 2

    def on_lattice(self, count: int) -> bool:
        return count > SEVERAL
