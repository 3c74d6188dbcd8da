"""Conversations: what asking costs when every answer is on disk before it is told.

One question in a transaction costs a flush of the disk. Questions that are known together share
one, and so do questions of several threads.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import farthing as fa
from benchmarks.findings import Findings, Goal, Table
from benchmarks.parts.ledger import new_file, postgresql
from farthing.composition.compose import compose
from farthing.guarantees.notation import parse_item
from farthing.interactive import Exceeds, SparseVector
from farthing.ledger import Dataset, DurableConversation, Ledger, verify

ASKS, MANY, SINGLES, THREADS = 100_000, 1_000, 200, 8
EPSILON = 0.1
WATCH = SparseVector.from_epsilon(EPSILON, positives=3, monotone=True)
LOW = Exceeds(0, 1_000_000)
LIST = "10xgauss:20 + 10xdp:0.1 + 100xbr:0.1"


def measure() -> Findings:
    """Both databases, and a mixed list composed concurrently."""
    tariff = fa.Tariff({"watch": (fa.PureDP(EPSILON), 1)}, farthings=2 * MANY)
    certificate = tariff.certify(tolerance=0.3, deltas=(1e-6,), epsilons=(1.0,))
    folder = Path(tempfile.mkdtemp(prefix="talk"))
    folder.chmod(0o755)
    try:
        with postgresql(folder) as new_database:
            places = {"SQLite": new_file(folder), "PostgreSQL": new_database}
            rows = [_asking(name, new(), certificate) for name, new in places.items()]
            open_ones = [_many(name, new, certificate) for name, new in places.items()]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    asking = (
        f"{ASKS:,} durable asks of an open sparse vector through Python, in calls of so many "
        f"questions; single asks by the median of {SINGLES}, and in {THREADS} threads with a "
        "conversation each."
    )
    sizes = ["1 a call", f"{THREADS} threads, 1 a call", "100 a call", "1,000 a call", "verify"]
    turns = f"One ask with 1 and with {MANY:,} conversations open, in turns, medians."
    bracket, seconds = _certified()
    width = 100 * bracket.width
    certified = [f"[{bracket.lower:.4f}, {bracket.upper:.4f}]", f"{width:.2f} %", f"{seconds:.1f}"]
    goals = [Goal(f"{row[0]}, {ASKS:,} durable asks", float(row[4][:-2]), 5, "s") for row in rows]
    goals += [
        Goal(f"{row[0]}, an ask among {MANY:,} conversations", float(row[3]), 1.5, "×")
        for row in open_ones
    ]
    goals += [Goal(f"{LIST}, width", width, 0.5, "%"), Goal(f"{LIST}, time", seconds, 5, "s")]
    tables = (
        Table(asking, ["database", *sizes], rows),
        Table(turns, ["database", "1 open", f"{MANY:,} open", "ratio"], open_ones),
        Table(f"{LIST}, concurrent, δ = 1e-6.", ["epsilon", "width", "seconds"], [certified]),
    )
    return Findings("Conversations", tables, tuple(goals))


def _asking(name: str, target: str, certificate: fa.Certificate) -> list[str]:
    with Ledger.open(target) as ledger:
        held = _opened(ledger, certificate, 1 + THREADS)
        single = statistics.median(_singles(held[0], SINGLES))
        start = time.perf_counter()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda one: _singles(one, SINGLES), held[1:]))
        threads = (time.perf_counter() - start) / (THREADS * SINGLES)
        batches = [_batches(held[0], size) for size in (100, 1000)]
        start = time.perf_counter()
        verify(ledger.reader())
        checked = time.perf_counter() - start
    return [
        name,
        f"{1e3 * single:.2f} ms each",
        f"{1e3 * threads:.2f} ms each",
        *(f"{seconds:.1f} s" for seconds in batches),
        f"{checked:.1f} s",
    ]


def _many(name: str, new: Callable[[], str], certificate: fa.Certificate) -> list[str]:
    """A ledger with one conversation and one with many, asked in turns."""
    with Ledger.open(new()) as small, Ledger.open(new()) as large:
        (alone,), among = _opened(small, certificate, 1), _opened(large, certificate, MANY)
        times: list[list[float]] = [[], []]
        for turn in range(SINGLES):
            times[0] += _singles(alone, 1)
            times[1] += _singles(among[turn * MANY // SINGLES], 1)
        few, many = map(statistics.median, times)
    return [name, f"{1e3 * few:.2f} ms", f"{1e3 * many:.2f} ms", f"{many / few:.2f}"]


def _opened(ledger: Ledger, certificate: fa.Certificate, count: int) -> list[DurableConversation]:
    ledger.owner().add(Dataset("events", unit="member", owner="team"))
    ledger.owner().sign("events", certificate)
    ledger.owner().grant("events", "ann", farthings=2 * MANY)
    ann = ledger.analyst("events", "ann")
    return [ann.open_conversation(WATCH) for _ in range(count)]


def _singles(held: DurableConversation, count: int) -> list[float]:
    return [_seconds(lambda: held.ask({"threshold": LOW.threshold}, LOW)) for _ in range(count)]


def _batches(held: DurableConversation, size: int) -> float:
    asking = [({"threshold": LOW.threshold}, LOW)] * size

    def run() -> None:
        for _ in range(ASKS // size):
            held.ask_many(asking)

    return _seconds(run)


def _certified() -> tuple[fa.Bracket, float]:
    items = [parse_item(text) for text in LIST.split(" + ")]
    start = time.perf_counter()
    bracket = compose(items, adaptivity="concurrent", tolerance=0.005).epsilon_at(1e-6)
    return bracket, time.perf_counter() - start


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
