"""Cause: what Spark prints. Its logs and PySpark's quoted cells of the data on stderr.

A session that is made here prints nothing, whatever fails in it, and leaves nothing in the
working directory. What failed is told to handlers on the logger farthing.engine alone.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pyarrow as pa
import pytest

from farthing.engine.errors import EngineFailure
from farthing.engine.sources.opening import open_source
from farthing.engine.sources.spark_session import java_home
from farthing.engine.sql.statement import Statement
from farthing.errors import Unsupported
from tests.waiting import HANGS

CANARY = "canary 4711"
ANY = pa.schema({"any": pa.string()})
SCRIPT = f"""
import logging
import pyarrow as pa
import pyarrow.parquet as pq
from farthing.engine.errors import EngineFailure
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.statement import Statement
from farthing.engine.sql.statement import Texts
from farthing.schema import Schema

ANY = pa.schema({{"any": pa.string()}})
logging.basicConfig(level=logging.DEBUG)
for name in ("py4j", "pyspark"):
    logging.getLogger(name).setLevel(logging.ERROR)
pq.write_table(pa.table({{"member": [1], "k": ["{CANARY}"]}}), "rows.parquet")
source = open_source("rows.parquet", spark="local[1]")
table = source.declared(Schema(source.proposed_schema().columns))
assert source.run(source.statement(table, Texts())).num_rows == 1
for sql in (
    "SELECT raise_error(k) FROM {{view}}",
    "SELECT assert_true(k = 'x', k) FROM {{view}}",
    "SELECT no_such_function('{CANARY}')",
    "SELECT '{CANARY}",
):
    try:
        source.run(Statement(sql.format(view=source.parts[0].relation), ANY))
    except EngineFailure as failure:
        assert failure.__context__ is None
    else:
        raise SystemExit("it did not fail: " + sql)
source.shut()
print("done")
"""


def test_a_session_made_here_prints_nothing_and_leaves_nothing(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", SCRIPT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "done\n"
    assert done.stderr == ""
    assert os.listdir(tmp_path) == ["rows.parquet"]


def test_a_session_that_was_handed_in_keeps_pyspark_quiet(spark, capfd, caplog) -> None:
    """log4j belongs to whoever made the session; PySpark's own loggers are still meanwhile."""
    frame = spark.createDataFrame([(1, CANARY)], "member INT, k STRING")
    source = open_source(frame, spark=spark)
    with caplog.at_level(logging.DEBUG, "farthing"), pytest.raises(EngineFailure) as failure:
        source.run(
            Statement(f"SELECT no_such_function('{CANARY}') FROM {source.parts[0].relation}", ANY)
        )
    assert failure.value.__context__ is None
    printed = capfd.readouterr()
    assert CANARY not in printed.out + printed.err
    assert CANARY not in caplog.text
    source.shut()


def test_the_owner_sees_what_failed(spark) -> None:
    heard: list[str] = []

    class Owner(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(self.format(record))

    owner, logger = Owner(), logging.getLogger("farthing.engine")
    source = open_source(spark.createDataFrame([(1,)], "member INT"), spark=spark)
    logger.addHandler(owner)
    try:
        with pytest.raises(EngineFailure):
            source.run(Statement("SELECT no_such_function()", ANY))
    finally:
        logger.removeHandler(owner)
        source.shut()
    assert "no_such_function" in heard[0]


def test_a_java_home_without_java_is_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unsupported, match="JAVA_HOME"):
        java_home()
