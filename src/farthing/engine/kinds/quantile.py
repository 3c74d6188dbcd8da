"""A value near a quantile of a numeric column, overall or for each label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import SELECT, Paid, Rows, epsilon_of_selection
from farthing.engine.kinds.measures import MeasureQuery, units_of_labels
from farthing.engine.sql.bounding import LABEL, Bounded, Label, counts_of
from farthing.engine.sql.measuring import (
    UNITS,
    VALUE,
    WEIGHT,
    Grouped,
    weighed_ranks,
    weighted_values,
)
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Histogram, Mechanism, Quantile, Release
from farthing.mechanisms.combined import Groups
from farthing.mechanisms.selection.quantile import exact_probability

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class QuantileQuery(MeasureQuery):
    """A value of a numeric column near a quantile, overall or for each label of a key.

    Values are kept to `places` decimals and clipped to `lower` and `upper`. The rows
    of a unit with more than `per_key_limit` of them (for a label) weigh less: as much as that many.
    """

    probability: Annotated[float, "Which quantile."] = 0.5
    _: KW_ONLY
    select: fields.SelectItem = None
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

    def ranks_at(self, rows: Rows, value: int) -> Bounded:
        """a·#{x ≥ value} − (b − a)·#{x < value} for the quantile a/b: not negative exactly if
        #{x < value} ≤ (a/b)·n, that is, if the quantile is at least this value."""
        lower, upper = self.bounds
        if not lower <= value <= upper:
            raise InvalidInput(
                f"a threshold for this quantile must be between {self.lower} and {self.upper}"
            )
        a, b = exact_probability(self.probability).as_integer_ratio()
        limit = self.rows_of_a_unit
        expression = weighed_ranks(self.grouped(rows), value, (a, b - a), limit)
        return Bounded(expression, 1, max(a, b - a) * limit)

    @property
    def decimal_places(self) -> int:
        return self.decimals

    def watched_number(self, number: int) -> int | float:
        """By how many rows the quantile is beyond the threshold: (a/b)·n − #{x < value}."""
        return number / exact_probability(self.probability).denominator

    def collected(self, rows: pa.Table) -> Groups[Histogram]:
        """Values and weights of each label; where labels are found, rows of units weigh nothing."""
        values, weights = rows.column(VALUE).to_numpy(), counts_of(rows)
        if not self.key:
            return Groups({"": _weighted(values, weights)}, Histogram.without_rows())
        labels = rows.column(LABEL).combine_chunks().dictionary_encode()
        names, place = labels.dictionary.to_pylist(), labels.indices.to_numpy()
        counted = weights == 0
        of = {}
        order = np.argsort(np.where(counted, len(names), place), kind="stable")
        ends = np.searchsorted(place[order][: int((~counted).sum())], np.arange(len(names) + 1))
        for i, name in enumerate(names):
            part = order[ends[i] : ends[i + 1]]
            of[name] = _weighted(values[part], weights[part])
        if not self.finds_labels:
            return Groups(of, Histogram.without_rows())
        labelled = [names[i] for i in place[counted]]
        units = units_of_labels(labelled, counts_of(rows, UNITS)[counted])
        return Groups(of, Histogram.without_rows(), units)

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """In rows: the mechanism counts what they weigh."""
        expectation = mechanism.expect(confidence)
        assert expectation.selection is not None
        return replace(expectation, selection=expectation.selection.divided(WEIGHT))

    def labels_in(self, release: Release) -> tuple[Label, ...]:
        """Without a key the value itself."""
        return MeasureQuery.labels_in(self, release) if self.key else self._values(release)

    def numbers_in(self, release: Release) -> tuple[int | float, ...] | None:
        return self._values(release) if self.key else None

    def _values(self, release: Release) -> tuple[int | float, ...]:
        drawn = (part.labels[0] for part in self.parts_of(release))
        return tuple(fields.unscaled(value, self.decimals) for value in drawn)

    @property
    def measures(self) -> str:
        return "median" if self.probability == 0.5 else f"{self.probability:g} quantile"


def _weighted(values: npt.NDArray[Any], weights: npt.NDArray[np.int64]) -> Histogram:
    """Values and their weights; without values an empty histogram."""
    return Histogram(values, weights) if values.size else Histogram.without_rows()
