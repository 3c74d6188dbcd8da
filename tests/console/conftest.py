"""A real service with a small sample, and a real Chromium in front of it.

Tests share the service and nothing in it: each has analysts of its own, with purses of their own.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import farthing as fa
from farthing.engine import Declaration, Desk, open_source
from farthing.lab.example_data import write_engagements
from farthing.ledger import Ledger
from farthing.server.access import ANALYST, AccessStore, mint
from farthing.server.sample import DATASET, make_sample
from tests.server.deployment import free_port
from tests.waiting import HANGS, until

CHROMIUM = Path("/usr/bin/chromium")
AXE = Path(__file__).parent / ".axe" / "package" / "axe.min.js"
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
#: What Chromium itself says of a refusal.
REFUSED = "Failed to load resource: the server responded with a status of 4"

expect.set_options(timeout=1000 * HANGS)
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Served:
    """Where the console is, and the owner's token."""

    url: str
    folder: Path
    owner: str


@dataclass(frozen=True, slots=True)
class People:
    """Who is in a test: the owner, and analysts whom no other test knows."""

    served: Served
    number: int
    tokens: dict[str, str]

    def name(self, who: str) -> str:
        """What an analyst is called in the book."""
        return f"{who}-{self.number}"

    def token(self, who: str) -> str:
        """Of the owner, or of an analyst, who is granted a purse when first asked for."""
        if who == "owner":
            return self.served.owner
        if who not in self.tokens:
            dataset = "orders" if who == "cy" else DATASET
            with Ledger.open(self.served.folder / "budget.db") as ledger:
                cap = max(one.farthings for one in ledger.reader().accounts(dataset))
                share = cap if who == "cy" else cap // 3  # as much as the sample's analysts have
                Desk(ledger, owner="owner").grant(dataset, self.name(who), farthings=share)
            access = AccessStore(str(self.served.folder / "access.db"))
            self.tokens[who], _ = mint(access, ANALYST, self.name(who))
            access.shut()
        return self.tokens[who]

    def ask(self, who: str, country: str) -> None:
        """An analyst counts somebody."""
        response = httpx.post(
            f"{self.served.url}/v1/datasets/{DATASET}/run",
            headers={"Authorization": f"Bearer {self.token(who)}"},
            json={"query": {"kind": "count", "where": f"country == '{country}'"}},
            timeout=HANGS,
        )
        assert response.status_code == 200


@pytest.fixture
def people(served: Served) -> People:
    return People(served, next(_numbers), {})


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`farthing serve`, as a process of its own."""
    folder = tmp_path_factory.mktemp("console") / "sample"
    sample = make_sample(folder, rows=60_000)
    write_engagements(folder / "visits.parquet", 1_000)
    with sample.configuration.open("a", encoding="utf-8") as configuration:
        configuration.write('\n[datasets.visits]\ndata = "visits.parquet"\n')
        configuration.write('\n[datasets.orders]\ndata = "orders.parquet"\n')
        configuration.write('\n[datasets.renewed]\ndata = "renewed.parquet"\n')
    _declare_others(folder)
    listen = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "farthing", "serve", "--config", str(sample.configuration)]
    with subprocess.Popen([*command, "--listen", listen], stdout=subprocess.DEVNULL) as process:
        try:
            until(lambda: _is_ready(f"http://{listen}/ready", process))
            yield Served(f"http://{listen}", folder, sample.tokens["owner"])
        finally:
            process.terminate()


def _declare_others(folder: Path) -> None:
    """orders: amounts of 400 customers, with a budget. renewed: one whose rows are replaced."""
    rows = {
        "customer": list(range(400)),
        "amount": [i % 100 for i in range(400)],
        "age": [18 + i % 80 for i in range(400)],
        "region": ["north", "south"] * 200,
    }
    schema = fa.Schema(
        (
            fa.Column("customer", "integer"),
            fa.Column("amount", "integer"),
            fa.Column("age", "integer", lower=18, upper=100),
            fa.Column("region", "text", categories=("north", "south")),
        )
    )
    with Desk.open(folder / "budget.db", owner="owner") as desk:
        for name in ("orders", "renewed"):
            pq.write_table(pa.table(rows), folder / f"{name}.parquet")
            source = open_source(folder / f"{name}.parquet")
            desk.add(source, Declaration(unit="customer", schema=schema), name=name)
            source.shut()
        desk.sign("orders", fa.Tariff({"pure": (fa.PureDP(1.0), 1)}, farthings=2).certify())


def _is_ready(url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the service ended before it was ready"
    try:
        return httpx.get(url, timeout=HANGS).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium (tests/bring.sh brings it), ended with the module: while Playwright runs,
    no other test of the process can have an event loop of its own.
    """
    assert CHROMIUM.exists(), "no Chromium here: run tests/bring.sh"
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield made
        made.close()


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody in front of the console."""

    page: Page
    served: Served
    people: People
    pictures: Path

    def enter(self, name: str) -> Page:
        """Sign in with somebody's token."""
        self.page.goto(self.served.url)
        self.page.get_by_label("Token").fill(self.people.token(name))
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()
        return self.page

    def go(self, where: str) -> Page:
        """Another part of the console, by its address."""
        self.page.goto(f"{self.served.url}/#/{where}")
        return self.page

    def looked_at(self, name: str) -> None:
        """A picture of the whole page, and no finding of axe."""
        expect(self.page.locator(".waiting, .plan[aria-busy]")).to_have_count(0)
        self.page.screenshot(path=self.pictures / f"{name}.png", full_page=True)
        if not self.page.evaluate("'axe' in window"):
            assert AXE.exists(), "no axe-core here: run tests/bring.sh"
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run().then(one => one.violations)")
        assert found == [], [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


Visit = Callable[..., Visitor]


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept: FARTHING_PICTURES, or a temporary folder."""
    chosen = os.environ.get("FARTHING_PICTURES")
    place = Path(chosen) if chosen else tmp_path_factory.mktemp("pictures")
    place.mkdir(parents=True, exist_ok=True)
    return place


@pytest.fixture
def visit(browser: Browser, served: Served, people: People, pictures: Path) -> Iterator[Visit]:
    """Opens the console: `visit(dark=True)`. Any error and any request elsewhere fails the test."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def foreign(address: str) -> bool:
        return not address.startswith((served.url, "blob:", "data:"))

    def open_one(*, dark: bool = False, phone: bool = False, refusals: bool = False) -> Visitor:
        def heard(kind: str, text: str) -> None:
            if kind == "error" and not (refusals and text.startswith(REFUSED)):
                wrong.append(text)

        context = browser.new_context(
            viewport=PHONE if phone else DESK,
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * HANGS)
        page.on("console", lambda one: heard(one.type, one.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda one: wrong.append(one.url) if foreign(one.url) else None)
        return Visitor(page, served, people, pictures)

    yield open_one
    for context in contexts:
        context.close()
    assert wrong == []
