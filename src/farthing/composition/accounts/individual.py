"""A budget for each record by itself, for mechanisms that reveal more of some than of others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from farthing.composition.accounts.filters import losses_without_leak
from farthing.composition.accounts.gaussian_filter import GaussianFilter
from farthing.errors import InvalidInput, Unsupported, require_count, require_real
from farthing.guarantees.kinds import Guarantee, replaces_one
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import format_guarantee
from farthing.numerics.rounding import FloatArray, float_up, inflated

BoolArray = npt.NDArray[np.bool_]


class IndividualAccountant:
    """(ε, δ) for every record, whatever was bought for others [FZ21; KTH23].

    A record pays for what a step can reveal of it alone, such as the norm of its own gradient, and
    sits out the steps that it cannot pay for. All that is released is (ε, δ)-DP for adding or
    removing one record, if what a step is said to reveal of a record follows from this record,
    earlier answers and public data. Who takes part, and what is left, depends on the data: never
    release it. docs/theory/filter.md, "Records by themselves", has the proof.
    """

    def __init__(self, epsilon: float, delta: float, records: int) -> None:
        self.epsilon = require_real("epsilon", epsilon, at_least=0)
        self.delta = require_real("delta", delta, above=0, below=1)
        self._noise = GaussianFilter.of(self.epsilon, self.delta)
        records = require_count("records", records, at_least=1)
        self._balances = np.full(records, self._noise.grant)

    def spend_noise(self, norms: FloatArray, scale: float) -> BoolArray:
        """For a sum with Gaussian noise of this standard deviation, to which each record adds a
        vector of this ℓ2 norm: whose vectors may be added. The others are left out of the sum."""
        scale = require_real("scale", scale, above=0)
        sizes = np.asarray(norms, dtype=np.float64)
        if sizes.shape != self._balances.shape or not np.all(sizes >= 0):
            raise InvalidInput("norms must have a number of at least 0 for each record")
        with np.errstate(over="ignore"):
            return self._pay(inflated((sizes / scale) ** 2, 8) + np.where(sizes > 0, 1e-300, 0.0))

    def spend(self, guarantees: Sequence[Guarantee], which: npt.NDArray[np.int64]) -> BoolArray:
        """For a step that promises `guarantees[which[i]]` to record i: who may take part. −1 is for
        records that do not take part anyway."""
        places = np.asarray(which)
        whole = np.issubdtype(places.dtype, np.integer) and places.shape == self._balances.shape
        if not whole or not np.all((places >= -1) & (places < len(guarantees))):
            raise InvalidInput("which must have the place of a guarantee for each record")
        costs = np.full(places.shape, np.inf)
        for place, guarantee in enumerate(guarantees):
            here = places == place
            leasts, prices = self._prices(guarantee)
            if len(leasts) > 0:
                levels = np.searchsorted(leasts, self._balances[here], side="right") - 1
                costs[here] = np.where(levels >= 0, prices[levels], np.inf)
        return self._pay(costs)

    def _prices(self, guarantee: Guarantee) -> tuple[FloatArray, FloatArray]:
        leaks = [loss_of(guarantee, with_unit=way).whole().leak for way in (True, False)]
        if max(leaks) > 0 or replaces_one(guarantee):
            text = format_guarantee(guarantee)
            raise Unsupported(f"{text:.60} has a delta, or other neighbours; records cannot buy it")
        rates = self._noise.rates(losses_without_leak(guarantee))
        leasts = np.array([float_up(rate.least) for rate in rates])
        return leasts, np.array([float_up(rate.price) for rate in rates])

    def _pay(self, costs: FloatArray) -> BoolArray:
        """Balances are rounded down."""
        fits: BoolArray = costs <= self._balances
        left = np.nextafter(self._balances - np.where(fits, costs, 0.0), -np.inf)
        self._balances = np.where(fits & (costs > 0), np.maximum(left, 0.0), self._balances)
        return fits
