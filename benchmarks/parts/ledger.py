"""The ledger: cost of charging, rate against the bare database, and sixteen processes racing."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import shutil
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import insert, update

import farthing as fa
from benchmarks.findings import Findings, Goal, Table
from farthing.canonical import canonical, sha256
from farthing.ledger import Dataset, DoesNotFit, Entry, Ledger, verify
from farthing.ledger.entries.fact import linked
from farthing.ledger.store.commands import new_token
from farthing.ledger.store.tables import datasets, entries

SMALL, LARGE = 1_000, 1_000_000
CHARGES, ROUNDS, THREADS = 40, 8, 4
PROCESSES, ATTEMPTS, CAP = 16, 100_000, 2_000
ITEMS = {"select": 1}


def measure() -> Findings:
    """Both databases, side by side."""
    certificate = fa.Tariff({"select": (fa.BoundedRange(0.1), 1)}, farthings=CAP).certify(
        tolerance=0.3, deltas=(1e-6,), epsilons=(1.0,)
    )
    folder = Path(tempfile.mkdtemp(prefix="ledger"))
    folder.chmod(0o755)
    try:
        with postgresql(folder) as new_database:
            places = {"SQLite": new_file(folder), "PostgreSQL": new_database}
            cost = [_cost(name, new, certificate) for name, new in places.items()]
            rate = [row for name, new in places.items() for row in _rates(name, new, certificate)]
            races = [_race(name, new, certificate) for name, new in places.items()]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    one = f"Cost of one reservation, median of {CHARGES * ROUNDS}, the two books in turns."
    durable = (
        "Durable commits a second: a guarded one-row update and an insert of an entry's "
        "columns through the driver alone, against a reservation, in turns. One thread: from "
        f"the median of {CHARGES * ROUNDS}. {THREADS} threads: the median of {ROUNDS} rounds; "
        "the driver with a connection each, the ledger shared."
    )
    raced = f"{PROCESSES} processes racing one purse, {ATTEMPTS:,} attempts, {CAP:,} farthings."
    goals = [
        Goal(f"{row[0]}, a charge at {LARGE:,} entries beside {SMALL:,}", float(row[3]), 1.5, "×")
        for row in cost
    ]
    goals += [
        Goal(f"{row[0]}, {row[1]} threads, beside the driver", float(row[4]), 0.8, "×", True)
        for row in rate
    ]
    goals += [
        Goal(f"{row[0]}, race: sold beyond the cap or wrong", float(row[3] == "WRONG"), 0, "")
        for row in races
    ]
    tables = (
        Table(one, ["database", f"{SMALL:,} entries", f"{LARGE:,} entries", "ratio"], cost),
        Table(durable, ["database", "threads", "driver alone", "reservations", "ratio"], rate),
        Table(raced, ["database", "sold", "other errors", "chain", "seconds"], races),
    )
    return Findings("The ledger", tables, tuple(goals))


def _cost(name: str, new: Callable[[], str], certificate: fa.Certificate) -> list[str]:
    """Two ledgers of different length, charged in turns."""
    with _filled(new(), certificate, SMALL) as small, _filled(new(), certificate, LARGE) as large:
        times = _in_turns([lambda: _charge(small), lambda: _charge(large)])
        few, many = (statistics.median(one) for one in times)
    return [name, f"{few * 1e3:.2f} ms", f"{many * 1e3:.2f} ms", f"{many / few:.2f}"]


def _rates(name: str, new: Callable[[], str], certificate: fa.Certificate) -> list[list[str]]:
    """One thread, then several."""
    target = new()
    with _filled(target, certificate, 0) as ledger, ExitStack() as opened:
        _charge(ledger)
        connect = _bare(target, list(ledger.reader().entries("events"))[-1])
        bare = [opened.enter_context(connect()) for _ in range(THREADS)]
        times = _in_turns([bare[0], lambda: _charge(ledger)])
        one = [1 / statistics.median(kept) for kept in times]
        many = _together([bare, [lambda: _charge(ledger)] * THREADS])
    return [
        [name, str(threads), f"{alone:.0f}", f"{ours:.0f}", f"{ours / alone:.2f}"]
        for threads, (alone, ours) in ((1, one), (THREADS, many))
    ]


def _race(name: str, new: Callable[[], str], certificate: fa.Certificate) -> list[str]:
    target = new()
    with _filled(target, certificate, 0):
        pass
    context = multiprocessing.get_context("spawn")
    running = []
    for _ in range(PROCESSES):
        here, there = context.Pipe()
        job = (target, ATTEMPTS // PROCESSES, there)
        running.append((context.Process(target=_attempt, args=job, daemon=True), here))
    for process, _ in running:
        process.start()
    for _, pipe in running:
        pipe.recv()
    start = time.perf_counter()
    for _, pipe in running:
        pipe.send("go")
    results = [pipe.recv() for _, pipe in running]
    seconds = time.perf_counter() - start
    for process, _ in running:
        process.join()
    sold, errors = sum(r[0] for r in results), sum(r[1] for r in results)
    with Ledger.open(target) as ledger:
        (account,) = ledger.reader().accounts("events")
        (found,) = verify(ledger.reader())
        right = account.farthings_spent == CAP == sold and found.entries == CAP + 3
    return [name, f"{sold:,}", str(errors), "verifies" if right else "WRONG", f"{seconds:.0f}"]


def _attempt(target: str, attempts: int, pipe: Connection) -> None:
    sold = errors = 0
    with Ledger.open(target, upgrade=False) as ledger:
        pipe.send("ready")
        pipe.recv()
        for _ in range(attempts):
            try:
                ledger.analyst("events", "ann").reserve(ITEMS)
                sold += 1
            except DoesNotFit:
                pass
            except Exception:
                errors += 1
    pipe.send((sold, errors))


def _in_turns(runs: list[Callable[[], None]]) -> list[list[float]]:
    """Seconds of every single call, in alternating rounds so that all see the same machine."""
    times: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()
    for _ in range(ROUNDS):
        for run, kept in zip(runs, times, strict=True):
            for _ in range(CHARGES):
                start = time.perf_counter()
                run()
                kept.append(time.perf_counter() - start)
    return times


def _together(teams: list[list[Callable[[], None]]]) -> list[float]:
    """Calls a second of teams of threads, in alternating rounds."""
    seconds: list[list[float]] = [[] for _ in teams]

    def work(run: Callable[[], None]) -> None:
        for _ in range(CHARGES):
            run()

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(ROUNDS):
            for team, kept in zip(teams, seconds, strict=True):
                start = time.perf_counter()
                list(pool.map(work, team))
                kept.append(time.perf_counter() - start)
    return [THREADS * CHARGES / statistics.median(kept) for kept in seconds]


def _charge(ledger: Ledger) -> None:
    ledger.analyst("events", "ann").reserve(ITEMS, question={"count": "article"})


@contextmanager
def _filled(target: str, certificate: fa.Certificate, count: int) -> Iterator[Ledger]:
    with Ledger.open(target) as ledger:
        ledger.owner().add(Dataset("events", unit="member", owner="team"))
        ledger.owner().sign("events", certificate)
        ledger.owner().grant("events", "ann", farthings=10**9)
        fill(ledger, count)
        yield ledger


def fill(ledger: Ledger, count: int) -> None:
    """Append `count` valid entries quickly: reservations, each closed with nothing used."""
    rows = _rows(ledger, count)
    last = None
    with ledger.book.store.engine.connect() as connection, connection.begin():
        while chunk := list(islice(rows, 10_000)):
            last = chunk[-1]
            if ledger.book.store.is_sqlite:
                connection.execute(insert(entries), chunk)
            else:
                _copy(connection.connection.driver_connection, chunk)
        if last is not None:
            head = {key: last[key] for key in ("number", "previous", "hash")}
            connection.execute(update(datasets).values(**head))
    # what is still on its way to the disk belongs to the filling, not to what comes after
    raw = ledger.book.store.engine.raw_connection()
    raw.cursor().execute(
        "PRAGMA wal_checkpoint(TRUNCATE)" if ledger.book.store.is_sqlite else "CHECKPOINT"
    )
    raw.close()
    os.sync()


def _rows(ledger: Ledger, count: int) -> Iterator[dict[str, Any]]:
    last = list(ledger.reader().entries("events"))[-1]
    common = {"dataset": "events", "time": "2026-01-01T00:00:00.000000+00:00", "account": 1}
    common |= {"analyst": "ann", "question_digest": None, "delta_units": 0}
    reserve = {**common, "kind": "reserve", "items": ITEMS, "farthings": 1, "month": "2026-01"}
    reserve["question"] = None
    close = {**common, "kind": "close", "unused": ITEMS, "farthings": -1, "release": None}
    close["release_digest"] = "0" * 64
    hash_ = last.hash
    for number in range(last.number + 1, last.number + 1 + count // 2 * 2):
        opens = (number - last.number) % 2 == 1
        settles = None if opens else number - 1
        token = new_token()
        fact = {**reserve} if opens else {**close, "settles": settles}
        written = canonical({**fact, "token": token})
        previous, hash_ = hash_, linked(hash_, sha256(written))
        yield {
            "dataset_id": 1,
            "number": number,
            "fact": written,
            "kind": fact["kind"],
            "previous": previous,
            "hash": hash_,
            "settles": settles,
            "released": None,
        }


def _copy(connection: Any, rows: list[dict[str, Any]]) -> None:
    columns = ", ".join(rows[0])
    with connection.cursor().copy(f"COPY {entries.name} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(tuple(row.values()))


def _bare(target: str, entry: Entry) -> Callable[[], AbstractContextManager[Callable[[], None]]]:
    """The least that a durable guarded charge can be: one row changed, one row of our size added.

    Gives a way to connect; each connection gives a way to charge.
    """
    make = (
        "CREATE TABLE bare_purse (id integer PRIMARY KEY, spent bigint, granted bigint)",
        "CREATE TABLE bare_entry "
        "(id integer PRIMARY KEY, fact text, kind text, previous text, hash text)",
        "INSERT INTO bare_purse VALUES (1, 0, 1000000000)",
    )
    charge = "UPDATE bare_purse SET spent = spent + 1 WHERE id = 1 AND spent + 1 <= granted"
    row = (entry.fact.written(), entry.kind, entry.previous, entry.hash)
    numbers = itertools.count()

    @contextmanager
    def on_postgresql() -> Iterator[Callable[[], None]]:
        with psycopg.connect(target) as server:

            def run() -> None:
                server.execute(charge)
                values = (next(numbers), *row)
                server.execute("INSERT INTO bare_entry VALUES (%s, %s, %s, %s, %s)", values)
                server.commit()

            yield run

    @contextmanager
    def on_sqlite() -> Iterator[Callable[[], None]]:
        file = sqlite3.connect(target, isolation_level=None, timeout=60, check_same_thread=False)
        file.execute("PRAGMA synchronous = FULL")

        def run() -> None:
            file.execute("BEGIN IMMEDIATE")
            file.execute(charge)
            file.execute("INSERT INTO bare_entry VALUES (?, ?, ?, ?, ?)", (next(numbers), *row))
            file.execute("COMMIT")

        yield run
        file.close()

    if target.startswith("postgresql"):
        with psycopg.connect(target) as server:
            for statement in make:
                server.execute(statement)
        return on_postgresql
    with closing(sqlite3.connect(target, isolation_level=None)) as file:
        for statement in make:
            file.execute(statement)
    return on_sqlite


def new_file(folder: Path) -> Callable[[], str]:
    """A new place for a ledger each time."""
    names = iter(range(10**6))
    return lambda: str(folder / f"budget{next(names)}.db")


@contextmanager
def postgresql(folder: Path) -> Iterator[Callable[[], str]]:
    """A server of our own, with a new database each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a runtime folder that root lacks
        import pgserver
    server = pgserver.get_server(folder / "pg", cleanup_mode="delete")
    names = iter(range(10**6))

    def new() -> str:
        name = f"budget{next(names)}"
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(server.get_uri(database=name))

    try:
        yield new
    finally:
        server.cleanup()
