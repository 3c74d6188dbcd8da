"""Routes for everybody: jobs of the caller, whether the service lives, and its numbers."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from farthing.server.access.callers import AnalystCaller, Caller, OwnerCaller
from farthing.server.access.tokens import find
from farthing.server.jobs import RUNNING, JobRecord
from farthing.server.problems import Refused, nothing_here, problem_of
from farthing.server.routes.dependencies import AnyCaller, At, refusals
from farthing.server.service import Service

job_router = APIRouter(prefix="/v1/jobs", tags=["everybody"])

#: Seconds between looks of a stream, and until it ends; clients connect again.
LOOK_SECONDS, STREAM_SECONDS = 0.5, 25.0
#: Streams of one caller in one worker at most: each polls the database.
MOST_STREAMS = 16
_following: Counter[str] = Counter()

health_router = APIRouter(tags=["operations"])

_LOCAL = ("127.0.0.1", "::1")
#: Headers of proxies; a request with one of them is not local.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


@job_router.get("/{identity}", responses=refusals(404))
def show_job(identity: str, service: At, caller: AnyCaller) -> dict[str, Any]:
    """The state of a job; `status` and `result` are what the run would have answered."""
    found = _own(service, caller, identity)
    return {"job": found.to_json(service.settings.limits.time_limit)}


@job_router.delete("/{identity}", responses=refusals(404))
def cancel_job(identity: str, service: At, caller: AnyCaller) -> dict[str, Any]:
    """Cancel a job. Nothing is paid back."""
    found = service.runner.cancel(caller.key, _own(service, caller, identity).id)
    return {"job": found.to_json(service.settings.limits.time_limit)}


@job_router.get(
    "/{identity}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}, **refusals(404)},
)
async def follow_job(identity: str, service: At, caller: AnyCaller) -> StreamingResponse:
    """Server-sent events `progress` until `end`; connect again if the stream ends before that."""
    limit = service.settings.limits.time_limit

    def look() -> JobRecord:
        return _own(service, caller, identity)

    first = await run_in_threadpool(look)
    if _following[caller.key] >= MOST_STREAMS:
        words = f"at most {MOST_STREAMS} streams are followed at once; end one"
        raise Refused(429, "too_many_streams", words, headers={"Retry-After": "1"})

    async def events() -> AsyncIterator[str]:
        found, until = first, time.monotonic() + STREAM_SECONDS
        with _followed(caller.key):
            yield "retry: 1000\n\n"
            while found.state == RUNNING and time.monotonic() < until:
                yield _event("progress", {"state": found.state, "seconds": round(found.age, 1)})
                await asyncio.sleep(LOOK_SECONDS)
                found = await run_in_threadpool(look)
            if found.state != RUNNING:
                yield _event("end", {"job": found.to_json(limit)})

    return StreamingResponse(events(), media_type="text/event-stream")


def _own(service: Service, caller: Caller, identity: str) -> JobRecord:
    """A job of the caller, about a dataset that the token is for."""
    found = service.runner.find(caller.key, identity)
    if isinstance(caller, AnalystCaller) and not caller.may_see(found.dataset or ""):
        raise nothing_here()
    return found


@contextmanager
def _followed(caller: str) -> Iterator[None]:
    """Count a stream until it ends."""
    _following[caller] += 1
    try:
        yield
    finally:
        _following[caller] -= 1
        if not _following[caller]:
            del _following[caller]


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


@health_router.get("/health")
async def say_alive() -> dict[str, str]:
    """The process is alive. Answers at once, whatever its threads do."""
    return {"status": "ok"}


@health_router.get("/ready")
def say_ready(service: At) -> JSONResponse:
    """The ledger and the access store can be read, and the data of every dataset is there."""
    try:
        service.ledger.reader().identity()
        find(service.access, "")
        for source in service.sources.values():
            with source.ready():
                pass
    except Exception as error:
        return JSONResponse(problem_of(error)[1], 503)
    return JSONResponse({"status": "ready"})


@health_router.get("/metrics", response_class=Response)
def show_metrics(
    request: Request,
    service: At,
    given: Annotated[
        HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))
    ] = None,
) -> Response:
    """For Prometheus on this machine, or with an owner's token."""
    caller = None if given is None else service.doorkeeper.caller(given.credentials)
    if not _is_local(request) and not isinstance(caller, OwnerCaller):
        raise Refused(403, "forbidden", "metrics are for this machine, or an owner's token")
    page: Any = request.app.state.metrics.page()
    return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")


def _is_local(request: Request) -> bool:
    near = request.client is not None and request.client.host in _LOCAL
    return near and not any(name in request.headers for name in _FORWARDED)
