"""Dependencies of routes: the service, a caller of the right type, a checked body."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Annotated, Any

from fastapi import Depends, Header, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import Field

from farthing.server.access.callers import (
    AnalystCaller,
    Caller,
    Doorkeeper,
    NoEntry,
    OwnerCaller,
)
from farthing.server.problems import Refused
from farthing.server.service import Service

#: A name in a body: of a dataset, an analyst, a version.
Name = Annotated[str, Field(min_length=1, max_length=200)]
#: Levels of nesting at most.
DEEPEST = 40
#: Bodies up to this size are parsed in the event loop.
QUICK_BYTES = 1 << 14

_bearer = HTTPBearer(auto_error=False, description="fth_…, as it was shown when it was minted")


async def service_of(request: Request) -> Service:
    """The one service of this worker."""
    found: Service = request.app.state.service
    return found


At = Annotated[Service, Depends(service_of)]


async def any_caller(
    request: Request,
    service: At,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Caller:
    """The caller of the token; rejected tokens get the same refusal, and the log has the reason."""
    known: Caller | None = getattr(request.state, "caller", None)
    if known is not None:
        return known
    caller: Caller | NoEntry = NoEntry("no token was sent")
    if given is not None:
        caller = await _admit(service.doorkeeper, given.credentials)
    if isinstance(caller, NoEntry):
        request.state.no_entry = caller
        raise Refused(
            401,
            "unauthorized",
            "a valid token is needed: Authorization: Bearer fth_…",
            headers={"WWW-Authenticate": "Bearer"},
        )
    request.state.caller = caller
    service.rates.take(caller.token)
    return caller


async def _admit(doorkeeper: Doorkeeper, token: str) -> Caller | NoEntry:
    """Admit at once if that is fast, else in a thread."""
    if doorkeeper.is_quick(token):
        return doorkeeper.admit(token)
    return await run_in_threadpool(doorkeeper.admit, token)


AnyCaller = Annotated[Caller, Depends(any_caller)]


async def owner_caller(caller: AnyCaller) -> OwnerCaller:
    """An owner, or Refused."""
    if not isinstance(caller, OwnerCaller):
        raise _wrong_role("an owner")
    return caller


async def analyst_caller(caller: AnyCaller) -> AnalystCaller:
    """An analyst, or Refused."""
    if not isinstance(caller, AnalystCaller):
        raise _wrong_role("an analyst")
    return caller


def _wrong_role(whom: str) -> Refused:
    return Refused(403, "forbidden", f"this is for the token of {whom}")


def require_plain_json(value: object, depth: int = 0) -> None:
    """ValueError for JSON that a database could not store or a response could not hold."""
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, str):
        _require_text(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _require_text(key)
            require_plain_json(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            require_plain_json(inner, depth + 1)


def _require_text(text: str) -> None:
    """Text that UTF-8 can write, without NUL, which PostgreSQL cannot store."""
    text.encode("utf-8")
    if "\0" in text:
        raise ValueError("the character NUL")


def _plain_json(body: bytes) -> Any:
    found = json.loads(body)
    require_plain_json(found)
    return found


class PlainRequest(Request):
    """A request whose JSON is checked; an unreadable body gets status 400."""

    async def read(self, elsewhere: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        """Parse a large body now, `elsewhere` than in the event loop."""
        body = await self.body()
        if len(body) > QUICK_BYTES:
            try:
                self._json = await elsewhere(partial(_plain_json, body))
            except (ValueError, RecursionError):
                raise HTTPException(400) from None

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = _plain_json(await self.body())
        return self._json


class UnpaidRoute(APIRoute):
    """A route whose synchronous functions are metered as `UnpaidWork`.

    Reading a large body is metered too. The caller is known before anything is read.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _as_unpaid_work(endpoint), **options)

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle = super().get_route_handler()

        async def known_first(request: Request) -> Response:
            service = await service_of(request)
            caller = await any_caller(request, service, await _bearer(request))
            plain = PlainRequest(request.scope, request.receive)
            if self.body_field is not None:
                await plain.read(partial(service.unpaid.do, caller.key))
            response: Response = await handle(plain)
            return response

        return known_first


def _as_unpaid_work(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(endpoint):
        return endpoint

    @wraps(endpoint)
    async def metered(**given: Any) -> Any:
        service = next(one for one in given.values() if isinstance(one, Service))
        caller = next(one for one in given.values() if isinstance(one, Caller))
        return await service.unpaid.do(caller.key, partial(endpoint, **given))

    metered.__signature__ = inspect.signature(endpoint, eval_str=True)  # type: ignore[attr-defined] # FastAPI reads it
    return metered


OwnerHere = Annotated[OwnerCaller, Depends(owner_caller)]
AnalystHere = Annotated[AnalystCaller, Depends(analyst_caller)]
IdempotencyKey = Annotated[
    str | None, Header(description="The same key and body again: the same answer, charged once.")
]
Prefer = Annotated[str | None, Header(description="respond-async: be given a job at once.")]

#: The schema of errors.
PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["kind", "message", "field"],
            "properties": {
                "kind": {"type": "string"},
                "message": {"type": "string"},
                "field": {"type": ["string", "null"]},
            },
        }
    },
    "example": {"error": {"kind": "invalid", "message": "k must be at least 1", "field": None}},
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for its OpenAPI description."""
    words = {
        400: "the request could not be read",
        401: "no valid token",
        402: "it does not fit what is left",
        403: "the token is of another role",
        404: "nothing here by this name for you",
        408: "it was cancelled or took too long; what was reserved stays spent",
        409: "it cannot be done as things are",
        413: "the body is too large",
        422: "something that was given can never be right",
        429: "too much at once",
        500: "it failed; what was reserved stays spent",
        503: "not now",
    }
    always = (400, 401, 403, 413, 422, 429, 500, 503)
    return {
        status: {
            "description": words[status],
            "content": {"application/json": {"schema": PROBLEM}},
        }
        for status in sorted({*always, *statuses})
    }
