"""What is kept of jobs, in the access store, where every worker finds it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, or_, select, update

from farthing.server.access.store import AccessStore, jobs
from farthing.server.problems import nothing_here

#: A run that waits for its turn is running too: that it waits would tell of others.
RUNNING, DONE, CANCELLED, LOST = "running", "done", "cancelled", "lost"
#: Jobs that have not shown that they are alive for so long are lost.
LOST_SECONDS = 15.0
#: Outcomes are kept for a week.
KEPT_SECONDS = 7 * 86_400.0

#: Status and body.
Outcome: TypeAlias = tuple[int, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as its caller sees it."""

    id: str
    dataset: str | None
    what: str
    state: str
    age: float
    outcome: Outcome | None

    def to_json(self, time_limit: float) -> dict[str, Any]:
        """Plain data; the outcome is there once it is done."""
        found: dict[str, Any] = {
            "id": self.id,
            "dataset": self.dataset,
            "what": self.what,
            "state": self.state,
            "seconds": round(self.age, 1),
            "time_limit": time_limit,
            "status": None,
            "result": None,
        }
        if self.outcome is not None:
            found["status"], found["result"] = self.outcome
        return found


@dataclass(frozen=True, slots=True)
class JobRecords:
    """The jobs of every worker."""

    store: AccessStore

    def find(self, caller: str, identity: str) -> JobRecord:
        """A job of this caller; the same refusal for what is somebody else's and what is not."""
        row = self.store.ask(
            lambda connection: connection.execute(
                select(jobs).filter_by(id=identity[:32], caller=caller)
            ).one_or_none()
        )
        if row is None:
            raise nothing_here()
        state, now = row.state, time.time()
        if state == RUNNING and now - row.beat > LOST_SECONDS:
            state = LOST
        outcome = None if row.status is None else (row.status, json.loads(row.body))
        return JobRecord(
            id=row.id,
            dataset=row.dataset,
            what=row.what,
            state=state,
            age=(row.finished or now) - row.created,
            outcome=outcome,
        )

    def add(
        self, identity: str, caller: str, dataset: str | None, what: str, created: float
    ) -> None:
        """A run that is about to start."""
        row = {"id": identity, "caller": caller, "dataset": dataset, "what": what}
        self.store.add(jobs, {**row, "state": RUNNING, "created": created, "beat": time.time()})

    def was_cancelled(self, identity: str) -> bool:
        """Whether its caller ended it, on whichever worker."""
        state = select(jobs.c.state).filter_by(id=identity)
        return self.store.ask(lambda connection: connection.scalar(state)) == CANCELLED

    def finish(self, identity: str, outcome: Outcome) -> None:
        """It came to this, unless it was over before."""
        status, body = outcome
        self._end(identity, {"state": DONE, "status": status, "body": json.dumps(body)})

    def cancel(self, identity: str) -> None:
        """It is over, unless it was before."""
        self._end(identity, {"state": CANCELLED})

    def beat(self, mine: list[str], answered: list[str]) -> list[str]:
        """These are alive, those were answered and go; says which were cancelled elsewhere."""
        return self.store.write(partial(_beat_once, mine, answered))

    def _end(self, identity: str, values: dict[str, Any]) -> None:
        def work(connection: Connection) -> int:
            one = update(jobs).filter_by(id=identity).where(jobs.c.state == RUNNING)
            connection.execute(one.values(finished=time.time(), **values))
            return 1

        self.store.write(work)


def _beat_once(mine: list[str], answered: list[str], connection: Connection) -> list[str]:
    alive = update(jobs).where(jobs.c.id.in_(mine), jobs.c.state == RUNNING)
    connection.execute(alive.values(beat=time.time()))
    old = jobs.c.created < time.time() - KEPT_SECONDS
    connection.execute(delete(jobs).where(or_(jobs.c.id.in_(answered), old)))
    gone = select(jobs.c.id).where(jobs.c.id.in_(mine), jobs.c.state == CANCELLED)
    return list(connection.scalars(gone))
