"""The standard deviation of a numeric column, overall or for each label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from farthing.engine.kinds.estimates import standard_deviation_from
from farthing.engine.kinds.totals import Measured, TotalsQuery
from farthing.mechanisms import Expectation, Release


@dataclass(frozen=True, slots=True)
class StandardDeviationQuery(TotalsQuery):
    """The standard deviation of a numeric column, overall or for each label of a key.

    Values are moved to the nearest of `lower` and `upper`. It is that of a sample:
    the sum of squares is divided by one less than the number of rows. A unit with more than
    `per_key_limit` rows (for a label) counts as that many rows, each with its own averages.
    """

    kind: ClassVar[str] = "standard_deviation"
    number: ClassVar[str] = "standard_deviation"
    powers: ClassVar[int] = 2

    def estimate(self, release: Release, expectation: Expectation) -> Measured:
        return standard_deviation_from(self, release, expectation)
