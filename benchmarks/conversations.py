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
from benchmarks.ledger import new_file, postgresql
from benchmarks.timing import table
from farthing.composition.compose import compose
from farthing.guarantees.notation import parse_item
from farthing.interactive import Exceeds, SparseVector
from farthing.ledger import Dataset, DurableConversation, Ledger, verify

ASKS, MANY, SINGLES, THREADS = 100_000, 1_000, 200, 8
EPSILON = 0.1
WATCH = SparseVector.from_epsilon(EPSILON, positives=3, monotone=True)
LOW = Exceeds(0, 1_000_000)
LIST = "10xgauss:20 + 10xdp:0.1 + 100xbr:0.1"


def report() -> str:
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
    return "\n".join(
        [
            "## Conversations\n",
            f"{ASKS:,} durable asks of an open sparse vector through Python, in calls of so many "
            f"questions; single asks by the median of {SINGLES}, and in {THREADS} threads with a "
            "conversation each.\n",
            table(
                [
                    "database",
                    "1 a call",
                    f"{THREADS} threads, 1 a call",
                    "100 a call",
                    "1,000 a call, < 5 s",
                    "verify",
                ],
                rows,
            ),
            f"One ask with 1 and with {MANY:,} conversations open, in turns, medians.\n",
            table(["database", "1 open", f"{MANY:,} open", "ratio, ≤ 1.5"], open_ones),
            f"{LIST}, concurrent, δ = 1e-6.\n",
            table(["epsilon", "within, ≤ 0.5 %", "seconds, < 5"], [_certified()]),
        ]
    )


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


def _certified() -> list[str]:
    items = [parse_item(text) for text in LIST.split(" + ")]
    start = time.perf_counter()
    bracket = compose(items, adaptivity="concurrent", tolerance=0.005).epsilon_at(1e-6)
    seconds = time.perf_counter() - start
    width = (bracket.upper - bracket.lower) / bracket.upper
    return [f"[{bracket.lower:.4f}, {bracket.upper:.4f}]", f"{width:.2%}", f"{seconds:.1f}"]


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    print(report())
