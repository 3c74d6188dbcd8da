"""Questions about people: their time beside plain SQL, and their error beside the peers.

The same text goes to DuckDB as plain SQL and to us, in turn on the same file: retention, a funnel
in order, a ratio for each group, and queries 1 and 6 of TPC-H at about scale factor 1. Ours is the
statement that limits every unit; a SELECT with several functions is several statements.

The error is that of one number at (ε, δ) = (1, 0), as a mean over many releases: a mean, a ratio of
two sums, and how many people have more than so many rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import farthing as fa
from benchmarks.findings import Beside, Findings, Goal, Table
from benchmarks.parts.engine import TARIFF
from benchmarks.parts.limits import drawn
from benchmarks.peers import Ask, ask
from benchmarks.shops import LINE_COLUMNS, tpch
from benchmarks.tables import MOST_VISITS, UPPER, visits
from farthing.ledger import Limits
from farthing.schema import Column, Schema

ROWS, CUSTOMERS, FEW = 10**7, 150_000, 10**5
EPSILON = 1.0
MEMORY = "12GB"
#: How often each text runs, and how often we and the peers release a number.
TIMES, OFTEN, REPEATS = 3, 500, 20
SLOWEST = 3.0
#: Seconds that a peer has for each question.
TIMEOUT = 300
#: People with more rows than this are counted.
BUSY = 12

VISITS = Schema(
    (
        Column("member", "integer"),
        Column("day", "date"),
        Column("event", "text", categories=("look", "cart", "buy")),
        Column("worth", "integer", lower=0, upper=UPPER),
        Column("pieces", "integer", lower=1, upper=9),
    )
)
LINES = Schema(
    (
        Column("custkey", "integer"),
        *LINE_COLUMNS,
        Column("l_shipdate", "date"),
    )
)
TEXTS = {
    "retention": "WITH firsts AS (SELECT member, MIN(day) AS first FROM visits GROUP BY member) "
    "SELECT DATE_TRUNC('month', first), DATE_TRUNC('month', day), COUNT(DISTINCT visits.member) "
    "FROM visits JOIN firsts USING (member) GROUP BY 1, 2",
    "funnel": "WITH a AS (SELECT member, MIN(day) AS looked FROM visits WHERE event = 'look' "
    "GROUP BY member), b AS (SELECT member, MIN(day) AS carted FROM visits JOIN a USING (member) "
    "WHERE event = 'cart' AND day >= looked GROUP BY member), c AS (SELECT member, MIN(day) AS "
    "paid FROM visits JOIN b USING (member) WHERE event = 'buy' AND day >= carted "
    "GROUP BY member) SELECT COUNT(*) FROM c",
    "ratio by group": "SELECT event, SUM(worth) / SUM(pieces) FROM visits GROUP BY event",
    "TPC-H 1": "SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, "
    "SUM(l_extendedprice) AS sum_base_price, SUM(l_extendedprice * (1 - l_discount)) AS "
    "sum_disc_price, SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, "
    "AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, "
    "COUNT(*) AS count_order FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' "
    "DAY GROUP BY l_returnflag, l_linestatus",
    "TPC-H 6": "SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate "
    ">= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR AND l_discount "
    "BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24",
}
PEERS = {"tumult": "Tumult Analytics", "smartnoise": "SmartNoise SQL", "opendp": "OpenDP Polars"}
#: The questions of which the error is compared, in plain SQL.
ASKED = {
    "mean": "SELECT AVG(worth) FROM visits",
    "ratio": "SELECT SUM(worth) / SUM(pieces) FROM visits",
    "people with many rows": "SELECT COUNT(*) FROM (SELECT member, COUNT(*) AS n FROM visits "
    f"GROUP BY member) AS people WHERE n > {BUSY}",
}


def measure(rows: int = ROWS, customers: int = CUSTOMERS) -> Findings:
    """Both tables."""
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "visits.parquet", Path(folder) / "few.parquet"
        visits(large, rows)
        visits(small, FEW)
        lines = tpch(Path(folder), customers)["lineitem"]
        times, goals = timed(large, lines)
        errors, besides = compared(small)
    return Findings("Questions about people", (times, errors), tuple(goals), tuple(besides))


def timed(visits_path: Path, lines: Path) -> tuple[Table, list[Goal]]:
    """Every text as plain SQL and as what runs for us."""
    cells, goals = [], []
    certificate = TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    about: dict[Path, dict[str, Any]] = {
        visits_path: {"unit": "member", "schema": VISITS},
        lines: {"unit": "custkey", "schema": LINES},
    }
    for path, declared in about.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            fa.open(
                path,
                **declared,
                dataset=path.stem,
                memory=MEMORY,
                limits=Limits(contribution_limit=12, per_key_limit=100),
                ledger=Path(folder) / "budget.db",
                tariff=certificate,
                farthings=1000,
            ) as data,
        ):
            for name, text in TEXTS.items():
                if name.startswith("TPC-H") == (path == lines):
                    details = data.sql(text).plan()._details
                    plain = _best(lambda text=text, path=path: _plain(text, path))
                    statements = [step.statement for step in details.steps.values()]
                    run = details.context.source.run
                    ours = _best(lambda run=run, all_=statements: [run(one) for one in all_])
                    times = f"{plain:.2f}", f"{ours:.2f}", f"{ours / plain:.2f}"
                    cells.append([name, str(len(statements)), *times])
                    what = f"{name}, beside the plain SQL"
                    goals.append(Goal(what, ours / plain, SLOWEST, "×"))
    header = ["question", "numbers", "plain SQL s", "farthing s", "ratio"]
    caption = (
        "The same text in DuckDB as plain SQL and with every unit limited, best of "
        f"{TIMES}: visits of people, and line items of TPC-H with the customer as unit."
    )
    return Table(caption, header, cells), goals


def _plain(text: str, path: Path) -> None:
    with duckdb.connect(config={"memory_limit": MEMORY}) as connection:
        connection.execute(f"CREATE VIEW {path.stem} AS FROM '{path}'")
        connection.execute(text).fetchall()


def _best(run: Callable[[], Any]) -> float:
    times = []
    for _ in range(TIMES):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def compared(path: Path) -> tuple[Table, list[Beside]]:
    """Mean absolute errors of ours and of the peers."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW visits AS FROM '{path}'")
        rows = connection.execute("SELECT COUNT(*) FROM visits").fetchall()[0][0]
        truth = {name: float(connection.execute(t).fetchall()[0][0]) for name, t in ASKED.items()}
    ours = {name: _ours(path, name, truth[name]) for name in ASKED}
    cells = [[f"farthing {fa.__version__}", *(f"{ours[name]:.3g}" for name in ASKED)]]
    besides = []
    rho = 0.5 / fa.zcdp_noise_multiplier(EPSILON, 1e-6) ** 2
    for peer, title in PEERS.items():
        shared = {"epsilon": EPSILON, "delta": 1e-6, "rho": rho, "limit": MOST_VISITS}
        asks = [
            Ask(name, str(path), rows, REPEATS, **shared, upper=UPPER, k=BUSY) for name in ASKED
        ]
        told = ask(peer, asks, TIMEOUT)
        title = f"{title} {next((one.version for one in told if one.version), '')}".strip()
        row = [title]
        for name, one in zip(ASKED, told, strict=True):
            released = [number for each in one.releases for number in each.values()]
            error = _error(released, truth[name]) if released else None
            row.append(one.failure if error is None else f"{error:.3g}")
            besides.append(Beside(name, "mean error", ours[name], title, error, one.failure, 0.3))
        cells.append(row)
    caption = (
        f"Mean absolute error at ε = {EPSILON:g} of one question about {FEW:,} rows of "
        f"{FEW // 10:,} people with at most {MOST_VISITS} rows each; ours of {OFTEN} releases, a "
        f"peer's of {REPEATS}. A mean and a ratio are two noisy numbers that share ε."
    )
    return Table(caption, ["library", *ASKED], cells), besides


def _ours(path: Path, name: str, truth: float) -> float:
    numbers = 1 if name.startswith("people") else 2
    tariff = fa.Tariff({"count": (fa.PureDP(EPSILON / numbers), 1)}, farthings=numbers)
    certificate = tariff.certify(tolerance=0.01, deltas=(1e-6,), epsilons=(EPSILON,))
    with (
        tempfile.TemporaryDirectory() as folder,
        fa.open(
            path,
            unit="member",
            dataset="visits",
            schema=VISITS,
            ledger=Path(folder) / "budget.db",
            tariff=certificate,
            farthings=numbers,
        ) as data,
    ):
        limited = {} if numbers == 1 else {"per_key_limit": MOST_VISITS}
        plan = data.sql(ASKED[name], **limited).plan()
        step = plan._details.steps[""]
        query = step.purchase.query
        expectation = query.expect(step.mechanism, 0.95)
        released = [
            float((found.counts or (0,))[0])
            for release in drawn(plan._details, OFTEN)
            for found in [query.result(release, expectation)]
        ]
    return _error(released, truth)


def _error(released: Sequence[float], truth: float) -> float:
    return float(np.mean(np.abs(np.array(released) - truth)))
