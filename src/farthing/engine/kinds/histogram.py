"""How many units have each label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Any, ClassVar

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import (
    COUNT,
    LEAK,
    Paid,
    Result,
    counts_with,
    suits_counts,
    thresholded,
)
from farthing.engine.kinds.labels import LabelQuery
from farthing.engine.show.captions import Names, Words
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import Guarantee
from farthing.mechanisms import Expectation, Mechanism, Release, Repeated


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

    def suits(self, role: str, guarantee: Guarantee) -> bool:
        if role == COUNT:
            return suits_counts(guarantee, self.per_key_limit)
        return LabelQuery.suits(self, role, guarantee)

    @property
    def most_repeats(self) -> int:
        return 1 if self.categories is None else fields.LARGEST_REPEATS

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        if self.categories is not None:
            counts = counts_with(paid, self.coordinates, self.per_key_limit)
            return Repeated(counts, self.repeats)
        return thresholded(paid, self.coordinates, self.per_key_limit)

    def in_order(self, release: Release) -> Release:
        """Days and times that were discovered in their order, rows without one last.

        Of other labels the largest comes first, as it was drawn.
        """
        labels = self.labels_in(release.labels)
        if self.categories is not None or not all(_is_time(label) for label in labels):
            return release
        order = sorted(range(len(labels)), key=lambda i: (labels[i] is None, str(labels[i])))
        counts = release.counts or ()
        return replace(
            release,
            labels=tuple(release.labels[i] for i in order),
            counts=tuple(counts[i] for i in order),
        )

    def result(self, release: Release, expectation: Expectation) -> Result:
        assert expectation.counts is not None
        width = expectation.counts.half_width
        return Result(self.labels_in(release.labels), release.counts, width)

    def words(self, names: Names) -> Words:
        counted = "rows" if self.counts_rows else names.unit.several
        each = names.labels(self.key).each
        return self.read_as(f"The number of {counted} for each {each}", self.kind, names)


def _is_time(label: Any) -> bool:
    return label is None or isinstance(label, date)
