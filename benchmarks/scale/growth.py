"""How the cost of each part grows: runs of growing size, and the exponent that fits them.

Seconds are of all processors, so that a busy machine changes little; for a reservation, which waits
for the disk, they are the median on the clock.
"""

from __future__ import annotations

import itertools
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

import farthing as fa
from benchmarks.parts.engine import bounded_statement
from benchmarks.parts.ledger import fill
from benchmarks.timing import forget
from farthing.composition.bounds.nonadaptive import epsilon_nonadaptive
from farthing.engine import open_source
from farthing.ledger import Dataset, Ledger, odometer, statement, verify
from farthing.mechanisms import Histogram, KnownGumbel, UnknownGumbel

ITEMS = {"select": 1}
QUESTIONS = (10**3, 10**4, 10**5)


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds at each size."""

    what: str
    size_of: str
    seconds: dict[int, float]

    @property
    def exponent(self) -> float:
        """The slope of the logarithms, by least squares."""
        sizes, seconds = zip(*self.seconds.items(), strict=True)
        return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])

    @property
    def cells(self) -> list[str]:
        """A row of the page."""
        runs = ", ".join(f"{_power(size)}: {_time(took)}" for size, took in self.seconds.items())
        return [self.what, self.size_of, runs, f"{self.exponent:.2f}"]


def _power(size: int) -> str:
    exponent = math.log10(size)
    return f"10^{exponent:.0f}" if exponent == int(exponent) else f"{size:,}"


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.3g} s"


def all_growths() -> Iterator[Growth]:
    """Everything, the quick ones first."""
    yield from in_composition()
    yield from in_mechanisms()
    yield from in_the_ledger()
    yield from in_the_engine()


def in_composition() -> Iterator[Growth]:
    """k: the number of mechanisms, and the farthings of a tariff."""

    def adaptive(k: int) -> None:
        forget()
        fa.compose([(fa.BoundedRange(1 / k**0.5), k)], tolerance=1e-3).epsilon_at(1e-6)

    turns = itertools.count(1)

    def certified(farthings: int) -> None:
        each = 3 / farthings**0.5 * (1 - 1e-9 * next(turns))  # another one, so that none is kept
        items = {"select": (fa.BoundedRange(each), 1), "count": (fa.Gaussian(1 / each), 4)}
        tariff = fa.Tariff(items, farthings=farthings)
        tariff.certify(tolerance=0.05, deltas=(1e-6,), epsilons=(1.0,))

    def closed(k: int) -> None:
        epsilon_nonadaptive(1e-6, epsilon=1 / k**0.5, count=k)

    yield _growth("closed form, fixed in advance", "k", (10**2, 10**4, 10**6, 10**8), closed)
    yield _growth("adaptive optimum within 0.1 %", "k", (10**2, 10**3, 10**4), adaptive)
    yield _growth("certificate of a tariff", "farthings", (10**3, 2000, 4000, 8000), certified)


def in_mechanisms() -> Iterator[Growth]:
    """Keys, and k."""

    def known(keys: int) -> Callable[[], object]:
        histogram = _zipf(keys)
        return lambda: KnownGumbel(epsilon=0.1, k=10, per_key_limit=1).run(histogram)

    def unknown(keys: int) -> Callable[[], object]:
        histogram = _zipf(keys)
        options = {"candidates": 1000, "contribution_limit": 10, "per_key_limit": 1}
        return lambda: UnknownGumbel(epsilon=0.1, delta=1e-9, k=10, **options).run(histogram)

    def longer(k: int) -> Callable[[], object]:
        histogram = _zipf(10**5)
        return lambda: KnownGumbel(epsilon=0.1, k=k, per_key_limit=1).run(histogram)

    keys = (10**4, 10**5, 10**6, 10**7)
    yield _prepared("top-10 of a known domain", "keys", keys, known)
    yield _prepared("top-10 of an unknown domain", "keys", keys, unknown)
    yield _prepared("top-k of 10^5 keys", "k", (10, 100, 1000), longer)


def in_the_ledger() -> Iterator[Growth]:
    """Questions that were asked, and analysts."""
    tariff = fa.Tariff({"select": (fa.BoundedRange(0.01), 1)}, farthings=2000)
    certificate = tariff.certify(tolerance=0.3, deltas=(1e-6,), epsilons=(1.0,))
    asked: dict[str, dict[int, float]] = {}
    for questions in QUESTIONS:
        with _ledger(certificate, ("ann",)) as ledger:
            fill(ledger, 2 * questions)
            reader = ledger.reader()
            runs: dict[str, Callable[[], object]] = {
                "a reservation": lambda: ledger.analyst("events", "ann").reserve(ITEMS),
                "the odometer": lambda: odometer(reader, "events"),  # noqa: B023 # runs at once
                "the statement": lambda: statement(reader, "events"),  # noqa: B023 # the same
                "proof of the whole chain": lambda: verify(reader),  # noqa: B023 # the same
            }
            for what, run in runs.items():
                # a reservation waits for the disk, reading does not
                took = _median(run, 100) if what == "a reservation" else _busy(run, 2)
                asked.setdefault(what, {})[questions] = took
    for what, seconds in asked.items():
        yield Growth(what, "questions in the book", seconds)
    served: dict[str, dict[int, float]] = {}
    for analysts in (10, 100, 1000):
        names = [f"analyst {number}" for number in range(analysts)]
        with _ledger(certificate, names) as ledger:
            turn = iter(names * 100)
            served.setdefault("a reservation", {})[analysts] = _median(
                lambda: ledger.analyst("events", next(turn)).reserve(ITEMS),  # noqa: B023 # runs at once
                100,
            )
            reader = ledger.reader()
            seconds = _busy(lambda: statement(reader, "events"), 2)  # noqa: B023 # the same
            served.setdefault("the statement", {})[analysts] = seconds
    for what, took in served.items():
        yield Growth(what, "analysts", took)


def in_the_engine() -> Iterator[Growth]:
    """Rows, units and keys of a bounded histogram on DuckDB, Δ = 10."""
    fixed = 10**6
    rows = {n: _histogram(n, n // 10, 10**4) for n in (10**5, 10**6, 10**7)}
    units = {n: _histogram(fixed, n, 10**4) for n in (10**3, 10**4, 10**5, 10**6)}
    keys = {n: _histogram(fixed, fixed // 10, n) for n in (10**2, 10**4, 10**6)}
    yield Growth("bounded histogram, 10 rows a unit", "rows", rows)
    yield Growth("bounded histogram of 10^6 rows", "units", units)
    yield Growth("bounded histogram of 10^6 rows, 10^5 units", "keys", keys)


def seconds_per_row() -> float:
    """Of a bounded histogram with ten rows a unit, on one processor."""
    rows = 4 * 10**6
    return _histogram(rows, rows // 10, 10**4) / rows


def _histogram(rows: int, units: int, keys: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        both = f"hash(i) % {units} AS member, hash(3 * i + 1) % {keys} AS article"
        made = f"SELECT {both} FROM range({rows}) t(i)"
        duckdb.sql(f"COPY (SELECT COLUMNS(*)::BIGINT FROM ({made})) TO '{path}'")
        source = open_source(str(path), memory="12GB")
        asked = bounded_statement(source, "article", 10)
        seconds = _busy(lambda: source.run(asked), 2)
        source.shut()
    return seconds


def _zipf(keys: int) -> Histogram:
    counts = (10**7 / np.arange(1, keys + 1)).astype(np.int64) + 1
    return Histogram(np.arange(keys), counts)


@contextmanager
def _ledger(certificate: fa.Certificate, analysts: Sequence[str]) -> Iterator[Ledger]:
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "b.db") as ledger:
        owner = ledger.owner()
        owner.add(Dataset("events", unit="member", owner="team"))
        owner.sign("events", certificate)
        for name in analysts:
            owner.grant("events", name, farthings=certificate.tariff.farthings // len(analysts))
        yield ledger


def _growth(what: str, size_of: str, sizes: Sequence[int], run: Callable[[int], None]) -> Growth:
    run(sizes[0])  # compiled
    return Growth(what, size_of, {size: _busy(lambda s=size: run(s), 2) for size in sizes})


def _prepared(
    what: str, size_of: str, sizes: Sequence[int], make: Callable[[int], Callable[[], object]]
) -> Growth:
    make(sizes[0])()
    return Growth(what, size_of, {size: _busy(make(size), 3) for size in sizes})


def _busy(run: Callable[[], object], times: int) -> float:
    """Seconds of all processors, the least of a few runs."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def _median(run: Callable[[], object], times: int) -> float:
    """Seconds on the clock."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
