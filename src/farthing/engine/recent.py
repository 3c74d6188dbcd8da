"""What the last questions of one analyst made of the rows: asking the same again reads none.

Which keys of a unit are kept never changes (`sql.bounding`). So one question about
one version of the rows has one bounded histogram, whatever is paid for it, and only the noise is
drawn anew. It is kept for one analyst alone: nobody can tell from how soon an answer comes what
others asked, not even from what their questions pushed out.
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


class Recent:
    """Statements by what was asked, and their rows. Safe to share between threads."""

    def __init__(self) -> None:
        self._statements = Kept[tuple[Statement, Contribution]](MOST)
        self._rows = Kept["pa.Table"](MOST)
        self._batches: dict[str, tuple[int, str]] = {}
        #: The entry up to which batches were read.
        self.seen = 0

    def statement(
        self, asked: Hashable, write: Callable[[], tuple[Statement, Contribution]]
    ) -> tuple[Statement, Contribution]:
        """The statement for what is asked, and what it makes of one unit at most."""
        found = self._statements.get(asked)
        if found is None:
            found = write()
            self._statements.keep(asked, found)
        return found

    def rows(
        self, statement: Statement, of: Hashable | None, run: Callable[[Statement], pa.Table]
    ) -> pa.Table:
        """What a statement gives, or gave while the rows were these; None if nobody can tell."""
        if of is None:
            return run(statement)
        found = self._rows.get((statement, of))
        if found is None:
            found = run(statement)
            if found.nbytes <= LARGEST_BYTES:
                self._rows.keep((statement, of), found)
        return found

    def keep_batches(self, batches: Iterable[tuple[int, Mapping[str, Any]]], seen: int) -> None:
        """Questions by name that were answered together, and the entry of each batch."""
        for entry, questions in batches:
            for name, question in questions.items():
                self._batches[digest(question)] = entry, name
        self.seen = max(self.seen, seen)

    def batch_with(self, asked: str) -> tuple[int, str] | None:
        """The entry of the batch in which this was answered, and the name it had there."""
        return self._batches.get(asked)


class Kept(Generic[T]):
    """The last values, each for so many seconds. Safe to share between threads."""

    def __init__(self, most: int, seconds: float = math.inf) -> None:
        self._most = most
        self._seconds = seconds
        self._values: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """The value, if it is still kept."""
        with self._turn:
            found = self._values.get(key)
            if found is None or found[0] < time.monotonic():
                return None
            self._values.move_to_end(key)
            return found[1]

    def keep(self, key: Hashable, value: T) -> None:
        """Keep it; what nobody asked for the longest is given up."""
        with self._turn:
            self._values[key] = time.monotonic() + self._seconds, value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
