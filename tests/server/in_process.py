"""The service in this process, where a test can hold it at an instant of its choice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

import farthing as fa
from farthing.ledger import Ledger
from farthing.server.protection import ReleaseClock
from farthing.server.service import Service
from farthing.server.serving import make_app
from farthing.server.settings import settings_from
from tests.server.deployment import TARIFF, Deployment, free_port
from tests.waiting import HANGS, until


@contextmanager
def served(
    deployed: Deployment, datasets: dict[str, Any] | None = None, **limits: Any
) -> Iterator[httpx.Client]:
    """A client of ann at a service that was prepared and not started."""
    if datasets is None:
        datasets = {name: {"data": f"{name}.parquet"} for name in ("events", "private", "later")}
        datasets["slow"] = {"data": "slow.duckdb", "table": "slow"}
    given = {
        "ledger": deployed.ledger,
        "access": deployed.access,
        "datasets": datasets,
        "limits": {"grace": 1.0, **limits},
        **deployed.options,
    }
    deployed.port = free_port()
    settings = settings_from(given, deployed.folder)
    app = make_app(settings)
    app.state.service = Service.open(settings)
    server = uvicorn.Server(uvicorn.Config(app, port=deployed.port, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        with deployed.client("ann") as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


class HeldClock:
    """A clock that strikes when a test says so."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.waited_for, self._strike = threading.Event(), threading.Event()
        patch.setattr(ReleaseClock, "wait", lambda _: self._wait())

    def _wait(self) -> None:
        self.waited_for.set()
        assert self._strike.wait(HANGS)

    def strike(self) -> None:
        self._strike.set()


def kinds_of_entries(deployed: Deployment, dataset: str) -> list[str]:
    with Ledger.open(deployed.ledger) as ledger:
        return [entry.kind for entry in ledger.reader().entries(dataset)]


@cache
def _certificate() -> fa.Certificate:
    return TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))


def prepared(folder: Path, **options: Any) -> Deployment:
    """Data, budgets and tokens, for `served`."""
    one = Deployment(folder, str(folder / "budget.db"), options)
    one.prepare(_certificate())
    return one
