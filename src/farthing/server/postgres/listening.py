"""Accepts connections of SQL clients, and lets them into the service with their tokens."""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
import threading
from asyncio import AbstractServer, StreamReader, StreamWriter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from farthing.canonical import canonical
from farthing.client.connect import connect
from farthing.dbapi.statements import NotAllowed, Statements
from farthing.engine.session import Session
from farthing.server.postgres.catalogue import Catalogue
from farthing.server.postgres.conversing import Talk

#: How many connections there may be, and how many statements run at once.
MOST_CONNECTIONS, MOST_AT_ONCE = 2000, 32
#: Catalogues that are kept, one for each dataset as it is declared.
MOST_CATALOGUES = 64


class PostgresDoor:
    """SQL clients on one socket, with the service at `url` behind them."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls
        self._url = url
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="postgres")
        self._talks: dict[int, Talk] = {}
        self._numbers = itertools.count(1)
        self._catalogues: dict[str, Catalogue] = {}
        self._lock = threading.Lock()

    async def open(self, listening: socket.socket) -> AbstractServer:
        """Accept connections from now on."""
        return await asyncio.start_server(self._met, sock=listening)

    async def _met(self, reader: StreamReader, writer: StreamWriter) -> None:
        talk = Talk(reader, writer, self, next(self._numbers))
        if len(self._talks) < MOST_CONNECTIONS:
            self._talks[talk.process] = talk
            try:
                await talk.run()
            finally:
                del self._talks[talk.process]
        writer.close()

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """What a call gives that waits for the service."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def enter(self, token: str, dataset: str) -> tuple[Statements, Catalogue]:
        """A session with this token, which may spend nothing yet; and the catalogue of its data."""
        session = connect(self._url, token=token, dataset=dataset or None)
        if not isinstance(session, Session):
            session.shut()
            raise NotAllowed("this is an owner's token: questions are asked with an analyst's")
        about = session.backend.about
        with self._lock:
            key = canonical(about.to_json())
            if key not in self._catalogues:
                if len(self._catalogues) >= MOST_CATALOGUES:
                    self._catalogues.clear()
                self._catalogues[key] = Catalogue(about)
            return Statements(session), self._catalogues[key]

    def cancel(self, process: int, secret: int) -> None:
        """Tell the connection with this number not to wait, if the secret is its own."""
        talk = self._talks.get(process)
        if talk is not None and talk.secret == secret:
            talk.cancelled.set()

    def shut(self) -> None:
        """End all connections."""
        for talk in list(self._talks.values()):
            talk.writer.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
