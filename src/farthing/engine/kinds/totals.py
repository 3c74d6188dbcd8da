"""Questions that are answered from noisy totals: means and variances.

Values x between lower and upper are counted in steps from lower, rounded to the nearest:
a = ⌊(x − lower)·finer/coarser + ½⌋, where one of the two is 1 and the other makes the number R of
steps from lower to upper as large as stays exact. d = 2a − R counts half steps from the middle. A
unit with w rows for a label (more than τ count as τ with its own averages) changes

    the number of rows         by w ≤ τ
    the sum of d               by at most R·w
    2·(sum of d²) − R²·rows    by at most R²·w

One coordinate each. Measuring from the middle halves what a unit can change (Theorem 13 of
docs/theory/mechanisms.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from farthing.engine.kinds.base import COUNT, Paid, Result
from farthing.engine.kinds.fields import (
    Categories,
    ColumnName,
    CountItem,
    LabelsOfUnit,
    LeakItem,
    MaybeBy,
    Places,
    QuestionEpsilon,
    RowsOfUnit,
    ValueBound,
    Where,
)
from farthing.engine.kinds.measures import MeasureQuery, units_of_labels
from farthing.engine.kinds.paid_parameters import coordinate_of
from farthing.engine.sql.bounding import LABEL, Bounded, counts_of
from farthing.engine.sql.measuring import (
    VALUE,
    WHOLE,
    Grouped,
    rounded_quotient,
    scaled_to,
    total_name,
    totals,
)
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Mechanism, Release
from farthing.mechanisms.accuracy import Interval
from farthing.mechanisms.combined import Groups
from farthing.mechanisms.counts.totals import NoisyTotals

if TYPE_CHECKING:
    import pyarrow as pa

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

    column: ColumnName
    _: KW_ONLY
    by: MaybeBy = None
    categories: Categories = None
    lower: ValueBound = None
    upper: ValueBound = None
    places: Places = None
    where: Where = None
    contribution_limit: LabelsOfUnit = None
    per_key_limit: RowsOfUnit = None
    count: CountItem = None
    leak: LeakItem = None
    epsilon: QuestionEpsilon = None

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
        most = _root(largest // self.rows_of_a_unit, self.powers)
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
        import ibis

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
        listed = list(zip(amounts, self.limits, strict=True))
        units = [(ibis.literal(1), 1)] if self.finds_labels else []
        limits = (*self.limits, 1) if self.finds_labels else self.limits
        return Bounded(
            totals(grouped, pairs, listed + units),
            self.labels_of_a_unit,
            limits[0],
            others=limits[1:],
        )

    @abstractmethod
    def estimate(self, release: Release, expectation: Expectation) -> Measured:
        """The number that the totals of one label stand for."""

    def result(self, release: Release, expectation: Expectation) -> Result:
        found = [self.estimate(part, expectation) for part in self.parts_of(release)]
        numbers, intervals = tuple(n for n, _ in found), tuple(ends for _, ends in found)
        return Result(self.labels_in(release), numbers, None, intervals)

    def _summed(self, above: Any, power: int) -> Any:
        """Sums that are at least 0: of steps from the lower bound, of squares from the middle."""
        if power == 1:
            return above.cast(WHOLE).sum()
        double = 2 * above - self.reach
        return (double * double).cast(WHOLE).sum()

    def collected(self, rows: pa.Table) -> Groups[tuple[int, ...]]:
        labels = rows.column(LABEL).to_pylist() if self.key else [""]
        columns = [map(int, rows.column(total_name(i)).to_pylist()) for i in range(self.powers + 1)]
        of = dict(zip(labels, zip(*columns, strict=True), strict=True))
        without = (0,) * (self.powers + 1)
        if not self.finds_labels:
            return Groups(of, without)
        units = counts_of(rows, total_name(self.powers + 1))
        return Groups(of, without, units_of_labels(labels, units))


def _root(number: int, power: int) -> int:
    """The largest whole number whose power is at most that."""
    return number if power == 1 else math.isqrt(number)
