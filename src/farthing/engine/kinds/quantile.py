"""A value near a quantile of a numeric column."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from farthing.engine.kinds.base import SELECT, Paid, Result, Rows
from farthing.engine.kinds.counting import epsilon_of_selection
from farthing.engine.kinds.fields import (
    ColumnName,
    NumberBound,
    Places,
    SelectItem,
    Where,
    require_number,
    unscaled,
)
from farthing.engine.kinds.numbers import NumberQuery
from farthing.engine.sql.bounding import Bounded, between, bounded_histogram, labels_and_counts
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Histogram, Mechanism, Quantile, Release
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
    contribution_limit: Annotated[int | None, "Different values of a unit that count."] = None
    per_key_limit: Annotated[int | None, "How often each of them counts."] = None
    select: SelectItem = None
    kind: ClassVar[str] = "quantile"
    single: ClassVar[bool] = True
    in_ranks: ClassVar[bool] = True

    def check_fields(self) -> None:
        NumberQuery.check_fields(self)
        require_number(self.contribution_limit, self.kind)

    @property
    def needed_limits(self) -> dict[str, str]:
        return {
            "contribution_limit": f"how many different values of {self.column} count of a unit",
            "per_key_limit": "how often each of them counts",
        }

    @property
    def limits(self) -> tuple[int, int]:
        """How many different values of a unit count, and how often each of them."""
        assert self.contribution_limit is not None
        assert self.per_key_limit is not None
        return self.contribution_limit, self.per_key_limit

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
        values, times = self.limits
        return Quantile(
            probability=self.probability,
            epsilon=epsilon_of_selection(paid),
            lower=lower,
            upper=upper,
            contribution_limit=values,
            per_key_limit=times,
        )

    def bounded(self, rows: Rows) -> Bounded:
        """A histogram of the values themselves; what is missing has none."""
        values, times = self.limits
        owned = rows.table.select(who=rows.table[rows.unit], value=self.worth(rows))
        owned = owned.filter(owned.value.notnull())
        return bounded_histogram(
            owned,
            (owned.who, rows.kinds[rows.unit]),
            [(between(owned.value, *self.bounds), INTEGER)],
            secret=rows.secret,
            contribution_limit=values,
            per_key_limit=times,
        )

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
        values, times = self.limits
        which = "one value" if values == 1 else f"at most {values} different values"
        return which if times == 1 else f"{which}, each {times} times"
