"""Values near quantiles of a numeric column, and near its extremes, overall or for each label."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import SELECT, Paid, epsilon_of_selection
from farthing.engine.kinds.measures import MeasureQuery, units_of_labels
from farthing.engine.show.captions import Names, Words
from farthing.engine.sql.bounding import LABEL, Bounded, Label, counts_of
from farthing.engine.sql.conditions import Rows
from farthing.engine.sql.measuring import (
    UNITS,
    VALUE,
    WEIGHT,
    Grouped,
    weighed_ranks,
    weighted_values,
)
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Histogram, Mechanism, Quantile, Quantiles, Release
from farthing.mechanisms.combined import Groups
from farthing.mechanisms.selection.quantiles import exact_probabilities, exact_probability

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ValuesQuery(MeasureQuery):
    """A question that is answered with values of the column, near some of its quantiles.

    Values are kept to `places` decimals and clipped to `lower` and `upper`. The rows
    of a unit with more than `per_key_limit` of them (for a label) weigh less: as much as that many.
    """

    _: KW_ONLY
    select: fields.SelectItem = None
    number: ClassVar[str] = "value"
    in_ranks: ClassVar[bool] = True

    @property
    @abstractmethod
    def wanted(self) -> tuple[float, ...]:
        """Which quantiles; 0 and 1 are the least and the largest value."""

    @property
    def pays(self) -> Mapping[str, int]:
        """One selection for each level: the middle one, those beside it, and so on."""
        return {SELECT: len(self.wanted).bit_length()}

    @property
    def single(self) -> bool:
        return not self.key and len(self.wanted) == 1

    def measure(self, paid: Paid) -> Mechanism[Any]:
        lower, upper = self.bounds
        given: dict[str, Any] = {
            "epsilon": epsilon_of_selection(paid),
            "lower": lower,
            "upper": upper,
            "contribution_limit": self.rows_of_a_unit,
            "per_key_limit": WEIGHT,
        }
        if len(self.wanted) == 1:
            return Quantile(probability=self.wanted[0], **given)
        return Quantiles(probabilities=self.wanted, **given)

    def measured(self, grouped: Grouped) -> Bounded:
        most = WEIGHT * self.rows_of_a_unit
        expression = weighted_values(grouped, self.rows_of_a_unit, units=self.finds_labels)
        if not self.key:
            return Bounded(expression, None, most, total=most)
        return Bounded(expression, self.labels_of_a_unit, most, (1,) if self.finds_labels else ())

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
        """Without a key the value itself; of several, which quantile each of them is."""
        labels = MeasureQuery.labels_in(self, release)
        if len(self.wanted) == 1:
            return labels if self.key else self._values(release)
        if not self.key:
            return self.wanted
        tuples = (label if isinstance(label, tuple) else (label,) for label in labels)
        return tuple((*label, which) for label in tuples for which in self.wanted)

    def numbers_in(self, release: Release) -> tuple[int | float, ...] | None:
        return None if self.single else self._values(release)

    def _values(self, release: Release) -> tuple[int | float, ...]:
        drawn = (value for part in self.parts_of(release) for value in part.labels)
        return tuple(fields.unscaled(value, self.decimals) for value in drawn)

    @property
    def headings(self) -> tuple[str, ...]:
        keys = tuple(map(str, self.key))
        return keys or (self.column,) if len(self.wanted) == 1 else (*keys, "quantile")


@dataclass(frozen=True, slots=True)
class QuantileQuery(ValuesQuery):
    """A value of a numeric column near a quantile, or several of them, overall or for each label.

    Several cost less than one each: m of them about log₂(m + 1) selections. Values are kept to
    `places` decimals and clipped to `lower` and `upper`. The rows of a unit with more than
    `per_key_limit` of them (for a label) weigh less: as much as that many.
    """

    probability: Annotated[
        float | tuple[float, ...], "Which quantile; repeat for several, which cost less together."
    ] = 0.5
    kind: ClassVar[str] = "quantile"

    @property
    def wanted(self) -> tuple[float, ...]:
        return self.probability if isinstance(self.probability, tuple) else (self.probability,)

    def check_fields(self) -> None:
        ValuesQuery.check_fields(self)
        exact_probabilities(self.wanted)

    def ranks_at(self, rows: Rows, value: int) -> Bounded:
        """a·#{x ≥ value} − (b − a)·#{x < value} for the quantile a/b: not negative exactly if
        #{x < value} ≤ (a/b)·n, that is, if the quantile is at least this value."""
        lower, upper = self.bounds
        if not lower <= value <= upper:
            raise InvalidInput(
                f"a threshold for this quantile must be between {self.lower} and {self.upper}"
            )
        a, b = exact_probability(self.wanted[0]).as_integer_ratio()
        limit = self.rows_of_a_unit
        expression = weighed_ranks(self.grouped(rows), value, (a, b - a), limit)
        return Bounded(expression, 1, max(a, b - a) * limit)

    @property
    def decimal_places(self) -> int:
        return self.decimals

    def watched_number(self, number: int) -> int | float:
        """By how many rows the quantile is beyond the threshold: (a/b)·n − #{x < value}."""
        return number / exact_probability(self.wanted[0]).denominator

    @property
    def measures(self) -> str:
        *most, last = (f"{one:g}" for one in self.wanted)
        if most:
            return f"{', '.join(most)} and {last} quantiles"
        return "median" if self.probability == 0.5 else f"{last} quantile"


@dataclass(frozen=True, slots=True)
class ExtremeQuery(ValuesQuery):
    """A value that only a few rows lie beyond."""

    #: On which side of it they lie.
    side: ClassVar[str]

    def words(self, names: Names) -> Words:
        words = MeasureQuery.words(self, names)
        told = f"a few rows lie {self.side} it, and it is not that of one {names.unit.each}"
        return replace(words, subject=f"About t{words.subject[1:]}: {told}")


@dataclass(frozen=True, slots=True)
class MinQuery(ExtremeQuery):
    """About the least value of a numeric column, overall or for each label: a few rows lie below.

    How many follows from the price and the bounds, and `half_width` says it. It is not the least
    value itself, which one unit has. In everything else it is like a quantile.
    """

    kind: ClassVar[str] = "min"
    measures: ClassVar[str] = "least value"
    side: ClassVar[str] = "below"
    wanted: ClassVar[tuple[float, ...]] = (0.0,)


@dataclass(frozen=True, slots=True)
class MaxQuery(ExtremeQuery):
    """About the largest value of a numeric column, overall or for each label: a few rows lie above.

    How many follows from the price and the bounds, and `half_width` says it. It is not the largest
    value itself, which one unit has. In everything else it is like a quantile.
    """

    kind: ClassVar[str] = "max"
    measures: ClassVar[str] = "largest value"
    side: ClassVar[str] = "above"
    wanted: ClassVar[tuple[float, ...]] = (1.0,)


def _weighted(values: npt.NDArray[Any], weights: npt.NDArray[np.int64]) -> Histogram:
    """Values and their weights; without values an empty histogram."""
    return Histogram(values, weights) if values.size else Histogram.without_rows()
