"""SQLite's lock for writing, asked for every other millisecond.

SQLite's own wait sleeps longer and longer, up to a tenth of a second: while another process writes
one transaction after the other, whoever waits like that hardly ever finds the lock free.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from farthing.ledger.store.retry import insist

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
