"""How requests are answered: at once or as a job, and once under an `Idempotency-Key`.

A key belongs to its caller and to one body. The first request writes it down before anything
happens; its outcome is kept, and given to whoever sends the same again. If its worker died in
between, nobody knows what was charged, and the key says so for ever: nothing runs twice.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from sqlalchemy import delete, select, update

from farthing.canonical import digest
from farthing.server.access.callers import Caller
from farthing.server.access.store import AccessStore, answered
from farthing.server.jobs import Outcome, Run
from farthing.server.problems import Refused, note, problem_of
from farthing.server.service import Service

#: Keys are kept for a week.
KEPT_SECONDS = 7 * 86_400.0
TIDY_EVERY = 1000
#: Statuses of requests that charged nothing; failures during a charge are 500.
REFUSALS = frozenset({400, 401, 402, 403, 404, 409, 413, 422, 429, 503})
_LONGEST = 200
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
    # what was refused charged nothing, and may be tried again
    settle = _forget if outcome[0] in REFUSALS else _keep
    try:
        await run_in_threadpool(settle, store, caller, key, outcome)
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
        _tidy(store)
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
    return store.ask(
        lambda connection: connection.execute(
            select(answered).filter_by(caller=caller, key=key)
        ).one_or_none()
    )


def _keep(store: AccessStore, caller: str, key: str, outcome: Outcome) -> None:
    values = {"status": outcome[0], "body": json.dumps(outcome[1])}
    one = update(answered).filter_by(caller=caller, key=key).values(**values)
    store.write(lambda connection: connection.execute(one))


def _tidy(store: AccessStore) -> None:
    """Delete old keys, now and then."""
    if secrets.randbelow(TIDY_EVERY) == 0:
        old = delete(answered).where(answered.c.at < time.time() - KEPT_SECONDS)
        store.write(lambda connection: connection.execute(old))


def _forget(store: AccessStore, caller: str, key: str, _: Outcome) -> None:
    one = delete(answered).filter_by(caller=caller, key=key)
    store.write(lambda connection: connection.execute(one))
