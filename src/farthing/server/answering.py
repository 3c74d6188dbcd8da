"""How a request that may be slow, and may be sent twice, is answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fastapi.responses import JSONResponse

from farthing.server.access.callers import Caller
from farthing.server.idempotency import once
from farthing.server.job_records import Outcome
from farthing.server.jobs import Run
from farthing.server.service import Service

_ASYNC = re.compile(r"(^|[,;\s])respond-async($|[,;\s])")


def respond(outcome: Outcome) -> JSONResponse:
    """Status and body as they are."""
    return JSONResponse(outcome[1], outcome[0])


def answered_once(
    service: Service, caller: Caller, key: str | None, asked: Any, work: Callable[[], Outcome]
) -> JSONResponse:
    """What `work` gives; with a key, what it gave the first time."""
    return respond(once(service.access, caller.key, key, asked, work))


def run_or_job(
    service: Service, run: Run, prefer: str | None, work: Callable[[], dict[str, Any]]
) -> Outcome:
    """The outcome if it is there soon enough and was waited for; else the job that it became."""
    runner = service.runner
    runner.start(run, work)
    if prefer is None or not _ASYNC.search(prefer):
        outcome = runner.outcome(run, service.settings.limits.answer_within)
        if outcome is not None:
            return outcome
    return 202, {"job": runner.record(run).to_json(service.settings.limits.time_limit)}


def not_interrupted(_: int) -> None:
    """For work that runs to its end."""
