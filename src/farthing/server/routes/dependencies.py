"""What routes depend on: the service, a caller of the right type, a checked body, one answer.

A request is answered at once or as a job, and once under an `Idempotency-Key`. A key belongs to its
caller and to one body. The first request writes it down before anything happens; its outcome is
kept, and given to whoever sends the same again. If its worker died in between, nobody knows what
was charged, and the key says so for ever: nothing runs twice.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any

from fastapi import Depends, Header, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import Field
from sqlalchemy import and_, delete, select, update

from farthing.canonical import digest
from farthing.server.access import AccessStore, answered
from farthing.server.callers import (
    AnalystCaller,
    Caller,
    NoEntry,
    OwnerCaller,
)
from farthing.server.jobs import Outcome, Run
from farthing.server.problems import Refused, note, problem_of
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
        admit, token = service.doorkeeper.admit, given.credentials
        quick = service.doorkeeper.is_quick(token)
        caller = admit(token) if quick else await run_in_threadpool(admit, token)
    if isinstance(caller, NoEntry):
        request.state.no_entry = caller
        raise Refused(
            401,
            "unauthorized",
            "a valid token is needed: Authorization: Bearer fth_…",
            headers={"WWW-Authenticate": "Bearer"},
        )
    request.state.caller = caller
    service.rates.take(caller.token, 1, at_least=1)
    return caller


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


#: Keys are kept for a week.
KEPT_SECONDS = 7 * 86_400.0
TIDY_EVERY = 1000
#: Statuses of requests that charged nothing; failures during a charge are 500.
REFUSALS = frozenset({400, 401, 402, 403, 404, 409, 413, 422, 429, 503})
_LONGEST = 200
_ASYNC = re.compile(r"(^|[,;\s])respond-async($|[,;\s])")


@dataclass(frozen=True, slots=True)
class Later:
    """What is to run in a thread of its own, and whether its caller wants to wait for it."""

    run: Run
    work: Callable[[], dict[str, Any]]
    prefer: str | None = None


async def answered_once(
    service: Service,
    caller: Caller,
    key: str | None,
    asked: Any,
    prepare: Callable[[], Outcome | Later],
) -> JSONResponse:
    """What `prepare` gives, or what comes of what it begins; with a key, what came of it the first
    time. Preparing is unpaid work."""

    async def work() -> Outcome:
        prepared = await service.unpaid.do(caller.key, prepare)
        return await _run_or_job(service, prepared) if isinstance(prepared, Later) else prepared

    status, body = await once(service.access, caller.key, key, asked, work)
    return JSONResponse(body, status)


async def _run_or_job(service: Service, later: Later) -> Outcome:
    """The outcome if it is there soon enough and was waited for; else the job that it became.

    Once it has started nothing here can fail: a refusal would say that nothing was paid.
    """
    runner, limits = service.runner, service.settings.limits
    await run_in_threadpool(runner.start, later.run, later.work)
    if later.prefer is None or not _ASYNC.search(later.prefer):
        outcome = await runner.outcome(later.run, limits.answer_within)
        if outcome is not None:
            return outcome
    job = await run_in_threadpool(runner.job, later.run)
    return 202, {"job": job.to_json(limits.time_limit)}


def not_interrupted(_: int) -> None:
    """For work that runs to its end."""


async def once(
    store: AccessStore,
    caller: str,
    key: str | None,
    asked: Any,
    work: Callable[[], Awaitable[Outcome]],
) -> Outcome:
    """The result of `work`, or the kept result of the same request under this key."""
    if key is None:
        return await work()
    if not 0 < len(key) <= _LONGEST or not key.isascii() or not key.isprintable():
        raise Refused(
            422, "invalid", f"a key has 1 to {_LONGEST} plain characters", field="Idempotency-Key"
        )
    earlier = await run_in_threadpool(_begin, store, caller, key, asked)
    if earlier is not None:
        return earlier
    try:
        outcome = await work()
    except Exception as error:
        outcome = problem_of(error)
    try:
        own = and_(answered.c.caller == caller, answered.c.key == key)
        kept = update(answered).values(status=outcome[0], body=json.dumps(outcome[1]))
        # what was refused charged nothing, and may be tried again
        settled = delete(answered) if outcome[0] in REFUSALS else kept
        await run_in_threadpool(store.change, settled.where(own))
    except Exception as error:  # the key stays as it began, and runs nothing
        note(error)
    return outcome


def is_used(store: AccessStore, caller: str, key: str | None) -> bool:
    """Whether something was asked under this key. What costs nothing takes no key: else whoever
    has one release could fill the database with copies of it."""
    return key is not None and _look(store, caller, key) is not None


def _begin(store: AccessStore, caller: str, key: str, asked: Any) -> Outcome | None:
    """Record a new key, and None; else the kept result."""
    body = digest(asked)
    row = {"caller": caller, "key": key, "digest": body, "at": time.time()}
    if _look(store, caller, key) is None and store.add(answered, row):
        if secrets.randbelow(TIDY_EVERY) == 0:
            store.change(delete(answered).where(answered.c.at < time.time() - KEPT_SECONDS))
        return None
    found = _look(store, caller, key)
    if found is None or found.digest != body:
        raise Refused(409, "key_reused", "this key was used for another request; take a new one")
    if found.status is None:
        raise Refused(
            409,
            "key_in_use",
            "a request with this key has begun and was not answered: it is running, or its worker "
            "ended and what was reserved stays spent; your releases say what came of it",
        )
    return found.status, json.loads(found.body)


def _look(store: AccessStore, caller: str, key: str) -> Any:
    own = select(answered).filter_by(caller=caller, key=key)
    return store.ask(lambda connection: connection.execute(own).one_or_none())
