"""The bounded histogram on Spark: its plan, its shuffles, and what skew does to its tasks.

Spark writes down what every task did (its event log); this reads it.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from benchmarks.parts.engine import bounded_statement
from farthing.engine import open_source
from farthing.engine.sources.spark_session import java_home

ROWS, LIMIT, PARTITIONS = 10**6, 10, 8
#: Expressions for `member` and `article` of row i.
SHAPES = {
    "even": ("hash(i) % 100000", "hash(3 * i + 1) % 10000"),
    "one unit with half of the rows": (
        "CASE WHEN i % 2 = 0 THEN 0 ELSE 1 + hash(i) % 50000 END",
        "hash(3 * i + 1) % 10000",
    ),
    "one unit with half of the rows, all different keys": (
        "CASE WHEN i % 2 = 0 THEN 0 ELSE 1 + hash(i) % 50000 END",
        "CASE WHEN i % 2 = 0 THEN i ELSE hash(3 * i + 1) % 10000 END",
    ),
    "one key in every unit": (
        "hash(i) % 100000",
        "CASE WHEN i % 10 = 0 THEN 0 ELSE hash(3 * i + 1) % 10000 END",
    ),
}


#: A line of a physical plan: its place, the operator, and what a shuffle is by.
_OPERATOR = re.compile(
    r"(?P<tree>[\s:+|-]*)(?:\*\(\d+\) )?(?P<name>\w+)(?:.*hashpartitioning\((?P<by>.*?), \d+)?"
)


@dataclass(frozen=True, slots=True)
class OnSpark:
    """One shape of data: seconds, shuffles, and how uneven the tasks after them were."""

    shape: str
    seconds: float
    shuffles: int
    megabytes: float
    largest_part: float
    slowest_task: float

    @property
    def cells(self) -> list[str]:
        """A row of the page."""
        return [
            self.shape,
            f"{self.seconds:.1f}",
            str(self.shuffles),
            f"{self.megabytes:.1f}",
            f"{self.largest_part:.1f} ×",
            f"{self.slowest_task:.1f} ×",
        ]


HEADER = [
    "data", "s", "shuffles", "MB shuffled", "largest partition beside the mean",
    "slowest task beside the median",
]  # fmt: skip


def measured() -> Iterator[OnSpark]:
    """Every shape, each by a statement that ran once before."""
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events"
        events.mkdir()
        spark = _session(events, folder)
        for number, (shape, (member, article)) in enumerate(SHAPES.items()):
            path = Path(folder) / f"{number}.parquet"
            made = f"SELECT {member} AS member, {article} AS article FROM range({ROWS}) t(i)"
            duckdb.sql(f"COPY (SELECT COLUMNS(*)::BIGINT FROM ({made})) TO '{path}'")
            yield _one(shape, spark, path, events)
        spark.stop()


def plan() -> list[str]:
    """The operators of the physical plan that move rows or gather them, outermost first."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "few.parquet"
        duckdb.sql(f"COPY (SELECT i % 9 AS member, i AS article FROM range(99) t(i)) TO '{path}'")
        spark = _session(None, folder)
        source = open_source(str(path), spark=spark)
        asked = bounded_statement(source, "article", LIMIT)
        given = {f"p{i}": str(value) for i, value in enumerate(asked.parameters, 1)}
        frame = spark.sql(asked.sql, args=given)
        text = frame._jdf.queryExecution().executedPlan().toString()
        source.shut()
        spark.stop()
    found = filter(None, map(_OPERATOR.match, re.sub(r"#\d+L?", "", text).splitlines()))
    named = [(one["tree"], one["name"], one["by"]) for one in found]
    return [
        f"{tree}{name}" + (f" by {by}" if by else "")
        for tree, name, by in named
        if name.endswith(("Exchange", "Aggregate", "Join", "Window", "Union", "Scan"))
    ]


def _session(events: Path | None, folder: str) -> Any:
    made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    made = made.config("spark.sql.shuffle.partitions", PARTITIONS)
    made = made.config("spark.ui.showConsoleProgress", "false")
    made = made.config("spark.sql.warehouse.dir", folder)
    # on a cluster no side of a join is small enough to be sent to everybody
    made = made.config("spark.sql.autoBroadcastJoinThreshold", "-1")
    # what Spark merges afterwards would hide what the shuffles are like
    made = made.config("spark.sql.adaptive.enabled", "false")
    if events is not None:
        made = made.config("spark.eventLog.enabled", "true")
        made = made.config("spark.eventLog.dir", events.as_uri())
        made = made.config("spark.eventLog.rolling.enabled", "false")
        made = made.config("spark.eventLog.compress", "false")
    session = made.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _one(shape: str, spark: Any, path: Path, events: Path) -> OnSpark:
    source = open_source(str(path), spark=spark)
    asked = bounded_statement(source, "article", LIMIT)
    source.run(asked)
    before = time.time()
    start = time.perf_counter()
    source.run(asked)
    seconds = time.perf_counter() - start
    source.shut()
    stages: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for task in _tasks(events):
        if task["Task Info"]["Launch Time"] >= 1000 * before:
            stages[task["Stage ID"]].append(task["Task Metrics"])
    return OnSpark(shape, seconds, *_shuffled(list(stages.values())))


def _tasks(events: Path) -> Iterator[dict[str, Any]]:
    for file in events.iterdir():
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if '"SparkListenerTaskEnd"' in line:
                yield json.loads(line)


def _shuffled(stages: list[list[dict[str, Any]]]) -> tuple[int, float, float, float]:
    """Shuffles, megabytes written by them, the largest partition, the slowest task."""
    written = [[t["Shuffle Write Metrics"]["Shuffle Bytes Written"] for t in s] for s in stages]
    read = [[t["Shuffle Read Metrics"]["Total Records Read"] for t in s] for s in stages]
    times = [[t["Executor Run Time"] for t in s] for s in stages]
    parts = [max(r) / statistics.mean(r) for r in read if len(r) > 1 and sum(r) > ROWS // 100]
    slow = [max(t) / max(statistics.median(t), 1) for t in times if len(t) > 2 and max(t) > 100]
    shuffles = sum(1 for w in written if sum(w) > 0)
    megabytes = sum(map(sum, written)) / 1e6
    return shuffles, megabytes, max(parts, default=1.0), max(slow, default=1.0)
