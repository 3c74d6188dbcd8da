"""The same table on three engines, and what a statement gives on each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from farthing.engine.context import Asked
from farthing.engine.filters import filter_from
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.completed import completed_query
from farthing.engine.kinds.totals import SumQuery
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import (
    Bounded,
    Label,
    bounded_histogram,
    labels_and_counts,
    largest,
)
from farthing.engine.sql.conditions import condition, within
from farthing.engine.sql.measuring import Grouped
from farthing.engine.sql.statement import Texts
from farthing.ledger.declared_data import Limits
from farthing.schema import Column, Schema

_numbers = itertools.count()


def proposed(source: Source, **kinds: str) -> Schema:
    """What the source proposes, with other kinds where they are given."""
    columns = source.proposed_schema().columns
    return Schema(tuple(Column(c.name, kinds[c.name]) if c.name in kinds else c for c in columns))


def on_spark(spark: Any, rows: pa.Table, folder: Path) -> Source:
    """A table of Parquet files in Spark."""
    path = folder / f"rows{next(_numbers)}.parquet"
    pq.write_table(rows, path)
    return open_source(str(path), spark=spark)


def on_postgres(url: str, columns: str, values: Sequence[Sequence[Any]]) -> Source:
    """A new table of PostgreSQL; `columns` as in CREATE TABLE."""
    name = f"rows{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in values:
                copy.write_row(list(row))
    return open_source(url, table=name)


def read(source: Source, schema: Schema) -> list[dict[str, Any]]:
    """Every row through the schema."""
    table = source.declared(schema)
    return source.run(source.statement(table, Texts())).to_pylist()


def measured(
    source: Source, schema: Schema, query: Query, *, unit: str = "member", secret: str = "key"
) -> tuple[Query, pa.Table, Bounded]:
    """The query as it is asked, the rows of its statement, and what a unit can change of them."""
    whole = completed_query(query, schema, unit, Limits())
    asked = Asked.of(source, schema, unit, secret, whole)
    bounded = asked.query.bounded(asked.rows)
    return whole, source.run(asked.statement(source, bounded.expression)), bounded


def clipped_sums(rows: Any, unit: tuple[Any, str], value: Any, lower: int, upper: int) -> Bounded:
    """The sum over units of their own sum, moved into the bounds: the statement of a sum."""
    table = rows.select(who=unit[0], value=value)
    table = table.filter(table.who.notnull() & table.value.notnull())
    query = SumQuery("value", lower=lower, upper=upper, places=0)
    return query.measured(Grouped(table, {"who": unit[1]}, "key", None))


def histogram(
    source: Source,
    schema: Schema,
    by: Sequence[str],
    *,
    unit: str = "member",
    limits: tuple[int | None, int] = (None, 1),
    where: Any = None,
    categories: Sequence[Label] | None = None,
    candidates: int | None = None,
) -> dict[str, int]:
    """The bounded histogram that the engine counts, by the text of the key."""
    texts, table = Texts(), source.declared(schema)
    rows = table
    if where is not None:
        rows = rows.filter(condition(rows, filter_from(where), schema.kinds, texts))
    if categories is not None:
        rows = within(rows, by, categories, schema.kinds, texts)
    expression = bounded_histogram(
        rows,
        (rows[unit], schema.kinds[unit]),
        [(rows[name], schema.kinds[name]) for name in by],
        secret="key",
        contribution_limit=limits[0],
        per_key_limit=limits[1],
    ).expression
    if candidates is not None:
        expression = largest(expression, candidates)
    labels, counts = labels_and_counts(source.run(source.statement(expression, texts)))
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))
