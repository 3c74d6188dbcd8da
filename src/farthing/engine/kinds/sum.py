"""The sum of a numeric column, overall or for each label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import COUNT, Paid, Query, Result, Rows, coordinate_of
from farthing.engine.kinds.measures import MeasureQuery, units_of_labels
from farthing.engine.sql.bounding import COUNT as NUMBER
from farthing.engine.sql.bounding import LABEL, Bounded, counts_of
from farthing.engine.sql.measuring import VALUE, WHOLE, Grouped, total_name, totals
from farthing.errors import InvalidInput
from farthing.mechanisms import ClippedSum, Expectation, Mechanism, Release, Repeated
from farthing.mechanisms.combined import Groups
from farthing.schema import Bounds, Column, DeclaredValues

if TYPE_CHECKING:
    import pyarrow as pa


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
        lower, upper, rows = self.lower, self.upper, self.per_key_limit
        if lower is None and column.lower is not None and (rows or column.lower >= 0):
            lower = (rows or 0) * min(column.lower, 0)
        if upper is None and column.upper is not None and (rows or column.upper <= 0):
            upper = (rows or 0) * max(column.upper, 0)
        if lower is None or upper is None:
            raise InvalidInput(
                f"the sum of {self.column} needs lower and upper, the least and the most that one "
                "unit adds; or bounds in the schema and a per_key_limit, the rows of a unit"
            )
        return lower, upper

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
        import ibis

        lower, upper = self.bounds
        pairs = grouped.pairs(total=grouped.table[VALUE].cast(WHOLE).sum())
        low, high = (ibis.literal(bound).cast(WHOLE) for bound in (lower, upper))
        moved = ibis.least(ibis.greatest(pairs.total, low), high)
        most = max(abs(lower), abs(upper))
        units = [(ibis.literal(1), 1)] if self.finds_labels else []
        expression = totals(grouped, pairs, [(moved, most), *units])
        return Bounded(expression, self.labels_of_a_unit, most, tuple(n for _, n in units))

    def collected(self, rows: pa.Table) -> Groups[int]:
        labels = rows.column(LABEL).to_pylist() if self.key else [""]
        of = dict(zip(labels, map(int, rows.column(NUMBER).to_pylist()), strict=True))
        if not self.finds_labels:
            return Groups(of, 0)
        return Groups(of, 0, units_of_labels(labels, counts_of(rows, total_name(1))))

    @property
    def monotone(self) -> bool:
        return self.bounds[0] >= 0

    @property
    def decimal_places(self) -> int:
        return self.decimals

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """In the units of the column."""
        expectation = mechanism.expect(confidence)
        assert expectation.counts is not None
        return replace(expectation, counts=expectation.counts.divided(10**self.decimals))

    def result(self, release: Release, expectation: Expectation) -> Result:
        assert expectation.counts is not None
        drawn = (part.counts[0] for part in self.parts_of(release) if part.counts is not None)
        sums = tuple(fields.unscaled(total, self.decimals) for total in drawn)
        return Result(self.labels_in(release), sums, expectation.counts.half_width)

    def clipped(self, declared: DeclaredValues) -> dict[str, Bounds]:
        """Values by declared bounds alone: its own are those of a unit's sum."""
        return Query.clipped(self, declared)

    @property
    def counted(self) -> str | None:
        known = self.lower is not None and self.upper is not None
        return f"a sum clipped to the range {self.lower} to {self.upper}" if known else None
