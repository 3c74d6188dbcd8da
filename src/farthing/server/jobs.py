"""Runs that take longer than a request: they go on when the client goes away.

Everything that may be slow runs in a thread of its own. Who waits long enough is answered at once;
otherwise, or with `Prefer: respond-async`, the run becomes a job with a name, and its outcome is
kept in the access store, where every worker finds it. A job has a time limit and can be cancelled;
both interrupt the engine, and neither gives anything back. What a job tells of its progress is its
age alone: how far an engine has come may depend on the rows.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from farthing.server.access.store import AccessStore
from farthing.server.job_records import (
    CANCELLED,
    RUNNING,
    JobRecord,
    JobRecords,
    Outcome,
)
from farthing.server.problems import Refused, problem_of
from farthing.server.settings import Protections

#: Jobs show so often that they are alive.
BEAT_SECONDS = 2.0


@dataclass(slots=True)
class Run:
    """Something that runs, or waits to: `interrupt` ends it early."""

    caller: str
    dataset: str | None
    what: str
    interrupt: Callable[[int], None]
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    created: float = field(default_factory=time.time)
    thread: int | None = None
    ended_by: str | None = None
    recorded: bool = False
    future: Future[Outcome] | None = None
    turn: threading.Lock = field(default_factory=threading.Lock)
    timer: threading.Timer | None = None

    def end(self, why: str) -> None:
        """Interrupt it, or keep it from starting."""
        with self.turn:
            self.ended_by = self.ended_by or why
            if self.thread is not None:
                self.interrupt(self.thread)


class Runner:
    """The threads of one worker, and the jobs in them."""

    def __init__(self, store: AccessStore, limits: Protections) -> None:
        self._records = JobRecords(store)
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="farthing-run")
        self._runs: dict[str, Run] = {}
        self._busy: Counter[str] = Counter()
        self._turn = threading.Lock()
        self._stopping = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._beating.start()

    @property
    def active(self) -> int:
        """How many runs there are in this worker."""
        return len(self._runs)

    def start(self, run: Run, work: Callable[[], dict[str, Any]]) -> Run:
        """Begin, or Refused if this caller has too much running already."""
        with self._turn:
            if self._stopping.is_set():
                raise Refused(503, "unavailable", "the service is shutting down; try again")
            if self._busy[run.caller] >= self._limits.jobs_at_once:
                raise Refused(
                    429,
                    "too_many_runs",
                    f"at most {self._limits.jobs_at_once} questions run at once; wait for one",
                    headers={"Retry-After": "1"},
                )
            self._busy[run.caller] += 1
            self._runs[run.id] = run
            run.future = self._pool.submit(self._go, run, work)
        return run

    def begins(self) -> None:
        """What this thread runs is about to be paid for: its time runs from now on.

        Refused if it was ended while it waited for the engine: then nothing is paid.
        """
        thread = threading.get_ident()
        run = next((one for one in list(self._runs.values()) if one.thread == thread), None)
        if run is None or run.timer is None:
            return
        with run.turn:
            if run.ended_by is not None:
                raise Refused(408, run.ended_by, "the run was ended before it began")
            if run.timer.ident is None:  # several steps of one run have one clock
                run.timer.start()

    def outcome(self, run: Run, seconds: float) -> Outcome | None:
        """What came of it, if that is known within so many seconds."""
        assert run.future is not None
        done, _ = wait([run.future], timeout=seconds)
        return run.future.result() if done else None

    def record(self, run: Run) -> JobRecord:
        """Give it a name that its caller can ask for; it is kept from now on."""
        row = {
            "id": run.id,
            "caller": run.caller,
            "dataset": run.dataset,
            "what": run.what,
            "state": RUNNING,
            "created": run.created,
            "beat": time.time(),
        }
        with run.turn:
            self._records.add(row)
            run.recorded = True
            finished = run.future is not None and run.future.done()
        if finished and run.future is not None:
            self._records.finish(run.id, run.future.result())
        return self.find(run.caller, run.id)

    def find(self, caller: str, identity: str) -> JobRecord:
        """A job of this caller; the same refusal for what is somebody else's and what is not."""
        return self._records.find(caller, identity)

    def cancel(self, caller: str, identity: str) -> JobRecord:
        """End it; on another worker it ends with that worker's next beat. Nothing is paid back."""
        found = self.find(caller, identity)
        self._records.cancel(found.id)
        run = self._runs.get(found.id)
        if run is not None:
            run.end(CANCELLED)
        return self.find(caller, identity)

    def shut(self, seconds: float) -> None:
        """Take nothing new, wait a while for what runs, and interrupt the rest."""
        with self._turn:
            self._stopping.set()
        running = [run.future for run in self._runs.values() if run.future is not None]
        wait(running, timeout=seconds)
        for run in list(self._runs.values()):
            run.end(CANCELLED)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _go(self, run: Run, work: Callable[[], dict[str, Any]]) -> Outcome:
        """In a thread of the pool: the work with a clock, and its outcome where it belongs."""
        timer = threading.Timer(self._limits.time_limit, run.end, ["time_limit"])
        timer.daemon = True
        with run.turn:
            run.thread, run.timer = threading.get_ident(), timer
            begins = run.ended_by is None
        try:
            outcome = (200, work()) if begins else _ended(run)
        except Exception as error:
            outcome = problem_of(error) if run.ended_by is None else _ended(run)
        finally:
            timer.cancel()
            with run.turn:
                run.thread = None
            with self._turn:
                self._busy[run.caller] -= 1
                del self._runs[run.id]
        if run.recorded:
            self._records.finish(run.id, outcome)
        return outcome

    def _beat(self) -> None:
        """Say that recorded jobs are alive, and look whether one was cancelled elsewhere."""
        while not self._stopping.wait(BEAT_SECONDS):
            runs = list(self._runs.values())
            for run in runs:
                if run.ended_by is not None:  # it may have waited for its turn when it was ended
                    run.end(run.ended_by)
            mine = {run.id: run for run in runs if run.recorded}
            if not mine:
                continue
            try:
                for identity in self._records.beat(list(mine)):
                    mine[identity].end(CANCELLED)
            except Exception as error:  # the next beat tries again
                problem_of(error)


def _ended(run: Run) -> Outcome:
    words = {
        CANCELLED: "the run was cancelled; what was reserved stays spent",
        "time_limit": "the run took longer than is allowed; what was reserved stays spent",
    }[run.ended_by or CANCELLED]
    return problem_of(Refused(408, run.ended_by or CANCELLED, words))
