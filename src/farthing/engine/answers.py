"""What comes back: labels, counts, intervals, the price, and what remains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from farthing.composition.tariff import Price
from farthing.engine.columns import labels_of
from farthing.engine.filters import value_from_json, value_to_json
from farthing.engine.procedures import Expectation
from farthing.engine.queries import (
    Label,
    QuantileQuery,
    Query,
    SumQuery,
    TopKQuery,
    query_from_json,
    query_to_json,
)
from farthing.mechanisms import Release

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True)
class Answer:
    """A release, with everything needed to read it.

    `counts` are None for a top-k without counts. Each interval is count ± `half_width` and holds
    the number it is about with probability `confidence`, one by one. (Where small noisy counts
    are withheld, that is the probability before it is known which are.) For a quantile the one
    label is the value, and `half_width` is in ranks: how many values may lie between it and
    the quantile. `stopped`: a top-k ended early because no further label stood out.
    """

    query: Query
    labels: tuple[Label, ...]
    counts: tuple[int | float, ...] | None
    half_width: float | None
    confidence: float
    stopped: bool
    price: Price
    used: Mapping[str, int]
    remaining: Price
    cached: bool = False

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def value(self) -> Any:
        """The one number of a count, a sum or a quantile."""
        if isinstance(self.query, QuantileQuery):
            return self.labels[0]
        if self.counts is None or len(self.counts) != 1:
            raise ValueError(f"this answer has {len(self)} labels; read labels and counts")
        return self.counts[0]

    @property
    def intervals(self) -> tuple[tuple[float, float], ...] | None:
        """count ± half_width for each label."""
        if self.counts is None or self.half_width is None:
            return None
        return tuple((c - self.half_width, c + self.half_width) for c in self.counts)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the labels are called."""
        return getattr(self.query, "by", None) or (getattr(self.query, "column", "what"),)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` reads it back."""
        return {
            "query": query_to_json(self.query),
            "labels": [
                label if type(label) in _PLAIN else _to_json(label) for label in self.labels
            ],
            "counts": None if self.counts is None else list(self.counts),
            "half_width": self.half_width,
            "confidence": self.confidence,
            "stopped": self.stopped,
            "price": {"farthings": self.price.farthings, "delta_units": self.price.delta_units},
            "used": dict(self.used),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, remaining: Price, cached: bool) -> Answer:
        """The answer that was kept as plain data."""
        return cls(
            query=query_from_json(data["query"]),
            labels=tuple(
                tuple(value_from_json(part) for part in label)
                if isinstance(label, list)
                else value_from_json(label)
                for label in data["labels"]
            ),
            counts=None if data["counts"] is None else tuple(data["counts"]),
            half_width=data["half_width"],
            confidence=data["confidence"],
            stopped=data["stopped"],
            price=Price(**data["price"]),
            used=dict(data["used"]),
            remaining=remaining,
            cached=cached,
        )

    def left_with(self, remaining: Price) -> Answer:
        """The same answer, with what remains after it."""
        return replace(self, remaining=remaining)

    def to_arrow(self) -> pa.Table:
        """Labels, counts and intervals as an Arrow table."""
        from farthing.engine.frames import arrow_table

        return arrow_table(self)

    def to_pandas(self) -> pd.DataFrame:
        """Labels, counts and intervals as a pandas table."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Labels, counts and intervals as a Polars table."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def plot(self, ax: Any = None) -> Any:
        """Bars with error bars on Matplotlib axes, which are returned."""
        from farthing.engine.frames import plot

        return plot(self, ax)

    def __rich__(self) -> RenderableType:
        from farthing.engine.shown import answer_table

        return answer_table(self)

    def __str__(self) -> str:
        from farthing.engine.shown import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from farthing.engine.charts import answer_html

        return answer_html(self)


def answer_of(
    query: Query,
    release: Release,
    expectation: Expectation,
    *,
    confidence: float,
    price: Price,
    used: Mapping[str, int],
) -> Answer:
    """Labels turned back from their texts, and intervals from what was expected.

    What remains is known once the entry is closed; `left_with` puts it in.
    """
    accuracy = expectation.counts
    counts = release.counts
    labels: tuple[Label, ...]
    if isinstance(query, QuantileQuery):
        labels = (_unscaled(release.labels[0], query.places),)
        accuracy = expectation.selection
    elif hasattr(query, "by"):
        labels = labels_of(release.labels, len(query.by))
    else:
        labels = release.labels
    half_width = None if accuracy is None else accuracy.half_width + release.moved
    if isinstance(query, TopKQuery) and not query.counts:
        half_width = None
    if isinstance(query, SumQuery) and counts is not None and half_width is not None:
        counts = tuple(_unscaled(count, query.places) for count in counts)
        half_width = half_width / 10**query.places
    return Answer(
        query=query,
        labels=labels,
        counts=counts,
        half_width=half_width,
        confidence=confidence,
        stopped=release.stopped,
        price=price,
        used=used,
        remaining=Price(0),
    )


_PLAIN = {str, int}


def _to_json(label: Label) -> Any:
    if isinstance(label, tuple):
        return [value_to_json(part) for part in label]
    return value_to_json(label)


def _unscaled(number: int | float, places: int) -> int | float:
    return number if places == 0 else number / 10**places
