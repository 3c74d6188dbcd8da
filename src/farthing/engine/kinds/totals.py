"""Sums, means, variances and standard deviations: questions that noisy totals answer.

The intervals hold whatever the totals really are, and by the noise of all totals together. They are
wider by what rounding to steps can have moved the totals (Theorem 15 of docs/theory/mechanisms.md).
Where there is no row there is no mean, and with fewer than two no variance; then nothing is
claimed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import ANYWHERE, COUNT, Paid, Query, coordinate_of
from farthing.engine.kinds.deviations import Drawn
from farthing.engine.kinds.measures import (
    MeasureQuery,
    bounded_totals,
    groups_of,
    possible_sums,
    sum_bounds,
)
from farthing.engine.kinds.steps import Term, TotalsQuery, noisy_totals
from farthing.engine.sql.bounding import COUNT as NUMBER
from farthing.engine.sql.bounding import Bounded
from farthing.engine.sql.conditions import Rows
from farthing.engine.sql.measuring import VALUE, WHOLE, Grouped
from farthing.errors import InvalidInput
from farthing.mechanisms import ClippedSum, Expectation, Mechanism, Release, Repeated
from farthing.mechanisms.combined import Groups
from farthing.mechanisms.protocol import Interval
from farthing.optional import Later
from farthing.schema import Bounds, Column, DeclaredValues

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa
else:
    ibis = Later("ibis")


@dataclass(frozen=True, slots=True)
class MeanQuery(TotalsQuery):
    """The mean of a numeric column, overall or for each label of a key.

    Values are clipped to `lower` and `upper`. A unit with more than `per_key_limit` rows (for a
    label) counts as that many rows with its own average.
    """

    kind: ClassVar[str] = "mean"
    number: ClassVar[str] = "mean"
    terms: ClassVar[tuple[Term, ...]] = ((), (0,))

    def estimates(self, numbers: Sequence[float], _: Sequence[float]) -> tuple[float, ...]:
        """The mean, between the bounds of the question."""
        rows, total = numbers
        return (self._value(total / max(rows, 1.0)),)

    def intervals(self, drawn: Drawn) -> tuple[Interval, ...]:
        low, high = drawn.mean(0, drawn.confidence)
        return ((self._value(low), self._value(high)),)

    @property
    def possible(self) -> Interval:
        lower, upper = self.lower, self.upper
        if isinstance(lower, int | float) and isinstance(upper, int | float):
            return lower, upper
        return ANYWHERE

    def _value(self, mean: float) -> float:
        """From half steps around the middle to the column, within its bounds."""
        (scale,) = self.scales
        lower, upper = (bound / float(10**self.decimals) for bound in self.bounds)
        return min(max(scale.middle + mean * scale.half, lower), upper)

    def width_times_rows(self, mechanism: Mechanism[Any], confidence: float) -> float | None:
        """That of the sum less the mean times the rows; the mean is at most R in half steps."""
        (scale,) = self.scales
        return scale.half * noisy_totals(mechanism).half_width((scale.reach, 1.0), confidence)


@dataclass(frozen=True, slots=True)
class VarianceQuery(TotalsQuery):
    """The variance of a numeric column, overall or for each label of a key.

    Values are clipped to `lower` and `upper`. It is that of a sample: the sum of squares is divided
    by one less than the number of rows. A unit with more than `per_key_limit` rows (for a label)
    counts as that many rows, each with its own averages.
    """

    kind: ClassVar[str] = "variance"
    number: ClassVar[str] = "variance"
    terms: ClassVar[tuple[Term, ...]] = ((), (0,), (0, 0))

    def estimates(self, numbers: Sequence[float], _: Sequence[float]) -> tuple[float, ...]:
        rows, total, squares = numbers
        ((reach, half),) = ((scale.reach, scale.half) for scale in self.scales)
        count = max(rows, 2.0)
        within = (squares / max(rows, 1.0) + reach**2) / 2 - (total / max(rows, 1.0)) ** 2
        return (half**2 * min(max(within, 0.0) * count / (count - 1), self._largest),)

    def intervals(self, drawn: Drawn) -> tuple[Interval, ...]:
        (scale,) = self.scales
        low, high = drawn.covariance(0, 0, self._largest)
        return ((scale.half**2 * low, scale.half**2 * high),)

    @property
    def _largest(self) -> float:
        """In half steps: that of two rows at the two ends."""
        (scale,) = self.scales
        return 2.0 * (scale.reach + scale.rounding) ** 2

    def width_times_rows(self, mechanism: Mechanism[Any], confidence: float) -> float | None:
        """The weights of the totals are (R²/2 + m² − v, −2m/R, ½) for the mean m and the variance
        v, which are largest where all values are at a bound."""
        (scale,) = self.scales
        weights = (1.5 * scale.reach**2, 2.0, 0.5)
        return scale.half**2 * noisy_totals(mechanism).half_width(weights, confidence)


@dataclass(frozen=True, slots=True)
class StandardDeviationQuery(VarianceQuery):
    """The standard deviation of a numeric column, overall or for each label of a key.

    It is the root of the variance, which says what counts.
    """

    kind: ClassVar[str] = "standard_deviation"
    number: ClassVar[str] = "standard_deviation"

    def estimates(self, numbers: Sequence[float], _: Sequence[float]) -> tuple[float, ...]:
        return tuple(map(math.sqrt, VarianceQuery.estimates(self, numbers, ())))

    def intervals(self, drawn: Drawn) -> tuple[Interval, ...]:
        ((low, high),) = VarianceQuery.intervals(self, drawn)
        return ((math.sqrt(low), math.sqrt(high)),)

    def width_times_rows(self, _mechanism: Mechanism[Any], _confidence: float) -> float | None:
        """It depends on the deviation itself."""
        return None


@dataclass(frozen=True, slots=True)
class SumQuery(MeasureQuery):
    """The sum of a numeric column, to `places` decimals, overall or for each label of a key.

    The values of a unit (for a label) are added up and the sum is clipped to `lower` and
    `upper`; the answer is about the sum of these. Without them, they are what
    `per_key_limit` rows within the declared bounds of the column can add up to.
    """

    _: KW_ONLY
    lower: fields.LeastSum = None
    upper: fields.MostSum = None
    repeats: fields.Repeats = 1
    kind: ClassVar[str] = "sum"
    number: ClassVar[str] = "sum"
    weighs_rows: ClassVar[bool] = False

    def check_fields(self) -> None:
        MeasureQuery.check_fields(self)
        if self.lower == self.upper == 0:
            raise InvalidInput("lower and upper must not both be 0: the sum would always be 0")

    def bounds_in(self, column: Column) -> tuple[fields.NumberBound, fields.NumberBound]:
        return sum_bounds(self, column)

    @property
    def pays(self) -> Mapping[str, int]:
        """Drawn as often as it repeats."""
        return {COUNT: self.repeats}

    @property
    def most_repeats(self) -> int:
        return fields.LARGEST_REPEATS

    def measure(self, paid: Paid) -> Mechanism[Any]:
        lower, upper = self.bounds
        once = ClippedSum(coordinate=coordinate_of(paid), lower=lower, upper=upper)
        return Repeated(once, self.repeats)

    def value_in(self, rows: Rows) -> Any:
        """As it is: the bounds are those of a unit's sum."""
        return self.worth(rows)

    def measured(self, grouped: Grouped) -> Bounded:
        lower, upper = self.bounds
        pairs = grouped.pairs(total=grouped.table[VALUE].cast(WHOLE).sum())
        low, high = (ibis.literal(bound).cast(WHOLE) for bound in (lower, upper))
        moved = ibis.least(ibis.greatest(pairs.total, low), high)
        most = max(abs(lower), abs(upper))
        return bounded_totals(self, grouped, pairs, [(moved, most)])

    def collected(self, rows: pa.Table) -> Groups[int]:
        return groups_of(self, rows, map(int, rows.column(NUMBER).to_pylist()), 0, 1)

    @property
    def monotone(self) -> bool:
        return self.bounds[0] >= 0

    @property
    def possible(self) -> Interval:
        return possible_sums(self)

    @property
    def decimal_places(self) -> int:
        return self.decimals

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """In the units of the column."""
        expectation = mechanism.expect(confidence)
        assert expectation.counts is not None
        return replace(expectation, counts=expectation.counts.divided(10**self.decimals))

    def numbers_in(self, release: Release) -> tuple[int | float, ...]:
        drawn = (part.counts[0] for part in self.parts_of(release) if part.counts is not None)
        return tuple(fields.unscaled(total, self.decimals) for total in drawn)

    def clipped(self, declared: DeclaredValues) -> dict[str, Bounds]:
        """Values by declared bounds alone: its own are those of a unit's sum."""
        return Query.clipped(self, declared)

    @property
    def counted(self) -> str | None:
        known = self.lower is not None and self.upper is not None and not self.automatic
        return f"a sum clipped to the range {self.lower} to {self.upper}" if known else None
