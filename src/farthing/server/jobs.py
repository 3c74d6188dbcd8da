"""Runs that take longer than a request: they go on when the client goes away.

Everything that may be slow runs in a thread of its own. It is recorded in the access store before
it starts: what cannot be recorded does not run. Who waits long enough is answered at once, and the
record goes; otherwise, or with `Prefer: respond-async`, the run is a job that its caller can ask
for on every worker. A job has a time limit and can be cancelled; both interrupt the engine, and
neither gives anything back. What ended before the clock struck releases nothing, even if the engine
had finished: else an analyst could choose an instant and learn whether it had. What a job tells of
its progress is its age alone: how far an engine has come may depend on the rows.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, or_, select, update

from farthing.server.access import AccessStore, jobs
from farthing.server.problems import Refused, nothing_here, problem_of
from farthing.server.protection import ReleaseClock
from farthing.server.settings import Protections

#: Seconds between signs of life of a job.
BEAT_SECONDS = 2.0
#: A run that waits for a thread is "running" too: that it waits would tell of others.
RUNNING, DONE, CANCELLED, LOST = "running", "done", "cancelled", "lost"
#: A job without a sign of life for so many seconds is lost.
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
        """Plain data, with the outcome once it is done."""
        status, result = self.outcome or (None, None)
        return {
            "id": self.id,
            "dataset": self.dataset,
            "what": self.what,
            "state": self.state,
            "seconds": round(self.age, 1),
            "time_limit": time_limit,
            "status": status,
            "result": result,
        }


@dataclass(frozen=True, slots=True)
class JobRecords:
    """The jobs of every worker."""

    store: AccessStore

    def find(self, caller: str, identity: str) -> JobRecord:
        """A job of this caller; the same refusal for others' jobs and for none."""
        own = select(jobs).filter_by(id=identity[:32], caller=caller)
        row = self.store.ask(lambda connection: connection.execute(own).one_or_none())
        if row is None:
            raise nothing_here()
        state, now = row.state, time.time()
        if state == RUNNING and now - row.beat > LOST_SECONDS:
            state = LOST
        outcome = None if row.status is None else (row.status, json.loads(row.body))
        age = (row.finished or now) - row.created
        return JobRecord(row.id, row.dataset, row.what, state, age, outcome)

    def add(self, run: Run) -> None:
        """Record a run before it starts."""
        row = {name: getattr(run, name) for name in ("id", "caller", "dataset", "what", "created")}
        self.store.add(jobs, {**row, "state": RUNNING, "beat": time.time()})

    def was_cancelled(self, identity: str) -> bool:
        """Whether its caller cancelled it, on any worker."""
        state = select(jobs.c.state).filter_by(id=identity)
        return self.store.ask(lambda connection: connection.scalar(state)) == CANCELLED

    def finish(self, identity: str, outcome: Outcome) -> None:
        """Write the outcome, unless the run has ended before."""
        status, body = outcome
        self._end(identity, {"state": DONE, "status": status, "body": json.dumps(body)})

    def cancel(self, identity: str) -> None:
        """Mark it as cancelled, unless it has ended before."""
        self._end(identity, {"state": CANCELLED})

    def beat(self, mine: list[str], answered: list[str]) -> list[str]:
        """Mark runs as alive, delete answered ones; the ids that were cancelled elsewhere."""
        own = jobs.c.id.in_(mine)

        def work(connection: Connection) -> list[str]:
            now = time.time()  # it may have waited for the database
            alive = update(jobs).where(own, jobs.c.state == RUNNING)
            connection.execute(alive.values(beat=now))
            old = jobs.c.created < now - KEPT_SECONDS
            connection.execute(delete(jobs).where(or_(jobs.c.id.in_(answered), old)))
            return list(connection.scalars(select(jobs.c.id).where(own, jobs.c.state == CANCELLED)))

        return self.store.do(work)

    def _end(self, identity: str, values: dict[str, Any]) -> None:
        one = update(jobs).filter_by(id=identity).where(jobs.c.state == RUNNING)
        self.store.change(one.values(finished=time.time(), **values))


@dataclass(slots=True)
class Run:
    """Work that runs or waits; `interrupt` ends it early."""

    caller: str
    dataset: str | None
    what: str
    interrupt: Callable[[int], None]
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    created: float = field(default_factory=time.time)
    thread: int | None = None
    ended_by: str | None = None
    told: bool = False  # its caller was told its name
    outcome: Outcome | None = None
    future: Future[Outcome] | None = None
    turn: threading.Lock = field(default_factory=threading.Lock)
    timer: threading.Timer | None = None

    def end(self, why: str) -> None:
        """Interrupt it, or prevent its start."""
        with self.turn:
            self.ended_by = self.ended_by or why
            if self.thread is not None:
                self.interrupt(self.thread)


class Runner:
    """The threads of one worker and their jobs."""

    def __init__(self, store: AccessStore, limits: Protections, clock: ReleaseClock) -> None:
        self.records = JobRecords(store)
        self._limits = limits
        self._clock = clock
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="farthing-run")
        self._runs: dict[str, Run] = {}
        self._busy: Counter[str] = Counter()
        self._turn = threading.Lock()
        self._here = threading.local()
        self._answered: list[str] = []  # records that nobody will ask for
        self._unwritten: dict[str, Outcome] = {}
        self._stopping = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._beating.start()

    @property
    def active(self) -> int:
        """The number of runs in this worker."""
        return len(self._runs)

    def start(self, run: Run, work: Callable[[], dict[str, Any]]) -> None:
        """Record a run and start it, or raise and start nothing."""
        with self._turn:
            if self._stopping.is_set():
                raise _shutting_down()
            if self._busy[run.caller] >= self._limits.jobs_at_once:
                raise Refused(
                    429,
                    "too_many_runs",
                    f"at most {self._limits.jobs_at_once} questions run at once; wait for one",
                    headers={"Retry-After": "1"},
                )
            self._busy[run.caller] += 1
        try:
            self.records.add(run)
            with self._turn:
                if self._stopping.is_set():
                    raise _shutting_down()
                self._runs[run.id] = run
                run.future = self._pool.submit(self._go, run, work)
        except BaseException:
            with self._turn:
                self._busy[run.caller] -= 1
            raise

    def begins(self) -> None:
        """What this thread runs is about to be paid for: its time runs from now on.

        Refused if it was ended while it waited for the engine: then nothing is paid.
        """
        run: Run | None = getattr(self._here, "run", None)
        if run is None or run.timer is None:
            return
        with run.turn:
            if run.ended_by is not None:
                raise Refused(408, run.ended_by, "the run was ended before it began")
            if run.timer.ident is None:  # several steps of one run have one clock
                run.timer.start()

    async def outcome(self, run: Run, seconds: float) -> Outcome | None:
        """The outcome, if it is there within so many seconds."""
        assert run.future is not None
        done, _ = await asyncio.wait([asyncio.wrap_future(run.future)], timeout=seconds)
        if not done:
            return None
        self._answered.append(run.id)
        return run.future.result()

    def job(self, run: Run) -> JobRecord:
        """The run as a job that its caller asks for later. Nothing may fail from here on."""
        with run.turn:
            run.told, outcome = True, run.outcome
        if outcome is not None:
            self._finish(run.id, outcome)
        return JobRecord(run.id, run.dataset, run.what, RUNNING, time.time() - run.created, None)

    def cancel(self, caller: str, identity: str) -> JobRecord:
        """Cancel it; on another worker with its next beat. Nothing is paid back."""
        found = self.records.find(caller, identity)
        self.records.cancel(found.id)
        run = self._runs.get(found.id)
        if run is not None:
            run.end(CANCELLED)
        return self.records.find(caller, identity)

    def wait_for_the_clock(self) -> None:
        """Until the next time at which answers leave; Refused if the run that waits was ended
        before that, here or on another worker."""
        self._clock.wait()
        run: Run | None = getattr(self._here, "run", None)
        if run is None:
            return
        if self._clock.strikes and self.records.was_cancelled(run.id):
            run.end(CANCELLED)
        if run.ended_by is not None:
            raise _refusal(run)

    def shut(self, seconds: float) -> None:
        """Accept no new run, wait for those that run, and interrupt the rest."""
        with self._turn:
            self._stopping.set()
        running = [run.future for run in self._runs.values() if run.future is not None]
        wait(running, timeout=seconds)
        for run in list(self._runs.values()):
            run.end(CANCELLED)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _go(self, run: Run, work: Callable[[], dict[str, Any]]) -> Outcome:
        """Do the work in a thread of the pool, with a time limit, and store its outcome."""
        self._here.run = run
        timer = threading.Timer(self._limits.time_limit, run.end, ["time_limit"])
        timer.daemon = True
        with run.turn:
            run.thread, run.timer = threading.get_ident(), timer
            begins = run.ended_by is None
        try:
            outcome = (200, work()) if begins else problem_of(_refusal(run))
        except Exception as error:
            outcome = problem_of(error if run.ended_by is None else _refusal(run))
        finally:
            timer.cancel()
            self._here.run = None
            with run.turn:
                run.thread = None
            with self._turn:
                self._busy[run.caller] -= 1
                del self._runs[run.id]
        with run.turn:
            run.outcome, told = outcome, run.told
        if told:
            self._finish(run.id, outcome)
        return outcome

    def _finish(self, identity: str, outcome: Outcome) -> None:
        try:
            self.records.finish(identity, outcome)
        except Exception as error:  # a beat tries again
            problem_of(error)
            self._unwritten[identity] = outcome

    def _beat(self) -> None:
        """Mark jobs as alive, notice those cancelled elsewhere, and delete answered ones."""
        while not self._stopping.wait(BEAT_SECONDS):
            runs = {run.id: run for run in list(self._runs.values())}
            for run in runs.values():
                if run.ended_by is not None:  # it may have waited for its turn when it was ended
                    run.end(run.ended_by)
            answered, self._answered = self._answered, []
            if not (runs or answered or self._unwritten):
                continue
            try:
                for identity in self.records.beat([*runs, *self._unwritten], answered):
                    if identity in runs:
                        runs[identity].end(CANCELLED)
                for identity, outcome in list(self._unwritten.items()):
                    self.records.finish(identity, outcome)
                    del self._unwritten[identity]
            except Exception as error:  # the next beat tries again
                problem_of(error)


def _shutting_down() -> Refused:
    return Refused(503, "unavailable", "the service is shutting down; try again")


def _refusal(run: Run) -> Refused:
    words = {
        CANCELLED: "the run was cancelled; what was reserved stays spent",
        "time_limit": "the run took longer than is allowed; what was reserved stays spent",
    }[run.ended_by or CANCELLED]
    return Refused(408, run.ended_by or CANCELLED, words)
