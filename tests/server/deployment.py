"""A real service for tests: data, a ledger, tokens, and a process that serves them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import httpx

import farthing as fa
from farthing.engine import Declaration, Desk, open_source
from farthing.ledger import Ledger, Limits
from farthing.server.access import AccessStore, mint, withdraw
from tests.waiting import HANGS, until

#: A word in every text cell that must be told to nobody.
WORD = "Zeisig"
#: Farthings of each dataset's cap, and of one that many tests share.
CAP, LASTING = 400, 4_000

TARIFF = fa.Tariff(
    {
        "select": (fa.BoundedRange(0.1), 1),
        "count": (fa.PureDP(0.1), 4),
        "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
    },
    farthings=CAP,
    delta_units=100,
    delta_unit=1e-9,
)
#: Ten thousand million rows that are made while they are read.
_SLOW = """
CREATE VIEW slow AS SELECT (a.range * 7919 + b.range) % 1000 AS member, 'word' AS name
FROM range(100000) a, range(100000) b
"""


def write_rows(folder: Path) -> None:
    """events and private: 600 members with two rows each; slow: a view that takes for ever."""
    with duckdb.connect() as connection:
        for name in ("events", "private", "later"):
            connection.execute(
                f"""COPY (SELECT i % 600 AS member, '{WORD} ' || (i % 40) AS name,
                    ['NO', 'SE', 'DK'][1 + i % 3] AS country, (i % 90) AS age,
                    DATE '2026-01-01' + (i % 50)::INTEGER AS day FROM range(1200) t(i))
                TO '{folder / name}.parquet' (FORMAT parquet)"""
            )
    with duckdb.connect(str(folder / "slow.duckdb")) as connection:
        connection.execute(_SLOW)


@dataclass
class Deployment:
    """Where it is, who may come in, and the process."""

    folder: Path
    ledger: str
    options: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    purse: int = 150
    more: str = ""
    process: subprocess.Popen[bytes] | None = None
    port: int = 0

    def prepare(self, certificate: fa.Certificate) -> None:
        """Data, budgets and tokens: ann has events and slow, bob has events and private."""
        write_rows(self.folder)
        with Ledger.open(self.ledger) as ledger:
            desk = Desk(ledger, owner="team")
            for name, holders in {
                "events": {"ann": self.purse, "bob": self.purse},
                "private": {"bob": self.purse},
                "slow": {"ann": self.purse},
            }.items():
                if name == "slow":
                    source = open_source(self.folder / "slow.duckdb", table="slow")
                else:
                    source = open_source(self.folder / f"{name}.parquet")
                limits = Limits(contribution_limit=3, per_key_limit=2)
                desk.add(source, Declaration(unit="member", limits=limits), name=name)
                source.shut()
                desk.sign(name, certificate)
                for analyst, farthings in holders.items():
                    desk.grant(name, analyst, farthings=farthings)
        store = AccessStore(self.access)
        soon = datetime.now(UTC) - timedelta(seconds=1)
        for name, role in {"team": "owner", "ann": "analyst", "bob": "analyst"}.items():
            self.tokens[name] = mint(store, role, name)[0]
        self.tokens["expired"] = mint(store, "analyst", "ann", expires=soon)[0]
        self.tokens["narrow"] = mint(store, "analyst", "ann", datasets=["slow"])[0]
        token, record = mint(store, "analyst", "ann")
        withdraw(store, record.id)
        self.tokens["revoked"] = token
        store.shut()

    @property
    def access(self) -> str:
        return self.ledger if "://" in self.ledger else str(self.folder / "access.db")

    @property
    def configuration(self) -> Path:
        return self.folder / "farthing.toml"

    def start(self) -> None:
        """Serve, and wait until it is ready."""
        self.begin()
        self.wait_until_ready()

    def begin(self) -> None:
        """Serve."""
        self.port = self.port or free_port()
        lines = [
            f'ledger = "{self.ledger}"',
            f'access = "{self.access}"',
            f'listen = "127.0.0.1:{self.port}"',
            *(f"{name} = {value}" for name, value in self.options.items()),
            *("[limits]", *(f"{name} = {value}" for name, value in self.limits.items())),
            "[logs]",
            'audit = "audit.jsonl"',
            *(
                f'[datasets.{name}]\ndata = "{name}.parquet"'
                for name in ("events", "private", "later")
            ),
            '[datasets.slow]\ndata = "slow.duckdb"\ntable = "slow"',
            self.more,
        ]
        self.configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "farthing", "serve", "--config", str(self.configuration)],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def wait_until_ready(self) -> None:
        """As long as the process lives."""
        with self.client(None) as client:

            def ready() -> bool:
                try:
                    return client.get("/ready").status_code == 200
                except httpx.TransportError:
                    return False

            self.wait_for(ready)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """As long as the process lives."""

        def holds() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log
            return condition()

        until(holds)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.folder / "server.log").read_text(encoding="utf-8")

    def client(self, who: str | None) -> httpx.Client:
        """A client with the token of somebody, or with none."""
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}
        # nothing here is encrypted: certificates would take longer to read than most answers
        return httpx.Client(base_url=self.url, headers=headers, timeout=HANGS, verify=False)

    def workers(self) -> list[int]:
        """The processes that answer, if there are several."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(child) for child in children.split()]

    def stop(self) -> int:
        """Ask it to stop, and its exit code; 0 if it was never started."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=HANGS)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
