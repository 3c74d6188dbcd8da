"""Which engine a source belongs to."""

from __future__ import annotations

import os
from typing import Any

from farthing.engine.on_duckdb import open_file, open_frame
from farthing.engine.sources import Source
from farthing.errors import Unsupported


def open_source(
    data: Any,
    *,
    table: str | None,
    spark: Any,
    name: str | None,
    version: str | None,
    memory: str | None,
) -> Source:
    """PostgreSQL for an address, Spark where it was asked for, DuckDB for everything else."""
    try:
        import ibis  # noqa: F401 # every engine needs it
    except ImportError:
        raise Unsupported("Ibis is not installed; install farthing[engine]") from None
    if spark is not None:
        from farthing.engine.on_spark import open_spark

        return open_spark(data, spark, name=name, version=version)
    if isinstance(data, str) and data.startswith(("postgresql://", "postgresql+psycopg://")):
        from farthing.engine.on_postgres import open_postgres

        return open_postgres(data, table=table, name=name, version=version)
    if isinstance(data, str | os.PathLike):
        path = os.fspath(data)
        return open_file(path, table=table, name=name, version=version, memory=memory)
    return open_frame(data, name=name, version=version, memory=memory)
