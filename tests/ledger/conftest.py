"""Every ledger test runs on SQLite and on a real PostgreSQL, started here without root."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

import farthing as fa
from farthing.interactive import SparseVector
from farthing.ledger import Dataset, DurableConversation, Ledger, Limits
from tests.ledger.server import Server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def certificate() -> fa.Certificate:
    """500 farthings and 100 units of δ; coarse, because only the prices matter here."""
    return tariff(500).certify(tolerance=0.3, deltas=(1e-3, 1e-6), epsilons=(1.0,))


def tariff(farthings: int) -> fa.Tariff:
    return fa.Tariff(
        {
            "select": (fa.BoundedRange(0.1), 1),
            "count": (fa.Laplace(0.1), 4),
            "threshold": (fa.ApproximateDP(0.05, 1e-9), 1),
        },
        farthings=farthings,
        delta_units=100,
        delta_unit=1e-9,
    )


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Short and readable by others: a server started by root runs as somebody else."""
    made = Path(tempfile.mkdtemp(prefix="ledger"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(folder: Path) -> Iterator[Server]:
    server = Server(folder / "pg")
    yield server
    server.stop()


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """An empty database of its own."""
    name = f"ledger{next(_numbers)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger goes."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.db")
    return str(request.getfixturevalue("postgres_url"))


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 15, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(target: str, certificate: fa.Certificate, clock: Clock) -> Iterator[Ledger]:
    """A ledger with the dataset `events`, its tariff, and 100 farthings for ann."""
    with Ledger.open(target, clock=clock) as opened:
        fill(opened, certificate)
        yield opened


def fill(ledger: Ledger, certificate: fa.Certificate, name: str = "events") -> None:
    owner = ledger.owner()
    owner.add(Dataset(name, unit="member", owner="team", limits=Limits(contribution_limit=3)))
    owner.sign(name, certificate)
    owner.grant(name, "ann", farthings=100, delta_units=10)


WATCH = SparseVector.from_epsilon(0.1, positives=1, monotone=True)


def open_talk(ledger: Ledger) -> DurableConversation:
    """A conversation of ann, under a tariff of its own that can pay for it."""
    small = fa.Tariff({"small": (fa.PureDP(0.1), 1)}, farthings=10)
    certificate = small.certify(tolerance=0.9, deltas=(1e-3,), epsilons=(1.0,))
    ledger.owner().sign("events", certificate, name="talking")
    ledger.owner().grant("events", "ann", farthings=1)
    return ledger.analyst("events", "ann").open_conversation(WATCH)


@pytest.fixture(scope="session")
def processes() -> multiprocessing.context.ForkServerContext:
    """New processes from a small clean one that has imported the workers."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.ledger.workers"])
    return context


@pytest.fixture
def without_root() -> Iterator[None]:
    """Permissions mean nothing to root; be nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)
