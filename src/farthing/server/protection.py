"""What keeps callers from harming the service and each other: limits, headers, a log, a clock."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from farthing.errors import InvalidInput
from farthing.server.access.store import written_now
from farthing.server.metrics import Metrics
from farthing.server.problems import Refused, plain_problem, problem_of
from farthing.server.settings import Settings

T = TypeVar("T")
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

#: Everything comes from here, nothing is inline, nobody frames it.
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'; img-src 'self' data:"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
#: Nobody reads what else the caller sends.
CLOSE = {"connection": "close"}
#: Callers whose rate is remembered.
MOST_CALLERS = 100_000
#: Pieces of unpaid work at once, in one worker.
UNPAID_AT_ONCE = 2


class PerMinute:
    """So much a minute for each caller, of this worker. What is not used is saved for a minute."""

    def __init__(self, per_minute: float) -> None:
        self.per_minute = float(per_minute)
        self._left: dict[str, tuple[float, float]] = {}
        self._turn = threading.Lock()

    def take(self, caller: str, amount: float, *, at_least: float = -math.inf) -> int:
        """Take it, and 0; or take nothing, and the seconds until there is `at_least` so much."""
        now = time.monotonic()
        with self._turn:
            left, then = self._left.get(caller, (self.per_minute, now))
            left = min(self.per_minute, left + (now - then) * self.per_minute / 60)
            if left < at_least:
                return max(1, math.ceil((at_least - left) * 60 / self.per_minute))
            if len(self._left) >= MOST_CALLERS:
                self._left.clear()
            self._left[caller] = left - amount, now
            return 0


class Rates:
    """So many requests a minute for each token, of this worker."""

    def __init__(self, per_minute: int) -> None:
        self._allowed = PerMinute(per_minute)

    def take(self, token: str) -> None:
        """One request, or Refused with the time after which there is room again."""
        seconds = self._allowed.take(token, 1, at_least=1)
        if seconds:
            most = f"at most {self._allowed.per_minute:g} requests a minute"
            raise _too_much("too_many_requests", most, seconds)


class UnpaidWork:
    """Work that no farthings pay for, such as planning: paid for in processor time.

    Each caller has so many seconds a minute and one piece of work at a time; a few pieces run at
    once, whoever they are for, so that threads are left for everything else. A piece that took more
    than there was leaves a debt.
    """

    def __init__(self, seconds_per_minute: float) -> None:
        self._allowed = PerMinute(seconds_per_minute)
        self._room = asyncio.Semaphore(UNPAID_AT_ONCE)
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}

    async def do(self, caller: str, work: Callable[[], T]) -> T:
        """What `work` gives; Refused if this caller used up the time."""
        self._require_time(caller)
        async with self._turn_of(caller), self._room:
            self._require_time(caller)
            return await run_in_threadpool(self.timed, caller, work)

    def timed(self, caller: str, work: Callable[[], T]) -> T:
        """What `work` gives, whose processor time is the caller's."""
        begun = time.thread_time()
        try:
            return work()
        finally:
            self._allowed.take(caller, time.thread_time() - begun)

    def _require_time(self, caller: str) -> None:
        seconds = self._allowed.take(caller, 0, at_least=0)
        if seconds:
            most = (
                f"plans and pages take at most {self._allowed.per_minute:g} s of processor a minute"
            )
            raise _too_much("too_much_work", most, seconds)

    @asynccontextmanager
    async def _turn_of(self, caller: str) -> AsyncIterator[None]:
        """In the thread of the event loop alone, so that counting needs no lock."""
        lock, waiting = self._turns.get(caller, (asyncio.Lock(), 0))
        self._turns[caller] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._turns[caller]
            self._turns[caller] = lock, waiting - 1
            if waiting == 1:
                del self._turns[caller]


def _too_much(kind: str, most: str, seconds: int) -> Refused:
    after = {"Retry-After": str(seconds)}
    return Refused(429, kind, f"{most}; wait {seconds} s", headers=after)


class ReleaseClock:
    """Answers leave at whole multiples of some seconds, so that running time tells less.

    An answer that takes longer than one period leaves with a later one.
    """

    def __init__(self, every: float) -> None:
        self._every = every

    @property
    def strikes(self) -> bool:
        """Whether answers wait for it at all."""
        return self._every > 0

    def wait(self) -> None:
        """Until the next time at which answers leave."""
        if self.strikes:
            time.sleep(-time.time() % self._every)


class AuditLog:
    """Who did what, a line of JSON each; never what was asked or answered."""

    def __init__(self, path: str | None) -> None:
        self._log = logging.getLogger("farthing.lab.audit")
        self._log.propagate = False
        self._log.setLevel(logging.INFO)
        self._handler: logging.Handler = logging.NullHandler()
        if path is not None:
            try:
                Path(path).touch(mode=0o600)
            except OSError as error:
                raise InvalidInput(
                    f"logs.audit must be a file that can be written, got {path} ({error.strerror})"
                ) from None
            self._handler = logging.FileHandler(path, encoding="utf-8")
        self._log.addHandler(self._handler)

    def note(self, **facts: Any) -> None:
        """One line."""
        self._log.info(json.dumps({"at": written_now(), **facts}, ensure_ascii=True))

    def shut(self) -> None:
        """Give the file back."""
        self._log.removeHandler(self._handler)
        self._handler.close()


class Protection:
    """Around everything: bodies of a size, headers on every answer, a line in the log."""

    def __init__(self, app: ASGIApp, settings: Settings, audit: AuditLog, metrics: Metrics) -> None:
        self._app = app
        self._most = settings.limits.body_bytes
        self._audit = audit
        self._metrics = metrics

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, size, begun = time.monotonic(), 500, 0, False
        scope.setdefault("state", {})

        async def receive_limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._most:
                raise HTTPException(413)
            return message

        async def send_protected(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                headers = [*message.get("headers", ()), *HEADERS]
                if scope["path"].startswith("/v1"):
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        try:
            if _stated_length(scope) > self._most:
                await _problem(413)(scope, receive, send_protected)
            elif "\0" in scope["path"] or b"%00" in scope["query_string"]:  # as in no name
                await _problem(404)(scope, receive, send_protected)
            else:
                await self._app(scope, receive_limited, send_protected)
        except Exception as error:
            # not raised again: the server would print what it says, which may quote the data
            failed, body = problem_of(error)
            if not begun:
                await JSONResponse(body, failed, CLOSE)(scope, receive, send_protected)
        finally:
            self._note(scope, status, time.monotonic() - started)

    def _note(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        route = scope.get("route")
        path = route.path if route is not None and hasattr(route, "path") else "elsewhere"
        self._metrics.request(scope["method"], path, status, seconds)
        if path in ("elsewhere", "/health", "/ready", "/metrics"):
            return
        caller, no_entry = scope["state"].get("caller"), scope["state"].get("no_entry")
        known = caller or no_entry
        self._audit.note(
            who=None if caller is None else caller.key,
            token=None if known is None else known.token,
            method=scope["method"],
            route=path,
            dataset=scope.get("path_params", {}).get("dataset") if status != 404 else None,
            status=status,
            seconds=round(seconds, 3),
            **({} if no_entry is None else {"refused": no_entry.reason}),
        )


def _stated_length(scope: MutableMapping[str, Any]) -> int:
    stated = dict(scope["headers"]).get(b"content-length", b"0")
    return int(stated) if stated.isdigit() else 0


def _problem(status: int) -> JSONResponse:
    return JSONResponse(plain_problem(status), status, CLOSE)
