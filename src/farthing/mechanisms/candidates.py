"""Candidates in decreasing order of score, sorted only as far down as anybody looks.

Ten million scores take over a second to sort, and a draw looks at a few hundred of them. So a
head is split off by partitioning, which takes linear time whatever the scores are, and only
the head is sorted; when it is used up, a larger one is split off the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from farthing.mechanisms.inverse_transform import Integers

Score: TypeAlias = int | float
Scores: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_FIRST_HEAD = 1 << 12
_GROWTH = 8
_LOWEST = -(1 << 63)


@dataclass(slots=True)
class Bucket:
    """`left` candidates with scores of at most `top`; entries beyond them have been taken out.

    `index` and `scores` describe the entries; where an entry stands for several candidates,
    `ends` counts the candidates up to and including each entry.
    """

    top: Score
    left: int
    index: Integers
    scores: Scores
    ends: Integers | None = None

    def entry(self, offset: int) -> int:
        """The entry that holds the candidate with this number."""
        if self.ends is None:
            return offset
        return int(np.searchsorted(self.ends, offset, side="right"))

    def take_out(self, entry: int) -> None:
        """Swap an entry with the last one and shorten the bucket."""
        self.left -= 1
        for array in (self.index, self.scores):
            array[entry], array[self.left] = array[self.left], array[entry]


class Descending:
    """Scores handed out bucket by bucket, highest first."""

    def __init__(self, scores: Scores, sizes: Integers | None = None) -> None:
        self.remaining = int(scores.size) if sizes is None else int(sizes.sum())
        self._sizes = sizes
        self._rest = scores
        self._rest_index: Integers | None = None
        self._head_index: Integers = np.zeros(0, dtype=np.int64)
        self._head: Scores = scores[:0]
        self._next_size = _FIRST_HEAD if sizes is None else int(scores.size)

    @property
    def top(self) -> Score:
        """The largest score that has not been handed out."""
        if self._head.size == 0:
            self._split_off_head()
        value: Score = self._head[-1].item()
        return value

    def take(self, width: float) -> Bucket:
        """All entries of the head with scores down to `width` below the top."""
        top = self.top
        start = int(np.searchsorted(self._head, _lowest_with(top, width)))
        index, scores = self._head_index[start:], self._head[start:]
        self._head_index, self._head = self._head_index[:start], self._head[:start]
        ends = None if self._sizes is None else np.cumsum(self._sizes[index])
        left = int(index.size) if ends is None else int(ends[-1])
        self.remaining -= left
        return Bucket(top, left, index, scores, ends)

    def _split_off_head(self) -> None:
        rest, size = self._rest, self._next_size
        index = np.arange(rest.size) if self._rest_index is None else self._rest_index
        if 2 * size >= rest.size:
            order = np.argsort(rest)
            self._head_index, self._head = index[order], rest[order]
            self._rest, self._rest_index = rest[:0], index[:0]
            return
        least = np.partition(rest, rest.size - size)[rest.size - size]
        above, ties = np.flatnonzero(rest > least), np.flatnonzero(rest == least)
        order = np.concatenate((ties, above[np.argsort(rest[above])]))
        below = np.flatnonzero(rest < least)
        self._head_index, self._head = index[order], rest[order]
        self._rest, self._rest_index = rest[below], index[below]
        self._next_size = size * _GROWTH


def _lowest_with(top: Score, width: float) -> Score:
    """The lowest score that shares a bucket with `top`."""
    if isinstance(top, float):
        return top - width
    return max(top - max(math.floor(width) - 1, 0), _LOWEST)
