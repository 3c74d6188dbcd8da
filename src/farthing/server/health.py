"""Whether the service lives, whether it can work, and its numbers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from farthing.server.access.callers import OwnerCaller
from farthing.server.access.tokens import find
from farthing.server.coming_in import At
from farthing.server.problems import Refused, problem_of

health_router = APIRouter(tags=["operations"])

_LOCAL = ("127.0.0.1", "::1")
#: A request that a proxy hands on has one of these, and is not local whatever its address.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


@health_router.get("/health")
async def say_alive() -> dict[str, str]:
    """The process answers: at once, whatever its threads do."""
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
