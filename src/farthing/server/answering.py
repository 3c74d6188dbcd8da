"""How a request that may be slow, and may be sent twice, is answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from farthing.server.access.callers import Caller
from farthing.server.jobs.idempotency import once
from farthing.server.jobs.runner import Outcome, Run
from farthing.server.service import Service

_ASYNC = re.compile(r"(^|[,;\s])respond-async($|[,;\s])")


def respond(outcome: Outcome) -> JSONResponse:
    """Status and body as they are."""
    return JSONResponse(outcome[1], outcome[0])


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

    return respond(await once(service.access, caller.key, key, asked, work))


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
