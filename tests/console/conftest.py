"""A real service with a small sample, and a real Chromium in front of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
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
from farthing.example_table import write_engagements
from farthing.server.access.store import AccessStore
from farthing.server.access.tokens import ANALYST, mint
from farthing.server.sample import make_sample

CHROMIUM = Path("/usr/bin/chromium")
AXE = Path(__file__).parent / ".axe" / "package" / "axe.min.js"
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
#: What Chromium itself says of a refusal.
REFUSED = "Failed to load resource: the server responded with a status of 4"

expect.set_options(timeout=20_000)


@dataclass(frozen=True, slots=True)
class Served:
    """Where the console is, and tokens by name."""

    url: str
    tokens: dict[str, str]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`farthing serve`, as a process of its own."""
    folder = tmp_path_factory.mktemp("console") / "sample"
    sample = make_sample(folder, rows=60_000)
    write_engagements(folder / "visits.parquet", 1_000)
    with sample.configuration.open("a", encoding="utf-8") as configuration:
        configuration.write('\n[datasets.visits]\ndata = "visits.parquet"\n')
        configuration.write('\n[datasets.orders]\ndata = "orders.parquet"\n')
    sample.tokens["cy"] = _may_ask_about_orders(folder)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{one.getsockname()[1]}"
    command = [sys.executable, "-m", "farthing", "serve", "--config", str(sample.configuration)]
    with subprocess.Popen([*command, "--listen", listen], stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(f"http://{listen}/ready", process)
            yield Served(f"http://{listen}", sample.tokens)
        finally:
            process.terminate()


def _may_ask_about_orders(folder: Path) -> str:
    """Amounts of 400 customers, and the token of an analyst who may ask about them."""
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
    pq.write_table(pa.table(rows), folder / "orders.parquet")
    source = open_source(folder / "orders.parquet")
    tariff = fa.Tariff({"pure": (fa.PureDP(1.0), 1)}, farthings=2)
    with Desk.open(folder / "budget.db", owner="owner") as desk:
        desk.add(source, Declaration(unit="customer", schema=schema), name="orders")
        desk.sign("orders", tariff.certify())
        desk.grant("orders", "cy", farthings=2)
    source.shut()
    access = AccessStore(str(folder / "access.db"))
    token, _ = mint(access, ANALYST, "cy")
    access.shut()
    return token


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "the service ended before it was ready"
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("the service was not ready in time")


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
    pictures: Path

    def enter(self, name: str) -> Page:
        """Sign in with somebody's token."""
        self.page.goto(self.served.url)
        self.page.get_by_label("Token").fill(self.served.tokens[name])
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
def visit(browser: Browser, served: Served, pictures: Path) -> Iterator[Visit]:
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
        page.set_default_timeout(20_000)
        page.on("console", lambda one: heard(one.type, one.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda one: wrong.append(one.url) if foreign(one.url) else None)
        return Visitor(page, served, pictures)

    yield open_one
    for context in contexts:
        context.close()
    assert wrong == []
