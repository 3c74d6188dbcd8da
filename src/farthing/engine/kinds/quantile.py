"""A value near a quantile of a numeric column."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from farthing.engine.kinds.base import SELECT, Paid, Result, Rows
from farthing.engine.kinds.counting import epsilon_of_selection
from farthing.engine.kinds.fields import (
    ColumnName,
    ContributionLimit,
    NumberBound,
    PerKeyLimit,
    Places,
    SelectItem,
    Where,
    require_limited,
    unscaled,
)
from farthing.engine.kinds.numbers import NumberQuery
from farthing.engine.sql.bounding import (
    Bounded,
    UnitLimits,
    between,
    bounded_histogram,
    labels_and_counts,
    weighed_ranks,
)
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Histogram, Mechanism, Quantile, Release
from farthing.mechanisms.quantile import exact_probability
from farthing.schema import INTEGER, Schema

if TYPE_CHECKING:
    import pyarrow as pa

#: How many different values a quantile may distinguish.
LARGEST_GRID = 10_000_000


@dataclass(frozen=True, slots=True)
class QuantileQuery(NumberQuery):
    """A value of a numeric column near a quantile, between `lower` and `upper`.

    Values are kept to `places` decimals and moved to the nearest bound. Of each unit
    `contribution_limit` different values count, each at most `per_key_limit` times.
    """

    column: ColumnName
    probability: Annotated[float, "Which quantile."] = 0.5
    _: KW_ONLY
    lower: Annotated[NumberBound, "The smallest value."]
    upper: Annotated[NumberBound, "The largest value."]
    places: Places = 0
    where: Where = None
    contribution_limit: ContributionLimit = 1
    per_key_limit: PerKeyLimit = 1
    select: SelectItem = None
    kind: ClassVar[str] = "quantile"
    single: ClassVar[bool] = True
    in_ranks: ClassVar[bool] = True

    def check_fields(self) -> None:
        NumberQuery.check_fields(self)
        require_limited(self.contribution_limit)

    def check_columns(self, schema: Schema) -> None:
        NumberQuery.check_columns(self, schema)
        lower, upper = self.bounds
        if upper - lower + 1 > LARGEST_GRID:
            raise InvalidInput(
                f"a quantile distinguishes at most {LARGEST_GRID} values, "
                f"got {upper - lower + 1}; use fewer decimal places or narrower bounds"
            )

    def roles(self) -> dict[str, int]:
        return {SELECT: 1}

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        lower, upper = self.bounds
        assert self.contribution_limit is not None
        return Quantile(
            probability=self.probability,
            epsilon=epsilon_of_selection(paid),
            lower=lower,
            upper=upper,
            contribution_limit=self.contribution_limit,
            per_key_limit=self.per_key_limit,
        )

    def bounded(self, rows: Rows) -> Bounded:
        """A histogram of the values themselves; what is missing has none."""
        owned = self._owned(rows)
        return bounded_histogram(
            owned,
            (owned.who, rows.kinds[rows.unit]),
            [(between(owned.value, *self.bounds), INTEGER)],
            secret=rows.secret,
            contribution_limit=self.contribution_limit,
            per_key_limit=self.per_key_limit,
        )

    def ranks_at(self, rows: Rows, value: int) -> Bounded:
        """a·#{x ≥ value} − (b − a)·#{x < value} for the quantile a/b: not negative exactly if
        #{x < value} ≤ (a/b)·n, that is, if the quantile is at least this value."""
        lower, upper = self.bounds
        if not lower <= value <= upper:
            raise InvalidInput(
                f"a threshold for this quantile must be between {self.lower} and {self.upper}"
            )
        a, b = exact_probability(self.probability).as_integer_ratio()
        owned = self._owned(rows)
        return weighed_ranks(
            owned,
            (owned.who, rows.kinds[rows.unit]),
            between(owned.value, lower, upper),
            threshold=value,
            weights=(a, b - a),
            limits=UnitLimits(rows.secret, self.contribution_limit, self.per_key_limit),
        )

    def _owned(self, rows: Rows) -> Any:
        owned = rows.table.select(who=rows.table[rows.unit], value=self.worth(rows))
        return owned.filter(owned.value.notnull())

    @property
    def decimal_places(self) -> int:
        return self.places

    def watched_number(self, number: int) -> int | float:
        """By how many values the quantile is beyond the threshold: (a/b)·n − #{x < value}."""
        return number / exact_probability(self.probability).denominator

    def data(self, rows: pa.Table) -> Histogram:
        labels, counts = labels_and_counts(rows)
        values = np.array([int(label[1:]) for label in labels], dtype=np.int64)
        return Histogram(values, counts) if values.size else Histogram.without_rows()

    def result(self, release: Release, expectation: Expectation) -> Result:
        assert expectation.selection is not None
        value = unscaled(release.labels[0], self.places)
        return Result((value,), None, expectation.selection.half_width)

    @property
    def title(self) -> str:
        return f"{self.probability:g} quantile of {self.column}"

    @property
    def counted(self) -> str | None:
        return self.contribution

    @property
    def contribution(self) -> str:
        values = self.contribution_limit
        which = "one value" if values == 1 else f"at most {values} different values"
        return which if self.per_key_limit == 1 else f"{which}, each {self.per_key_limit} times"
