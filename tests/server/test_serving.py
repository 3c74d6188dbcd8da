"""How connections are taken, and that a worker's first question finds everything loaded."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import uvicorn
from uvicorn.server import ServerState

from farthing.engine.sql.statement import Statement
from farthing.server.service import Service
from farthing.server.serving import AnsweringAtOnce
from farthing.server.settings import DatasetSettings, Settings, read_settings
from tests.server.deployment import Deployment


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application that is never asked."""


class _Accepted(asyncio.Transport):
    """As asyncio gives it out for a socket that workers share: it does not know that it is TCP."""

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__()
        self._accepted = accepted

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._accepted if name == "socket" else default


def test_what_is_written_leaves_at_once() -> None:
    with socket.socket() as listening, socket.socket() as client:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        client.connect(listening.getsockname())
        accepted, _ = listening.accept()

        async def take() -> None:
            config = uvicorn.Config(_nothing, http=AnsweringAtOnce)
            protocol = AnsweringAtOnce(config, ServerState(), {}, asyncio.get_running_loop())
            protocol.connection_made(_Accepted(accepted))

        with accepted:
            assert not accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            asyncio.run(take())
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_first_question_finds_everything_loaded(deployed: Deployment) -> None:
    """In a process of its own, as a worker is: what a question needs was imported before it."""
    code = f"""
import asyncio, sys
from farthing.server.callers import AnalystCaller
from farthing.server.routes.analysts import run_question
from farthing.server.routes.requests import RunBody
from farthing.server.service import Service
from farthing.server.settings import read_settings
service = Service.open(read_settings({str(deployed.configuration)!r}))
before = set(sys.modules)
body = RunBody(query={{"kind": "histogram", "by": "country", "categories": ["NO"]}})
caller = AnalystCaller("ann", "token")
answer = asyncio.run(run_question("events", body, service, caller))
assert answer.status_code == 200, answer.body
service.shut()
large = ("duckdb", "ibis", "pandas", "pyarrow", "sqlglot", "sqlalchemy", "numba", "flint")
print(*sorted({{name.split(".")[0] for name in set(sys.modules) - before}} & set(large)))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


@pytest.mark.parametrize(("workers", "share"), [(2, 0.5), (100, 1 / 6)])  # 30 % and 10 % of 60 %
def test_workers_share_the_memory(deployed: Deployment, workers: int, share: float) -> None:
    settings = read_settings(deployed.configuration)
    found = []
    for several in (1, workers):
        service = Service.open(replace(settings, workers=several, datasets=_only(settings)))
        limit = Statement(
            "SELECT current_setting('memory_limit') AS told", pa.schema({"told": pa.string()})
        )
        number, unit = service.sources["events"].run(limit).column(0)[0].as_py().split()
        found.append(float(number) * {"MiB": 1, "GiB": 1024}[unit])
        service.shut()
    assert found[1] == pytest.approx(found[0] * share, rel=0.05)  # it is told in two digits


def _only(settings: Settings) -> dict[str, DatasetSettings]:
    return {"events": settings.datasets["events"]}
