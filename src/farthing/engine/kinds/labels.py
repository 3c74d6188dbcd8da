"""Questions about labels: what histograms and top-k share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from farthing.engine.keys import Bins, Key, column_of, domain_of, kind_of, order_of
from farthing.engine.kinds import fields
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.fields import AUTO, require_categories, stated
from farthing.engine.show.captions import Names, Words, listed_labels
from farthing.engine.sql.bounding import (
    Bounded,
    Label,
    TypedColumn,
    labels_and_counts,
    labels_of,
    text_of,
)
from farthing.engine.sql.conditions import Rows, require_fits, within
from farthing.errors import InvalidInput
from farthing.mechanisms import Expectation, Histogram, Mechanism, Release
from farthing.mechanisms.protocol import Interval, joint_level
from farthing.schema import DECIMAL, INTEGER, TIMESTAMP, Schema
from farthing.wording import many

if TYPE_CHECKING:
    import pyarrow as pa


#: Labels must have exactly these types, where a filter would take more; and how to write them.
_LABELS: dict[str, type] = {DECIMAL: Decimal, INTEGER: int, TIMESTAMP: datetime}
_FORM = {DECIMAL: "Decimal('1.50')", INTEGER: "15", TIMESTAMP: "datetime(2013, 1, 31, 12)"}
#: Labels that follow from bins and declared categories are listed up to this many.
MOST_LISTED = 10_000


class KeyQuery(Query):
    """A question about the labels that a key gives to rows."""

    __slots__ = ()

    by: object
    categories: object

    @property
    def key(self) -> tuple[Key, ...]:
        """The columns of the key, or functions of them; none for one answer."""
        return cast(tuple[Key, ...], self.by or ())

    @property
    def domain(self) -> tuple[Label, ...] | None:
        """The labels, where they are known in advance."""
        return cast(tuple[Label, ...] | None, self.categories)

    @property
    def size(self) -> int | None:
        """How many labels there are, where they are known."""
        return None if self.domain is None else len(self.domain)

    def check_fields(self) -> None:
        require_categories(self.domain, len(self.key))

    def columns(self) -> frozenset[str]:
        return frozenset(column_of(key) for key in self.key)

    def check_columns(self, schema: Schema) -> None:
        """Rows can be grouped by these keys, and they can have these labels."""
        kinds = [kind_of(key, schema) for key in self.key]
        for label in self.domain or ():
            parts = label if isinstance(label, tuple) else (label,)
            for key, kind, part in zip(self.key, kinds, parts, strict=True):
                require_fits(str(key), kind, part)
                if not isinstance(part, _LABELS.get(kind, object) | None):
                    form = _FORM[kind]
                    raise InvalidInput(f"a label of {key}, which is {kind}, is exact: {form}")
                listed = domain_of(key, schema) if isinstance(key, Bins) else None
                if listed is not None and part not in (*listed, None):
                    raise InvalidInput(f"{key} has the labels {', '.join(map(str, listed))}")

    def completed(self, schema: Schema) -> Self:
        """With every label, where the keys or the schema list them and they are not too many.

        Missing values are not among them: a question that wants them lists None.
        """
        parts = [domain_of(key, schema) for key in self.key]
        known = [labels for labels in parts if labels is not None]
        unknown = len(known) < len(parts) or math.prod(map(len, known)) > MOST_LISTED
        if self.domain is not None or unknown:
            return self
        return self.changed(categories=tuple(product(*known)) if len(known) > 1 else known[0])

    def in_order(self, release: Release, schema: Schema) -> Release:
        """Labels that have an order of their own (`order_of`) in it, missing ones last.

        Labels without any order stay as they were drawn or listed.
        """
        if self.single or not any(order_of(key, schema) for key in self.key):
            return release
        return release.picked(self.order(self.labels_in(release), schema))

    def order(self, labels: Sequence[Label], schema: Schema) -> list[int]:
        """The places of labels in their order, column by column. The labels of a column without an
        order stay in the order in which each comes first."""
        orders = [order_of(key, schema) for key in self.key]
        seen: list[dict[Any, int]] = [{} for _ in orders]

        def place(i: int) -> list[tuple[bool, Any]]:
            label = labels[i]
            parts = label if isinstance(label, tuple) else (label,)
            return [
                (part is None, None if part is None else order(part))
                if order is not None
                else (False, first.setdefault(part, len(first)))
                for part, order, first in zip(parts, orders, seen, strict=True)
            ]

        return sorted(range(len(labels)), key=place)

    def listed(self, names: Names) -> str | None:
        """How many labels are listed, in words; None if they are not known."""
        if self.domain is None:
            return None
        parts = (label if isinstance(label, tuple) else (label,) for label in self.domain)
        named = sum(None not in label for label in parts)
        return listed_labels(names.labels(self.key), named, missing=named < len(self.domain))

    @property
    def limited(self) -> frozenset[str]:
        """The columns of which a unit counts with so many combinations of values."""
        return KeyQuery.columns(self)

    def keyed(self, rows: Rows, **more: Any) -> tuple[Rows, list[TypedColumn]]:
        """The rows, with more columns, and the columns of the key with their kinds.

        Rows outside a known domain go first, so that no unit spends its limit on them.
        """
        rows = rows.keyed(self.key, **more)
        names = [f"key{i}" for i in range(len(self.key))]
        if self.domain is not None:
            table = within(rows.table, names, self.domain, rows.kinds, rows.texts)
            rows = replace(rows, table=table)
        return rows, [(rows.table[name], rows.kinds[name]) for name in names]

    def data(self, rows: pa.Table) -> Histogram:
        labels, counts = labels_and_counts(rows)
        if self.domain is None:
            return Histogram(labels, counts) if labels.size else Histogram.without_rows()
        domain = np.empty(len(self.domain), dtype=object)
        domain[:] = [text_of(label) for label in self.domain]
        if not labels.size:
            return Histogram(domain, np.zeros(domain.size, dtype=np.int64))
        return Histogram.over(domain, labels, counts)


@dataclass(frozen=True, slots=True)
class LabelQuery(KeyQuery):
    """A question whose answer has a label for each value of a key."""

    by: fields.By
    _: KW_ONLY
    categories: fields.Categories = None
    contribution_limit: fields.ContributionLimit = None
    per_key_limit: fields.PerKeyLimit = 1
    count: fields.CountItem = None
    leak: fields.LeakItem = None
    repeats: fields.Repeats = 1
    simultaneous: fields.Simultaneous = False
    measure_loss: fields.MeasureLoss = False

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """How many of the noisy counts one unit can change."""

    @property
    def limit(self) -> int | None:
        """How many labels of a unit count: no more than there are."""
        sizes = (stated(self.contribution_limit), self.size)
        return min((size for size in sizes if size is not None), default=None)

    @property
    def needed_limits(self) -> dict[str, str]:
        """Of a known domain with one label nothing can be dropped."""
        if not self.drops or self.size == 1:
            return {}
        keys = ", ".join(map(str, self.key))
        return {"contribution_limit": f'how many labels of {keys} count of a unit, or "{AUTO}"'}

    @property
    def drops(self) -> bool:
        """Whether its price depends on how many labels of a unit count."""
        return True

    def bounded(self, rows: Rows) -> Bounded:
        rows, keys = self.keyed(rows)
        limit = stated(self.contribution_limit)
        bounded = rows.histogram(keys, limit, self.per_key_limit)
        return replace(bounded, contribution_limit=self.limit)

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """For all bars together, if the question says `simultaneous` and their number is known."""
        bars = self.bars
        expected = mechanism.expect(confidence, domain_size=self.size)
        if not self.simultaneous or bars is None:
            return expected
        level = joint_level(confidence, bars)
        counts = mechanism.expect(level, domain_size=self.size).counts
        return replace(
            expected, counts=None if counts is None else replace(counts, confidence=confidence)
        )

    @property
    def together(self) -> bool:
        return self.simultaneous

    @property
    def bars(self) -> int | None:
        """How many numbers there are at most, where that is known."""
        return self.size

    def errors(
        self, mechanism: Mechanism[Any], release: Release, confidence: float
    ) -> float | tuple[Interval, ...] | None:
        return mechanism.errors(release, confidence, together=self.simultaneous)

    def labels_in(self, release: Release) -> tuple[Label, ...]:
        return labels_of(release.labels, len(self.key))

    @property
    def noise_limit(self) -> int:
        return self.per_key_limit

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(map(str, self.key))

    @property
    def possible(self) -> Interval:
        return 0, math.inf

    @property
    def counts_rows(self) -> bool:
        """Whether rows are counted; else units."""
        return self.per_key_limit > 1

    def read_as(self, subject: str, described: str, names: Names) -> Words:
        """Its words, with how much of a unit counts. A limit that no unit can reach is left out."""
        automatic, rows = self.contribution_limit == AUTO, self.per_key_limit
        limit = None if automatic else self.limit
        labels, unit = names.labels(self.key), names.unit.each
        clause = f"each {unit} counts for at most {labels.many(limit or 0)}"
        if automatic:
            clause = f"each {unit} counts for a number of {labels.several} that is chosen first"
        elif limit is None or limit == self.size:
            clause = ""
        if self.counts_rows:
            each = f"with at most {rows} rows for each"
            clause = f"{clause}, {each}" if clause else f"each {unit} counts {each} {labels.each}"
        most = "any number of labels" if limit is None else f"at most {many(limit, 'label')}"
        return Words(
            subject=subject,
            limit=clause or None,
            listed=self.listed(names),
            contribution=f"{most}, with at most {rows} rows each" if self.counts_rows else most,
            described=described,
            things="rows" if self.counts_rows else "units",
            measurable=not self.measure_loss
            and self.contribution_limit not in (None, AUTO, self.size)
            and not names.rows,
        )
