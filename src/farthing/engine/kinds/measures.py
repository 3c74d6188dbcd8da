"""Questions that measure a numeric column, overall or for each label of a key: what they share.

A key that is given is known (its labels are listed, here or by the schema) or has its labels found
first: by a thresholded histogram of the units that each label has, which is bought on top.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from farthing.engine.keys import Key, column_of
from farthing.engine.kinds.base import COUNT, LEAK, Paid
from farthing.engine.kinds.fields import require_categories, require_number
from farthing.engine.kinds.labels import check_labels, known_labels, labels_in_words
from farthing.engine.kinds.numbers import NumberQuery
from farthing.engine.kinds.paid_parameters import coordinate_of, delta_of_leak, suits_any_limit
from farthing.engine.kinds.rows import Rows
from farthing.engine.sql.bounding import Bounded, between
from farthing.engine.sql.conditions import within
from farthing.engine.sql.keys import Label, labels_of, text_of
from farthing.engine.sql.measuring import VALUE, Grouped
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import Guarantee
from farthing.ledger.declared_data import Limits
from farthing.mechanisms import Histogram, Mechanism, Release, ThresholdedCounts
from farthing.mechanisms.combined import Groups, PerLabel
from farthing.schema import Schema
from farthing.wording import many

if TYPE_CHECKING:
    import pyarrow as pa


class MeasureQuery(NumberQuery):
    """A question about the numbers of a column, with one answer or one for each label."""

    __slots__ = ()

    by: object
    categories: object
    contribution_limit: int | None
    per_key_limit: int | None

    #: Whether it is about rows, of which so many count of a unit.
    weighs_rows: ClassVar[bool] = True

    @property
    @abstractmethod
    def pays(self) -> Mapping[str, int]:
        """What pays for one measurement, and how often."""

    @property
    def key(self) -> tuple[Key, ...]:
        """The columns of the key, or functions of them; none for one answer."""
        return cast(tuple[Key, ...], self.by or ())

    @property
    def domain(self) -> tuple[Label, ...] | None:
        """The labels, where they are known in advance."""
        return cast(tuple[Label, ...] | None, self.categories)

    @property
    def single(self) -> bool:
        """With a key there are several."""
        return not self.key

    @property
    def labels_of_a_unit(self) -> int:
        """How many labels of a unit count."""
        if not self.key:
            return 1
        sizes = (self.contribution_limit, None if self.domain is None else len(self.domain))
        return min(size for size in sizes if size is not None)

    @property
    def needed_limits(self) -> Mapping[str, str]:
        """Of a known domain with one label no label can be dropped."""
        needed = {}
        if self.key and (self.domain is None or len(self.domain) > 1):
            keys = ", ".join(map(str, self.key))
            needed["contribution_limit"] = f"how many labels of {keys} count of a unit"
        if self.weighs_rows:
            needed["per_key_limit"] = "how many rows of a unit count; more of them weigh less"
        return needed

    @property
    def rows_of_a_unit(self) -> int:
        """How many rows of a unit count for a label."""
        assert self.per_key_limit is not None, "a question is completed before it is asked"
        return self.per_key_limit

    def within(self, limits: Limits) -> Self:
        """Without a key there are no labels to limit."""
        own = limits if self.key else replace(limits, contribution_limit=None)
        return super().within(own)

    @property
    def finds_labels(self) -> bool:
        """Whether the labels have to be found."""
        return bool(self.key) and self.domain is None

    def check_fields(self) -> None:
        if not self.key and (self.domain is not None or self.contribution_limit is not None):
            raise InvalidInput("categories and contribution_limit need by, the key of the labels")
        if self.key:
            require_categories(self.domain, len(self.key))
        require_number(self.contribution_limit, self.kind)
        NumberQuery.check_fields(self)

    def columns(self) -> frozenset[str]:
        return frozenset((self.column, *map(column_of, self.key)))

    def check_columns(self, schema: Schema) -> None:
        NumberQuery.check_columns(self, schema)
        check_labels(self.key, self.domain, schema)

    def completed(self, schema: Schema) -> Self:
        """With what the schema says: bounds, decimal places, labels."""
        whole = NumberQuery.completed(self, schema)
        if not self.finds_labels:
            return whole
        known = known_labels(self.key, schema)
        return whole.changed(categories=known)

    def roles(self) -> dict[str, int]:
        labels = self.labels_of_a_unit
        bought = {role: times * labels for role, times in self.pays.items()}
        if not self.finds_labels:
            return bought
        return {**bought, COUNT: bought.get(COUNT, 0) + labels, LEAK: 1}

    def suits(self, role: str, guarantee: Guarantee) -> bool:
        if role == COUNT:
            return suits_any_limit(guarantee)
        return NumberQuery.suits(self, role, guarantee)

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
        finding = ThresholdedCounts(
            coordinate=coordinate_of(paid),
            delta=delta_of_leak(paid),
            contribution_limit=labels,
            per_key_limit=1,
        )
        return PerLabel(measure=measure, contribution_limit=labels, finding=finding)

    def value_in(self, rows: Rows) -> Any:
        """What a row is worth: moved to the nearest bound, unless it is missing."""
        import ibis

        worth = self.worth(rows)
        return worth.isnull().ifelse(ibis.null("int64"), between(worth, *self.bounds))

    def bounded(self, rows: Rows) -> Bounded:
        return self.measured(self.grouped(rows))

    def grouped(self, rows: Rows) -> Grouped:
        """Rows outside a known domain go first, so that no unit spends its limit on them."""
        keyed = rows.keyed(self.key, **{VALUE: self.value_in(rows)})
        table = keyed.table.filter(keyed.table[VALUE].notnull() & keyed.table[keyed.unit].notnull())
        names = [name for name in table.columns if name not in (keyed.unit, VALUE)]
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

    @property
    def listed(self) -> str | None:
        return labels_in_words(self.domain)

    @property
    def title(self) -> str:
        per = f" by {', '.join(map(str, self.key))}" if self.key else ""
        return f"{self.measures} of {self.column}{per}"

    @property
    def measures(self) -> str:
        """What is measured, in a word or two."""
        return self.kind.replace("_", " ")

    @property
    def counted(self) -> str | None:
        return self.contribution

    @property
    def counted_of_label(self) -> str:
        """How much of a unit counts for one label."""
        return f"at most {many(self.rows_of_a_unit, 'row')}"

    @property
    def contribution(self) -> str:
        if not self.key:
            return self.counted_of_label
        labels = many(self.labels_of_a_unit, "label")
        return f"at most {labels}, with {self.counted_of_label} each"

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
