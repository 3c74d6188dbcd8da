"""A filter whose currency is Gaussian noise: what is left is the variance b of a normal loss.

Let U_b be the profile of a normal loss with variance b. Whoever has b left may reveal no more than
U_b, whatever is chosen from answers. A mechanism may be sold for c if T U_{b−c} ≤ U_b everywhere,
in both directions of neighbours (`normal_prices`; docs/theory/filter.md has the proofs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from flint import arb

from farthing.composition.adaptive.normal_prices import SMALLEST, Rates, normal_profile, rates_of
from farthing.guarantees.losses.base import Loss
from farthing.numerics.ball import in_balls, up
from farthing.numerics.rounding import deflated
from farthing.numerics.search import turning_point

#: Of the δ of this filter, what all purchases together may add to the profiles.
ADDED = 1 / 1024


@dataclass(frozen=True, slots=True)
class GaussianFilter:
    """The largest variance that is (ε, δ)-DP, with `added` per unit of it set aside for grids."""

    grant: float
    added: float

    @staticmethod
    @lru_cache(maxsize=64)
    @in_balls
    def of(epsilon: float, delta: float) -> GaussianFilter:
        """The grant is rounded down."""
        target = deflated(delta * (1 - ADDED), 8)

        def fits(variance: float) -> bool:
            return up(normal_profile(variance, arb(epsilon))) <= target

        high = 1.0
        while fits(high):
            high *= 4
        low = high / 4
        while not fits(low):
            low /= 4
            if low < 1e-30:
                return GaussianFilter(0.0, 0.0)
        grant, _ = turning_point(fits, low, high, width=1e-9)
        return GaussianFilter(grant, deflated(delta * ADDED / grant, 8))

    @in_balls
    def rates(self, losses: tuple[Loss, ...]) -> Rates:
        """The prices of a mechanism with these losses in its directions; empty if not sold.

        Those of a filter that may add less hold too, so budgets that are alike share them.
        """
        if self.grant <= 0 or self.added < SMALLEST:
            return ()
        grant, added = (math.frexp(number)[1] for number in (self.grant, self.added))
        return rates_of(losses, math.ldexp(1.0, grant), math.ldexp(0.5, added))
