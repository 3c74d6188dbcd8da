"""Which engine a source belongs to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from farthing.engine.sources.base import Source
from farthing.engine.sources.duckdb import open_files, open_frame
from farthing.engine.sources.files import local_path
from farthing.engine.sources.postgres import ADDRESSES, open_postgres
from farthing.engine.sources.spark import open_spark
from farthing.errors import InvalidInput, Unsupported
from farthing.optional import installing


def open_source(
    data: Any,
    *,
    table: str | Sequence[str] | None = None,
    spark: Any = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Source:
    """PostgreSQL for an address, Spark where it was asked for, DuckDB for everything else.

    A list of paths (or of tables of Spark's catalogue), or of tables in a database, is read as one.
    DuckDB takes this much `memory`, and so many `threads` of the machine; else all of them.
    """
    try:
        import ibis  # noqa: F401 # every engine needs it
    except ImportError:
        raise Unsupported(f"Ibis is not installed; {installing('engine')}") from None
    several = list(data) if isinstance(data, list | tuple) else [data]
    tables = [table] if table is None or isinstance(table, str) else list(table)
    if not several or not tables:
        raise InvalidInput("there must be one table or more, got an empty list")
    if spark is not None:
        return open_spark(several, spark)
    if not all(isinstance(one, str | os.PathLike) for one in several):
        if len(several) > 1:
            raise InvalidInput("several tables must be in files or in a database")
        return open_frame(several[0], memory=memory)
    texts = [os.fspath(one) for one in several]
    if not any(text.startswith(ADDRESSES) for text in texts):
        places = [(local_path(text), name) for text in texts for name in tables]
        return open_files(places, memory=memory, threads=threads)
    if len(texts) > 1:
        raise InvalidInput("tables that are read as one must be in one database; list its tables")
    return open_postgres(texts[0], tables=tables)
