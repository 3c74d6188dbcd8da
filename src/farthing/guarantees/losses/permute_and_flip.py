"""Permute-and-flip: ε-DP, and a range of 2·ln(2e^{ε/2} − 1), which is less than 2ε.

For each pair of neighbours all losses lie in one interval of that length inside [−ε, ε]
(docs/theory/mechanisms.md, "Permute-and-flip"). So the pair is a post-processing of generalized
randomized response RR_{r,t} with r − ε ≤ t ≤ ε, and the largest of their profiles dominates:

    V(x) = (1 − e^{t−r})(1 − e^{x−t})/(1 − e^{−r}),    t = (x + r)/2 moved into [r − ε, ε].

Two candidates attain losses of ±r/2, or of ε and −ln(2 − e^−ε); that V is attained is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from farthing.guarantees.kinds import PermuteAndFlip
from farthing.guarantees.losses.base import Atoms, ContinuousLoss, HeavyEnds
from farthing.guarantees.losses.bounded_range import max_kl
from farthing.guarantees.losses.laplace import SEVERAL
from farthing.guarantees.losses.randomized_response import binomial_atoms
from farthing.numerics.ball import Ball, down, in_balls, middle

#: Losses that are attained are moved inwards by this much relative, which is more than rounding.
INWARDS = 1e-13


@dataclass(frozen=True, slots=True)
class PermuteAndFlipLoss(HeavyEnds, ContinuousLoss, attained=False):
    """V from above; from below what two candidates attain."""

    guarantee: PermuteAndFlip

    def range(self) -> Ball:
        """r = 2·ln(2e^{ε/2} − 1)."""
        return 2 * (2 * (arb(self.guarantee.epsilon) / 2).expm1()).log1p()

    def profile(self, x: Ball) -> Ball:
        epsilon, r = arb(self.guarantee.epsilon), self.range()
        if x >= epsilon:
            return arb(0)
        if x <= -epsilon:
            return -x.expm1()
        t = ((x + r) / 2).max(r - epsilon).min(epsilon)
        return (t - r).expm1() * (x - t).expm1() / -(-r).expm1()

    def atoms_below(self, step: float, reach: float) -> Atoms:
        return self._symmetric(1, step)

    def total(self, count: int, step: float, tiny: float, *, upward: bool) -> tuple[Atoms, int]:
        if upward:
            return self.atoms_above(step, self.reach(tiny)), count
        return (self._one_sided(step) if count == 1 else self._symmetric(count, step)), 1

    @in_balls
    def _symmetric(self, count: int, step: float) -> Atoms:
        """Two candidates ε/2 apart that change places: losses ±r/2."""
        half = down(self.range() / 2) * (1 - INWARDS)
        return binomial_atoms(count=count, epsilon=half, t=None, step=step)[1]

    @in_balls
    def _one_sided(self, step: float) -> Atoms:
        """Two equal candidates of which one falls behind by ε: losses ε and −ln(2 − e^−ε)."""
        top = self.guarantee.epsilon * (1 - INWARDS)
        fall = down((-(-arb(self.guarantee.epsilon)).expm1()).log1p()) * (1 - INWARDS)
        return binomial_atoms(count=1, epsilon=top + fall, t=top, step=step)[1]

    def concentrated(self) -> tuple[Ball, Ball]:
        """As bounded range."""
        return max_kl(self.range()), self.range() ** 2 / 4

    def log_moment(self, alpha: float) -> Ball:
        """That of bounded range, which is concave in t, with t moved into [r − ε, ε]."""
        epsilon, r, power = arb(self.guarantee.epsilon), self.range(), arb(alpha) - 1
        slope = -(-power * r).expm1() / r.expm1()
        best = (power * (1 + slope) / ((power + 1) * slope)).log()
        t = best.max(r - epsilon).min(epsilon)
        return power * t + (1 + slope - slope * t.exp()).log()

    def mean_and_variance(self) -> tuple[float, float]:
        square = middle(self.range()) ** 2
        return square / 8, square / 4

    def on_lattice(self, count: int) -> bool:
        return count > SEVERAL
