"""Discrete Gaussian noise: every outcome is listed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from farthing.errors import Unsupported
from farthing.guarantees.kinds import DiscreteGaussian, Guarantee
from farthing.guarantees.losses.base import Atoms, Sandwich, merged
from farthing.guarantees.losses.gaussian import NoiseLoss
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.ball import Ball
from farthing.numerics.rounding import float_down

#: More outcomes of discrete noise than this are not enumerated.
MOST_OUTCOMES = 2_000_000
#: Noise with a wider spread than this has too many outcomes to be sold.
WIDEST_SOLD = 1e5


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLoss(NoiseLoss, sold=True, lumpy=True):
    """The noise is log-concave, so for a shift j the events {y < a} are optimal and
    Pr[Z < a] − e^x Pr[Z + j < a] increases with j: the largest shift, the sensitivity Δ, dominates
    all others. There the loss of the outcome z is (Δ − 2z)Δ/2s²."""

    guarantee: DiscreteGaussian

    def atoms_above(self, step: float, reach: float) -> Atoms:
        return self.sandwich(reach)[0]

    def atoms_below(self, step: float, reach: float) -> Atoms:
        return merged(self.sandwich(reach)[1], step)

    def before_sampling(self, reach: float) -> tuple[Sandwich, float]:
        last = math.ceil(self._farthest_outcome(reach)) - self.guarantee.sensitivity
        missing = math.exp(-0.5 * (last / self._spread) ** 2) * (1 + 1e-9) + 1e-300
        return self.sandwich(reach), missing

    def sandwich(self, reach: float) -> Sandwich:
        """Atoms (above, below) the exact loss, up to the loss `reach`.

        Masses are floats with a relative error far below 1e-11; the probability of a loss above
        `reach`, at most e^{−z²/2s²} by [CKS20, Prop. 25], counts as infinite loss above.
        """
        shift, spread = self.guarantee.sensitivity, self._spread
        far = math.ceil(self._farthest_outcome(reach))
        if far > MOST_OUTCOMES:
            raise Unsupported(
                f"discrete Gaussian noise of standard deviation {spread:g} has too many outcomes "
                "to compose exactly; use zcdp, or gauss if the noise is continuous"
            )
        z = np.arange(far, -far - 1, -1, dtype=np.float64)
        weights = np.exp(-0.5 * (z / spread) ** 2)
        masses = weights / math.fsum(weights.tolist())
        losses = (1 - 2 * z / shift) / (2 * self.guarantee.noise_multiplier**2)
        error = 1e-14 * float(np.abs(losses).max())
        beyond = math.exp(-0.5 * (far / spread) ** 2) * (1 + 1e-9) + 1e-300  # and all underflow
        upper = masses * (1 + 1e-11)
        upper[0] += beyond
        kept = upper > 0
        above = Atoms(losses[kept] + error, upper[kept], beyond)
        return above, Atoms(losses[kept] - error, masses[kept] * (1 - 1e-11))

    @property
    def _spread(self) -> float:
        return self.guarantee.noise_multiplier * self.guarantee.sensitivity

    def _farthest_outcome(self, reach: float) -> float:
        """A value of the noise beyond which losses exceed `reach` or have no noticeable mass."""
        sigma, shift = self.guarantee.noise_multiplier, self.guarantee.sensitivity
        return max(reach * sigma**2 * shift, 12 * sigma * shift) + shift + 1

    def number_of_atoms(self, step: float, reach: float) -> float:
        far = self._farthest_outcome(reach)
        return 2 * far + 1 if far <= MOST_OUTCOMES else math.inf

    def reach(self, tiny: float) -> float:
        sigma, steps = self.guarantee.noise_multiplier, self.guarantee.sensitivity
        return (0.5 + math.sqrt(-2 * math.log(tiny)) * sigma + 1 / steps) / sigma**2

    def concentrated(self) -> tuple[Ball, Ball]:
        """Exactly the mean of Gaussian noise, and subgaussian like that [CKS20, Thm 4]."""
        variance = 1 / arb(self.guarantee.noise_multiplier) ** 2
        return variance / 2, variance

    def covers(self, used: Guarantee) -> bool:
        return self.guarantee == used

    def why_not_sold(self) -> str | None:
        if Fraction(self.guarantee.noise_multiplier) * self.guarantee.sensitivity <= WIDEST_SOLD:
            return None
        return (
            f"{format_guarantee(self.guarantee)} has too many outcomes to compose exactly; its "
            f"standard deviation must be at most {WIDEST_SOLD:g}"
        )

    def for_group(self, units: int) -> Guarantee:
        sigma = float_down(Fraction(self.guarantee.noise_multiplier) / units)
        return DiscreteGaussian(sigma, units * self.guarantee.sensitivity)
