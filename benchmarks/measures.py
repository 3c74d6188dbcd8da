"""Grouped means, a sum and a median next to Tumult Analytics, SmartNoise SQL and OpenDP's Polars.

FARTHING_TUMULT=… FARTHING_SMARTNOISE=… FARTHING_OPENDP=… python -m benchmarks.measures [rows]

As in benchmarks.peers. Every library gets the same (ε, δ) for each question and the same limits,
and the data keep to the limits, so that the error is that of the noise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

import farthing as fa
from benchmarks.engine import MEMORY
from benchmarks.peers import FIRST, TIMEOUT
from benchmarks.timing import table

#: Everybody has a row in this many of the groups.
LIMIT, GROUPS = 10, 100
UPPER = 100_000
EPSILON, DELTA = 1.0, 1e-6
RUNS = 5
QUESTIONS = ("grouped mean", "sum", "median")

LAST = """
version = importlib.metadata.version(given["package"])
print(json.dumps({"answers": answers, "seconds": seconds, "version": version}))
"""

#: Each defines ask(question) → {group: number}, or one number under "".
TUMULT = """
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from tmlt.analytics import (AddRowsWithID, KeySet, MaxGroupsPerID, MaxRowsPerGroupPerID,
                            MaxRowsPerID, QueryBuilder, RhoZCDPBudget, Session)
spark = SparkSession.builder.master("local[*]").config("spark.driver.memory", "8g")
spark = spark.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", 8)
spark = spark.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
frame = spark.read.parquet(path)
keys = KeySet.from_dict({"team": list(range(given["groups"]))})

def ask(question):
    session = Session.from_dataframe(RhoZCDPBudget(given["rho"]), "events", frame,
                                     protected_change=AddRowsWithID("member"))
    rows = QueryBuilder("events")
    if question == "grouped mean":
        rows = rows.enforce(MaxGroupsPerID("team", limit)).enforce(MaxRowsPerGroupPerID("team", 1))
        query = rows.groupby(keys).average("worth", low=0, high=given["upper"], name="n")
    elif question == "sum":
        query = rows.enforce(MaxRowsPerID(limit)).sum("worth", low=0, high=given["upper"], name="n")
    else:
        query = rows.enforce(MaxRowsPerID(limit)).median("worth", low=0, high=given["upper"],
                                                         name="n")
    found = session.evaluate(query, RhoZCDPBudget(given["rho"])).collect()
    return {str(r.team) if question == "grouped mean" else "": float(r.n) for r in found}
"""

SMARTNOISE = """
import pandas
from snsql import Privacy, from_connection
columns = {"member": {"type": "int", "private_id": True}, "team": {"type": "int"},
           "worth": {"type": "int", "lower": 0, "upper": given["upper"]}}
bounds = {"max_ids": limit, "sample_max_ids": False, "censor_dims": False}
rows = pandas.read_parquet(path)

def ask(question):
    if question == "median":
        return None
    reader = from_connection(rows, privacy=Privacy(epsilon=epsilon, delta=delta / 1.5),
                             metadata={"": {"main": {"events": {**columns, **bounds}}}})
    if question == "sum":
        query = "SELECT SUM(worth) AS n FROM main.events"
    else:
        query = "SELECT team, AVG(worth) AS n FROM main.events GROUP BY team"
    spent = reader.get_privacy_cost(query)
    scale = spent[0] / epsilon
    if scale > 1:  # several columns are drawn: each gets its part
        reader = from_connection(rows, privacy=Privacy(epsilon=epsilon / scale, delta=delta / 1.5),
                                 metadata={"": {"main": {"events": {**columns, **bounds}}}})
    spent = reader.get_privacy_cost(query)
    assert spent[0] <= epsilon * 1.0001, spent
    found = reader.execute(query)[1:]
    return {"": found[0][0]} if question == "sum" else {str(r[0]): r[1] for r in found}
"""

OPENDP = """
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib")
frame = pl.scan_parquet(path)
teams = pl.LazyFrame({"team": list(range(given["groups"]))}, schema={"team": pl.Int64})

def ask(question):
    # selections are measured in pure DP there; everything else in zCDP
    loss = dp.loss_of(epsilon=epsilon) if question == "median" else dp.loss_of(rho=given["rho"])
    context = dp.Context.compositor(
        data=frame, privacy_loss=loss, split_evenly_over=1,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("member")),
        margins=[dp.polars.Margin(by=by, max_length=given["rows"]) for by in ([], ["team"])])
    if question == "grouped mean":
        query = context.query().truncate_per_group(1, by=["team"]).truncate_per_group(limit)
        total = pl.col.worth.fill_null(0).dp.sum((0, given["upper"])).alias("n")
        query = query.group_by("team").agg(total, dp.len().alias("rows"))
        found = query.with_keys(teams).release().collect()
        return {str(r["team"]): r["n"] / max(r["rows"], 1) for r in found.iter_rows(named=True)}
    query = context.query().truncate_per_group(limit)
    if question == "sum":
        found = query.select(pl.col.worth.fill_null(0).dp.sum((0, given["upper"]))).release()
    else:
        grid = list(range(0, given["upper"] + 1, given["upper"] // 1000))
        found = query.select(pl.col.worth.fill_null(0).dp.median(grid)).release()
    return {"": float(found.collect().item())}
"""

ASKING = """
answers, seconds = {}, {}
for question in given["questions"]:
    start = time.perf_counter()
    try:
        answers[question] = [ask(question) for _ in range(given["runs"])]
        seconds[question] = (time.perf_counter() - start) / given["runs"]
    except Exception as error:
        answers[question] = f"{type(error).__name__}: {str(error):.120}"
"""

PEERS = (
    ("Tumult Analytics", "tmlt.analytics", "FARTHING_TUMULT", TUMULT),
    ("SmartNoise SQL", "smartnoise-sql", "FARTHING_SMARTNOISE", SMARTNOISE),
    ("OpenDP Polars", "opendp", "FARTHING_OPENDP", OPENDP),
)


def report(rows: int = 10**7) -> str:
    """One table: mean errors of ours, then of every peer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        generate(path, rows)
        truth = _truth(path)
        cells = [_cells(f"farthing {fa.__version__}", _ours(path), truth)]
        for name, package, variable, script in PEERS:
            cells.append(_peer(path, rows, truth, (name, package, variable, script)))
    header = ["library", *(f"{q} ({unit})" for q in QUESTIONS for unit in ("error", "s"))]
    title = (
        f"{rows:.0e} rows of {rows // LIMIT:.0e} members, a row each in {LIMIT} of {GROUPS} teams, "
        f"values from 0 to {UPPER}; ε = {EPSILON:g}, δ = {DELTA:g} for each question alone. Mean "
        f"absolute error of {RUNS} runs (of the sum in thousands, of the median in values).\n"
    )
    return "\n".join(["## Measures beside the peers\n", title, table(header, cells)])


def generate(path: Path, rows: int) -> None:
    """Salaries that differ between teams, a row for each of ten teams of everybody."""
    share = "(hash({} * i + {}) % 999983 + 1) / 999984.0"
    normal = f"sqrt(-2 * ln({share.format(3, 1)})) * cos(6.283185307 * {share.format(5, 2)})"
    team = f"((hash(i // {LIMIT}) % {GROUPS} + 7 * (i % {LIMIT})) % {GROUPS})::BIGINT"
    worth = f"least({UPPER}, exp(9.5 + 0.005 * team + 0.6 * {normal})::BIGINT)"
    duckdb.sql(
        f"COPY (SELECT i // {LIMIT} AS member, {team} AS team, {worth} AS worth "
        f"FROM range({rows}) t(i)) TO '{path}'"
    )
    # the alias of team is used in the same list: DuckDB allows it


def _truth(path: Path) -> dict[str, dict[str, float]]:
    means = duckdb.sql(f"SELECT team, avg(worth) FROM '{path}' GROUP BY 1").fetchall()
    both = f"SELECT sum(worth), median(worth) FROM '{path}'"
    total, middle = duckdb.sql(both).fetchall()[0]
    return {
        "grouped mean": {str(team): float(mean) for team, mean in means},
        "sum": {"": float(total)},
        "median": {"": float(middle)},
    }


def _ours(path: Path) -> dict[str, Any]:
    answers, seconds = {}, {}
    for question in QUESTIONS:
        start = time.perf_counter()
        answers[question] = [_run(path, question) for _ in range(RUNS)]
        seconds[question] = (time.perf_counter() - start) / RUNS
    return {"answers": answers, "seconds": seconds}


def _run(path: Path, question: str) -> dict[str, float]:
    """One release from a fresh ledger; the tariff sells what this question needs within (ε, δ)."""
    times = 2 * LIMIT if question == "grouped mean" else 1
    if question == "median":
        items = {"select": (fa.BoundedRange(EPSILON), 1)}
    elif question == "sum":  # of one number alone, Laplace noise is the narrower one
        items = {"count": (fa.PureDP(EPSILON), 1)}
    else:
        sigma = fa.gaussian_noise_multiplier(EPSILON, DELTA) * times**0.5
        items = {"count": (fa.Gaussian(sigma * (1 + 1e-9)), 1)}
    tariff = fa.Tariff(items, farthings=times)
    certificate = tariff.certify(tolerance=0.01, deltas=(DELTA,), epsilons=(EPSILON,))
    with tempfile.TemporaryDirectory() as folder:
        budget = {"ledger": Path(folder) / "budget.db", "tariff": certificate}
        with fa.open(path, unit="member", memory=MEMORY, farthings=times, **budget) as data:
            if question == "grouped mean":
                asked = data.mean(
                    "worth",
                    by="team",
                    categories=range(GROUPS),
                    lower=0,
                    upper=UPPER,
                    contribution_limit=LIMIT,
                    per_key_limit=1,
                )
                answer = asked.run()
                assert answer.counts is not None
                return {str(k): v for k, v in zip(answer.labels, answer.counts, strict=True)}
            if question == "sum":
                return {"": data.sum("worth", lower=0, upper=LIMIT * UPPER).run().value}
            median = data.quantile("worth", lower=0, upper=UPPER, per_key_limit=LIMIT)
            return {"": median.run().value}


def _peer(
    path: Path, rows: int, truth: dict[str, dict[str, float]], peer: tuple[str, ...]
) -> list[str]:
    name, package, variable, script = peer
    interpreter = os.environ.get(variable)
    if not interpreter:
        return [name, *["not installed", ""] * len(QUESTIONS)]
    given = {"path": str(path), "limit": LIMIT, "k": 0, "epsilon": EPSILON, "delta": DELTA}
    given |= {"leak": 0, "package": package, "rho": _rho(), "upper": UPPER, "groups": GROUPS}
    given |= {"questions": QUESTIONS, "runs": RUNS, "rows": rows}
    command = [interpreter, "-c", FIRST + script + ASKING + LAST, json.dumps(given)]
    options: dict[str, Any] = {"capture_output": True, "text": True, "cwd": path.parent}
    try:
        done = subprocess.run(command, check=True, timeout=TIMEOUT, **options)
    except subprocess.TimeoutExpired:
        return [name, *[f"more than {TIMEOUT} s", ""] * len(QUESTIONS)]
    except subprocess.CalledProcessError as error:
        return [name, f"failed: {error.stderr.strip().splitlines()[-1]:.80}", *[""] * 5]
    found = json.loads(done.stdout.splitlines()[-1])
    return _cells(f"{name} {found['version']}", found, truth)


def _rho() -> float:
    """The largest ρ-zCDP within (ε, δ), by the tightest conversion we have."""
    return 0.5 / fa.zcdp_noise_multiplier(EPSILON, DELTA) ** 2


def _cells(name: str, found: dict[str, Any], truth: dict[str, dict[str, float]]) -> list[str]:
    cells = [name]
    for question in QUESTIONS:
        answers = found["answers"][question]
        if isinstance(answers, str) or None in answers:
            cells += [answers if isinstance(answers, str) else "cannot", ""]
            continue
        errors = [
            abs(value - truth[question][key]) for one in answers for key, value in one.items()
        ]
        mean = sum(errors) / len(errors) / (1000 if question == "sum" else 1)
        cells += [f"{mean:.1f}", f"{found['seconds'][question]:.1f}"]
    return cells


if __name__ == "__main__":
    print(report(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7))
