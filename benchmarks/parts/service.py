"""The service under 16 clients: planning, a cached release, a top-k over a warm table.

Each client is a process of its own loop of requests, with a token of its own, so that neither the
clients' interpreter nor one caller's limits are what is measured. The last columns are requests per
second beside an empty FastAPI route, served by the same uvicorn with as many workers, and the
processor time that the workers took for one request: 16 clients on 2 cores that never pause wait
at least eight times as long for an answer, on a machine that does nothing else.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import quantiles
from typing import Any

from playwright.sync_api import sync_playwright

import farthing as fa
from benchmarks.findings import Findings, Goal, Table
from farthing.engine import Desk
from farthing.ledger import Ledger
from farthing.server.access import AccessStore, mint
from farthing.server.sample import DATASET, make_sample

CLIENTS, WORKERS, SECONDS = 16, 2, 10.0
ROWS = 1_000_000
OTHER_ROWS = "a top-k over other rows of them each time"
CHROMIUM = "/usr/bin/chromium"
#: So cheap that the budget lasts; coarsely certified, because only prices matter here.
TARIFF = fa.Tariff(
    {
        "select": (fa.BoundedRange(1e-3), 1),
        "count": (fa.PureDP(1e-3), 1),
        "leak": (fa.ApproximateDP(0.0, 1e-12), 1),
    },
    farthings=48_000,
    delta_units=48_000,
    delta_unit=1e-12,
)
_LIMITS = f"""
[limits]
requests_per_minute = 100000000
jobs_at_once = {CLIENTS}
"""
_EMPTY = """
import sys
import uvicorn
from fastapi import FastAPI
from farthing.server.serving import AnsweringAtOnce
app = FastAPI()

@app.get("/")
def nothing() -> dict[str, str]:
    return {}

if __name__ == "__main__":
    uvicorn.run("empty:app", port=int(sys.argv[1]), workers=int(sys.argv[2]), http=AnsweringAtOnce,
                access_log=False, log_level="warning")
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What every client sends, again and again."""

    method: str
    path: str
    body: dict[str, Any] | None
    #: About other rows each time.
    fresh: bool = False
    #: Paid for each time.
    again: bool = False
    #: On a new connection each time, so that every client meets every worker.
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds at the median and at 99 %, requests per second, processor time of each."""

    median: float
    p99: float
    rate: float
    processor: float


def one_client(port: int, token: str, load: Load, seconds: float, number: int) -> list[float]:
    """How long each request took."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    taken, until, turn = [], time.monotonic() + seconds, 0
    while time.monotonic() < until:
        body = None if load.body is None else json.loads(json.dumps(load.body))
        if load.fresh and body is not None:
            body["query"]["where"] = f"company != '{number} {turn}'"
        if load.again and body is not None:
            body["again"] = True
        start = time.perf_counter()
        sent = None if body is None else json.dumps(body)
        connection.request(load.method, load.path, sent, headers)
        response = connection.getresponse()
        text = response.read()
        taken.append(time.perf_counter() - start)
        assert response.status == 200, text
        if load.anew:
            connection.close()  # and it is opened by the next request
        turn += 1
    return taken


@dataclass(frozen=True, slots=True)
class Served:
    """A service that answers: its process and its port."""

    process: int
    port: int

    def processor_seconds(self) -> float:
        """What its workers took so far."""
        found = Path(f"/proc/{self.process}/task/{self.process}/children").read_text()
        ticks = 0
        for one in found.split():
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])  # user and system
        return ticks / os.sysconf("SC_CLK_TCK")

    def measure(self, tokens: list[str], load: Load, seconds: float) -> Measured:
        """All clients at once."""
        work = [(self.port, token, load, seconds, n) for n, token in enumerate(tokens)]
        with multiprocessing.get_context("fork").Pool(len(tokens)) as pool:
            before, start = self.processor_seconds(), time.perf_counter()
            taken = [one for client in pool.starmap(one_client, work, 1) for one in client]
            lasted = time.perf_counter() - start
        cuts = quantiles(taken, n=100)
        processor = (self.processor_seconds() - before) / len(taken)
        return Measured(1000 * cuts[49], 1000 * cuts[98], len(taken) / lasted, 1000 * processor)


@contextmanager
def listening(command: list[str], port: int, path: str, folder: str) -> Iterator[Served]:
    """A server process, once it answers."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", path)
                if connection.getresponse().status == 200:
                    break
            except OSError:
                time.sleep(0.1)
        else:
            raise TimeoutError("the server did not answer within a minute")
        yield Served(process.pid, port)
    finally:
        process.terminate()
        process.wait()


def _prepared(folder: Path) -> list[str]:
    """A sample with an analyst for each client."""
    made = make_sample(folder, ROWS)
    text = made.configuration.read_text(encoding="utf-8")
    made.configuration.write_text(text.replace("workers = 1", f"workers = {WORKERS}") + _LIMITS)
    names = [f"client {number}" for number in range(CLIENTS)]
    certificate = TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    with Ledger.open(folder / "budget.db") as ledger:
        desk = Desk(ledger, owner="owner")
        desk.sign(DATASET, certificate, name="for many questions")
        for name in names:
            desk.grant(DATASET, name, farthings=TARIFF.farthings // CLIENTS)
    access = AccessStore(str(folder / "access.db"))
    tokens = [mint(access, "analyst", name)[0] for name in names]
    access.shut()
    return tokens


def measure(seconds: float = SECONDS) -> Findings:
    """The three, the empty route, and the console's first view."""
    at = f"/v1/datasets/{DATASET}"
    count: dict[str, Any] = {"kind": "count", "where": "country == 'NO'"}
    top: dict[str, Any] = {"kind": "top_k", "by": "article", "k": 10}
    loads = {
        "planning, the same question": Load("POST", f"{at}/plan", {"query": top}),
        "planning, another one each time": Load("POST", f"{at}/plan", {"query": top}, fresh=True),
        "a cached release": Load("POST", f"{at}/run", {"query": count}),
        "a top-k over 10⁶ rows": Load("POST", f"{at}/run", {"query": top}, again=True),
        OTHER_ROWS: Load("POST", f"{at}/run", {"query": top}, fresh=True, again=True),
    }
    port = 20_000 + os.getpid() % 20_000
    with tempfile.TemporaryDirectory() as folder:
        tokens = _prepared(Path(folder))
        Path(folder, "empty.py").write_text(_EMPTY, encoding="utf-8")
        uvicorn = [sys.executable, "empty.py", str(port), str(WORKERS)]
        with listening(uvicorn, port, "/", folder) as served:
            empty = served.measure(tokens, Load("GET", "/", None), seconds)
        measured = {"an empty route": empty}
        port += 1
        serve = [sys.executable, "-m", "farthing", "serve", "--config", "farthing.toml"]
        where = ["--listen", f"127.0.0.1:{port}"]
        with listening([*serve, *where], port, "/ready", folder) as served:
            for name, load in loads.items():
                served.measure(tokens, replace(load, anew=True), seconds)  # warm
                measured[name] = served.measure(tokens, load, seconds)
            size, view = first_view(port)
    rows = [
        [
            name,
            *(f"{number:.1f}" for number in (one.median, one.p99, one.rate)),
            f"{one.rate / empty.rate:.2f}",
            f"{one.processor:.1f}",
        ]
        for name, one in measured.items()
    ]
    caption = (
        f"{CLIENTS} clients that never pause, {WORKERS} workers, {seconds:.0f} s each. On "
        f"{WORKERS} idle cores each waits {CLIENTS // WORKERS} times the processor time."
    )
    header = ["", "median ms", "p99 ms", "per second", "beside an empty route", "processor ms"]
    limits = dict(zip(loads, (50, 50, 20, 500, 500), strict=True))
    goals = [Goal(f"{name}, p99", measured[name].p99, limits[name], "ms") for name in limits]
    share = measured["a cached release"].rate / empty.rate
    goals += [
        Goal("a cached release beside an empty route", share, 0.5, "×", at_least=True),
        Goal("first view of the console, over the wire", size / 1000, 300, "kB"),
        Goal("first view of the console, cold cache", view, 1, "s"),
    ]
    return Findings("The service", (Table(caption, header, rows),), tuple(goals))


def first_view(port: int) -> tuple[int, float]:
    """Bytes, and the shortest of three visits of a browser that has never been there."""
    sizes, taken = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(3):
            page = browser.new_context().new_page()
            come: list[int] = []
            page.on("response", lambda one, come=come: come.append(len(one.body())))
            start = time.perf_counter()
            page.goto(f"http://127.0.0.1:{port}/", wait_until="load")
            page.locator("input, button").first.wait_for()
            taken.append(time.perf_counter() - start)
            page.wait_for_load_state("networkidle")
            sizes.append(sum(come))
        browser.close()
    return sizes[0], min(taken)
