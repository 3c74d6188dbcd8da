"""Try again with growing pauses, until patience ends; and wait for SQLite's lock for writing.

SQLite's own wait sleeps longer and longer, up to a tenth of a second. While another process writes
one transaction after the other, such a waiter hardly ever finds the lock free. So the lock is asked
for every other millisecond here.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError

T = TypeVar("T")

#: The first pause and the longest one, in seconds; each is drawn around it.
FIRST, LONGEST = 0.001, 0.5


class Patience:
    """How long something is tried again."""

    def __init__(self, seconds: float, longest: float = LONGEST) -> None:
        self._deadline = time.monotonic() + seconds
        self._pause = FIRST
        self._longest = longest

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def wait(self) -> None:
        """Sleep, longer each time."""
        time.sleep(self._pause * (0.5 + random.random()))
        self._pause = min(2 * self._pause, self._longest)


def insist(
    attempt: Callable[[bool], T],
    *,
    errors: tuple[type[Exception], ...],
    passes: Callable[[Exception], bool],
    translated: Callable[[Exception], Exception],
    seconds: float,
    longest: float = LONGEST,
) -> T:
    """The result of the first attempt that works.

    `attempt` gets whether one has failed before. After one of these `errors` that goes away by
    itself (`passes`), it is tried again. Any other, and the last one when patience is over, is
    raised as its translation. No pause is longer than `longest`.
    """
    patience = Patience(seconds, longest)
    failed = False
    while True:
        try:
            return attempt(failed)
        except errors as error:
            if not passes(error) or patience.is_over:
                raise translated(error) from None
        failed = True
        patience.wait()


#: How long one wait for the lock may take before it is counted as a try; how often it is asked for.
BUSY_SECONDS, ASKED_EVERY = 20.0, 0.002
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


def begin_writing(execute: Callable[[str], object]) -> None:
    """Begin a transaction that writes, once nobody else does."""

    def same(error: Exception) -> Exception:
        return error

    insist(
        lambda _: execute("BEGIN IMMEDIATE"),
        errors=(DBAPIError, sqlite3.Error),
        passes=is_busy,
        translated=same,
        seconds=BUSY_SECONDS,
        longest=ASKED_EVERY,
    )


def is_busy(error: Exception) -> bool:
    """Whether another connection was in the way."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, sqlite3.Error) and primary_code(cause) in _BUSY


def primary_code(error: sqlite3.Error) -> int:
    """The primary result code: the low byte of the extended one."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
