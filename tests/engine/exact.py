"""What a statement in SQL gives on an engine before any noise, and what DuckDB gives for a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from farthing.engine.kinds.base import Query
from farthing.engine.kinds.completed import completed_query
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import labels_of
from farthing.engine.sql_questions.questions import queries_in
from farthing.ledger.declared_data import Dataset
from tests.engine.engines import measured

#: Numbers by the label of their group, which is () where there is one number alone.
Numbers = dict[tuple[Any, ...], float]


def asked(source: Source, about: Dataset, text: str, **options: Any) -> dict[str, Numbers]:
    """The numbers of every function of a SELECT, by its name."""
    found = queries_in(text, about, options)
    return {name: numbers(source, about, query) for name, query in found.items()}


def numbers(source: Source, about: Dataset, query: Query) -> Numbers:
    """The numbers of one question, as the engine adds them up."""
    schema, unit = about.declared_schema, about.unit
    query = completed_query(query, schema, unit, about.limits)
    whole, table, _ = measured(source, schema, query, unit=unit)
    rows = table.to_pylist()
    key = tuple(getattr(whole, "by", None) or ())
    if whole.kind == "quantile":
        return {(): _quantile(rows, whole)}
    number = _NUMBERS.get(whole.kind, lambda row, _: int(row["n"]))
    labels = labels_of([row["label"] for row in rows], len(key)) if key and rows else ()
    groups = [label if isinstance(label, tuple) else (label,) for label in labels]
    return {
        label: number(row, whole)
        for label, row in zip(groups if key else [()], rows, strict=True)
        if whole.kind not in ("mean", "ratio") or int(row["n"])
    }


_NUMBERS: Mapping[str, Callable[[Any, Any], float]] = {
    "sum": lambda row, query: int(row["n"]) / 10**query.decimals,
    "mean": lambda row, query: query.estimates((int(row["n"]), int(row["n1"])), ())[0],
    "ratio": lambda row, _: int(row["n1"]) / int(row["n"]),
}


def _quantile(rows: list[dict[str, Any]], query: Any) -> float:
    """The first value up to which at least this part of the rows lies."""
    total, passed = sum(int(row["n"]) for row in rows), 0
    for row in sorted(rows, key=lambda row: row["value"]):
        passed += int(row["n"])
        if passed >= query.probability * total:
            break
    return float(row["value"]) / 10**query.decimals


@contextmanager
def plain_sql(tables: Mapping[str, Path]) -> Iterator[Callable[[str, int], list[Numbers]]]:
    """Runs texts in DuckDB over these tables: the numbers of each column after `keys` columns."""
    with duckdb.connect() as connection:
        for name, path in tables.items():
            connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")
        connection.execute("CREATE MACRO days(a, b) AS a - b")

        def run(text: str, keys: int) -> list[Numbers]:
            rows = connection.execute(text).fetchall()
            width = len(connection.description)
            return [
                {
                    tuple(map(_label, row[:keys])): float(row[column])
                    for row in rows
                    if row[column] is not None
                }
                for column in range(keys, width)
            ]

        yield run


def _label(value: Any) -> Any:
    if isinstance(value, datetime) and value == datetime(value.year, value.month, value.day):
        return value.date()
    return value


def without_zeros(numbers: Numbers) -> Numbers:
    """Labels that are known have a 0 where a database has no row."""
    return {label: number for label, number in numbers.items() if number}


@contextmanager
def on_engine(
    engine: str, private: Mapping[str, Path], public: Mapping[str, Path], server: Any
) -> Iterator[tuple[Source, Mapping[str, str]]]:
    """Private tables as one source, and where the public ones are; `server` is the session of Spark
    or the server of PostgreSQL."""
    places = {name: str(path) for name, path in public.items()}
    if engine == "postgres":
        with psycopg.connect(server.url(), autocommit=True) as connection:
            for name, path in {**private, **public}.items():
                _fill(connection, name, pq.read_table(path))
        source = open_source(server.url(), table=list(private))
        places = {name: name for name in public}
    else:
        spark = server if engine == "spark" else None
        source = open_source([str(path) for path in private.values()], spark=spark)
    yield source, places
    source.shut()


_TYPES = {"int64": "bigint", "string": "text", "date32[day]": "date", "bool": "boolean"}


def _fill(connection: Any, name: str, table: pa.Table) -> None:
    columns = ", ".join(f'"{f.name}" {_TYPES.get(str(f.type), "numeric")}' for f in table.schema)
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(f"CREATE TABLE {name} ({columns})")
    with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in zip(
            *(table.column(i).to_pylist() for i in range(table.num_columns)), strict=True
        ):
            copy.write_row(row)
