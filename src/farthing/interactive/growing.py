"""Rows that change between the questions of a conversation: whose guarantee covers it.

docs/theory/concurrency.md, section 8: Theorem 6 is proved for the mechanisms listed here and for
any concurrent composition of them, also if the updates depend on releases. A mechanism that is not
listed was proved for a table that is fixed first, and must not go on after a change.
"""

from __future__ import annotations

from farthing.interactive.composer import Concurrent, Part
from farthing.interactive.guess_and_check import GuessAndCheck
from farthing.interactive.sparse_vector import SparseVector

#: What the proof of Theorem 6 is about.
COVERED: tuple[type[SparseVector] | type[GuessAndCheck], ...] = (SparseVector, GuessAndCheck)


def covers_growing_rows(mechanism: Part) -> bool:
    """Whether a conversation with this mechanism may go on when the rows have changed."""
    if isinstance(mechanism, Concurrent):
        return all(map(covers_growing_rows, mechanism.parts))
    return type(mechanism) in COVERED
