"""A value near a quantile of a numeric column, overall or for each label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from farthing.engine.kinds.base import SELECT, Paid, Result
from farthing.engine.kinds.counting import epsilon_of_selection
from farthing.engine.kinds.fields import (
    Bound,
    Categories,
    ColumnName,
    CountItem,
    LabelsOfUnit,
    LeakItem,
    MaybeBy,
    Places,
    RowsOfUnit,
    SelectItem,
    Where,
    unscaled,
)
from farthing.engine.kinds.measures import MeasureQuery
from farthing.engine.sql.bounding import COUNT as NUMBER
from farthing.engine.sql.bounding import LABEL, Bounded
from farthing.engine.sql.measuring import VALUE, WEIGHT, Grouped, weighted_values
from farthing.mechanisms import Expectation, Histogram, Mechanism, Quantile, Release
from farthing.mechanisms.per_label import Groups
from farthing.wording import many

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class QuantileQuery(MeasureQuery):
    """A value of a numeric column near a quantile, overall or for each label of a key.

    Values are kept to `places` decimals and moved to the nearest of `lower` and `upper`. The rows
    of a unit with more than `per_key_limit` of them (for a label) weigh less: as much as that many.
    """

    column: ColumnName
    probability: Annotated[float, "Which quantile."] = 0.5
    _: KW_ONLY
    by: MaybeBy = None
    categories: Categories = None
    lower: Bound = None
    upper: Bound = None
    places: Places = None
    where: Where = None
    contribution_limit: LabelsOfUnit = None
    per_key_limit: RowsOfUnit = None
    select: SelectItem = None
    count: CountItem = None
    leak: LeakItem = None
    kind: ClassVar[str] = "quantile"
    number: ClassVar[str] = "value"
    in_ranks: ClassVar[bool] = True
    pays: ClassVar[Mapping[str, int]] = {SELECT: 1}

    def measure(self, paid: Paid) -> Mechanism[Any]:
        lower, upper = self.bounds
        return Quantile(
            probability=self.probability,
            epsilon=epsilon_of_selection(paid),
            lower=lower,
            upper=upper,
            contribution_limit=self.rows_of_a_unit,
            per_key_limit=WEIGHT,
        )

    def measured(self, grouped: Grouped) -> Bounded:
        most = WEIGHT * self.rows_of_a_unit
        expression = weighted_values(grouped, self.rows_of_a_unit, units=self.finds_labels)
        if not self.key:
            return Bounded(expression, None, most, total=most)
        return Bounded(expression, self.labels_of_a_unit, most, (1,) if self.finds_labels else ())

    def collected(self, rows: pa.Table) -> Groups[Histogram]:
        """Values and weights of each label; where labels are found, units stand beside no value."""
        labels = rows.column(LABEL).to_pylist() if self.key else [""] * rows.num_rows
        values, weights = rows.column(VALUE).to_pylist(), rows.column(NUMBER).to_pylist()
        found: dict[str, tuple[list[int], list[int]]] = {}
        units: dict[str, int] = {}
        for label, value, weight in zip(labels, values, weights, strict=True):
            if value is None:
                units[label] = int(weight)
                continue
            of = found.setdefault(label, ([], []))
            of[0].append(value)
            of[1].append(int(weight))
        groups = {
            label: Histogram(np.array(values, dtype=np.int64), np.array(weights, dtype=np.int64))
            for label, (values, weights) in found.items()
        }
        counts = Histogram(list(units), list(units.values())) if units else Histogram.without_rows()
        return Groups(groups, Histogram.without_rows(), counts if self.finds_labels else None)

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """In rows: the mechanism counts what they weigh."""
        expectation = mechanism.expect(confidence)
        ranks = expectation.selection
        assert ranks is not None
        width, error = (x / WEIGHT for x in (ranks.half_width, ranks.expected_error))
        return replace(
            expectation, selection=replace(ranks, half_width=width, expected_error=error)
        )

    def result(self, release: Release, expectation: Expectation) -> Result:
        """How far a value may be off is known in ranks alone."""
        assert expectation.selection is not None
        ranks = expectation.selection.half_width
        found = (part.labels[0] for part in self.parts_of(release))
        values = tuple(unscaled(value, self.decimals) for value in found)
        if not self.key:
            return Result(values, None, ranks)
        at = tuple((value, value) for value in values)
        return Result(self.labels_in(release), values, ranks, at)

    @property
    def measures(self) -> str:
        return "median" if self.probability == 0.5 else f"{self.probability:g} quantile"

    @property
    def counted(self) -> str | None:
        return self.contribution

    @property
    def contribution(self) -> str:
        rows = f"at most {many(self.rows_of_a_unit, 'row')}"
        if not self.key:
            return rows
        return f"at most {many(self.labels_of_a_unit, 'label')}, with {rows} each"
