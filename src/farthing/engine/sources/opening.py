"""The source for an address or a table: a built-in engine, or one of an installed package.

A package offers a source as an entry point of the group `farthing.sources`. Its name is the scheme
of the addresses that it opens: `clickhouse` opens clickhouse://…  What it points to is called with
the address and the names of the tables, and returns a `Source`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, cast

from farthing.engine.sources.base import Source, without_trace
from farthing.engine.sources.duckdb import open_files, open_rows
from farthing.engine.sources.files import local_path
from farthing.engine.sources.postgres import ADDRESSES, open_postgres
from farthing.engine.sources.spark import open_spark
from farthing.errors import FarthingError, InvalidInput
from farthing.optional import load, required

GROUP = "farthing.sources"
#: Schemes that no package can take.
BUILT_IN = frozenset(
    ("duckdb", "file", "postgres", "postgresql", "postgresql+psycopg", "sc", "spark", "sqlite")
)


def open_source(
    data: Any,
    *,
    table: str | Sequence[str] | None = None,
    spark: Any = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Source:
    """Spark where it was asked for, else by the address; DuckDB for everything else.

    A list of paths (or of tables of Spark's catalogue), or of tables in a database, is read as one.
    DuckDB takes this much `memory`, and so many `threads` of the machine; else all of them.
    """
    required("ibis")  # every engine needs it
    several = list(data) if isinstance(data, list | tuple) else [data]
    tables = [table] if table is None or isinstance(table, str) else list(table)
    if not several or not tables:
        raise InvalidInput("there must be one table or more, got an empty list")
    if spark is not None:
        return open_spark(several, spark)
    if not all(isinstance(place, str | os.PathLike) for place in several):
        if len(several) > 1:
            raise InvalidInput("several tables must be in files or in a database")
        return open_rows(several[0], memory=memory)
    texts = [os.fspath(place) for place in several]
    schemes = {text.partition("://")[0] for text in texts if "://" in text}
    outside = sorted((schemes - BUILT_IN) & set(load(GROUP)))
    if not outside and not any(text.startswith(ADDRESSES) for text in texts):
        places = [(local_path(text), name) for text in texts for name in tables]
        return open_files(places, memory=memory, threads=threads)
    if len(texts) > 1:
        raise InvalidInput("tables that are read as one must be in one database; list its tables")
    if outside:
        return _open_outside(outside[0], texts[0], tables)
    return open_postgres(texts[0], tables=tables)


def _open_outside(scheme: str, address: str, tables: Sequence[str | None]) -> Source:
    """The source that a package gives, or InvalidInput without a word of what its engine said."""
    packages = load(GROUP)
    opener = cast(Callable[[str, Sequence[str | None]], object], packages[scheme])
    source = without_trace(
        lambda: opener(address, tables),
        InvalidInput(f"the data at {scheme}:// could not be opened; the owner's log says why"),
        f"the source {scheme} could not be opened",
        passing=FarthingError,
    )
    if not isinstance(source, Source):
        raise packages.refused(scheme, f"it must return a Source, got {type(source).__name__}")
    return source
