"""Gaussian noise: the loss is normal with variance 1/σ² and mean ±1/(2σ²)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from farthing.guarantees.kinds import Gaussian, Guarantee
from farthing.guarantees.losses.base import Atoms, ContinuousLoss, Loss
from farthing.numerics.ball import Ball
from farthing.numerics.rounding import deflated, float_down, inflated


class NoiseLoss(Loss):
    """Common to continuous and discrete Gaussian noise."""

    __slots__ = ()
    guarantee: Any  # of either kind: it has a noise multiplier

    @property
    def sigma(self) -> float:
        """The noise multiplier."""
        return float(self.guarantee.noise_multiplier)

    def mean_and_variance(self) -> tuple[float, float]:
        return 0.5 / self.sigma**2, 1 / self.sigma**2

    @property
    def in_range(self) -> bool:
        return 1e-2 < self.sigma < 1e60

    def worst_epsilon(self) -> float:
        return 0.5 / self.sigma / self.sigma  # a square would leave the floats


@dataclass(frozen=True, slots=True)
class GaussianLoss(NoiseLoss, ContinuousLoss, sold=True):
    """[CR22, Lemma 6.1]. n of σ are one of σ/√n."""

    guarantee: Gaussian

    def tails(self, x: Ball) -> tuple[Ball, Ball]:
        sigma = arb(self.guarantee.noise_multiplier)
        half = 1 / (2 * sigma)
        return _normal_above(x * sigma - half), _normal_above(x * sigma + half)

    def concentrated(self) -> tuple[Ball, Ball]:
        variance = 1 / self.gaussian_variance()
        return variance / 2, variance

    def gaussian_variance(self) -> Ball:
        return arb(self.guarantee.noise_multiplier) ** 2

    def total(self, count: int, step: float, tiny: float, *, upward: bool) -> tuple[Atoms, int]:
        each = self._each(count)
        one = GaussianLoss(Gaussian(deflated(each, 8) if upward else inflated(each, 8)))
        make = one.atoms_above if upward else one.atoms_below
        return make(step, one.reach(tiny)), 1

    def as_one(self, count: int) -> tuple[Loss, int]:
        return GaussianLoss(Gaussian(self._each(count))), 1

    def coarsest(self, count: int, step: float) -> float:
        return step * max(1, round(0.02 / self._each(count) / step))

    def cells(self, count: int, step: float, tiny: float) -> float:
        each = self._each(count)
        return 2 * (GaussianLoss(Gaussian(each)).reach(tiny) + 0.02 / each) / step

    def _each(self, count: int) -> float:
        return self.guarantee.noise_multiplier / math.sqrt(count)

    def covers(self, used: Guarantee) -> bool:
        least = self.guarantee.noise_multiplier
        return isinstance(used, Gaussian) and used.noise_multiplier >= least

    def carried(self, negligible: float) -> Loss:
        return GaussianLoss(Gaussian(min(self.guarantee.noise_multiplier, 1 / negligible)))

    def replaces(self, other: Loss, times: int) -> bool:
        if not isinstance(other, GaussianLoss):
            return False
        fine, coarse = self.guarantee.noise_multiplier, other.guarantee.noise_multiplier
        return Fraction(coarse) ** 2 * times >= Fraction(fine) ** 2

    def for_group(self, units: int) -> Guarantee:
        return Gaussian(float_down(Fraction(self.guarantee.noise_multiplier) / units))


def _normal_above(x: Ball) -> Ball:
    """P[N(0, 1) > x]."""
    return (x / arb(2).sqrt()).erfc() / 2
