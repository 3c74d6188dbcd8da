"""The same top-k next to Tumult Analytics, SmartNoise SQL and OpenDP's Polars interface.

FARTHING_TUMULT=… FARTHING_SMARTNOISE=… FARTHING_OPENDP=… python -m benchmarks.peers [rows]

Each variable names the Python interpreter that has this peer installed. A peer without one is
not measured. Tumult needs Java.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import farthing as fa
from benchmarks.engine import KEYS, MEMORY, generate
from benchmarks.timing import table

K = 10
#: Nobody has more keys than this in these data, so the peers lose nothing to their own limit.
LIMIT = 30
EPSILON, DELTA = 3.0, 1e-6
LEAK = 1e-7  # the part of δ that an unknown domain may use where it is a separate part
SELECT = 0.05  # each of the K selections, bounded range
TIMEOUT = 1500


@dataclass(frozen=True)
class Ours:
    """One way to ask: mechanism, noise of the counts, limit per unit."""

    mechanism: str
    noise: str
    limit: int | None

    def items(self, each: float) -> dict[str, tuple[fa.Guarantee, int]]:
        """What the query uses, and how often; `each` is the ε, or 1/σ, of one count."""
        gumbel, limit = self.mechanism == "gumbel", self.limit or K
        count = fa.PureDP(each) if self.noise == "Laplace" else fa.DiscreteGaussian(1 / each, 1)
        selections = {"select": (fa.BoundedRange(SELECT), K)} if gumbel else {}
        leak = {"leak": (fa.ApproximateDP(0.0, LEAK), 1)}
        return {**selections, "count": (count, min(K, limit) if gumbel else limit), **leak}


OURS = (
    Ours("gumbel", "Laplace", None),
    Ours("gumbel", "Gaussian", None),
    Ours("gumbel", "Laplace", LIMIT),
    Ours("noise", "Gaussian", LIMIT),
    Ours("noise", "Laplace", 10),
)

#: What every peer's script starts and ends with. `given` is what `_ask` sends.
FIRST = """
import importlib.metadata, json, os, sys, time, warnings
warnings.simplefilter("ignore")
given = json.loads(sys.argv[1])
path, limit, k = given["path"], given["limit"], given["k"]
epsilon, delta, leak = given["epsilon"], given["delta"], given["leak"]
"""
LAST = """
seconds = time.perf_counter() - start
version = importlib.metadata.version(given["package"])
labels, counts = [[row[i] for row in rows] for i in (0, 1)]
print(json.dumps({"labels": labels, "counts": counts, "seconds": seconds, "version": version}))
"""

# Keys first (1/30 of ε and the whole δ: GetGroups is its only mechanism with a δ), then counts.
TUMULT = """
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from tmlt.analytics import (AddRowsWithID, ApproxDPBudget, KeySet, MaxGroupsPerID,
                            MaxRowsPerGroupPerID, QueryBuilder, Session)
spark = SparkSession.builder.master("local[*]").config("spark.driver.memory", "8g")
spark = spark.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", 8)
spark = spark.getOrCreate()
start = time.perf_counter()
session = Session.from_dataframe(
    ApproxDPBudget(epsilon, delta), "events", spark.read.parquet(path).select("member", "article"),
    protected_change=AddRowsWithID("member"),
)
bounded = QueryBuilder("events").enforce(MaxRowsPerGroupPerID("article", 1))
bounded = bounded.enforce(MaxGroupsPerID("article", limit))
keys = session.evaluate(bounded.get_groups(["article"]), ApproxDPBudget(epsilon / 30, delta))
counting = bounded.groupby(KeySet.from_dataframe(keys)).count(name="n")
counted = session.evaluate(counting, session.remaining_privacy_budget)
rows = [(r.article, r.n) for r in counted.orderBy("n", ascending=False).limit(k).collect()]
"""

# Its odometer adds half of the δ it is given to what a query costs, so it is given 2/3 of ours.
SMARTNOISE = """
import pandas
from snsql import Privacy, from_connection
columns = {"member": {"type": "int", "private_id": True}, "article": {"type": "int"}}
bounds = {"max_ids": limit, "sample_max_ids": True, "censor_dims": True}
start = time.perf_counter()
reader = from_connection(
    pandas.read_parquet(path, columns=["member", "article"]),
    privacy=Privacy(epsilon=epsilon, delta=delta / 1.5),
    metadata={"": {"main": {"events": {**columns, **bounds}}}},
)
query = "SELECT article, COUNT(DISTINCT member) AS n FROM main.events GROUP BY article"
query += f" ORDER BY n DESC LIMIT {k}"
spent = reader.get_privacy_cost(query)
assert spent[0] <= epsilon and spent[1] <= delta, spent
rows = reader.execute(query)[1:]
"""

# truncate_num_groups(keep="sample") fails in 0.16.0 (two fields of one name), and "first" would
# keep the smallest keys; one row per key and then `limit` rows is the same bound.
OPENDP = """
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib")
start = time.perf_counter()
if given["noise"] == "Laplace":
    loss = dp.loss_of(epsilon=epsilon, delta=delta)
else:
    def noisy(scale):
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        made = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale))
        return dp.c.make_fix_delta(made, delta=delta - leak)
    scale = dp.binary_search_param(noisy, d_in=1.0, d_out=(epsilon, delta - leak))
    loss = dp.loss_of(rho=0.5 / scale**2, delta=leak)
context = dp.Context.compositor(
    data=pl.scan_parquet(path).select("member", "article"), privacy_loss=loss, split_evenly_over=1,
    privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("member")))
bounded = context.query().truncate_per_group(1, by=["article"]).truncate_per_group(limit)
released = bounded.group_by("article").agg(dp.len().alias("n")).release().collect()
rows = released.sort("n", descending=True).head(k).rows()
"""

#: A library, the variable that names its interpreter, and what to send there.
Peer = namedtuple("Peer", "name package variable script noise runs")
PEERS = (
    Peer("Tumult Analytics", "tmlt.analytics", "FARTHING_TUMULT", TUMULT, "Laplace", 1),
    Peer("SmartNoise SQL", "smartnoise-sql", "FARTHING_SMARTNOISE", SMARTNOISE, "Laplace", 1),
    Peer("OpenDP Polars", "opendp", "FARTHING_OPENDP", OPENDP, "Laplace", 3),
    Peer("OpenDP Polars", "opendp", "FARTHING_OPENDP", OPENDP, "Gaussian", 3),
)


def report(rows: int = 10**7) -> str:
    """One table: ours first, then every peer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        generate(path, rows)
        truth = _truth(path)
        cells = [_ours(way, path, truth) for way in OURS]
        cells += [_peer(peer, path, truth) for peer in PEERS]
    header = ["library", "noise of counts", "Δ", "runs", "s", "mean error", f"of true top {K}"]
    title = (
        f"Top {K} of {rows:.0e} rows, {rows // 10:.0e} members, {KEYS:.0e} keys that are not known "
        f"in advance, with the number of members of each; total ε = {EPSILON:g}, δ = {DELTA:g}; "
        "each member limited to Δ keys, one row each. Mean seconds of a run, without imports and "
        "the start of Spark, with reading Parquet; for farthing (all runs in one process) with "
        "opening a ledger and registering the query, without the search for its prices. Mean "
        "error against the number of members without any limit.\n"
    )
    return "\n".join(["## Peers\n", title, table(header, cells)])


def _truth(path: Path) -> dict[int, int]:
    """How many members each article has; the largest first."""
    counted = f"SELECT article, count(DISTINCT member) FROM '{path}' GROUP BY 1 ORDER BY 2 DESC"
    return dict(duckdb.sql(counted).fetchall())


def _ours(way: Ours, path: Path, truth: dict[int, int]) -> list[str]:
    items = _priced(way)
    # No price can be paid from the purse: only the registered query runs, at its own bound.
    tariff = fa.Tariff({name: (sold, 2) for name, (sold, _) in items.items()}, farthings=1)
    certificate = tariff.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    runs = [_run(way, path, certificate) for _ in range(5)]
    name = f"farthing {fa.__version__}, {way.mechanism}"
    return [name, way.noise, str(way.limit or "no limit"), *_measured(runs, truth)]


def _priced(way: Ours) -> dict[str, tuple[fa.Guarantee, int]]:
    """Items whose counts have the largest parameter within the total, to a thousandth."""
    low, high = 0.01, 1.0
    while high > 1.001 * low:
        between = (low * high) ** 0.5
        composed = fa.compose(way.items(between).values(), adaptivity="adaptive")
        fits = composed.epsilon_at(DELTA).upper <= EPSILON
        low, high = (between, high) if fits else (low, between)
    return way.items(low)


def _run(way: Ours, path: Path, certificate: fa.Certificate) -> dict[str, Any]:
    """One release from a fresh ledger, which states what it cost."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        budget = {"ledger": Path(folder) / "budget.db", "tariff": certificate, "farthings": 1}
        data = fa.open(path, unit="member", memory=MEMORY, **budget)
        limits = {"mechanism": way.mechanism, "contribution_limit": way.limit}
        batch = data.batch({"top": data.top_k("article", k=K, **limits)})
        with fa.Desk.open(Path(folder) / "budget.db") as desk:
            account = desk.register(data.name, "top", batch.queries, analyst="analyst")
            answer = batch.run(registered="top")["top"]
            seconds = time.perf_counter() - start
            document = desk.ledger.reader().document(data.name, account.number)
        claims = {c["delta"]: c["upper"] for c in document["epsilon_at"]}
        assert claims[DELTA] <= EPSILON, claims
        data.shut()
    return {"labels": answer.labels, "counts": answer.counts, "seconds": seconds}


def _peer(peer: Peer, path: Path, truth: dict[int, int]) -> list[str]:
    interpreter = os.environ.get(peer.variable)
    unmeasured = [peer.name, peer.noise, str(LIMIT), "0"]
    if not interpreter:
        return [*unmeasured, "not installed", "", ""]
    given = {"path": str(path), "limit": LIMIT, "k": K, "epsilon": EPSILON, "delta": DELTA}
    given |= {"leak": LEAK, "noise": peer.noise, "package": peer.package}
    command = [interpreter, "-c", FIRST + peer.script + LAST, json.dumps(given)]
    options = {"capture_output": True, "text": True, "timeout": TIMEOUT, "cwd": path.parent}
    try:
        done = [subprocess.run(command, check=True, **options) for _ in range(peer.runs)]
    except subprocess.TimeoutExpired:
        return [*unmeasured, f"more than {TIMEOUT}", "", ""]
    except subprocess.CalledProcessError as error:
        return [*unmeasured, f"failed: {error.stderr.strip().splitlines()[-1]:.80}", "", ""]
    runs = [json.loads(one.stdout.splitlines()[-1]) for one in done]
    return [f"{peer.name} {runs[0]['version']}", *unmeasured[1:3], *_measured(runs, truth)]


def _measured(runs: list[dict[str, Any]], truth: dict[int, int]) -> list[str]:
    """Number of runs, seconds, mean error, how many of the true top K were found."""
    best = set(list(truth)[:K])
    pairs = [pair for run in runs for pair in zip(run["labels"], run["counts"], strict=True)]
    errors = [abs(count - truth[label]) for label, count in pairs]
    found = sum(len(best & set(run["labels"])) for run in runs) / len(runs)
    mean = f"{sum(errors) / len(errors):.1f}" if errors else "nothing found"
    seconds = sum(run["seconds"] for run in runs) / len(runs)
    return [str(len(runs)), f"{seconds:.1f}", mean, f"{found:g}"]


if __name__ == "__main__":
    print(report(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7))
