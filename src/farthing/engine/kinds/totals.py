"""Questions that are answered from noisy totals: means and variances.

Values x between lower and upper are counted in steps (of the last decimal place, or as many of it
as it takes to stay exact) from the middle: d = 2·⌊(x − lower)/step⌋ − R, of size at most R, the
number of steps from lower to upper. A unit with w rows for a label (more than τ count as τ) changes

    the number of rows         by w ≤ τ
    the sum of d               by at most R·w
    2·(sum of d²) − R²·rows    by at most R²·w

One coordinate each. Measuring from the middle halves what a unit can change.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from farthing.engine.kinds.base import COUNT, Paid, Result
from farthing.engine.kinds.counting import coordinate_of
from farthing.engine.kinds.measures import MeasureQuery
from farthing.engine.sql.bounding import LABEL, Bounded
from farthing.engine.sql.measuring import VALUE, WHOLE, Grouped, scaled_to, total_name, totals
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Histogram, Mechanism, Release
from farthing.mechanisms.accuracy import Interval
from farthing.mechanisms.noisy_totals import NoisyTotals
from farthing.mechanisms.per_label import Groups
from farthing.wording import many

if TYPE_CHECKING:
    import pyarrow as pa

#: What a unit can change a total by stays below this, so that engines add it up exactly and noise
#: for small ε stays within what can be drawn. It leaves steps finer than any noise.
LARGEST_CHANGE = 1 << 32
#: There are at least this many steps.
_COARSEST = 1 << 10


#: A number, and the interval around it.
Estimate: TypeAlias = tuple[float, Interval]


class TotalsQuery(MeasureQuery):
    """A question whose number is computed from the number of rows and sums of powers."""

    __slots__ = ()

    #: The highest power that is summed.
    powers: ClassVar[int]

    @property
    def pays(self) -> Mapping[str, int]:  # type: ignore[override] # one for each total
        """A coordinate for each total."""
        return {COUNT: self.powers + 1}

    @property
    def step(self) -> int:
        """How many units of the last decimal place make a step: the fewest that stay exact."""
        lower, upper = self.bounds
        if lower == upper:
            raise InvalidInput(f"lower and upper must differ, got {self.lower} twice")
        most = int((LARGEST_CHANGE / self.rows_of_a_unit) ** (1 / max(self.powers, 1))) - 1
        if most < _COARSEST:
            raise InvalidInput(
                f"per_key_limit is too large to measure a {self.measures}, got {self.per_key_limit}"
            )
        return -((lower - upper) // most)

    @property
    def reach(self) -> int:
        """R: how many steps it is from lower to upper."""
        lower, upper = self.bounds
        return (upper - lower) // self.step

    @property
    def limits(self) -> tuple[int, ...]:
        """What a unit can change each total by."""
        return tuple(self.rows_of_a_unit * self.reach**power for power in range(self.powers + 1))

    def measure(self, paid: Paid) -> Mechanism[Any]:
        return NoisyTotals(coordinate=coordinate_of(paid), limits=self.limits)

    def measured(self, grouped: Grouped) -> Bounded:
        import ibis

        above = grouped.table[VALUE] - self.bounds[0]
        if self.step > 1:
            above = (above.cast("float64") / float(self.step)).floor().cast("int64")
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
    def estimate(self, release: Release, expectation: Expectation) -> Estimate:
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
        units = rows.column(total_name(self.powers + 1)).cast("int64").to_numpy()
        counts = Histogram(labels, units) if labels else Histogram.without_rows()
        return Groups(of, without, counts)

    @property
    def counted(self) -> str | None:
        return self.contribution

    @property
    def contribution(self) -> str:
        rows = f"at most {many(self.rows_of_a_unit, 'row')}"
        if not self.key:
            return rows
        return f"at most {many(self.labels_of_a_unit, 'label')}, with {rows} each"
