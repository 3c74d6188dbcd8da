"""Questions that one noisy count answers: units or rows, distinct values, pairs above a limit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from farthing.engine.keys import require_kind
from farthing.engine.kinds import fields
from farthing.engine.kinds.base import (
    COUNT,
    Paid,
    Query,
    Result,
    Rows,
    counts_with,
    suits_counts,
)
from farthing.engine.kinds.labels import KeyQuery
from farthing.engine.show.captions import Names, Words
from farthing.engine.sql.bounding import COUNT as NUMBER
from farthing.engine.sql.bounding import (
    Bounded,
    bounded_histogram,
    counted_rows,
    counts_of,
    labels_of_units,
    pairs_above,
)
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import Guarantee
from farthing.mechanisms import Expectation, Histogram, Mechanism, Release, Repeated
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
    single: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
    most_repeats: ClassVar[int] = fields.LARGEST_REPEATS

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """How much one unit can add."""

    def roles(self) -> dict[str, int]:
        return {COUNT: self.repeats}

    def suits(self, role: str, guarantee: Guarantee) -> bool:
        return role == COUNT and suits_counts(guarantee, self.sensitivity)

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        return Repeated(counts_with(paid, 1, self.sensitivity), self.repeats)

    def data(self, rows: pa.Table) -> Histogram:
        return Histogram([self.label], counts_of(rows))

    def result(self, release: Release, expectation: Expectation) -> Result:
        assert expectation.counts is not None
        return Result(release.labels, release.counts, expectation.counts.half_width)


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
class DistinctQuery(SingleCountQuery):
    """How many distinct values a column has. Missing values do not count.

    Of each unit `contribution_limit` values count, so one unit adds at most that many to the
    number, and the noise is that much wider (docs/theory/mechanisms.md, section 10).
    """

    column: Annotated[str, "The column with the values."]
    _: KW_ONLY
    contribution_limit: Annotated[int | None, "Values of a unit that count."] = None
    kind: ClassVar[str] = "distinct"
    label: ClassVar[str] = "distinct"

    def check_fields(self) -> None:
        fields.require_number(self.contribution_limit, self.kind)

    @property
    def needed_limits(self) -> dict[str, str]:
        return {"contribution_limit": f"how many values of {self.column} count of a unit"}

    @property
    def sensitivity(self) -> int:
        """How many values of a unit count."""
        assert self.contribution_limit is not None
        return self.contribution_limit

    def columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def check_columns(self, schema: Schema) -> None:
        require_kind(self.column, schema.kinds[self.column], KEYS, "the column")

    def bounded(self, rows: Rows) -> Bounded:
        """The number of labels of a bounded histogram."""
        table = rows.table.filter(rows.table[self.column].notnull())
        labels = bounded_histogram(
            table,
            (table[rows.unit], rows.kinds[rows.unit]),
            [(table[self.column], rows.kinds[self.column])],
            secret=rows.secret,
            contribution_limit=self.sensitivity,
            per_key_limit=1,
        ).expression
        counted = labels.aggregate(**{NUMBER: labels.count().cast("decimal(38, 0)")})
        return Bounded(counted, contribution_limit=1, per_key_limit=self.sensitivity)

    def words(self, names: Names) -> Words:
        values, most = names.labels((self.column,)), self.contribution_limit
        return Words(
            subject=f"The number of distinct {values.several}",
            limit=f"each {names.unit.each} counts with at most {values.many(most)}"
            if most is not None
            else None,
            contribution="" if most is None else f"at most {many(most, 'value')}",
            described=self.kind,
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
