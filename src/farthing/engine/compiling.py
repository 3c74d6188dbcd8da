"""From a query to one statement, and from its rows to what the mechanism runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.engine.bounding import (
    Bounded,
    Column,
    between,
    bounded_histogram,
    clipped_sums,
    counted_rows,
    fixed_point,
    largest,
)
from farthing.engine.columns import (
    INTEGER,
    KEYS,
    NUMBERS,
    check_filter,
    condition,
    key_text,
    require_fits,
    require_kind,
    text_of,
)
from farthing.engine.filters import OneOf
from farthing.engine.queries import (
    CountQuery,
    HistogramQuery,
    Label,
    QuantileQuery,
    Query,
    SumQuery,
    TopKQuery,
    columns_used,
    scaled,
)
from farthing.engine.sources import Source, counts_of, labels_and_counts
from farthing.errors import InvalidInput
from farthing.mechanisms import Histogram

if TYPE_CHECKING:
    import pyarrow as pa

#: How many different values a quantile may distinguish.
LARGEST_GRID = 10_000_000


@dataclass(frozen=True, slots=True)
class Compiled:
    """A statement for one engine, and the limits per unit that it enforces."""

    sql: str
    bounded: Bounded


def check_query(query: Query, source: Source, unit: str) -> None:
    """The columns exist and can be used like this. Looks at types only, never at rows."""
    used = columns_used(query)
    source.require_columns(used | {unit})
    require_kind(unit, source.kinds[unit], KEYS, "the unit")
    if unit in used:
        raise InvalidInput(
            f"{unit} is the unit of privacy: it cannot be filtered, grouped or added up"
        )
    check_filter(query.where, source.kinds)
    if isinstance(query, HistogramQuery | TopKQuery):
        for name in query.by:
            require_kind(name, source.kinds[name], KEYS, "a key")
        for label in query.categories or ():
            parts = label if isinstance(label, tuple) else (label,)
            for name, part in zip(query.by, parts, strict=True):
                require_fits(name, source.kinds[name], part)
    if isinstance(query, QuantileQuery | SumQuery):
        require_kind(query.column, source.kinds[query.column], NUMBERS, "the column")
    if isinstance(query, QuantileQuery):
        values = scaled(query.upper, query.places) - scaled(query.lower, query.places) + 1
        if values > LARGEST_GRID:
            raise InvalidInput(
                f"a quantile distinguishes at most {LARGEST_GRID} values, got {values}; "
                "use fewer decimal places or narrower bounds"
            )


def compile_query(
    query: Query, source: Source, *, unit: str, secret: str, candidates: int | None
) -> Compiled:
    """One statement whose rows are the bounded histogram, or one number.

    With `candidates` only that many of the largest counts leave the engine, and one more.
    """
    rows = source.table
    if query.where is not None:
        rows = rows.filter(condition(rows, query.where))
    if isinstance(query, HistogramQuery | TopKQuery) and query.categories is not None:
        rows = _within(rows, query.by, query.categories, source)
    bounded = _bounded(query, source, rows, unit, secret)
    expression = bounded.expression
    if candidates is not None:
        expression = largest(expression, candidates + 1, source.order)
    return Compiled(source.sql(expression), bounded)


def _bounded(query: Query, source: Source, rows: Any, unit: str, secret: str) -> Bounded:
    """What is asked of these rows, with each unit limited."""
    whose = rows[unit], source.kinds[unit]
    if isinstance(query, CountQuery):
        return counted_rows(rows, whose, query.per_key_limit)
    if isinstance(query, SumQuery):
        bounds = (scaled(bound, query.places) for bound in (query.lower, query.upper))
        return clipped_sums(rows, whose, _worth(query, source, rows), *bounds)
    keys: list[Column]
    if isinstance(query, QuantileQuery):
        rows = rows.select(who=rows[unit], value=_worth(query, source, rows))
        rows = rows.filter(rows.value.notnull())
        whose = rows.who, whose[1]
        bounds = (scaled(bound, query.places) for bound in (query.lower, query.upper))
        keys = [(between(rows.value, *bounds), INTEGER)]
    else:
        keys = [(rows[name], source.kinds[name]) for name in query.by]
    return bounded_histogram(
        rows,
        whose,
        keys,
        secret=secret,
        contribution_limit=query.contribution_limit,
        per_key_limit=query.per_key_limit,
    )


def _worth(query: QuantileQuery | SumQuery, source: Source, rows: Any) -> Any:
    column, kind = rows[query.column], source.kinds[query.column]
    return fixed_point(column, kind, query.places, source.real)


def data_from(query: Query, rows: pa.Table) -> Histogram | int:
    """What the mechanism runs on."""
    if isinstance(query, SumQuery):
        return int(rows.column(0)[0].as_py())
    if isinstance(query, CountQuery):
        return Histogram(np.array(["count"], dtype=object), counts_of(rows))
    labels, counts = labels_and_counts(rows)
    if isinstance(query, QuantileQuery):
        values = np.array([int(label[1:]) for label in labels], dtype=np.int64)
        return Histogram(values, counts) if values.size else Histogram.without_rows()
    if query.categories is not None:
        return _over(query.categories, labels, counts)
    return Histogram(labels, counts) if labels.size else Histogram.without_rows()


def _within(rows: Any, by: tuple[str, ...], categories: tuple[Label, ...], source: Source) -> Any:
    """Rows whose key is in the domain, so that no unit spends its limit on anything else."""
    if len(by) == 1:
        values = tuple(label for label in categories if not isinstance(label, tuple))
        return rows.filter(condition(rows, OneOf(by[0], values)))
    text = key_text([rows[name] for name in by], [source.kinds[name] for name in by])
    return rows.filter(text.isin([text_of(label) for label in categories]))


def _over(categories: tuple[Label, ...], labels: Any, counts: Any) -> Histogram:
    domain = np.empty(len(categories), dtype=object)
    domain[:] = [text_of(label) for label in categories]
    if not labels.size:
        return Histogram(domain, np.zeros(domain.size, dtype=np.int64))
    return Histogram.over(domain, labels, counts)
