"""The mean of a numeric column, overall or for each label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from farthing.engine.kinds.estimates import mean_from
from farthing.engine.kinds.totals import Measured, TotalsQuery
from farthing.mechanisms import Expectation, Release


@dataclass(frozen=True, slots=True)
class MeanQuery(TotalsQuery):
    """The mean of a numeric column, overall or for each label of a key.

    Values are moved to the nearest of `lower` and `upper`. A unit with more than `per_key_limit`
    rows (for a label) counts as that many rows with its own average.
    """

    kind: ClassVar[str] = "mean"
    number: ClassVar[str] = "mean"
    powers: ClassVar[int] = 1

    def estimate(self, release: Release, expectation: Expectation) -> Measured:
        return mean_from(self, release, expectation)

    def width_times_rows(self, expectation: Expectation) -> float | None:
        """A mean m of n rows moves by (sum's error + |m|·rows' error)/n; |m| is at most R."""
        assert expectation.totals is not None
        rows, middle = expectation.totals
        return self.unstepped((middle + self.reach * rows) / 2)
