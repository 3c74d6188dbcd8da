"""Randomized response: the worst ε-DP mechanism, and with a leak the worst (ε, δ)-DP one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from farthing.errors import Unsupported
from farthing.guarantees.kinds import ApproximateDP, Guarantee, PureDP
from farthing.guarantees.losses.base import Atoms, HeavyEnds, Loss, Sandwich, merged
from farthing.numerics.ball import Ball, in_balls, middle, up
from farthing.numerics.binomial import MOST_TRIALS, binomial_masses
from farthing.numerics.rounding import UNIT, float_up


class TwoOutcomes(Loss, ABC):
    """A loss with two outcomes, so that sums of it are binomial."""

    __slots__ = ()

    @abstractmethod
    def responses(self, count: int, step: float) -> Sandwich:
        """Atoms above and below the sum of `count` losses."""

    def atoms_above(self, step: float, reach: float) -> Atoms:
        return self.responses(1, step)[0]

    def atoms_below(self, step: float, reach: float) -> Atoms:
        return self.responses(1, step)[1]

    def total(self, count: int, step: float, tiny: float, *, upward: bool) -> tuple[Atoms, int]:
        return self.responses(count, step)[0 if upward else 1], 1

    def cells(self, count: int, step: float, tiny: float) -> float:
        assert self.outcomes_apart is not None
        trials = min(count + 1.0, 80 * math.sqrt(count))
        return trials * (1 + self.outcomes_apart / step) if count <= MOST_TRIALS else math.inf


@dataclass(frozen=True, slots=True)
class PureLoss(HeavyEnds, TwoOutcomes, sold=True, shifts=2):
    """Losses ±ε."""

    guarantee: PureDP

    @property
    def outcomes_apart(self) -> float:
        return 2 * self.guarantee.epsilon

    def responses(self, count: int, step: float) -> Sandwich:
        return binomial_atoms(count=count, epsilon=self.guarantee.epsilon, t=None, step=step)

    def before_sampling(self, reach: float) -> tuple[Sandwich, float]:
        return self.responses(1, self.guarantee.epsilon / 4), 0.0

    def concentrated(self) -> tuple[Ball, Ball]:
        epsilon = arb(self.guarantee.epsilon)
        return epsilon * (epsilon / 2).tanh(), epsilon**2

    def log_moment(self, alpha: float) -> Ball:
        epsilon, power = arb(self.guarantee.epsilon), arb(alpha) - 1
        truth = 1 / (1 + (-epsilon).exp())
        return (truth * (power * epsilon).exp() + (1 - truth) * (-power * epsilon).exp()).log()

    def mean_and_variance(self) -> tuple[float, float]:
        epsilon = self.guarantee.epsilon
        return epsilon * math.tanh(epsilon / 2), (epsilon / math.cosh(min(epsilon, 500) / 2)) ** 2

    def tariff_variance(self) -> float:
        """A large ε is an atom near ±ε, for which no grid need be fine."""
        epsilon = self.guarantee.epsilon
        return (epsilon / math.cosh(min(epsilon, 10.0) / 2)) ** 2

    def covers(self, used: Guarantee) -> bool:
        return isinstance(used, PureDP) and used.epsilon <= self.guarantee.epsilon


@dataclass(frozen=True, slots=True)
class LeakyLoss(Loss, sold=True):
    """An (ε, δ)-DP mechanism is a post-processing of leaky randomized response (simulation
    lemma, [Smith25, Lemma 3.1]): with probability δ it tells all, else it is ε-DP."""

    guarantee: ApproximateDP

    @property
    def leak(self) -> float:
        return self.guarantee.delta

    def without_leak(self) -> Loss:
        return PureLoss(PureDP(self.guarantee.epsilon))

    def covers(self, used: Guarantee) -> bool:
        if not isinstance(used, ApproximateDP):
            return False
        return used.epsilon <= self.guarantee.epsilon and used.delta <= self.guarantee.delta

    @in_balls
    def for_group(self, units: int) -> Guarantee:
        epsilon, each = self.guarantee.epsilon, arb(self.guarantee.epsilon)
        growth = (units * each).expm1() / each.expm1() if epsilon > 0 else arb(units)
        grown = arb(self.guarantee.delta) * growth
        if not grown < 1:
            raise Unsupported(f"delta grows to {up(grown):.3g} for a group of {units} units")
        return ApproximateDP(float_up(units * Fraction(epsilon)), up(grown))


def binomial_atoms(*, count: int, epsilon: float, t: float | None, step: float) -> Sandwich:
    """`count` randomized responses at once: atoms (above, below) the exact binomial loss.

    With `t` they are generalized ones, RR_{ε,t} [DDR20, Def. 2.4], with losses t and t − ε;
    without it the ordinary ones, with losses ±ε. Masses left out above the list count as
    infinite loss for the upper side and are dropped for the lower one; what is left out
    below joins the smallest loss. On the lower side atoms closer than `step` are merged.
    """
    if t is None:
        top, spacing, log_odds = count * arb(epsilon), 2 * arb(epsilon), arb(epsilon)
    else:
        top, spacing = count * arb(t), arb(epsilon)
        log_odds = ((arb(epsilon) - t).expm1() / arb(t).expm1()).log() + t
    known = binomial_masses(count=count, log_odds=log_odds)
    places = np.arange(known.first, known.first + len(known.pmf), dtype=np.float64)
    losses = middle(top) - places * middle(spacing)
    error = 8 * UNIT * (abs(middle(top)) + count * middle(spacing))
    upper = known.pmf * (1 + known.relative)
    upper[-1] += known.above_last
    above = Atoms(losses[::-1] + error, upper[::-1], known.below_first)
    below = merged(Atoms(losses[::-1] - error, (known.pmf * (1 - known.relative))[::-1]), step)
    return above, below
