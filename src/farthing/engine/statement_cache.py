"""A cache of one analyst's last statements and of the bounded rows that they gave.

Which keys of a unit are kept is decided by an order that does not change (`sql.bounding`). So one
question about one version of the rows has one bounded histogram, whatever is paid for it, and only
the noise is drawn again. Each analyst has a cache of their own: response times and evictions tell
nobody what others asked.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from farthing.canonical import digest
from farthing.engine.sql.statement import Statement
from farthing.mechanisms import Contribution

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

#: Questions of an analyst, and how large the rows of each may be.
MOST, LARGEST_BYTES = 16, 1 << 16


class StatementCache:
    """Statements by what was asked, and their rows. Safe to share between threads."""

    def __init__(self) -> None:
        self._statements = ExpiringCache[tuple[Statement, Contribution]](MOST)
        self._rows = ExpiringCache["pa.Table"](MOST)
        self._batches: dict[str, tuple[int, str]] = {}
        #: The entry up to which batches were read.
        self.seen = 0

    def statement(
        self, asked: Hashable, write: Callable[[], tuple[Statement, Contribution]]
    ) -> tuple[Statement, Contribution]:
        """The statement for what is asked, and how much one unit can change its rows."""
        cached = self._statements.get(asked)
        if cached is None:
            cached = write()
            self._statements.keep(asked, cached)
        return cached

    def rows(
        self, statement: Statement, of: Hashable | None, run: Callable[[Statement], pa.Table]
    ) -> pa.Table:
        """The rows of a statement. `of` identifies the state of the data; None: it is not known,
        and nothing is cached."""
        if of is None:
            return run(statement)
        rows = self._rows.get((statement, of))
        if rows is None:
            rows = run(statement)
            if rows.nbytes <= LARGEST_BYTES:
                self._rows.keep((statement, of), rows)
        return rows

    def keep_batches(self, batches: Iterable[tuple[int, Mapping[str, Any]]], seen: int) -> None:
        """Questions by name that were answered together, and the entry of each batch."""
        for entry, questions in batches:
            for name, question in questions.items():
                self._batches[digest(question)] = entry, name
        self.seen = max(self.seen, seen)

    def batch_with(self, asked: str) -> tuple[int, str] | None:
        """The entry of the batch in which this was answered, and the name it had there."""
        return self._batches.get(asked)


class ExpiringCache(Generic[T]):
    """The values used last, each for so many seconds. Safe to share between threads."""

    def __init__(self, most: int, seconds: float = math.inf) -> None:
        self._most = most
        self._seconds = seconds
        self._values: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """The value, if it is still kept."""
        with self._turn:
            until, value = self._values.get(key, (-math.inf, None))
            if until < time.monotonic():
                return None
            self._values.move_to_end(key)
            return value

    def keep(self, key: Hashable, value: T) -> None:
        """Keep it; the value that was not used for longest is dropped."""
        with self._turn:
            self._values[key] = time.monotonic() + self._seconds, value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
