"""Which engine a source belongs to."""

from __future__ import annotations

import os
from typing import Any

from farthing.engine.sources.base import Source
from farthing.engine.sources.duckdb import open_file, open_frame
from farthing.engine.sources.files import local_path
from farthing.engine.sources.postgres import ADDRESSES, open_postgres
from farthing.engine.sources.spark import open_spark
from farthing.errors import Unsupported


def open_source(
    data: Any, *, table: str | None = None, spark: Any = None, memory: str | None = None
) -> Source:
    """PostgreSQL for an address, Spark where it was asked for, DuckDB for everything else."""
    try:
        import ibis  # noqa: F401 # every engine needs it
    except ImportError:
        raise Unsupported("Ibis is not installed; install farthing[engine]") from None
    if spark is not None:
        return open_spark(data, spark)
    if isinstance(data, str) and data.startswith(ADDRESSES):
        return open_postgres(data, table=table)
    if isinstance(data, str | os.PathLike):
        return open_file(local_path(os.fspath(data)), table=table, memory=memory)
    return open_frame(data, memory=memory)
