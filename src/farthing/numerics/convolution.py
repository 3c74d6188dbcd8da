"""Long loops in pieces, so that whoever presses Ctrl-C does not wait for the whole.

Python looks for interrupts between two calls only, and one convolution may take seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from farthing.numerics.rounding import FloatArray

#: Steps of a loop in one call: about a hundredth of a second.
PIECE = 10_000_000
#: Indices in one call at least.
FEWEST = 4


def pieces(size: int, each: int) -> Iterator[slice]:
    """0, …, size − 1 in parts that take PIECE at most, if every index takes `each`."""
    step = max(FEWEST, PIECE // max(1, each))
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """Σ_i one[i]·other[j − i] for every j where a term exists."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    total = np.zeros(len(longer) + len(shorter) - 1)
    for part in pieces(len(longer), len(shorter) // 10):  # fewer at once take longer each
        total[part.start : part.stop + len(shorter) - 1] += np.convolve(longer[part], shorter)
    return total


def averaged(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ_i weights[i]·values[j + len(weights) − 1 − i] for every j where all terms exist."""
    more = len(weights) - 1
    parts = [
        np.convolve(values[part.start : part.stop + more], weights, mode="valid")
        for part in pieces(len(values) - more, 10 * len(weights))  # which often underflow
    ]
    return np.concatenate(parts)
