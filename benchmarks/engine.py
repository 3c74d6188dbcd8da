"""The query engine: bounding against a plain GROUP BY, and the private part of a query.

python -m benchmarks.engine [rows]        # 1e7 unless told; 1e8 needs 2 GB of disk
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import farthing as fa
from benchmarks.timing import own_megabytes, table
from farthing.engine import open_source
from farthing.engine.sources.base import Source
from farthing.engine.sql.bounding import bounded_histogram
from farthing.engine.sql.statement import Statement
from farthing.engine.sql.texts import Texts
from farthing.schema import Schema

KEYS = 100_000
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


def report(rows: int = 10**7) -> str:
    """Both tables, in Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        generate(path, rows)
        return "\n".join(
            ["## Query engine\n", bounding(path, rows), private(path, Path(folder) / "budget.db")]
        )


def generate(path: Path, rows: int) -> None:
    """Ten rows per unit on average, keys with a Zipf-like shape."""
    duckdb.sql(
        f"COPY (SELECT (hash(i) % {rows // 10})::BIGINT AS member, "
        f"pow({KEYS}, (hash(7 * i + 1) % 1000003) / 1000003.0)::BIGINT AS article, "
        f"'article ' || pow({KEYS}, (hash(7 * i + 1) % 1000003) / 1000003.0)::BIGINT AS title "
        f"FROM range({rows}) t(i)) TO '{path}'"
    )


def bounding(path: Path, rows: int) -> str:
    """Distinct (unit, key) pairs counted by hand, and bounded histograms, in turn."""
    cells = []
    for key in ("article", "title"):
        pairs = f"SELECT DISTINCT member, {key} FROM '{path}'"
        by_hand = f"SELECT {key}, count(*) FROM ({pairs}) GROUP BY ALL"
        plain: tuple[float, float] | None = None
        for label, limit in (("by hand", 0), ("no limit", None), ("Δ = 10", 10), ("Δ = 30", 30)):
            source = open_source(str(path), memory=MEMORY)
            statement = Statement(by_hand, ())
            if label != "by hand":
                statement = _statement(source, key, limit)
            runs = [_timed(source.run, statement) for _ in range(1 if rows > 10**7 else 3)]
            source.shut()
            seconds, busy = min(run[0] for run in runs), min(run[1] for run in runs)
            plain = plain or (seconds, busy)
            ratios = f"{seconds / plain[0]:.2f}", f"{busy / plain[1]:.2f}"
            cells.append([key, label, f"{seconds:.2f}", ratios[0], f"{busy:.2f}", ratios[1]])
    title = f"Bounded histogram of {rows:.0e} rows, {rows // 10:.0e} units, {KEYS:.0e} keys, DuckDB"
    peak = f"\nPeak memory {own_megabytes() / 1024:.1f} GB, limit for DuckDB {MEMORY}.\n"
    return f"{title}\n\n" + table(["key", "limit", "s", "ratio", "CPU s", "ratio"], cells) + peak


def private(path: Path, ledger: Path) -> str:
    """Mechanism and ledger of one query on 10⁵ keys: everything but the engine's own statement."""
    certificate = TARIFF.certify(tolerance=0.5, deltas=(1e-3, 1e-5), epsilons=(1.0,))
    data = fa.open(path, unit="member", ledger=ledger, tariff=certificate, farthings=1_000)
    questions = {
        "top-10 with counts": data.top_k("article", k=10),
        "histogram with threshold": data.histogram("article", contribution_limit=10),
        "count": data.count(),
    }
    cells = []
    for name, question in questions.items():
        plan = question.plan()
        source = plan._context.source
        rows = source.run(plan._step.statement)
        source.run = lambda _, rows=rows: rows  # its part is done
        whole = min(_timed(plan.run, again=True)[0] for _ in range(7))
        planning = min(_timed(question.plan)[0] for _ in range(7))
        del source.run
        cells.append([name, f"{rows.num_rows}", f"{1000 * planning:.0f}", f"{1000 * whole:.0f}"])
    data.shut()
    return "Private part of one query\n\n" + table(
        ["query", "rows from engine", "ms to plan", "ms mechanism and ledger"], cells
    )


def _statement(source: Source, key: str, limit: int | None) -> Statement:
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


if __name__ == "__main__":
    print(report(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7))
