"""Grouped means, a sum and a median next to Tumult, SmartNoise SQL, OpenDP's Polars, diffprivlib.

Every library gets the same (ε, δ) for each question, the same limits and the noise that serves it
best: pure DP for one number, zCDP for a hundred. The data keep to the limits, so that the error is
that of the noise. The noise of a sum depends on its bounds alone: its error is a mean over many
releases from a small table, or the scale that a peer states, so that luck decides nothing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np

import farthing as fa
from benchmarks.findings import Beside, Findings, Table
from benchmarks.parts.limits import drawn
from benchmarks.peers import Ask, Told, ask
from benchmarks.tables import TEAMS, TEAMS_EACH, UPPER, salaries
from farthing.engine.session import Question

ROWS, FEW = 10**7, 10**4
EPSILON, DELTA = 1.0, 1e-6
#: How often peers release a sum from the small table, how often we do, and how far two such means
#: may lie apart: two standard errors of theirs.
REPEATS, OFTEN, SAME = 50, 2000, 0.3
#: What every member's total is below, which only we can be told; nobody loses anything to it.
TOTAL = 600_000
QUESTIONS = ("grouped mean", "sum", "median")
UNITS = {"grouped mean": "mean error", "sum": "mean error, thousands", "median": "mean error"}
PEERS = {"tumult": "Tumult Analytics", "smartnoise": "SmartNoise SQL", "opendp": "OpenDP Polars"}
PEERS["diffprivlib"] = "diffprivlib"
#: Slow to ask often, but they state the scale of their noise.
STATED = ("tumult", "opendp")
#: Seconds that a peer has for each question.
TIMEOUT = 360
MEMORY = "12GB"

#: Error and seconds of a question (None: the error is stated, and no answer came), or why not.
Measured = dict[str, tuple[float, float | None] | str]


def measure(rows: int = ROWS) -> Findings:
    """One table: mean errors of ours, then of every peer."""
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.parquet", Path(folder) / "small.parquet"
        salaries(large, rows)
        salaries(small, FEW)
        ours = {question: _ours(large, question) for question in QUESTIONS}
        narrow = _ours(large, "sum", upper=TOTAL)
        theirs = {peer: _peer(peer, large, small, rows) for peer in PEERS}
    name = f"farthing {fa.__version__}"
    cells = [_cells(name, ours)]
    cells.append(_cells(f"{name}, totals to {TOTAL:,}", {"sum": narrow}))
    cells += [_cells(peer, found) for peer, found in theirs.values()]
    besides = [
        Beside(f"{question}, {rows:.0e} rows", UNITS[question], ours[question][0], peer, *told)
        for peer, found in theirs.values()
        for question in QUESTIONS
        for told in [_told(found[question], 0)]
    ]
    besides = [replace(b, same=SAME) if b.question.startswith("sum") else b for b in besides]
    besides = [
        replace(b, note=b.note or "one release of each: luck within a few values")
        if b.question.startswith("median")
        else b
        for b in besides
    ]
    besides += [
        Beside(f"{question}, {rows:.0e} rows", "s", ours[question][1], peer, *told)
        for peer, found in theirs.values()
        for question in QUESTIONS
        for told in [_told(found[question], 1)]
        if told[0] is not None
    ]
    header = ["library", *(f"{q} ({unit})" for q in QUESTIONS for unit in ("error", "s"))]
    caption = (
        f"{rows:.0e} rows of {rows // TEAMS_EACH:.0e} members, a row each in {TEAMS_EACH} of "
        f"{TEAMS} teams, values from 0 to {UPPER:,}; ε = {EPSILON:g}, δ = {DELTA:g} for each "
        "question alone. Mean absolute error (of the sum in thousands, of the median in values) "
        f"and seconds of a release with reading the table. A sum with bounds of {TEAMS_EACH} × "
        f"{UPPER:,} a member has Laplace noise of scale 1,000 thousand in every library: mean of "
        f"{REPEATS} releases. A bound on a member's total, which peers cannot be told, gives less."
    )
    table = Table(caption, header, cells)
    return Findings("Measures beside the peers", (table,), besides=tuple(besides))


def _truth(path: Path, question: str) -> dict[str, float]:
    if question == "grouped mean":
        found = duckdb.sql(f"SELECT team, avg(worth) FROM '{path}' GROUP BY 1").fetchall()
        return {str(team): float(mean) for team, mean in found}
    shape = {"sum": "sum(worth)", "median": "quantile_disc(worth, 0.5)"}[question]
    return {"": float(duckdb.sql(f"SELECT {shape} FROM '{path}'").fetchall()[0][0])}


def _ours(path: Path, question: str, upper: int = TEAMS_EACH * UPPER) -> tuple[float, float]:
    """One release from a fresh ledger, for the time; then the same mechanism again and again."""
    times = 2 * TEAMS_EACH if question == "grouped mean" else 1
    sigma = fa.gaussian_noise_multiplier(EPSILON, DELTA) * times**0.5 * (1 + 1e-9)
    sold: dict[str, dict[str, fa.Guarantee]] = {
        "median": {"select": fa.BoundedRange(EPSILON)},
        "sum": {"count": fa.PureDP(EPSILON)},  # of one number alone, Laplace noise is narrower
        "grouped mean": {"count": fa.Gaussian(sigma)},
    }
    items = {name: (guarantee, 1) for name, guarantee in sold[question].items()}
    tariff = fa.Tariff(items, farthings=times)
    certificate = tariff.certify(tolerance=0.01, deltas=(DELTA,), epsilons=(EPSILON,))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        budget = {"ledger": Path(folder) / "budget.db", "tariff": certificate}
        with fa.open(path, unit="member", memory=MEMORY, farthings=times, **budget) as data:
            asked: dict[str, Callable[[], Question]] = {
                "grouped mean": lambda: data.mean(
                    "worth",
                    by="team",
                    categories=range(TEAMS),
                    lower=0,
                    upper=UPPER,
                    contribution_limit=TEAMS_EACH,
                    per_key_limit=1,
                ),
                "sum": lambda: data.sum("worth", lower=0, upper=upper),
                "median": lambda: data.quantile(
                    "worth", lower=0, upper=UPPER, per_key_limit=TEAMS_EACH
                ),
            }
            plan = asked[question]().plan()
            answer = plan.run()
            seconds = time.perf_counter() - start
            truth = _truth(path, question)
            if question == "grouped mean":
                labelled = zip(answer.labels, answer.counts or (), strict=True)
                errors = [abs(value - truth[str(label)]) for label, value in labelled]
            elif question == "sum":
                released = [float((one.counts or (0,))[0]) for one in drawn(plan._details, OFTEN)]
                errors = [abs(value - truth[""]) / 1000 for value in released]
            else:
                errors = [abs(answer.value - truth[""])]
    return float(np.mean(errors)), seconds


def _peer(peer: str, large: Path, small: Path, rows: int) -> tuple[str, Measured]:
    rho = 0.5 / fa.zcdp_noise_multiplier(EPSILON, DELTA) ** 2
    shared = {"epsilon": EPSILON, "delta": DELTA, "rho": rho, "limit": TEAMS_EACH}
    shared |= {"upper": UPPER, "groups": TEAMS}
    asked = [Ask(question, str(large), rows, 1, **shared) for question in QUESTIONS]
    often = Ask("sum", str(small), FEW, REPEATS, **shared)
    if peer in STATED:
        often = replace(often, question="scale of a sum", runs=1)
    *told, repeated = ask(peer, [*asked, often], TIMEOUT)
    found: Measured = {}
    for question, one in zip(QUESTIONS, told, strict=True):
        source, truth = one, _truth(large, question)
        if question == "sum":
            source, truth = repeated, _truth(small, "sum")
        if not source.releases:
            found[question] = source.failure
            continue
        if source is repeated and peer in STATED:
            truth = {"": 0.0}
        errors = [abs(v - truth[key]) for each in source.releases for key, v in each.items()]
        error = float(np.mean(errors)) / (1000 if question == "sum" else 1)
        found[question] = (error, one.seconds if one.releases else None)
    return f"{PEERS[peer]} {_version(told)}", found


def _version(told: list[Told]) -> str:
    return next((one.version for one in told if one.version), "")


def _told(one: tuple[float, float | None] | str, which: int) -> tuple[float | None, str]:
    return (None, one) if isinstance(one, str) else (one[which], "")


def _cells(name: str, found: Measured) -> list[str]:
    cells = [name]
    for question in QUESTIONS:
        one = found.get(question, "")
        if isinstance(one, str):
            cells += [one, ""]
            continue
        error, seconds = one
        cells += [f"{error:.3g}", f"over {TIMEOUT}" if seconds is None else f"{seconds:.1f}"]
    return cells
