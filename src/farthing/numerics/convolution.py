"""Long loops in pieces, so that whoever presses Ctrl-C does not wait for the whole.

Python looks for interrupts between two calls only, and one convolution may take seconds. Nor are
its products longer than SPAN: from 10 000 terms on OpenBLAS divides every single one of them among
threads, which takes ten times as long on idle processors, and a hundred times on busy ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from farthing.numerics.rounding import FloatArray

#: Steps of a loop in one call: about a hundredth of a second.
PIECE = 10_000_000
#: Indices in one call at least.
FEWEST = 4
#: Terms that are multiplied and added in one call: what fits into the nearest memory.
SPAN = 2048


def pieces(size: int, each: int) -> Iterator[slice]:
    """0, …, size − 1 in parts that take PIECE at most, if every index takes `each`."""
    step = max(FEWEST, PIECE // max(1, each))
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """Σ_i one[i]·other[j − i] for every j where a term exists."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    total = np.zeros(len(longer) + len(shorter) - 1)
    for first in range(0, len(shorter), SPAN):
        some = shorter[first : first + SPAN]
        for part in pieces(len(longer), len(some)):
            sums = np.convolve(longer[part], some)
            total[first + part.start : first + part.start + len(sums)] += sums
    return total


def averaged(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ_i weights[i]·values[j + len(weights) − 1 − i] for every j where all terms exist."""
    total = np.zeros(len(values) - len(weights) + 1)
    for first in range(0, len(weights), SPAN):
        some = weights[first : first + SPAN]
        later = values[len(weights) - first - len(some) :]
        for part in pieces(len(total), len(some)):
            here = later[part.start : part.stop + len(some) - 1]
            total[part] += np.convolve(here, some, mode="valid")
    return total
