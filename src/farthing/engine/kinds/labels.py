"""Questions about labels: what histograms and top-k share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.engine.kinds.base import Rows
from farthing.engine.kinds.fields import Limit, stated
from farthing.engine.kinds.keys import KeyQuery
from farthing.engine.sql.bounding import Bounded, bounded_histogram, labels_and_counts
from farthing.engine.sql.keys import Label, labels_of, text_of
from farthing.mechanisms import Expectation, Histogram, Mechanism, Release
from farthing.mechanisms.accuracy import Interval, joint_level
from farthing.wording import many

if TYPE_CHECKING:
    import pyarrow as pa


class LabelQuery(KeyQuery):
    """A question whose answer has a label for each value of a key."""

    __slots__ = ()

    contribution_limit: Limit
    per_key_limit: int
    simultaneous: bool
    measure_loss: bool

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
        return {"contribution_limit": f"how many labels of {', '.join(self.key)} count of a unit"}

    @property
    def drops(self) -> bool:
        """Whether its price depends on how many labels of a unit count."""
        return True

    def bounded(self, rows: Rows) -> Bounded:
        rows, keys = self.keyed(rows)
        bounded = bounded_histogram(
            rows.table,
            rows.owner,
            keys,
            secret=rows.secret,
            contribution_limit=stated(self.contribution_limit),
            per_key_limit=self.per_key_limit,
        )
        return replace(bounded, contribution_limit=self.limit)

    def data(self, rows: pa.Table) -> Histogram:
        labels, counts = labels_and_counts(rows)
        if self.domain is None:
            return Histogram(labels, counts) if labels.size else Histogram.without_rows()
        domain = np.empty(len(self.domain), dtype=object)
        domain[:] = [text_of(label) for label in self.domain]
        if not labels.size:
            return Histogram(domain, np.zeros(domain.size, dtype=np.int64))
        return Histogram.over(domain, labels, counts)

    def expect(self, mechanism: Mechanism[Any], confidence: float) -> Expectation:
        """For all bars together, if that is wanted and it is known how many there are."""
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

    def labels_in(self, texts: tuple[str, ...]) -> tuple[Label, ...]:
        """The labels that have these texts."""
        return labels_of(texts, len(self.key))

    @property
    def counted_things(self) -> str | None:
        """What is counted besides units."""
        return None if self.per_key_limit == 1 else "rows"

    def limited(self, unit: str) -> str | None:
        """No limit is told that no unit can reach."""
        key, rows = " and ".join(self.key), self.per_key_limit
        most = "" if rows == 1 else f" with at most {many(rows, 'row')} for each"
        limit = self.limit
        if limit is None or (self.size is not None and limit >= self.size):
            return most.removeprefix(" ") or None
        return f"each {unit} in at most {limit} {key}{most}"

    @property
    def contribution(self) -> str:
        return counted_in_words(self.limit, self.per_key_limit)


def counted_in_words(labels: int | None, rows: int) -> str:
    """How much of a unit counts."""
    keys = "any number of labels" if labels is None else f"at most {many(labels, 'label')}"
    return keys if rows == 1 else f"{keys}, with at most {many(rows, 'row')} each"
