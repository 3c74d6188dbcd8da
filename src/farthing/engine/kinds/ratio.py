"""The ratio of two sums: money for each visit, clicks for each view; overall or for each label.

A unit adds its own sum of each column, clipped to its bounds: one coordinate each. The interval is
that of both noisy sums together (Theorem 15 of docs/theory/mechanisms.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import COUNT, Paid, Query, Result, coordinate_of
from farthing.engine.kinds.measures import (
    MeasureQuery,
    bounded_totals,
    groups_of,
    places_of,
    possible_sums,
    rounded_bound,
    sum_bounds,
)
from farthing.engine.kinds.steps import noisy_totals
from farthing.engine.show.captions import Names, Words
from farthing.engine.sql.bounding import Bounded
from farthing.engine.sql.conditions import Rows, fixed_point
from farthing.engine.sql.measuring import VALUE, WHOLE, Grouped, total_name
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Mechanism, Release
from farthing.mechanisms.combined import Groups
from farthing.mechanisms.counts.noisy_totals import NoisyTotals
from farthing.mechanisms.protocol import Interval
from farthing.optional import Later
from farthing.schema import NUMBERS, Bounds, Column, DeclaredValues, Schema

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa
else:
    ibis = Later("ibis")

#: What a unit has of the column that is divided by.
_PER = "per"


@dataclass(frozen=True, slots=True)
class RatioQuery(MeasureQuery):
    """The sum of one column over the sum of another, overall or for each label of a key.

    What a unit has of each (for a label) is added up and clipped: of `column` to `lower` and
    `upper`, of `per` to 0 and `per_upper`. Without these, they are what `per_key_limit` rows within
    the declared bounds of the columns can add up to.
    """

    per: fields.Per
    _: KW_ONLY
    lower: fields.LeastSum = None
    upper: fields.MostSum = None
    per_upper: Annotated[fields.Bound, "The largest sum of one unit in per, or auto."] = None
    kind: ClassVar[str] = "ratio"
    number: ClassVar[str] = "ratio"
    weighs_rows: ClassVar[bool] = False
    pays: ClassVar[Mapping[str, int]] = {COUNT: 2}

    def check_fields(self) -> None:
        MeasureQuery.check_fields(self)
        if isinstance(self.per_upper, int | float) and self.per_upper <= 0:
            raise InvalidInput(f"per_upper must be above 0, got {self.per_upper}")
        if self.lower == self.upper == 0:
            raise InvalidInput("lower and upper must not both be 0: the sum would always be 0")

    def columns(self) -> frozenset[str]:
        return MeasureQuery.columns(self) | {self.per}

    def check_columns(self, schema: Schema) -> None:
        MeasureQuery.check_columns(self, schema)
        if schema.kinds[self.per] not in NUMBERS:
            raise InvalidInput(f"per must be a number, but {self.per} is {schema.kinds[self.per]}")

    def bounds_in(self, column: Column) -> tuple[fields.NumberBound, fields.NumberBound]:
        return sum_bounds(self, column)

    def completed(self, schema: Schema) -> Self:
        if self.automatic:
            return MeasureQuery.completed(self, schema)
        per, rows = schema[self.per], self.per_key_limit
        most = None if self.per_upper is None else fields.known_bound("per_upper", self.per_upper)
        if most is None and rows is not None and per.upper is not None and per.upper > 0:
            most = rows * per.upper
        if most is None:
            raise InvalidInput(
                f"the ratio to {self.per} needs per_upper, the most that one unit adds to it; or "
                "an upper bound in the schema and a per_key_limit, the rows of a unit"
            )
        column = schema[self.column]
        (lower, upper), places = self.bounds_in(column), self.places
        if places is None:
            wide = max(abs(lower), abs(upper), most)
            fits = math.floor(math.log10(fields.LARGEST_BOUND / wide))
            own = max(places_of(column, lower, upper), places_of(per, 0, most))
            places = max(min(own, fits), 0)
            lower = rounded_bound(lower, places, ROUND_FLOOR)
            upper = rounded_bound(upper, places, ROUND_CEILING)
        most = rounded_bound(most, places, ROUND_CEILING)
        whole = self.changed(places=places, lower=lower, upper=upper, per_upper=most)
        return MeasureQuery.completed(whole, schema)

    @property
    def limits(self) -> tuple[int, int]:
        """What a unit can change each of the two sums by."""
        most = fields.known_bound("per_upper", self.per_upper)
        _, most = fields.scaled_bounds(0, most, self.decimals)
        return most, max(map(abs, self.bounds))

    def measure(self, paid: Paid) -> Mechanism[Any]:
        return NoisyTotals(coordinate=coordinate_of(paid), limits=self.limits)

    def values_in(self, rows: Rows) -> dict[str, Any]:
        per = fixed_point(rows.table[self.per], rows.kinds[self.per], self.decimals)
        return {VALUE: self.worth(rows), _PER: per}

    def measured(self, grouped: Grouped) -> Bounded:
        table, (lower, upper), (most, largest) = grouped.table, self.bounds, self.limits
        pairs = grouped.pairs(
            per=table[_PER].cast(WHOLE).sum(), total=table[VALUE].cast(WHOLE).sum()
        )

        def clipped(total: Any, low: int, high: int) -> Any:
            least, most = (ibis.literal(bound).cast(WHOLE) for bound in (low, high))
            return ibis.least(ibis.greatest(ibis.coalesce(total, 0), least), most)

        per, total = clipped(pairs.per, 0, most), clipped(pairs.total, lower, upper)
        return bounded_totals(self, grouped, pairs, [(per, most), (total, largest)])

    def collected(self, rows: pa.Table) -> Groups[tuple[int, ...]]:
        columns = (map(int, rows.column(total_name(i)).to_pylist()) for i in range(2))
        return groups_of(self, rows, zip(*columns, strict=True), (0, 0), 2)

    @property
    def possible(self) -> Interval:
        return possible_sums(self)

    def result(self, release: Release, _: Expectation) -> Result:
        return Result(self.labels_in(release), self.numbers_in(release), None)

    def numbers_in(self, release: Release) -> tuple[float, ...]:
        """A sum that is not above 0 counts as the least one that is."""
        return tuple(total / max(per, 1.0) for per, total in self._drawn(release))

    def errors(
        self, mechanism: Mechanism[Any], release: Release, confidence: float
    ) -> tuple[Interval, ...]:
        totals = noisy_totals(mechanism)
        return tuple(totals.ratio(drawn, confidence) for drawn in self._drawn(release))

    def _drawn(self, release: Release) -> list[tuple[float, float]]:
        """The two noisy sums of each label: of `per` and of the column."""
        return [
            (float(part.counts[0]), float(part.counts[1]))
            for part in self.parts_of(release)
            if part.counts is not None
        ]

    def clipped(self, declared: DeclaredValues) -> dict[str, Bounds]:
        """Values by declared bounds alone: its own are those of a unit's sums."""
        return Query.clipped(self, declared)

    def words(self, names: Names) -> Words:
        words, sums = MeasureQuery.words(self, names), (self.column, self.per)
        subject = " over ".join(f"the sum of {names.column(name)}" for name in sums)
        each = f" for each {names.labels(self.key).each}" if self.key else ""
        return replace(words, subject=f"T{subject[1:]}{each}")

    @property
    def counted(self) -> str | None:
        if None in (self.lower, self.upper, self.per_upper) or self.automatic:
            return None
        return f"sums clipped to the ranges {self.lower} to {self.upper} and 0 to {self.per_upper}"
