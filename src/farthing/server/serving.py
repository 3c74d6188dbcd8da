"""The application, and the processes that run it: one, or several workers.

A worker that dies is started again. Nothing else ends a worker. One that does not answer for a
while may be at a proof, or wait for a database or for a processor; ending it would lose the
requests that it has, and help nobody.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import ibis.backends.duckdb  # noqa: F401 # loaded before workers are copied
import uvicorn
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from farthing import __version__
from farthing.errors import FarthingError, InvalidInput
from farthing.ledger.errors import Unavailable
from farthing.ledger.store.fast_path import Patience
from farthing.server.postgres.listening import PostgresDoor
from farthing.server.problems import handle_errors
from farthing.server.protection import FOLDER, AuditLog, Metrics, Protection, forget_worker
from farthing.server.routes.analysts import analyst_router, light_router
from farthing.server.routes.conversations import conversation_router
from farthing.server.routes.everybody import forms_router, health_router, job_router
from farthing.server.routes.owners import owner_router
from farthing.server.service import Service
from farthing.server.settings import Settings, read_settings

#: The console, which is in the wheel: no build step, nothing from elsewhere.
CONSOLE = Path(__file__).parent / "console"
ROUTERS = (
    light_router,
    analyst_router,
    conversation_router,
    job_router,
    owner_router,
    forms_router,
    health_router,
)


class ConsoleFiles(StaticFiles):
    """Served with an ETag and revalidated each time, so that versions never mix."""

    def __init__(self) -> None:
        super().__init__(directory=CONSOLE, html=True)

    def file_response(self, *given: Any, **options: Any) -> Response:
        response = super().file_response(*given, **options)
        response.headers["cache-control"] = "no-cache"
        return response


def make_app(settings: Settings) -> FastAPI:
    """The service of these settings. Whoever runs it puts what was opened into `state.service`; it
    is given back when the application stops."""
    metrics, audit = Metrics(), AuditLog(settings.logs.audit)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service: Service = app.state.service
        metrics.watch_runs(lambda: service.runner.active)
        try:
            async with _sql_clients(settings, app.state.places):
                yield
        finally:
            await run_in_threadpool(service.shut)
            audit.shut()

    app = FastAPI(
        title="farthing",
        version=__version__,
        description="Private answers, and a budget that is never overspent.",
        docs_url=None,  # it would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.metrics = metrics
    app.state.places = None
    handle_errors(app)
    for router in ROUTERS:
        app.include_router(router)
    # Nothing but these files, which are everybody's: how far an answer can be compressed tells
    # what is in it to whoever sees its size, and lets them try what else is.
    app.mount("/", GZipMiddleware(ConsoleFiles()), name="console")
    app.add_middleware(Protection, settings=settings, audit=audit, metrics=metrics)
    return app


log = logging.getLogger("farthing.server")


@dataclass(frozen=True, slots=True)
class Places:
    """The sockets of a service: for HTTP, and for SQL clients if they are let in."""

    http: socket.socket
    sql: socket.socket | None = None

    def close(self) -> None:
        """Nobody is accepted any more."""
        self.http.close()
        if self.sql is not None:
            self.sql.close()


@asynccontextmanager
async def _sql_clients(settings: Settings, places: Places | None) -> AsyncIterator[None]:
    """SQL clients are let in meanwhile, if there is a place for them."""
    if places is None or places.sql is None:
        yield
        return
    host, port = places.http.getsockname()[:2]
    near = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    tls = None
    if settings.postgres is not None and settings.postgres.certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(settings.postgres.certificate, settings.postgres.key)
    door = PostgresDoor(f"http://{near}:{port}", tls)
    server = await door.open(places.sql)
    try:
        yield
    finally:
        server.close()
        door.shut()


#: How long open requests may go on when the service is told to stop.
GRACE_SECONDS = 30
#: The first pause before a worker that died young is started again, and the longest one.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
#: A worker that has lived for so many seconds is started again at once.
YOUNG_SECONDS = 30.0
#: Seconds between checks that the parent is alive.
ORPHAN_SECONDS = 0.5
#: Connections that may wait for a worker.
BACKLOG = 2048

#: On Linux a worker is a copy of its parent, which has loaded every library and opened nothing:
#: it is there after a fraction of a second of work, where loading them takes three.
_processes: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
#: Signals that stop the service.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class AnsweringAtOnce(H11Protocol):
    """Sends without delay. asyncio does not set this on a socket that workers share,
    and a body would wait 40 ms until the client acknowledges the headers before it."""

    def connection_made(
        self,
        transport: asyncio.Transport,  # type: ignore[override] # as H11Protocol narrows it
    ) -> None:
        accepted = transport.get_extra_info("socket")
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)


def listening_at(host: str, port: int, option: str = "--listen") -> socket.socket:
    """A listening socket; connections wait until a worker accepts them."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise InvalidInput(
            f"nothing can listen at {host}:{port} ({error.strerror}): stop what does, or say "
            f"another place with {option} HOST:PORT"
        ) from None


def serve_from(path: str, listening: Places) -> None:
    """Serve until stopped; open requests and runs are finished first."""
    workers = read_settings(path).workers
    if workers == 1:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # once everything is given back
        _serve(read_settings(path), listening)
        return
    numbers = os.environ[FOLDER] = tempfile.mkdtemp(prefix="farthing-metrics-")
    try:
        _supervise([Place(path, listening) for _ in range(workers)], listening)
    finally:
        shutil.rmtree(numbers, ignore_errors=True)


def _serve(settings: Settings, listening: Places) -> None:
    """Serve in this process."""
    app = make_app(settings)
    app.state.service = _opened(settings)
    app.state.places = listening
    config = uvicorn.Config(
        app,
        http=AnsweringAtOnce,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
        access_log=False,  # the audit log says more, and no address with values in it
        log_level="warning",
        proxy_headers=False,
        h11_max_incomplete_event_size=64 * 1024,
    )
    uvicorn.Server(config).run(sockets=[listening.http])


def _opened(settings: Settings) -> Service:
    """The service, as soon as its databases can be used; other errors are raised."""
    patience, said = Patience(0, LONGEST_PAUSE), ""
    while True:
        try:
            return Service.open(settings)
        except Unavailable as error:
            if not error.passes:
                raise
            if said != str(error):
                said = str(error)
                log.warning("waiting: %s", said)
        patience.wait()


class Place:
    """A slot for one worker; when it dies, the next one starts here."""

    def __init__(self, path: str, listening: Places) -> None:
        self._arguments = path, listening
        self.pause = 0.0
        self._due = time.monotonic()
        self.process: BaseProcess | None = None

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the next start; None if there is a worker."""
        return None if self.process is not None else max(0.0, self._due - time.monotonic())

    def look(self) -> None:
        """Notice a dead worker, and start the next one when it is due.

        InvalidInput if the worker sent an error that a restart would not fix.
        """
        if self.process is not None and self.process.exitcode is not None:
            refusal = _told(self._refusal)
            if refusal is not None:
                raise InvalidInput(refusal)
            log.warning("a worker ended with code %s", self.process.exitcode)
            assert self.process.pid is not None
            forget_worker(self.process.pid)
            now = time.monotonic()
            longer = min(max(2 * self.pause, FIRST_PAUSE), LONGEST_PAUSE)
            self.pause = longer if now - self._began < YOUNG_SECONDS else 0.0
            self.process, self._due = None, now + self.pause
        if self.seconds_left == 0.0:
            self._begin()

    def _begin(self) -> None:
        self._refusal, told = _processes.Pipe(duplex=False)
        self.process = _processes.Process(target=_work, args=(*self._arguments, told))
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until the worker has its own answers
        self.process.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        told.close()
        self._began = time.monotonic()


def _told(refusal: Connection) -> str | None:
    """The error that a dead worker sent, if any."""
    with refusal:
        try:
            text: str = refusal.recv()
            return text
        except (EOFError, OSError):
            return None


def _supervise(places: list[Place], listening: Places) -> None:
    """Keep the workers running until a signal stops them."""
    stop, signalled = socket.socketpair()
    for number in _SIGNALS:
        signal.signal(number, lambda *_: signalled.send(b"."))
    try:
        while True:
            alive = [place.process.sentinel for place in places if place.process is not None]
            pauses = [place.seconds_left for place in places]
            shortest = min((one for one in pauses if one is not None), default=None)
            if stop in wait([stop, *alive], shortest):
                return
            for place in places:
                place.look()
    finally:
        listening.close()
        running = [place.process for place in places if place.process is not None]
        for process in running:
            process.terminate()
        for process in running:
            process.join()


def _work(path: str, listening: Places, refusal: Connection) -> None:
    """Run a worker. Errors that a restart would not fix go to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _serve(read_settings(path), listening)
    except FarthingError as error:
        refusal.send(str(error))
        sys.exit(2)


def _end_with_parent() -> None:
    """Stop when the parent was killed: nobody else would, and the port would stay taken."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    while os.getppid() == parent.pid:
        time.sleep(ORPHAN_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
