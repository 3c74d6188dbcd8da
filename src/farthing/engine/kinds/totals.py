"""Sums, means, variances and standard deviations: questions that noisy totals answer.

For means and variances, values x between lower and upper are counted in steps from lower, rounded
to the nearest: a = ⌊(x − lower)·finer/coarser + ½⌋, where one of the two is 1 and the other makes
the number R of steps from lower to upper as large as stays exact. d = 2a − R counts half steps from
the middle. A unit with w rows for a label (more than τ count as τ with its own averages) changes

    the number of rows         by w ≤ τ
    the sum of d               by at most R·w
    2·(sum of d²) − R²·rows    by at most R²·w

One coordinate each. Measuring from the middle halves what a unit can change (Theorem 13 of
docs/theory/mechanisms.md).

The intervals hold whatever the totals really are. The true totals lie, all together with the stated
probability, in a box around the noisy ones, which is made wider by what rounding to steps can have
moved them. The interval of a number is the range that it can have over the box: of a ratio at its
corners, of a difference by the ends of its two parts (Theorem 15). Where there is no row there is
no mean, and with fewer than two no variance; then nothing is claimed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import ANYWHERE, COUNT, Paid, Query, Result, Rows, coordinate_of
from farthing.engine.kinds.measures import (
    MeasureQuery,
    bounded_totals,
    groups_of,
    possible_sums,
    sum_bounds,
)
from farthing.engine.sql.bounding import COUNT as NUMBER
from farthing.engine.sql.bounding import Bounded
from farthing.engine.sql.measuring import (
    VALUE,
    WHOLE,
    Grouped,
    rounded_quotient,
    scaled_to,
    total_name,
)
from farthing.errors import InvalidInput
from farthing.mechanisms import ClippedSum, Expectation, Mechanism, Release, Repeated
from farthing.mechanisms.combined import Groups, PerLabel
from farthing.mechanisms.counts.known_counts import NoisyTotals
from farthing.mechanisms.protocol import Interval
from farthing.optional import Later
from farthing.schema import Bounds, Column, DeclaredValues

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa
else:
    ibis = Later("ibis")

#: The most that a unit may change the sum of the highest power by: engines divide and add it up
#: exactly, noise for ε of 1/256 and more can be drawn, and steps stay finer than what noise hides.
LARGEST_CHANGE = {1: 1 << 30, 2: 1 << 32}
#: There are at least about this many steps.
_COARSEST = 1 << 10


#: A number, and the interval around it.
Measured: TypeAlias = tuple[float, Interval]


@dataclass(frozen=True, slots=True)
class TotalsQuery(MeasureQuery):
    """A question whose number is computed from the number of rows and sums of powers."""

    #: The highest power that is summed.
    powers: ClassVar[int]

    @property
    def pays(self) -> Mapping[str, int]:
        """A coordinate for each total."""
        return {COUNT: self.powers + 1}

    @property
    def steps(self) -> tuple[int, int]:
        """(finer, coarser): a step is coarser/finer units of the last decimal place."""
        lower, upper = self.bounds
        if lower == upper:
            raise InvalidInput(f"lower and upper must differ, got {self.lower} twice")
        largest = LARGEST_CHANGE[self.powers]
        most = largest // self.rows_of_a_unit
        most = most if self.powers == 1 else math.isqrt(most)
        if most < _COARSEST:
            raise InvalidInput(
                f"per_key_limit of a {self.measures} must be at most "
                f"{largest // _COARSEST**self.powers}, got {self.per_key_limit}"
            )
        wide = upper - lower
        return max(most // wide, 1), -(-wide // most)

    @property
    def reach(self) -> int:
        """R: how many steps it is from lower to upper."""
        lower, upper = self.bounds
        finer, coarser = self.steps
        return (2 * (upper - lower) * finer + coarser) // (2 * coarser)

    @property
    def rounding(self) -> float:
        """How far a value may be from its step, in steps."""
        return 0.0 if self.steps[1] == 1 else 0.5

    def unstepped(self, steps: float) -> float:
        """So many steps in the units of the column."""
        finer, coarser = self.steps
        return steps * coarser / finer / float(10**self.decimals)

    @property
    def limits(self) -> tuple[int, ...]:
        """What a unit can change each total by."""
        return tuple(self.rows_of_a_unit * self.reach**power for power in range(self.powers + 1))

    def measure(self, paid: Paid) -> Mechanism[Any]:
        return NoisyTotals(coordinate=coordinate_of(paid), limits=self.limits)

    def measured(self, grouped: Grouped) -> Bounded:
        above = grouped.table[VALUE] - self.bounds[0]
        finer, coarser = self.steps
        if coarser > 1:
            above = rounded_quotient(above, coarser).cast("int64")
        elif finer > 1:
            above = above * finer
        sums = {f"power{power}": self._summed(above, power) for power in range(1, self.powers + 1)}
        pairs = grouped.pairs(rows=grouped.table.count(), **sums)
        most = self.rows_of_a_unit
        rows = ibis.least(pairs.rows, most).cast(WHOLE)
        amounts = [rows] + [
            2 * scaled_to(pairs[name], pairs.rows, most) - self.reach**power * rows
            for power, name in enumerate(sums, start=1)
        ]
        return bounded_totals(self, grouped, pairs, zip(amounts, self.limits, strict=True))

    @abstractmethod
    def estimate(self, release: Release, expectation: Expectation) -> Measured:
        """The number that the totals of one label stand for."""

    def result(self, release: Release, expectation: Expectation) -> Result:
        estimates = [self.estimate(part, expectation) for part in self.parts_of(release)]
        numbers, intervals = tuple(n for n, _ in estimates), tuple(ends for _, ends in estimates)
        return Result(self.labels_in(release), numbers, None, intervals)

    def _summed(self, above: Any, power: int) -> Any:
        """Sums that are at least 0: of steps from the lower bound, of squares from the middle."""
        if power == 1:
            return above.cast(WHOLE).sum()
        double = 2 * above - self.reach
        return (double * double).cast(WHOLE).sum()

    def collected(self, rows: pa.Table) -> Groups[tuple[int, ...]]:
        size = self.powers + 1
        columns = (map(int, rows.column(total_name(i)).to_pylist()) for i in range(size))
        return groups_of(self, rows, zip(*columns, strict=True), (0,) * size, size)


@dataclass(frozen=True, slots=True)
class MeanQuery(TotalsQuery):
    """The mean of a numeric column, overall or for each label of a key.

    Values are clipped to `lower` and `upper`. A unit with more than `per_key_limit` rows (for a
    label) counts as that many rows with its own average.
    """

    kind: ClassVar[str] = "mean"
    number: ClassVar[str] = "mean"
    powers: ClassVar[int] = 1

    def estimate(self, release: Release, expectation: Expectation) -> Measured:
        """The mean, between the bounds of the question."""
        rows, middle, *_ = _ranges(release, expectation)
        count, total, *_ = _numbers(release)
        return self._value(total / max(count, 1.0)), self._between(_ratio(middle, rows))

    def errors(
        self, mechanism: Mechanism[Any], release: Release, confidence: float
    ) -> tuple[Interval, ...]:
        """By the noise of both totals together, which is less than that of each by itself."""
        totals = mechanism.measure if isinstance(mechanism, PerLabel) else mechanism
        assert isinstance(totals, NoisyTotals)
        drawn = (_numbers(part) for part in self.parts_of(release))
        return tuple(self._between(totals.ratio(n, confidence, self.reach)) for n in drawn)

    @property
    def possible(self) -> Interval:
        lower, upper = self.lower, self.upper
        return ANYWHERE if lower is None or upper is None else (lower, upper)

    def _between(self, ratios: Interval) -> Interval:
        """The means of which these are the ratios, wider by what rounding can have moved them."""
        low, high = _wider(ratios, 2 * self.rounding + _scaling(self))
        return self._value(low), self._value(high)

    def _value(self, ratio: float) -> float:
        """From half steps around the middle to the column, within its bounds."""
        lower, upper = (bound / float(10**self.decimals) for bound in self.bounds)
        return min(max(lower + self.unstepped((self.reach + ratio) / 2), lower), upper)

    def width_times_rows(self, expectation: Expectation) -> float | None:
        """A mean m of n rows moves by (sum's error + |m|·rows' error)/n; |m| is at most R."""
        assert expectation.totals is not None
        rows, middle = expectation.totals
        return self.unstepped((middle + self.reach * rows) / 2)


@dataclass(frozen=True, slots=True)
class VarianceQuery(TotalsQuery):
    """The variance of a numeric column, overall or for each label of a key.

    Values are clipped to `lower` and `upper`. It is that of a sample: the sum of squares is divided
    by one less than the number of rows. A unit with more than `per_key_limit` rows (for a label)
    counts as that many rows, each with its own averages.
    """

    kind: ClassVar[str] = "variance"
    number: ClassVar[str] = "variance"
    powers: ClassVar[int] = 2

    def estimate(self, release: Release, expectation: Expectation) -> Measured:
        deviation, (low, high) = standard_deviation_from(self, release, expectation)
        return deviation**2, (low**2, high**2)

    def width_times_rows(self, expectation: Expectation) -> float | None:
        """Of (q + R²)/8 − m²/4, with q the mean of 2·d² − R² and m that of d."""
        assert expectation.totals is not None
        rows, middle, squares = expectation.totals
        reach = self.reach
        moved = (squares + reach**2 * rows) / 8 + reach * (middle + reach * rows) / 2
        return self.unstepped(self.unstepped(moved))


@dataclass(frozen=True, slots=True)
class StandardDeviationQuery(TotalsQuery):
    """The standard deviation of a numeric column, overall or for each label of a key.

    It is the root of the variance, which says what counts.
    """

    kind: ClassVar[str] = "standard_deviation"
    number: ClassVar[str] = "standard_deviation"
    powers: ClassVar[int] = 2

    def estimate(self, release: Release, expectation: Expectation) -> Measured:
        return standard_deviation_from(self, release, expectation)


def standard_deviation_from(
    query: TotalsQuery, release: Release, expectation: Expectation
) -> Measured:
    """The root of the variance. Rounding values to steps moves it by at most one step."""
    rows, middle, squares = _ranges(release, expectation)
    count, total, square = _numbers(release)
    reach, scaling = query.reach, _scaling(query)

    def spread(mean_square: float, mean: float, n: float) -> float:
        """In steps: d counts half steps, and its squares are kept as 2·d² − R²."""
        variance = ((mean_square + reach**2) / 2 - mean**2) / 4
        return math.sqrt(max(variance, 0.0) * max(n, 2.0) / (max(n, 2.0) - 1))

    low_mean, high_mean = _wider(_ratio(middle, rows), scaling)
    low_square, high_square = _wider(_ratio(squares, rows), scaling)
    least = 0.0 if low_mean <= 0 <= high_mean else min(abs(low_mean), abs(high_mean))
    low = spread(low_square, max(abs(low_mean), abs(high_mean)), rows[1])
    high = spread(high_square, least, rows[0])
    deviation = spread(square / max(count, 1.0), total / max(count, 1.0), count)
    widest = reach / math.sqrt(2)  # two rows at the two ends
    moved = 2 * query.rounding
    ends = max(min(low, widest) - moved, 0.0), min(high, widest) + moved
    return query.unstepped(min(deviation, widest)), (
        query.unstepped(ends[0]),
        query.unstepped(ends[1]),
    )


def _scaling(query: TotalsQuery) -> float:
    """How far rounding moves a mean of d, or of 2·d². A unit with more than τ rows counts as τ
    rows with rounded averages, which moves a sum by at most 1."""
    return 1 / query.rows_of_a_unit


def _numbers(release: Release) -> tuple[float, ...]:
    assert release.counts is not None
    return tuple(map(float, release.counts))


def _ranges(release: Release, expectation: Expectation) -> tuple[Interval, ...]:
    """What each total may really be; there is at least one row."""
    assert expectation.totals is not None
    numbers = zip(_numbers(release), expectation.totals, strict=True)
    rows, *sums = ((number - width, number + width) for number, width in numbers)
    return (max(rows[0], 1.0), max(rows[1], 1.0)), *sums


def _ratio(total: Interval, rows: Interval) -> Interval:
    """The smallest and largest of total/rows."""
    corners = [t / n for t in total for n in rows]
    return min(corners), max(corners)


def _wider(interval: Interval, by: float) -> Interval:
    return interval[0] - by, interval[1] + by


@dataclass(frozen=True, slots=True)
class SumQuery(MeasureQuery):
    """The sum of a numeric column, to `places` decimals, overall or for each label of a key.

    The values of a unit (for a label) are added up and the sum is clipped to `lower` and
    `upper`; the answer is about the sum of these. Without them, they are what
    `per_key_limit` rows within the declared bounds of the column can add up to.
    """

    _: KW_ONLY
    lower: Annotated[fields.NumberBound | None, "The smallest sum of one unit."] = None
    upper: Annotated[fields.NumberBound | None, "The largest sum of one unit."] = None
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
        known = self.lower is not None and self.upper is not None
        return f"a sum clipped to the range {self.lower} to {self.upper}" if known else None
