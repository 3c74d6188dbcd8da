"""Counts with sub-totals that add up: the total, by region, by region and ward, from one purchase.

Every level is a histogram of the same limited rows, with noise of its own; least squares make one
table of them in which each number is more accurate than by itself (`NestedCounts`).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import COUNT, Paid, Query, Result, coordinate_of
from farthing.engine.kinds.labels import KeyQuery
from farthing.engine.show.captions import Names, Words
from farthing.engine.sql.bounding import Bounded, Label
from farthing.engine.sql.conditions import Rows
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import PureDP
from farthing.mechanisms import Mechanism, Release
from farthing.mechanisms.counts.nested_counts import NestedCounts, above_zero
from farthing.mechanisms.protocol import Interval
from farthing.schema import Schema, Value
from farthing.wording import many


@dataclass(frozen=True, slots=True)
class RollupQuery(KeyQuery):
    """How many units (or rows) each label has, with the total and sub-totals that add up.

    A sub-total is for each label of the first column, of the first two, and so on. The labels are
    known: `categories` of all columns together, or those of the schema. Of each unit
    `contribution_limit` such labels count, and in a sub-total it counts once for each of them.
    """

    by: fields.By
    _: KW_ONLY
    categories: fields.Categories = None
    contribution_limit: fields.LabelsOfUnit = None
    per_key_limit: fields.PerKeyLimit = 1
    count: fields.CountItem = None
    kind: ClassVar[str] = "rollup"
    #: They come from above to below.
    in_order = Query.in_order

    def check_fields(self) -> None:
        KeyQuery.check_fields(self)
        fields.require_number(self.contribution_limit, self.kind)
        if any(None in self._parts(label) for label in self.domain or ()):
            raise InvalidInput("a rollup has no missing labels: in it, a missing part means all")

    @staticmethod
    def _parts(label: Label) -> tuple[Value, ...]:
        return label if isinstance(label, tuple) else (label,)

    @property
    def labels(self) -> tuple[tuple[Value, ...], ...]:
        """The labels of all levels: of each the first parts, none for the total."""
        leaves = [self._parts(label) for label in self.domain or ()]
        found = dict.fromkeys(leaf[:size] for leaf in leaves for size in range(len(leaf) + 1))
        return tuple(found)

    @property
    def limit(self) -> int:
        """How many labels of a unit count: no more than there are."""
        return min(n for n in (self.contribution_limit, self.size) if n is not None)

    @property
    def needed_limits(self) -> dict[str, str]:
        keys = ", ".join(map(str, self.key))
        needed = {"contribution_limit": f"how many labels of {keys} count of a unit"}
        return {} if self.size == 1 else needed

    def completed(self, schema: Schema) -> Self:
        """With every label, those of a column one after the other."""
        whole = KeyQuery.completed(self, schema)
        if whole.domain is None:
            raise InvalidInput(
                "a rollup needs categories, all labels of its columns together: of labels that are "
                "found first, small ones are not shown, and nothing would add up to the total"
            )
        labels = whole.domain
        return whole.changed(categories=[labels[i] for i in whole.order(labels, schema)])

    def roles(self) -> dict[str, int]:
        """As many as a unit changes on all levels, whatever pays."""
        free: Paid = {COUNT: PureDP(1.0)}
        return {COUNT: sum(times for _, times in self.mechanism_for(free).guarantees)}

    @property
    def noise_limit(self) -> int | None:
        return self.per_key_limit if self.limit == 1 else None

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        return NestedCounts(
            coordinate=coordinate_of(paid),
            contribution_limit=self.limit,
            per_key_limit=self.per_key_limit,
            parents=_parents(self.labels),
        )

    def bounded(self, rows: Rows) -> Bounded:
        rows, keys = self.keyed(rows)
        bounded = rows.histogram(keys, self.contribution_limit, self.per_key_limit)
        return replace(bounded, contribution_limit=self.limit)

    def labels_in(self, _: Release) -> tuple[Label, ...]:
        return self.labels

    def errors(
        self, mechanism: Mechanism[Any], release: Release, confidence: float
    ) -> tuple[Interval, ...]:
        assert isinstance(mechanism, NestedCounts)
        return mechanism.errors(release, confidence)

    @property
    def possible(self) -> Interval:
        return 0, math.inf

    def shown(self, result: Result) -> tuple[int | float, ...]:
        """At least 0, and they still add up."""
        labels = [label for label in result.labels if isinstance(label, tuple)]
        return above_zero(_parents(labels), result.counts or ())

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(map(str, self.key))

    def words(self, names: Names) -> Words:
        rows, unit, labels = self.per_key_limit, names.unit, names.labels(self.key)
        alone = len(self.key) == 1
        total, totals = ("the total", "the total") if alone else ("a sub-total", "sub-totals")
        clauses = []
        if self.contribution_limit is not None and self.limit != self.size:
            clauses.append(f"for at most {labels.many(self.limit)}")
        if self.contribution_limit != 1 and self.size != 1:
            clauses.append(f"in {total} once for each of its {labels.several}")
        if rows > 1:
            clauses.append(f"with at most {rows} rows for each {labels.each}")
        most = "" if self.contribution_limit is None else f"at most {many(self.limit, 'label')}"
        counted = f"{unit.several if rows == 1 else 'rows'} for each {labels.each}"
        if rows == 1 and self.contribution_limit != 1 and self.size != 1:  # no total of units
            counted = f"pairs of a {unit.each} and one of its {labels.several}"
        return Words(
            subject=f"The number of {counted}, with {totals}",
            limit=f"each {unit.each} counts {', '.join(clauses)}" if clauses else None,
            listed=self.listed(names),
            contribution=most if rows == 1 else f"{most}, with at most {rows} rows each",
            described=self.kind,
        )


def _parents(labels: Any) -> tuple[int, ...]:
    """The place of the label that each one is a part of; −1 for the total."""
    places = {label: place for place, label in enumerate(labels)}
    return tuple(places[label[:-1]] if label else -1 for label in labels)
