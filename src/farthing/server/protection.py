"""Limits, headers, the release clock, the audit log, and numbers for Prometheus."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.exceptions import HTTPException

from farthing.errors import InvalidInput
from farthing.server.access import written_now
from farthing.server.problems import Refused, plain_problem, problem_of
from farthing.server.settings import Settings

T = TypeVar("T")
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

#: Everything from this origin, nothing inline, no frames.
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
#: The rest of the request is not read.
CLOSE = {"connection": "close"}
#: Callers whose rates are kept.
MOST_CALLERS = 100_000
#: Pieces of unpaid work at once, in one worker.
UNPAID_AT_ONCE = 2
#: The folder in which several workers share their metrics.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


class PerMinute:
    """A rate for each caller in this worker; unused amounts last a minute.

    `kind` and `words` are those of the refusal: at most so much of what.
    """

    def __init__(self, per_minute: float, kind: str, words: str) -> None:
        self._per_minute = float(per_minute)
        self._kind, self._words = kind, words.format(f"{per_minute:g}")
        self._left: dict[str, tuple[float, float]] = {}
        self._turn = threading.Lock()

    def take(self, caller: str, amount: float, *, at_least: float = -math.inf) -> None:
        """Take an amount; Refused with the seconds to wait if there is not `at_least` so much."""
        now = time.monotonic()
        with self._turn:
            left, then = self._left.get(caller, (self._per_minute, now))
            left = min(self._per_minute, left + (now - then) * self._per_minute / 60)
            if left < at_least:
                seconds = max(1, math.ceil((at_least - left) * 60 / self._per_minute))
                words, after = f"{self._words}; wait {seconds} s", {"Retry-After": str(seconds)}
                raise Refused(429, self._kind, words, headers=after)
            if len(self._left) >= MOST_CALLERS:
                self._left.clear()
            self._left[caller] = left - amount, now


def request_rate(per_minute: int) -> PerMinute:
    """The request rate of each token; a request takes 1 of at least 1."""
    return PerMinute(per_minute, "too_many_requests", "at most {} requests a minute")


class UnpaidWork:
    """Work that no farthings pay for, such as planning: paid for in processor time.

    Each caller has so many seconds a minute and one piece of work at a time; a few pieces run at
    once, whoever they are for, so that threads are left for everything else. A piece that took more
    than there was leaves a debt.
    """

    def __init__(self, seconds_per_minute: float) -> None:
        words = "plans and pages take at most {} s of processor a minute"
        self._allowed = PerMinute(seconds_per_minute, "too_much_work", words)
        self._room = asyncio.Semaphore(UNPAID_AT_ONCE)
        #: A lock for each caller, for as long as somebody holds it or waits for it.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def do(self, caller: str, work: Callable[[], T]) -> T:
        """The result of `work`; Refused if the caller has used up the time."""
        self._allowed.take(caller, 0, at_least=0)
        async with self._turns.setdefault(caller, asyncio.Lock()), self._room:
            self._allowed.take(caller, 0, at_least=0)
            return await run_in_threadpool(self.timed, caller, work)

    def timed(self, caller: str, work: Callable[[], T]) -> T:
        """The result of `work`, with its processor time charged to the caller."""
        begun = time.thread_time()
        try:
            return work()
        finally:
            self._allowed.take(caller, time.thread_time() - begun)


class ReleaseClock:
    """Delays answers to whole multiples of some seconds, so that running time tells less.

    An answer that takes longer leaves at a later multiple.
    """

    def __init__(self, every: float) -> None:
        self._every = every

    @property
    def strikes(self) -> bool:
        """Whether answers wait."""
        return self._every > 0

    def wait(self) -> None:
        """Wait for the next multiple."""
        if self.strikes:
            time.sleep(-time.time() % self._every)


class AuditLog:
    """Who did what, one line of JSON each; never questions or answers."""

    def __init__(self, path: str | None) -> None:
        self._log = logging.getLogger("farthing.audit")
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
        """Write one line."""
        self._log.info(json.dumps({"at": written_now(), **facts}, ensure_ascii=True))

    def shut(self) -> None:
        """Close the file."""
        self._log.removeHandler(self._handler)
        self._handler.close()


class Metrics:
    """Requests and runs of one worker by route: no names, no datasets, no values.

    With several workers `page` adds them up.
    """

    def __init__(self) -> None:
        if FOLDER in os.environ:  # the library itself looks only when it is loaded
            values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call] # no types
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "farthing_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "farthing_request_seconds",
            "How long requests took.",
            ("route",),
            registry=self._registry,
        )
        self._active = Gauge(
            "farthing_runs_active",
            "Questions that run now.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._look: Callable[[], int] = lambda: 0

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        known = method if method in METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def watch_runs(self, active: Callable[[], int]) -> None:
        """Read the number of active runs with this function."""
        self._look = active

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        self._active.set(self._look())
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call] # it has no types
        return generate_latest(together)


def forget_worker(process: int) -> None:
    """Stop counting the active runs of a dead worker; its requests still count."""
    mark_process_dead(process)  # type: ignore[no-untyped-call] # it has no types


class Protection:
    """The outermost layer: limits bodies, adds headers, writes the audit log."""

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
