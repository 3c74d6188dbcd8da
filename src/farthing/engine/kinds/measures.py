"""Questions that measure a numeric column, overall or for each label of a key: what they share.

A key that is given is known (its labels are listed, here or by the schema) or has its labels found
first: by a thresholded histogram of the units that each label has, which is bought on top.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from farthing.engine.keys import order_of, require_kind
from farthing.engine.kinds import fields
from farthing.engine.kinds.base import COUNT, LEAK, NoisyUnits, Paid, thresholded
from farthing.engine.kinds.labels import KeyQuery
from farthing.engine.show.captions import Names, Words
from farthing.engine.sql.bounding import LABEL, Bounded, Label, counts_of, labels_of, text_of
from farthing.engine.sql.conditions import Rows, between, fixed_point, within
from farthing.engine.sql.measuring import VALUE, Grouped, total_name, totals
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import Limits
from farthing.mechanisms import Histogram, Mechanism, Release
from farthing.mechanisms.combined import Groups, PerLabel
from farthing.mechanisms.protocol import Interval
from farthing.optional import Later
from farthing.schema import DECIMAL, INTEGER, NUMBERS, Bounds, Column, DeclaredValues, Schema
from farthing.wording import many

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa
else:
    ibis = Later("ibis")

#: Numbers without decimal places of their own are kept to about this part of their range.
_FINE = 6
_INCOMPLETE = "a question is completed before it is asked"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MeasureQuery(KeyQuery):
    """A question about a column of numbers between two bounds, kept to some decimal places.

    It has one answer, or one for each label of a key. What it does not say about bounds and
    decimal places, the schema does (`completed`).
    """

    column: fields.ColumnName
    _: KW_ONLY
    by: fields.MaybeBy = None
    categories: fields.Categories = None
    lower: fields.ValueBound = None
    upper: fields.ValueBound = None
    places: fields.Places = None
    contribution_limit: fields.LabelsOfUnit = None
    per_key_limit: fields.RowsOfUnit = None
    count: fields.CountItem = None
    leak: fields.LeakItem = None

    #: Whether it is about rows, of which so many count of a unit.
    weighs_rows: ClassVar[bool] = True

    @property
    @abstractmethod
    def pays(self) -> Mapping[str, int]:
        """What pays for one measurement, and how often."""

    @property
    def decimals(self) -> int:
        """The decimal places that are kept."""
        for name in self.automatic:
            fields.known_bound(name, fields.AUTO)  # refused: nothing can run yet
        assert self.places is not None, _INCOMPLETE
        return self.places

    @property
    def bounds(self) -> tuple[int, int]:
        """The bounds in units of the last decimal place."""
        lower, upper = (
            fields.known_bound("lower", self.lower),
            fields.known_bound("upper", self.upper),
        )
        return fields.scaled_bounds(lower, upper, self.decimals)

    @property
    def automatic(self) -> tuple[str, ...]:
        """The bounds that are found before it runs."""
        names = ("lower", "upper", "per_upper")
        return tuple(name for name in names if getattr(self, name, None) == fields.AUTO)

    @property
    def single(self) -> bool:
        """With a key there are several."""
        return not self.key

    @property
    def labels_of_a_unit(self) -> int:
        """How many labels of a unit count."""
        if not self.key:
            return 1
        return min(n for n in (self.contribution_limit, self.size) if n is not None)

    @property
    def rows_of_a_unit(self) -> int:
        """How many rows of a unit count for a label."""
        assert self.per_key_limit is not None, _INCOMPLETE
        return self.per_key_limit

    @property
    def finds_labels(self) -> bool:
        """Whether the labels have to be found."""
        return bool(self.key) and self.domain is None

    @property
    def needed_limits(self) -> Mapping[str, str]:
        """Of a known domain with one label no label can be dropped."""
        needed = {}
        if self.key and self.size != 1:
            keys = ", ".join(map(str, self.key))
            needed["contribution_limit"] = f"how many labels of {keys} count of a unit"
        if self.weighs_rows:
            needed["per_key_limit"] = "how many rows of a unit count; more of them weigh less"
        return needed

    def within(self, limits: Limits) -> Self:
        """Without a key there are no labels to limit."""
        own = limits if self.key else replace(limits, contribution_limit=None)
        return KeyQuery.within(self, own)

    def check_fields(self) -> None:
        if not self.key and (self.domain is not None or self.contribution_limit is not None):
            raise InvalidInput("categories and contribution_limit need by, the key of the labels")
        KeyQuery.check_fields(self)
        fields.require_number(self.contribution_limit, self.kind)
        if self.lower is None or self.upper is None or self.automatic:
            return
        if self.places is not None:
            _ = self.bounds
        else:
            lower, upper = (
                fields.known_bound("lower", self.lower),
                fields.known_bound("upper", self.upper),
            )
            fields.scaled_bounds(math.floor(lower), math.ceil(upper), 0)

    def columns(self) -> frozenset[str]:
        return KeyQuery.columns(self) | {self.column}

    def check_columns(self, schema: Schema) -> None:
        require_kind(self.column, schema.kinds[self.column], NUMBERS, "the column")
        KeyQuery.check_columns(self, schema)

    def completed(self, schema: Schema) -> Self:
        """With the bounds and labels of the schema, and decimal places that suit the bounds."""
        if self.automatic:
            return KeyQuery.completed(self, schema) if self.finds_labels else self
        column = schema[self.column]
        lower, upper = self.bounds_in(column)
        places = places_of(column, lower, upper) if self.places is None else self.places
        if self.places is None or lower != self.lower:
            lower = rounded_bound(lower, places, ROUND_FLOOR)
        if self.places is None or upper != self.upper:
            upper = rounded_bound(upper, places, ROUND_CEILING)
        whole = self.changed(lower=lower, upper=upper, places=places)
        return KeyQuery.completed(whole, schema) if self.finds_labels else whole

    def bounds_in(self, column: Column) -> tuple[fields.NumberBound, fields.NumberBound]:
        """The part of the question's bounds that lies within those that the owner declared.

        The declared bounds clip every value first, so there is nothing beyond them.
        """
        lower, upper = (
            None if bound is None else fields.known_bound(name, bound)
            for name, bound in (("lower", self.lower), ("upper", self.upper))
        )
        return bounds_within(column, self.column, lower, upper, self.kind)

    def clipped(self, declared: DeclaredValues) -> dict[str, Bounds]:
        """Its own bounds, which lie within those that are declared."""
        known = self.lower is not None and not self.automatic
        own = {self.column: cast(Bounds, (self.lower, self.upper))} if known else {}
        return KeyQuery.clipped(self, declared) | own

    def roles(self) -> dict[str, int]:
        labels = self.labels_of_a_unit
        bought = {role: times * labels for role, times in self.pays.items()}
        if not self.finds_labels:
            return bought
        return {**bought, COUNT: bought.get(COUNT, 0) + labels, LEAK: 1}

    @abstractmethod
    def measure(self, paid: Paid) -> Mechanism[Any]:
        """What runs on the data of one label."""

    @abstractmethod
    def measured(self, grouped: Grouped) -> Bounded:
        """The expression whose rows are the data of each label, each unit limited."""

    @abstractmethod
    def collected(self, rows: pa.Table) -> Groups[Any]:
        """The data of each label, of "" without a key."""

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        measure = self.measure(paid)
        if not self.key:
            return measure
        labels = self.labels_of_a_unit
        if self.domain is not None:
            known = tuple(text_of(label) for label in self.domain)
            return PerLabel(measure=measure, contribution_limit=labels, domain=known)
        finding = thresholded(paid, labels, 1)
        return PerLabel(measure=measure, contribution_limit=labels, finding=finding)

    def worth(self, rows: Rows) -> Any:
        """The column in whole units of the last decimal place."""
        return fixed_point(rows.table[self.column], rows.kinds[self.column], self.decimals)

    def value_in(self, rows: Rows) -> Any:
        """What a row is worth: clipped to the bounds, unless it is missing."""
        worth = self.worth(rows)
        return worth.isnull().ifelse(ibis.null("int64"), between(worth, *self.bounds))

    def values_in(self, rows: Rows) -> dict[str, Any]:
        """What is measured of a row, by name; a row without any of it does not count."""
        return {VALUE: self.value_in(rows)}

    def bounded(self, rows: Rows) -> Bounded:
        return self.measured(self.grouped(rows))

    def grouped(self, rows: Rows) -> Grouped:
        """Rows outside a known domain go first, so that no unit spends its limit on them."""
        values = self.values_in(rows)
        keyed = rows.keyed(self.key, **values)
        present = reduce(or_, (keyed.table[name].notnull() for name in values))
        if keyed.unit is not None:
            present &= keyed.table[keyed.unit].notnull()
        table = keyed.table.filter(present)
        names = [name for name in table.columns if name not in (keyed.unit, *values)]
        if self.domain is not None:
            table = within(table, names, self.domain, keyed.kinds, keyed.texts)
        drops = self.key and (self.domain is None or self.labels_of_a_unit < len(self.domain))
        limit = self.labels_of_a_unit if drops else None
        return Grouped(table, keyed.kinds, keyed.secret, limit)

    def data(self, rows: pa.Table) -> Any:
        groups = self.collected(rows)
        return groups if self.key else groups.of.get("", groups.without)

    def labels_in(self, release: Release) -> tuple[Label, ...]:
        """The labels that were measured; the kind itself without a key."""
        return labels_of(release.labels, len(self.key)) if self.key else (self.kind,)

    def parts_of(self, release: Release) -> tuple[Release, ...]:
        """What was measured of each label."""
        return release.parts if self.key else (release,)

    def units_in(
        self, mechanism: Mechanism[Any], release: Release, confidence: float
    ) -> tuple[NoisyUnits, ...] | None:
        finding = mechanism.finding if isinstance(mechanism, PerLabel) else None
        if finding is None or release.counts is None:
            return None
        ends = finding.errors(release, confidence)
        assert isinstance(ends, tuple)
        each = len(self.labels_in(release)) // max(len(release.labels), 1)  # numbers of a label
        pairs = zip(release.counts, ends, strict=True)
        return tuple((int(n), *end) for n, end in pairs for _ in range(each))

    def in_order(self, release: Release, schema: Schema) -> Release:
        """By the labels of the key, each of which may have several numbers."""
        if self.single or not any(order_of(key, schema) for key in self.key):
            return release
        return release.picked(self.order(MeasureQuery.labels_in(self, release), schema))

    @property
    def measures(self) -> str:
        """What is measured, in a word or two."""
        return self.kind.replace("_", " ")

    @property
    def counted(self) -> str | None:
        """How much of a unit counts (for one label), in words; None if that is not said yet."""
        rows = self.per_key_limit
        return None if rows is None else f"at most {many(rows, 'row')}"

    def words(self, names: Names) -> Words:
        unit, labels = names.unit.each, names.labels(self.key)
        subject = f"The {self.measures} of {names.column(self.column)}"
        limit, contribution = f"with {self.counted}", self.counted
        if self.key:
            subject = f"{subject} for each {labels.each}"
        if self.key and self.counted and (self.domain or self.contribution_limit):
            size = self.labels_of_a_unit
            limit = f"for at most {labels.many(size)}, with {self.counted} for each"
            contribution = f"at most {many(size, 'label')}, with {self.counted} each"
        said = self.counted and not (names.rows and self.weighs_rows)
        clauses = [f"each {unit} counts {limit}"] if said else []
        if self.automatic:
            few = "a few rows" if self.weighs_rows else "the sums of a few"
            clauses.insert(0, f"bounds are found first, beyond which {few} are clipped")
        return Words(
            subject=subject,
            limit="; ".join(clauses) or None,
            listed=self.listed(names),
            contribution=contribution or "",
            described=self.kind,
        )

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(map(str, self.key)) or (self.column,)


def units_of_labels(labels: Sequence[str], units: npt.NDArray[np.int64]) -> Histogram:
    """How many units each label has; labels are objects, never cut to one width."""
    if not labels:
        return Histogram.without_rows()
    texts = np.empty(len(labels), dtype=object)
    texts[:] = labels
    return Histogram(texts, units)


def places_of(column: Column, lower: fields.NumberBound, upper: fields.NumberBound) -> int:
    """What the column has; for floats so many that the bounds have about a million steps."""
    if column.kind == INTEGER:
        return 0
    if column.kind == DECIMAL:
        assert column.places is not None
        return min(column.places, fields.LARGEST_PLACES)
    size = math.log10(max(abs(lower), abs(upper), 1e-9))
    return min(max(_FINE - math.floor(size), 0), fields.LARGEST_PLACES)


def rounded_bound(bound: fields.NumberBound, places: int, towards: str) -> fields.NumberBound:
    """A bound moved outwards to the next number with so many decimal places."""
    moved = Decimal(str(bound)).quantize(Decimal(1).scaleb(-places), rounding=towards)
    return int(moved) if moved == moved.to_integral_value() else float(moved)


def bounded_totals(
    query: MeasureQuery, grouped: Grouped, pairs: Any, amounts: Iterable[tuple[Any, int]]
) -> Bounded:
    """Totals of these amounts, each with its limit, and of units where labels are to be found."""
    listed = [*amounts, *([(ibis.literal(1), 1)] if query.finds_labels else [])]
    first, *others = (limit for _, limit in listed)
    expression = totals(grouped, pairs, listed)
    return Bounded(expression, query.labels_of_a_unit, first, tuple(others))


def groups_of(
    query: MeasureQuery, rows: pa.Table, values: Iterable[T], without: T, size: int
) -> Groups[T]:
    """The values of each label, made from `size` totals; and its units, which are the next one."""
    labels = rows.column(LABEL).to_pylist() if query.key else [""]
    of = dict(zip(labels, values, strict=True))
    if not query.finds_labels:
        return Groups(of, without)
    return Groups(of, without, units_of_labels(labels, counts_of(rows, total_name(size))))


def possible_sums(query: MeasureQuery) -> Interval:
    """Where sums lie if one unit adds something between the two bounds of the question."""
    lower, upper = query.lower, query.upper
    return (
        0 if isinstance(lower, int | float) and lower >= 0 else -math.inf,
        0 if isinstance(upper, int | float) and upper <= 0 else math.inf,
    )


def bounds_within(
    column: Column,
    name: str,
    lower: fields.NumberBound | None,
    upper: fields.NumberBound | None,
    kind: str,
    asked: str = "lower and upper",
) -> tuple[fields.NumberBound, fields.NumberBound]:
    """The part of a question's bounds that lies within the declared ones; None: not said."""
    lowers = [bound for bound in (lower, column.lower) if bound is not None]
    uppers = [bound for bound in (upper, column.upper) if bound is not None]
    if not lowers or not uppers:
        raise InvalidInput(f"the {kind} of {name} needs {asked}: the schema declares none")
    least, most = max(lowers), min(uppers)
    if least > most:
        raise InvalidInput(
            f"{asked} must overlap the declared bounds of {name}: no value lies "
            f"between {least} and {most}"
        )
    return least, most


def kept_bounds(
    column: Column, lower: fields.NumberBound, upper: fields.NumberBound, places: int | None
) -> tuple[fields.NumberBound, fields.NumberBound, int]:
    """Bounds to so many decimal places, or as many as suit the column; and the places."""
    fields.scaled_bounds(math.floor(lower), math.ceil(upper), 0)  # none is too large
    kept = places_of(column, lower, upper) if places is None else places
    lowest, highest = (
        rounded_bound(bound, kept, towards)
        for bound, towards in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING))
    )
    return lowest, highest, kept


def sum_bounds(
    query: MeasureQuery, column: Column
) -> tuple[fields.NumberBound, fields.NumberBound]:
    """The least and the most that one unit adds to a sum: as stated, or by its rows."""
    lower, upper, rows = query.lower, query.upper, query.per_key_limit
    if lower is None and column.lower is not None and (rows or column.lower >= 0):
        lower = (rows or 0) * min(column.lower, 0)
    if upper is None and column.upper is not None and (rows or column.upper <= 0):
        upper = (rows or 0) * max(column.upper, 0)
    if lower is None or upper is None:
        raise InvalidInput(
            f"the {query.kind} of {query.column} needs lower and upper, the least and the most "
            "that one unit adds; or bounds in the schema and a per_key_limit, the rows of a unit"
        )
    return fields.known_bound("lower", lower), fields.known_bound("upper", upper)
