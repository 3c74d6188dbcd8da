"""The variance of a numeric column, overall or for each label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from farthing.engine.kinds.estimates import variance_from
from farthing.engine.kinds.totals import Measured, TotalsQuery
from farthing.mechanisms import Expectation, Release


@dataclass(frozen=True, slots=True)
class VarianceQuery(TotalsQuery):
    """The variance of a numeric column, overall or for each label of a key.

    Values are moved to the nearest of `lower` and `upper`. It is that of a sample:
    the sum of squares is divided by one less than the number of rows. A unit with more than
    `per_key_limit` rows (for a label) counts as that many rows, each with its own averages.
    """

    kind: ClassVar[str] = "variance"
    number: ClassVar[str] = "variance"
    powers: ClassVar[int] = 2

    def estimate(self, release: Release, expectation: Expectation) -> Measured:
        return variance_from(self, release, expectation)

    def width_times_rows(self, expectation: Expectation) -> float | None:
        """Of (q + R²)/8 − m²/4, with q the mean of 2·d² − R² and m that of d."""
        assert expectation.totals is not None
        rows, middle, squares = expectation.totals
        reach = self.reach
        moved = (squares + reach**2 * rows) / 8 + reach * (middle + reach * rows) / 2
        return self.unstepped(self.unstepped(moved))
