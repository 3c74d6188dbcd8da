"""The query engine: bounding against a plain GROUP BY, and the private part of a query."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import farthing as fa
from benchmarks.findings import Findings, Goal, Table
from benchmarks.tables import KEYS, events
from benchmarks.timing import best_of, own_megabytes
from farthing.engine import open_source
from farthing.engine.sources.base import Source
from farthing.engine.sql.bounding import bounded_histogram
from farthing.engine.sql.statement import Statement, Texts
from farthing.schema import Schema

MEMORY = "12GB"
TARIFF = fa.Tariff(
    {
        "select": (fa.BoundedRange(0.1), 1),
        "count": (fa.PureDP(0.1), 4),
        "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
    },
    farthings=1_000,
    delta_units=1000,
    delta_unit=1e-9,
)


def measure(rows: int = 10**7) -> Findings:
    """Both tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        events(path, rows)
        bounded, limits = bounding(path, rows)
        asked, times = private(path, Path(folder) / "budget.db")
    return Findings("Query engine", (bounded, asked), (*limits, *times))


def bounding(path: Path, rows: int) -> tuple[Table, list[Goal]]:
    """Distinct (unit, key) pairs counted by hand, and bounded histograms, in turn."""
    cells, goals = [], []
    for key in ("article", "title"):
        pairs = f"SELECT DISTINCT member, {key} FROM '{path}'"
        by_hand = f"SELECT {key}, count(*) AS n FROM ({pairs}) GROUP BY ALL"
        plain: tuple[float, float] | None = None
        for label, limit in (("by hand", 0), ("no limit", None), ("Δ = 10", 10), ("Δ = 30", 30)):
            source = open_source(str(path), memory=MEMORY)
            statement = Statement(by_hand, pa.schema({key: pa.string(), "n": pa.int64()}))
            if label != "by hand":
                statement = bounded_statement(source, key, limit)
            runs = [_timed(source.run, statement) for _ in range(3)]
            source.shut()
            seconds, busy = min(run[0] for run in runs), min(run[1] for run in runs)
            plain = plain or (seconds, busy)
            ratios = f"{seconds / plain[0]:.2f}", f"{busy / plain[1]:.2f}"
            cells.append([key, label, f"{seconds:.2f}", ratios[0], f"{busy:.2f}", ratios[1]])
            if limit:
                what = f"histogram of {key}, {label}, beside a plain distinct GROUP BY"
                goals.append(Goal(f"{what}, work", busy / plain[1], 2.5, "×"))
    each = f"SELECT count(DISTINCT article) AS n FROM '{path}' GROUP BY member"
    share = duckdb.sql(f"SELECT avg((n > 10)::INT) FROM ({each})").fetchall()[0][0]
    title = (
        f"Bounded histogram of {rows:.0e} rows, {rows // 10:.0e} units, of which {share:.0%} have "
        f"more than 10 keys, {KEYS:.0e} keys, DuckDB, best of three. Peak memory "
        f"{own_megabytes() / 1024:.1f} GB, limit for DuckDB {MEMORY}."
    )
    return Table(title, ["key", "limit", "s", "ratio", "CPU s", "ratio"], cells), goals


def private(path: Path, ledger: Path) -> tuple[Table, list[Goal]]:
    """Mechanism and ledger of one query on 10⁵ keys: everything but the engine's own statement."""
    certificate = TARIFF.certify(tolerance=0.5, deltas=(1e-3, 1e-5), epsilons=(1.0,))
    data = fa.open(path, unit="member", ledger=ledger, tariff=certificate, farthings=1_000)
    questions = {
        "top-10 with counts": data.top_k("article", k=10),
        "histogram with threshold": data.histogram("article", contribution_limit=10),
        "count": data.count(),
    }
    cells, goals = [], []
    for name, question in questions.items():
        plan = question.plan()
        source = plan.details.context.source
        rows = source.run(plan.details.steps[""].statement)
        source.run = lambda _, rows=rows: rows  # its part is done
        whole = min(_timed(plan.run, again=True)[0] for _ in range(7))
        planning = best_of(7, question.plan)[0]
        del source.run
        cells.append([name, f"{rows.num_rows}", f"{1000 * planning:.1f}", f"{1000 * whole:.0f}"])
        goals.append(Goal(f"a plan of a {name}", 1000 * planning, 50, "ms"))
    data.shut()
    header = ["query", "rows from engine", "ms to plan", "ms mechanism and ledger"]
    return Table(
        "The private part of one query, best of seven; planning in time of the processor.",
        header,
        cells,
    ), goals


def bounded_statement(source: Source, key: str, limit: int | None) -> Statement:
    """What runs for a histogram of `key` by `member`."""
    schema = Schema(source.proposed_schema().columns)
    rows = source.declared(schema)
    bounded = bounded_histogram(
        rows,
        (rows.member, schema["member"].kind),
        [(rows[key], schema[key].kind)],
        secret="key",
        contribution_limit=limit,
        per_key_limit=1,
    )
    return source.statement(bounded.expression, Texts())


def _timed(run: Callable[..., Any], *given: Any, **options: Any) -> tuple[float, float]:
    """Seconds on the clock, and seconds of all processors."""
    start, busy = time.perf_counter(), time.process_time()
    run(*given, **options)
    return time.perf_counter() - start, time.process_time() - busy
