"""The same top-k with counts next to Tumult Analytics, SmartNoise SQL and OpenDP's Polars."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

import farthing as fa
from benchmarks.findings import Beside, Findings, Table
from benchmarks.peers import Ask, ask
from benchmarks.tables import KEYS, events

ROWS, K = 10**7, 10
#: Nobody has more keys than this in these data, so the peers lose nothing to their own limit.
LIMIT = 30
EPSILON, DELTA = 3.0, 1e-6
LEAK = 1e-7  # the part of δ that an unknown domain may use where it is a separate part
SELECT = 0.05  # each of the K selections, bounded range
RUNS, TIMEOUT = 5, 240
MEMORY = "12GB"
#: Peers with the noise that they are asked to draw.
PEERS = (
    ("tumult", "Tumult Analytics", "top k", "Laplace"),
    ("smartnoise", "SmartNoise SQL", "top k", "Laplace"),
    ("opendp", "OpenDP Polars", "top k, Laplace", "Laplace"),
    ("opendp", "OpenDP Polars", "top k", "Gaussian"),
)
HEADER = ["library", "noise of counts", "Δ", "runs", "s", "mean error", f"of true top {K}"]


@dataclass(frozen=True, slots=True)
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


#: The first is what is compared with the peers.
OURS = (
    Ours("gumbel", "Gaussian", None),
    Ours("gumbel", "Laplace", None),
    Ours("gumbel", "Laplace", LIMIT),
    Ours("noise", "Gaussian", LIMIT),
    Ours("noise", "Laplace", 10),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Over all runs: seconds of one, mean error, how many of the true top K were found."""

    runs: int
    seconds: float
    error: float | None
    found: float

    @property
    def cells(self) -> list[str]:
        """The end of a row."""
        error = "nothing found" if self.error is None else f"{self.error:.1f}"
        return [str(self.runs), f"{self.seconds:.1f}", error, f"{self.found:g}"]


def measure(rows: int = ROWS) -> Findings:
    """One table: ours first, then every peer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        events(path, rows)
        truth = _truth(path)
        ours = [_ours(way, path, truth) for way in OURS]
        name = f"farthing {fa.__version__}"
        cells = [
            [f"{name}, {way.mechanism}", way.noise, str(way.limit or "no limit"), *one.cells]
            for way, one in zip(OURS, ours, strict=True)
        ]
        besides = []
        for peer, called, question, noise in PEERS:
            row, more = _peer(peer, (called, question, noise), (path, rows), (truth, ours[0]))
            cells.append(row)
            besides += more
    caption = (
        f"Top {K} of {rows:.0e} rows, {rows // 10:.0e} members, {KEYS:.0e} keys that are not known "
        f"in advance, with the number of members of each; total ε = {EPSILON:g}, δ = {DELTA:g}; "
        "each member limited to Δ keys, one row each. Mean seconds of a run, without imports and "
        "the start of Spark, with reading Parquet; for farthing (all runs in one process) with "
        "opening a ledger and registering the query, without the search for its prices. Mean "
        "error against the number of members without any limit."
    )
    return Findings("Top-k beside the peers", (Table(caption, HEADER, cells),), (), tuple(besides))


def _truth(path: Path) -> dict[str, int]:
    """How many members each article has; the largest first."""
    counted = f"SELECT article, count(DISTINCT member) FROM '{path}' GROUP BY 1 ORDER BY 2 DESC"
    return {str(label): count for label, count in duckdb.sql(counted).fetchall()}


def _ours(way: Ours, path: Path, truth: dict[str, int]) -> Measured:
    items = _priced(way)
    # No price can be paid from the purse: only the registered query runs, at its own bound.
    tariff = fa.Tariff({name: (sold, 2) for name, (sold, _) in items.items()}, farthings=1)
    certificate = tariff.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    runs = [_run(way, path, certificate) for _ in range(RUNS)]
    return _measured([released for released, _ in runs], sum(s for _, s in runs) / RUNS, truth)


def _priced(way: Ours) -> dict[str, tuple[fa.Guarantee, int]]:
    """Items whose counts have the largest parameter within the total, to a thousandth."""
    low, high = 0.01, 1.0
    while high > 1.001 * low:
        between = (low * high) ** 0.5
        composed = fa.compose(way.items(between).values(), adaptivity="adaptive")
        fits = composed.epsilon_at(DELTA).upper <= EPSILON
        low, high = (between, high) if fits else (low, between)
    return way.items(low)


def _run(way: Ours, path: Path, certificate: fa.Certificate) -> tuple[dict[str, float], float]:
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
    labelled = zip(answer.labels, answer.counts or (), strict=True)
    return {str(label): count for label, count in labelled}, seconds


def _peer(
    peer: str,
    asked: tuple[str, str, str],
    table: tuple[Path, int],
    ours: tuple[dict[str, int], Measured],
) -> tuple[list[str], list[Beside]]:
    (called, question, noise), (path, rows), (truth, best) = asked, table, ours
    sent = Ask(question, str(path), rows, 1, EPSILON, DELTA, 0.0, LIMIT, k=K, leak=LEAK)
    (told,) = ask(peer, [sent], TIMEOUT)
    name = f"{called} {told.version}".strip()
    what = f"top-{K} with counts"
    if not told.releases:
        beside = Beside(what, "mean error", best.error or 0, name, None, told.failure)
        return [name, noise, str(LIMIT), "0", told.failure, "", ""], [beside]
    found = _measured(told.releases, told.seconds, truth)
    besides = [
        Beside(what, "mean error", best.error or 0, name, found.error, f"{noise} noise"),
        Beside(what, "s", best.seconds, name, found.seconds, f"{noise} noise"),
    ]
    return [name, noise, str(LIMIT), *found.cells], besides


def _measured(
    releases: Sequence[dict[str, float]], seconds: float, truth: dict[str, int]
) -> Measured:
    best = set(list(truth)[:K])
    errors = [abs(n - truth[label]) for one in releases for label, n in one.items()]
    found = sum(len(best & set(one)) for one in releases) / len(releases)
    return Measured(len(releases), seconds, sum(errors) / len(errors) if errors else None, found)
