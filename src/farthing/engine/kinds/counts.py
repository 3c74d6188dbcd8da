"""Questions that noisy counts answer: units or rows, for each label too; distinct values; pairs
above a limit.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from farthing.engine.keys import require_kind
from farthing.engine.kinds import fields
from farthing.engine.kinds.base import COUNT, LEAK, Paid, Query, counts_with, thresholded
from farthing.engine.kinds.labels import KeyQuery, LabelQuery
from farthing.engine.show.captions import Names, Words
from farthing.engine.sql.bounding import (
    Bounded,
    Label,
    counted_rows,
    counts_of,
    distinct_values,
    labels_of,
    labels_of_units,
    pairs_above,
)
from farthing.engine.sql.conditions import Rows
from farthing.errors import InvalidInput
from farthing.mechanisms import Histogram, Mechanism, Release, Repeated
from farthing.mechanisms.protocol import Interval
from farthing.schema import KEYS, Schema
from farthing.wording import many

if TYPE_CHECKING:
    import pyarrow as pa

#: Of each unit so many times its limit are looked at, unless the question says.
_TIMES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleCountQuery(Query):
    """A question about one count, drawn `repeats` times. It never falls when a unit is added."""

    count: fields.CountItem = None
    repeats: fields.Repeats = 1

    #: What the count is called in the answer.
    label: ClassVar[str]
    monotone: ClassVar[bool] = True

    @property
    def single(self) -> bool:
        return True

    @property
    def most_repeats(self) -> int:
        return fields.LARGEST_REPEATS

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """How much one unit can add."""

    def roles(self) -> dict[str, int]:
        return {COUNT: self.repeats}

    @property
    def noise_limit(self) -> int | None:
        return self.sensitivity

    @property
    def possible(self) -> Interval:
        return 0, math.inf

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        return Repeated(counts_with(paid, 1, self.sensitivity), self.repeats)

    def data(self, rows: pa.Table) -> Histogram:
        return Histogram([self.label], counts_of(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountQuery(SingleCountQuery):
    """How many units have a row that passes the filter.

    With per_key_limit above 1: how many rows, of which each unit contributes at most that many.
    """

    per_key_limit: fields.PerKeyLimit = 1
    kind: ClassVar[str] = "count"
    label: ClassVar[str] = "count"

    def columns(self) -> frozenset[str]:
        return frozenset()

    @property
    def sensitivity(self) -> int:
        return self.per_key_limit

    def bounded(self, rows: Rows) -> Bounded:
        return counted_rows(rows.table, rows.owner, self.per_key_limit)

    def words(self, names: Names) -> Words:
        rows, unit = self.per_key_limit, names.unit
        return Words(
            subject=f"The number of {unit.several if rows == 1 else 'rows'}",
            limit=None if rows == 1 else f"each {unit.each} counts with at most {rows} rows",
            contribution="1 of the count" if rows == 1 else f"at most {rows} rows",
            described=self.kind,
        )


@dataclass(frozen=True, slots=True)
class DistinctQuery(SingleCountQuery, KeyQuery):
    """How many distinct values a column has, overall or for each label of a key.

    Missing values do not count. Of each unit `contribution_limit` values count (with a key: pairs
    of a label and a value), so one unit adds at most that many to all numbers together, and the
    noise is that much wider (docs/theory/mechanisms.md, section 10).
    """

    column: Annotated[str, "The column with the values."]
    _: KW_ONLY
    by: fields.MaybeBy = None
    categories: fields.Categories = None
    contribution_limit: Annotated[int | None, "Values of a unit that count, in all labels."] = None
    leak: fields.LeakItem = None
    kind: ClassVar[str] = "distinct"
    label: ClassVar[str] = "distinct"

    def check_fields(self) -> None:
        if not self.key and self.domain is not None:
            raise InvalidInput("categories need by, the key of the labels")
        KeyQuery.check_fields(self)
        fields.require_number(self.contribution_limit, self.kind)
        if self.finds_labels and self.repeats > 1:
            raise InvalidInput("repeats needs categories: what is found is drawn once")

    @property
    def single(self) -> bool:
        return not self.key

    @property
    def finds_labels(self) -> bool:
        """Whether the labels have to be found."""
        return bool(self.key) and self.domain is None

    @property
    def needed_limits(self) -> dict[str, str]:
        return {"contribution_limit": f"how many values of {self.column} count of a unit"}

    @property
    def sensitivity(self) -> int:
        """How many values of a unit count."""
        assert self.contribution_limit is not None
        return self.contribution_limit

    @property
    def noise_limit(self) -> int | None:
        """Discrete Gaussian noise is for one number alone."""
        return None if self.key else self.sensitivity

    @property
    def most_repeats(self) -> int:
        return 1 if self.finds_labels else fields.LARGEST_REPEATS

    @property
    def limited(self) -> frozenset[str]:
        return self.columns()

    def columns(self) -> frozenset[str]:
        return KeyQuery.columns(self) | {self.column}

    def check_columns(self, schema: Schema) -> None:
        require_kind(self.column, schema.kinds[self.column], KEYS, "the column")
        KeyQuery.check_columns(self, schema)

    def completed(self, schema: Schema) -> Self:
        return KeyQuery.completed(self, schema) if self.finds_labels else self

    def roles(self) -> dict[str, int]:
        return {COUNT: self.repeats, **({LEAK: 1} if self.finds_labels else {})}

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        most = self.sensitivity
        if self.finds_labels:
            return replace(thresholded(paid, most, most), in_all=True)
        if not self.key:
            return SingleCountQuery.mechanism_for(self, paid)
        counts = replace(counts_with(paid, self._labels, most), in_all=True)
        return Repeated(counts, self.repeats)

    @property
    def _labels(self) -> int:
        """How many labels a unit can change."""
        return min(self.sensitivity, self.size or self.sensitivity)

    def bounded(self, rows: Rows) -> Bounded:
        rows = replace(rows, table=rows.table.filter(rows.table[self.column].notnull()))
        kind = rows.kinds[self.column]
        rows, keys = self.keyed(rows, value=rows.table[self.column])
        counted = distinct_values(
            *(rows.table, rows.owner, keys, (rows.table["value"], kind)),
            secret=rows.secret,
            contribution_limit=self.sensitivity,
        )
        return replace(counted, contribution_limit=self._labels) if self.key else counted

    def data(self, rows: pa.Table) -> Histogram:
        return KeyQuery.data(self, rows) if self.key else SingleCountQuery.data(self, rows)

    def errors(
        self, mechanism: Mechanism[Any], release: Release, confidence: float
    ) -> float | tuple[Interval, ...] | None:
        return mechanism.errors(release, confidence)

    def labels_in(self, release: Release) -> tuple[Label, ...]:
        return labels_of(release.labels, len(self.key)) if self.key else release.labels

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(map(str, self.key)) or ("what",)

    def words(self, names: Names) -> Words:
        values, most = names.labels((self.column,)), self.contribution_limit
        each = f" for each {names.labels(self.key).each}" if self.key else ""
        limited = names.labels((*self.key, self.column))
        return Words(
            subject=f"The number of distinct {values.several}{each}",
            limit=f"each {names.unit.each} counts with at most {limited.many(most)}"
            if most is not None
            else None,
            listed=self.listed(names) if self.key else None,
            contribution="" if most is None else f"at most {many(most, 'value')}",
            described=self.kind,
            things="values",
        )


@dataclass(frozen=True, slots=True)
class LossQuery(SingleCountQuery, KeyQuery):
    """How many pairs of a unit and a label are above a limit of labels per unit.

    Of each unit at most `most` labels are looked at (4 times the limit by default), so one unit
    adds at most most − contribution_limit (docs/theory/mechanisms.md, section 12).
    """

    by: fields.By
    _: KW_ONLY
    contribution_limit: Annotated[int, "Labels of a unit below the limit."]
    most: Annotated[int | None, "Labels of a unit that are looked at."] = None
    categories: fields.Categories = None
    kind: ClassVar[str] = "loss"
    about_limits: ClassVar[bool] = True
    label: ClassVar[str] = "pairs"

    def check_fields(self) -> None:
        KeyQuery.check_fields(self)
        fields.require_number(self.contribution_limit, self.kind)
        if self.looked_at <= self.contribution_limit:
            raise InvalidInput(
                "nothing can be above the limit: of a unit at most "
                f"{self.looked_at} labels are looked at, and the limit is {self.contribution_limit}"
            )

    @property
    def looked_at(self) -> int:
        """How many labels of a unit are looked at."""
        most = _TIMES * self.contribution_limit if self.most is None else self.most
        return most if self.size is None else min(most, self.size)

    @property
    def sensitivity(self) -> int:
        """How much one unit can add."""
        return self.looked_at - self.contribution_limit

    def bounded(self, rows: Rows) -> Bounded:
        rows, keys = self.keyed(rows)
        assert rows.owner is not None, "refused where each row is a unit"
        units = labels_of_units(rows.table, rows.owner, keys, self.looked_at)
        return pairs_above(units, self.contribution_limit, self.looked_at)

    def words(self, names: Names) -> Words:
        unit, label = names.unit.each, names.labels(self.key)
        return Words(
            subject=f"The number of ({unit}, {label.each}) pairs above the limit of "
            f"{label.many(self.contribution_limit)} for each {unit}",
            limit=f"at most {label.many(self.looked_at)} of each {unit} are looked at",
            listed=self.listed(names),
            contribution=f"at most {many(self.sensitivity, 'pair')}",
            described=self.kind,
        )


@dataclass(frozen=True, slots=True)
class HistogramQuery(LabelQuery):
    """How many units (or rows, as in a count) have each label.

    With `categories` the labels are those, present or not. Without, they are discovered: a label
    is released if its noisy count reaches a threshold. Of each unit `contribution_limit` labels
    count.
    """

    kind: ClassVar[str] = "histogram"

    def check_fields(self) -> None:
        LabelQuery.check_fields(self)
        if self.categories is None and self.repeats > 1:
            raise InvalidInput("repeats needs categories: a thresholded histogram is drawn once")

    @property
    def coordinates(self) -> int:
        """How many counts a unit can change."""
        assert self.limit is not None
        return self.limit

    def roles(self) -> dict[str, int]:
        if self.categories is None:
            return {COUNT: self.coordinates, LEAK: 1}
        return {COUNT: self.coordinates * self.repeats}

    @property
    def most_repeats(self) -> int:
        return 1 if self.categories is None else fields.LARGEST_REPEATS

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        if self.categories is not None:
            counts = counts_with(paid, self.coordinates, self.per_key_limit)
            return Repeated(counts, self.repeats)
        return thresholded(paid, self.coordinates, self.per_key_limit)

    def words(self, names: Names) -> Words:
        counted = "rows" if self.counts_rows else names.unit.several
        each = names.labels(self.key).each
        return self.read_as(f"The number of {counted} for each {each}", self.kind, names)
