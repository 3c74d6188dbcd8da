"""Random bits from the operating system.

Every run of a mechanism opens its own source, so nothing is shared between threads or
inherited across a fork. Bits are read in blocks, because one system call per draw would
cost more than the draw.

A seeded source exists for tests only. It is installed for the extent of a `with` block by
the private `_seeded`; no constructor and no `run` accepts a seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

WORD_BITS = 64
_FIRST_BLOCK = 64
_LARGEST_BLOCK = 1 << 14


class BitSource:
    """Independent uniform bits, as arrays of 64-bit words or as whole numbers of any size."""

    __slots__ = ("_block", "_next", "_read", "_words")

    def __init__(self, read: Callable[[int], bytes] = os.urandom) -> None:
        self._read = read
        self._block = _FIRST_BLOCK
        self._words: list[int] = []
        self._next = 0

    def words(self, count: int) -> Words:
        """`count` independent uniform 64-bit words."""
        return np.frombuffer(self._read(8 * count), dtype=np.uint64)

    def word(self) -> int:
        """One uniform 64-bit word."""
        if self._next == len(self._words):
            self._words = self.words(self._block).tolist()
            self._next = 0
            self._block = min(2 * self._block, _LARGEST_BLOCK)
        self._next += 1
        return self._words[self._next - 1]

    def bits(self, count: int) -> int:
        """A uniform whole number below 2^count."""
        number = 0
        for _ in range(0, count, WORD_BITS):
            number = number << WORD_BITS | self.word()
        return number >> -count % WORD_BITS

    def below(self, bound: int) -> int:
        """A uniform whole number in [0, bound), by rejection: exact, no modulo bias."""
        width = (bound - 1).bit_length()
        while True:
            number = self.bits(width)
            if number < bound:
                return number


_TEST_SOURCE: ContextVar[BitSource | None] = ContextVar("_TEST_SOURCE", default=None)


def system_bits() -> BitSource:
    """A source for one run: the operating system, except inside a test's `_seeded` block."""
    return _TEST_SOURCE.get() or BitSource()


@contextmanager
def _seeded(seed: int) -> Iterator[BitSource]:
    """For tests only: every source opened inside the block replays the same seed."""
    source = BitSource(np.random.Generator(np.random.PCG64(seed)).bytes)
    token = _TEST_SOURCE.set(source)
    try:
        yield source
    finally:
        _TEST_SOURCE.reset(token)
