"""`Idempotency-Key`: a request that is sent again is charged once and answered once.

A key belongs to its caller and to one body. The first request writes it down before anything
happens; what came of it is kept, and given to whoever sends the same again. If its worker died in
between, nobody knows what was charged, and the key says so for ever: nothing runs twice.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi.concurrency import run_in_threadpool
from sqlalchemy import delete, select, update

from farthing.canonical import digest
from farthing.server.access.store import AccessStore, answered
from farthing.server.jobs.runner import Outcome
from farthing.server.problems import Refused, note, problem_of

#: Keys are kept for a week.
KEPT_SECONDS = 7 * 86_400.0
TIDY_EVERY = 1000
#: Statuses of requests that charged nothing; failures during a charge are 500.
REFUSALS = frozenset({400, 401, 402, 403, 404, 409, 413, 422, 429, 503})
_LONGEST = 200


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
