"""One service for most tests, started once; what would disturb others starts its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import farthing as fa
from tests.ledger.conftest import folder, postgres, postgres_url  # noqa: F401 # fixtures
from tests.server.deployment import LASTING, TARIFF, Deployment
from tests.waiting import HANGS


@pytest.fixture(scope="session")
def certificate() -> fa.Certificate:
    """Coarse, because only the prices matter here."""
    return TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))


@pytest.fixture
def deploy(tmp_path: Path, certificate: fa.Certificate) -> Iterator[Callable[..., Deployment]]:
    """Starts a service of one's own: `deploy(limits={…}, workers=2)`."""
    made: list[Deployment] = []

    def start(
        ledger: str | None = None, limits: dict[str, Any] | None = None, **options: Any
    ) -> Deployment:
        # nobody waits for what runs for ever, and a slow machine makes no job of what is quick
        wanted = {"grace": 1.0, "answer_within": HANGS, "time_limit": HANGS, **(limits or {})}
        one = Deployment(tmp_path, ledger or str(tmp_path / "budget.db"), options, wanted)
        made.append(one)
        one.prepare(certificate)
        one.start()
        return one

    yield start
    for one in made:
        one.stop()


def served(one: Deployment) -> Iterator[Deployment]:
    """Until the tests are over. One that does not become ready is stopped too."""
    try:
        one.start()
        yield one
    finally:
        code = one.stop()
    assert code == 0, one.log


#: Limits that no test would meet by itself.
WIDE = {
    "requests_per_minute": 1_000_000,
    "unpaid_seconds_per_minute": 1e9,
    "jobs_at_once": 64,
    "answer_within": HANGS,
    "time_limit": HANGS,
}


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A service that tests share: they compare with what was there before."""
    place = tmp_path_factory.mktemp("service")
    lasting = replace(TARIFF, farthings=LASTING, delta_units=1_000)
    one = Deployment(place, str(place / "budget.db"), limits=WIDE, purse=LASTING // 3)
    one.prepare(lasting.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,)))
    yield from served(one)


@pytest.fixture(scope="module")
def deployed_apart(
    tmp_path_factory: pytest.TempPathFactory, certificate: fa.Certificate
) -> Iterator[Deployment]:
    """A service for the tests of one file that change what others compare with."""
    place = tmp_path_factory.mktemp("apart")
    one = Deployment(place, str(place / "budget.db"), limits=WIDE)
    one.prepare(certificate)
    yield from served(one)


@pytest.fixture
def ann(deployed: Deployment) -> Iterator[httpx.Client]:
    with deployed.client("ann") as client:
        yield client


@pytest.fixture
def bob(deployed: Deployment) -> Iterator[httpx.Client]:
    with deployed.client("bob") as client:
        yield client


@pytest.fixture
def team(deployed: Deployment) -> Iterator[httpx.Client]:
    with deployed.client("team") as client:
        yield client
