"""Spark, for data past one machine: a session, a Spark Connect address, or one made here."""

from __future__ import annotations

import atexit
import json
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from farthing.engine.sources.base import OTHER, Source, log
from farthing.engine.sources.files import is_path_for_spark, local_path, require_inside, title_of
from farthing.engine.sources.java import java_home
from farthing.engine.sources.public_tables import PublicJoin, PublicTable
from farthing.engine.sources.spark_locations import (
    location_of_table,
    spark_location,
    spark_selection,
)
from farthing.engine.sources.spark_reading import (
    DIALECT,
    READERS,
    physical_column,
    without_warnings,
)
from farthing.engine.sources.tables import Physical, SourcePart, SourceTable
from farthing.engine.sql.statement import Statement
from farthing.errors import InvalidInput, Unsupported
from farthing.optional import installing

if TYPE_CHECKING:
    import pyarrow as pa

_VIEW = "farthing_source"
_Opened = TypeVar("_Opened")

#: What statements rely on, forced on the session before each of them: text is never expanded,
#: a and A are two columns, and no value raises an error.
SETTINGS: Mapping[str, str] = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
#: Loggers of PySpark that print what an error quotes.
_TALKATIVE = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

#: Log4j without a word; without an appender Spark would take it for not configured, and without
#: a level for its gateway it would say that it sets one.
_SILENCE = """status = off
appender.none.type = Null
appender.none.name = none
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
"""


class _Quiet:
    """No word from PySpark while a statement runs; what fails is in the owner's log.

    Statements may run side by side: the first one silences, the last one lets speak again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._before: list[tuple[logging.Logger, bool]] = []

    def __enter__(self) -> None:
        from pyspark.logger import PySparkLogger

        with self._lock:
            self._running += 1
            if self._running == 1:
                loggers = [PySparkLogger.getLogger(name) for name in _TALKATIVE]
                self._before = [(logger, logger.disabled) for logger in loggers]
                for logger in loggers:
                    logger.disabled = True

    def __exit__(self, *ended: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                for logger, disabled in self._before:
                    logger.disabled = disabled


_quiet = _Quiet()


@dataclass(frozen=True, slots=True)
class _Frame:
    """A data frame of Spark, and where its rows are."""

    frame: Any
    name: str
    location: str | None
    selection: str | None = None


class SparkSource(Source):
    """Tables in a Spark session."""

    dialect = "pyspark"
    _dialect = DIALECT
    _readers = READERS
    _moment = "TIMESTAMP '2000-01-01 00:00:00'"
    _wall_clock = "TIMESTAMP_NTZ"

    def __init__(self, session: Any, tables: Sequence[_Frame], *, own: bool) -> None:
        self._session = session
        self._own = own
        self._views: list[str] = []
        super().__init__([self._table(table) for table in tables])

    def _table(self, table: _Frame) -> SourceTable:
        """Our own name for the table, which goes with the source."""
        view = f"{_VIEW}_{id(self):x}_{len(self._views)}"
        table.frame.createOrReplaceTempView(view)
        self._views.append(view)
        failing = _stored_in_milliseconds(table.frame)
        columns = (
            Physical(field.name, "timestamp in milliseconds", OTHER, "NULL")
            if field.name in failing
            else physical_column(field.name, field.dataType.simpleString())
            for field in table.frame.schema.fields
        )
        part = SourcePart(view, tuple(columns))
        return SourceTable(table.name, table.location, (part,), table.selection)

    def _public(self, join: PublicJoin) -> PublicTable:
        found = _in_words(join.table, lambda: _opened(self._session, join.table))
        if found.selection is not None:
            raise InvalidInput(f"a public table must be a file or a table, got {join.table:.200}")
        local = found.location is not None and found.location.startswith("file:")
        by_path = local and is_path_for_spark(join.table)
        place = (found.location or "").removeprefix("file:") if by_path else join.table
        return PublicTable(place, found.location, self._table(found).parts)

    @staticmethod
    def _literal(text: str) -> str:
        """Written as bytes: nothing in it can be an escape."""
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    def _fetch(self, statement: Statement) -> pa.Table:
        given = {
            f"p{i}": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for i, value in enumerate(statement.parameters, 1)
        }
        with _quiet:
            force(self._session)
            return self._session.sql(statement.sql, args=given).toArrow()

    def shut(self) -> None:
        """A session at an address goes; any other belongs to whoever made it, and only our names
        for the tables go."""
        for view in self._views:
            self._session.catalog.dropTempView(view)
        if self._own:
            self._session.stop()


def open_spark(given: Sequence[Any], spark: Any) -> SparkSource:
    """A source from Parquet files, tables of the catalogue, or a Spark data frame."""
    texts = [os.fspath(data) for data in given if isinstance(data, str | os.PathLike)]
    shown = " and ".join(map(title_of, texts)) or "the data frame"

    def opened() -> SparkSource:
        session = session_of(spark)
        force(session)
        frames = [
            _opened(session, os.fspath(data))
            if isinstance(data, str | os.PathLike)
            else _Frame(data, "table", None)
            for data in given
        ]
        return SparkSource(session, frames, own=_is_address(spark))

    return _in_words(shown, opened)


def _in_words(shown: str, opened: Callable[[], _Opened]) -> _Opened:
    """What is opened, or InvalidInput without a word of what Spark said."""
    try:
        with _quiet:
            return opened()
    except (InvalidInput, Unsupported):
        raise
    except Exception:
        log.exception("the source %s could not be opened", shown)
    raise InvalidInput(f"{shown} could not be read by Spark; the owner's log says why")


def _opened(session: Any, text: str) -> _Frame:
    if is_path_for_spark(text):
        folder, pattern = spark_location(text), spark_selection(text)
        frame = session.read.parquet(text)
        require_inside(map(spark_location, frame.inputFiles()), folder)
        return _Frame(frame, title_of(text), folder, pattern)
    frame, name = session.table(text), text.split(".")[-1].strip("`")
    return _Frame(frame, name, *location_of_table(session, frame, text))


def session_of(spark: Any) -> Any:
    """The session itself, one at a Spark Connect address (sc://…), or a local one ("local")."""
    if not isinstance(spark, str):
        return spark
    try:
        with without_warnings():
            from pyspark.sql import SparkSession
    except ImportError:
        raise Unsupported(f"PySpark is not installed; {installing('spark')}") from None
    if _is_address(spark):
        try:
            with without_warnings():  # of its own: an existing one may be at another address
                return SparkSession.builder.remote(spark).create()
        except ImportError:
            raise Unsupported(f"Spark Connect needs gRPC; {installing('spark')}") from None
    if not spark.startswith("local"):
        raise InvalidInput('spark must be a session, an address sc://host:port, or "local[N]"')
    return _started(SparkSession, spark)


def _is_address(spark: Any) -> bool:
    return isinstance(spark, str) and spark.startswith("sc://")


def force(session: Any) -> None:
    """Every setting has its value, or Unsupported."""
    for name, value in SETTINGS.items():
        if session.conf.get(name, None) != value:
            session.conf.set(name, value)
            if session.conf.get(name, None) != value:
                raise Unsupported(f"Spark does not take {name} = {value}")


def _started(builder: Any, master: str) -> Any:
    """A local session that writes nothing to the terminal or to the working directory."""
    existing = builder.getActiveSession()
    if existing is not None:
        return existing
    folder = Path(tempfile.mkdtemp(prefix="farthing-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    silence = folder / "log4j2.properties"
    silence.write_text(_SILENCE, encoding="utf-8")
    # a question with many columns is deep: Spark dies silently where a thread has no room for it
    java = f"-Xss16m -Dlog4j2.configurationFile={silence.as_uri()} -Dderby.system.home={folder}"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": java,
    }
    making = builder.builder.master(master)
    for name, value in settings.items():
        making = making.config(name, value)
    home, before = java_home(), os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = home
    try:
        with without_warnings():
            return making.getOrCreate()
    except Exception:
        log.exception("Spark could not be started")
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before
    raise Unsupported("Spark could not be started; it needs Java 17 or newer")


def _stored_in_milliseconds(frame: Any) -> frozenset[str]:
    """Columns of local Parquet files that Spark may fail to read.

    It multiplies milliseconds by a thousand and raises an error where that is too much, before
    any function of ours sees the value. So the type is refused: it fits no kind.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: set[str] = set()
    for file in map(local_path, frame.inputFiles()):
        if not os.path.isfile(file):
            continue
        try:
            schema = pq.read_schema(file)
        except pa.ArrowException:  # not a Parquet file
            continue
        found |= {
            field.name
            for field in schema
            if pa.types.is_timestamp(field.type) and field.type.unit in ("s", "ms")
        }
    return frozenset(found)
