"""Routes for everybody: jobs of the caller, forms, whether the service lives, and its numbers.

Forms describe what can be asked: fields, help and choices. They follow from the declarations of
questions, conversations and owners' operations, so that a new one needs nothing here. `WORDS` has
better labels for fields that many people see.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from farthing.engine.conversation_kinds import CONVERSATIONS, ConversationKind
from farthing.engine.desk.operations import OPERATIONS
from farthing.engine.kinds import KINDS
from farthing.engine.kinds.base import Query
from farthing.engine.kinds.fields import FieldHelp, help_of
from farthing.server.access import find
from farthing.server.callers import AnalystCaller, Caller, OwnerCaller
from farthing.server.jobs import RUNNING, JobRecord
from farthing.server.problems import Refused, nothing_here, problem_of
from farthing.server.routes.dependencies import AnyCaller, At, UnpaidRoute, refusals
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
        _following[caller.key] += 1
        try:
            yield "retry: 1000\n\n"
            while found.state == RUNNING and time.monotonic() < until:
                yield _event("progress", {"state": found.state, "seconds": round(found.age, 1)})
                await asyncio.sleep(LOOK_SECONDS)
                found = await run_in_threadpool(look)
            if found.state != RUNNING:
                yield _event("end", {"job": found.to_json(limit)})
        finally:
            _following[caller.key] -= 1

    return StreamingResponse(events(), media_type="text/event-stream")


def _own(service: Service, caller: Caller, identity: str) -> JobRecord:
    """A job of the caller, about a dataset that the token is for."""
    found = service.runner.records.find(caller.key, identity)
    if isinstance(caller, AnalystCaller) and not caller.may_see(found.dataset or ""):
        raise nothing_here()
    return found


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


forms_router = APIRouter(prefix="/v1/forms", route_class=UnpaidRoute, tags=["everybody"])

#: The label of a field in a form, and help where a form is not filled in like a command.
WORDS: dict[str, tuple[str, str]] = {
    "where": ("Only rows where", "For example country == 'NO' and age >= 18. Empty: all rows."),
    "by": ("For each", "A column, or several with commas; month(day), bins(age, 18, 65) too."),
    "k": ("How many", ""),
    "counts": ("With their counts", ""),
    "categories": ("Labels known beforehand", "With commas. All are answered; no δ is needed."),
    "contribution_limit": ("Labels of one unit that count", "Empty: the owner's limit."),
    "per_key_limit": ("Rows of one unit that count for one label", ""),
    "select": ("Item that pays for selections", ""),
    "count": ("Item that pays for counts", ""),
    "leak": ("Item that pays for δ", ""),
    "epsilon": ("ε of each item", ""),
    "lower": ("Smallest value", ""),
    "upper": ("Largest value", ""),
    "sum lower": ("Smallest sum of one unit", ""),
    "sum upper": ("Largest sum of one unit", ""),
    "distinct column": ("Values of", ""),
    "probability": ("Which quantile", "0.5 is the median. Several with commas cost less together."),
    "half_width": ("Each number within ±", "Empty: the usual item. A narrower one costs more."),
    "tells_apart": ("Order right from a difference of", "The larger of two such counts is first."),
    "rows": ("Rows that count, roughly", "Needed to turn a width of a mean into a price."),
    "positives": ("Times that it may say yes", "Each “no” is free; then it is over."),
    "tolerance": ("Right within ±", "Farther off, and the answer brings a number."),
    "corrections": ("Times that it may correct me", "Each “right” is free; then it is over."),
    "per_unit": (
        "What one unit may change a number by",
        "Counts of units: 1. Counts of rows: the rows of one unit that count. Sums: the larger of "
        "the bounds, in units of the last decimal. Median: the rows of one unit; the 0.9 quantile: "
        "9 times that.",
    ),
    "monotone": ("Of which numbers", "What a unit can raise and lower needs twice the noise."),
    "questions": ("Questions, roughly", "Only for the accuracy that is shown; there is no limit."),
}
CHOICES = {
    "monotone": [
        [True, "Counts and sums from 0 upwards"],
        [False, "Quantiles, and sums of negative values too"],
    ]
}
#: What a question can be made to reach; by default the width of its numbers.
AIM = FieldHelp(float | None, "", None)
AIMS = {
    "top_k": ("half_width", "tells_apart"),
    "mean": ("half_width", "rows"),
    "variance": ("half_width", "rows"),
    "standard_deviation": ("half_width", "rows"),
    "covariance": ("half_width", "rows"),
    "correlation": (),
    "regression": (),
    "quantile": (),
    "limit": (),
}
#: Fields that are shown before anybody asks for more, and those that limit a unit.
FIRST = {"where", "by", "k", "counts", "categories", "column", "lower", "upper", "probability"}
FIRST |= {"positives", "tolerance", "corrections", "monotone", "per_unit"}
LIMITS = {"contribution_limit", "per_key_limit"}
#: How fields are entered whose type does not say it, and others by their type.
CONTROLS = {"by": "columns", "categories": "list", "limits": "numbers", "noise": "numbers"}
CONTROLS |= {"where": "text", "distinct column": "column", "column": "number column"}
CONTROLS |= {"on": "columns", **dict.fromkeys(("on_lower", "on_upper", "on_places"), "numbers")}
CONTROLS["probability"] = "numbers"
TYPES = {bool: "yes", int: "whole", float: "number"}
#: Questions whose number a conversation can be about, and whether a unit only raises it.
WATCHED = {"count": True, "distinct": True, "sum": True, "quantile": False}


def form_of(kind: type[Query | ConversationKind], name: str) -> dict[str, Any]:
    """The form of a kind of question or conversation, from its dataclass."""
    return {
        "words": name.replace("_", " ").capitalize(),
        "help": (kind.__doc__ or "").partition("\n")[0],
        "fields": [_field(field, one, name) for field, one in help_of(kind).items()],
        "aims": [_field(aim, AIM) for aim in AIMS.get(name, ("half_width",))],
    }


def _field(name: str, given: FieldHelp, kind: str = "") -> dict[str, Any]:
    known = f"{kind} {name}"
    label, better = WORDS.get(known) or WORDS.get(name) or (name.replace("_", " ").capitalize(), "")
    types = [one for one in get_args(given.type) or (given.type,) if one is not type(None)]
    group = "limits" if name in LIMITS else "more"
    control = CONTROLS.get(known) or CONTROLS.get(name) or TYPES.get(types[-1], "text")
    if any(get_origin(one) is Literal for one in types):  # a number, or a word such as auto
        control = "number" if float in types else "whole"
    return {
        "name": name,
        "label": label,
        "help": better or given.words,
        "kind": "choice" if name in CHOICES else control,
        "choices": CHOICES.get(name, []),
        "needed": given.needed,
        "start": None if given.needed else given.default,
        "group": "first" if given.needed or name in FIRST else group,
    }


@cache
def _described() -> dict[str, Any]:
    watched = {}
    for name, raised in WATCHED.items():
        form = form_of(KINDS[name], name)
        grouped = any(one["name"] == "by" for one in form["fields"])
        without = {"by", "categories", *(["contribution_limit"] if grouped else [])}
        kept = [one for one in form["fields"] if one["name"] not in without]
        watched[name] = {**form, "fields": kept, "aims": [], "raised": raised}
    return {
        "questions": {name: form_of(kind, name) for name, kind in KINDS.items()},
        "watched": watched,
        "conversations": {
            name: {**form_of(kind, name), "aims": [_field("questions", FieldHelp(int, "", 100))]}
            for name, kind in CONVERSATIONS.items()
        },
    }


@forms_router.get("", responses=refusals())
def show_forms(_service: At, caller: AnyCaller) -> dict[str, Any]:
    """What can be asked: every kind of question and conversation, with fields, help and choices;
    for an owner also every operation."""
    if not isinstance(caller, OwnerCaller):
        return _described()
    operations = {
        name: {
            "help": one.words,
            "method": one.method,
            "path": one.path,
            "fields": [field.form() for field in one.requested],
        }
        for name, one in OPERATIONS.items()
        if one.path
    }
    return {**_described(), "operations": operations}
