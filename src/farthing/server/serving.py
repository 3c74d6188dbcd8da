"""Start the service: one process, or several workers that are started again when they die."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from farthing.server.app import make_app
from farthing.server.metrics import FOLDER
from farthing.server.settings import Settings, read_settings

#: How workers are told where the configuration is, and where to listen if not as it says.
CONFIGURATION, LISTEN = "FARTHING_CONFIGURATION", "FARTHING_LISTEN"
#: How long open requests may go on when the service is told to stop.
GRACE_SECONDS = 30


class AnsweringAtOnce(H11Protocol):
    """What is written leaves at once. On a socket that workers share asyncio does not see to it,
    and a body would wait 40 ms until the client acknowledges the headers before it."""

    def connection_made(
        self,
        transport: asyncio.Transport,  # type: ignore[override] # as H11Protocol narrows it
    ) -> None:
        accepted = transport.get_extra_info("socket")
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)


def worker_app() -> FastAPI:
    """The application of one worker, from what the environment says."""
    return make_app(_with_listen(read_settings(os.environ[CONFIGURATION])))


def serve_from(path: str, listen: str | None = None) -> None:
    """Serve until told to stop; open requests and runs are waited for."""
    settings = read_settings(path)
    os.environ[CONFIGURATION] = os.path.abspath(path)
    if listen is not None:
        os.environ[LISTEN] = listen
    settings = _with_listen(settings)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # once everything is given back
    numbers = tempfile.mkdtemp(prefix="farthing-metrics-") if settings.workers > 1 else None
    if numbers is not None:
        os.environ[FOLDER] = numbers
    try:
        uvicorn.run(
            "farthing.server.serving:worker_app",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            http=AnsweringAtOnce,
            timeout_graceful_shutdown=GRACE_SECONDS,
            server_header=False,
            access_log=False,  # the audit log says more, and no address with values in it
            log_level="warning",
            proxy_headers=False,
            h11_max_incomplete_event_size=64 * 1024,
        )
    finally:
        if numbers is not None:
            shutil.rmtree(numbers, ignore_errors=True)


def _with_listen(settings: Settings) -> Settings:
    listen = os.environ.get(LISTEN)
    return settings if listen is None else settings.at(listen)
