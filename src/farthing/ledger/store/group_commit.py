"""Works of several threads in one transaction, so that one flush of the disk serves all of them.

SQLite has one writer at a time. While it flushes, the other threads of a process queue up; the
first one that gets its turn takes everything that waits into the next transaction. Nobody is
answered before the commit.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

#: How many works one transaction takes at most.
MOST = 100


class Ticket:
    """A piece of work that waits for its transaction, and what became of it."""

    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def answer(self) -> Any:
        """The result, or the error, in the thread that wanted it."""
        if self.error is not None:
            raise self.error
        return self.result


class Queue:
    """Who waits, and whose turn it is."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._turn = Lock()
        self._waiting: deque[Ticket] = deque()

    def run(self, work: Callable[[Any], Any], lead: Callable[[list[Ticket]], None]) -> Any:
        """Have `work` done, in a transaction of this thread or of another one.

        `lead` runs a list of tickets in one transaction and settles each of them.
        """
        if self._process != os.getpid():
            self._begin()  # on this side of a fork nobody waits
        ticket = Ticket(work)
        self._waiting.append(ticket)
        try:
            with self._turn:
                if not ticket.done:
                    lead(self._next())
        except BaseException:
            if ticket in self._waiting:  # interrupted before its turn
                self._waiting.remove(ticket)
            raise
        return ticket.answer()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A turn for a transaction that is not shared: the threads of a process do not compete for
        SQLite's lock, whose waiters sleep, and sleep longer each time that another one got it."""
        if self._process != os.getpid():
            self._begin()
        with self._turn:
            yield

    def _next(self) -> list[Ticket]:
        """Only the thread whose turn it is takes from the queue."""
        return [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
