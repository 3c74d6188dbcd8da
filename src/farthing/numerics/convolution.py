"""Convolutions, directly in pieces and by the fast Fourier transform with its error.

Convolutions run in pieces, so that Ctrl-C takes effect soon: Python looks for interrupts only
between two calls, and one convolution may take seconds. Products are no longer than SPAN: from
10 000 terms on OpenBLAS divides each of them among threads, which takes ten times as long on idle
processors and a hundred times as long on busy ones.

With u the unit of rounding, a transform of 2^t numbers by Cooley and Tukey's algorithm errs by at
most t·η relative in the 2-norm, η = μ + γ₄(√2 + μ), if its roots of unity err by μ
[Higham02, Thm 24.2]. With μ ≤ 8u that is less than 14u; TRANSFORM allows 16. What follows from it
for powers and products is in docs/theory/subsampling.md, "The error of the transform".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from farthing.numerics.rounding import UNIT, FloatArray

#: Units of rounding that one level of a transform may cost, relative in the 2-norm.
TRANSFORM = 16
#: Larger logarithms of a spectrum are not made into numbers.
LARGEST_LOG = 300.0
#: Covers everything that underflows.
UNDERFLOW, NEGLIGIBLE_ROOT = 1e-280, 1e-145

ComplexArray = npt.NDArray[np.complex128]
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


def cyclic_product(factors: list[tuple[FloatArray, int]], size: int) -> tuple[FloatArray, float]:
    """The cyclic convolution modulo `size` of all factors, each taken its number of times.

    The vectors are non-negative, `size` is a power of two. No entry errs by more than the number
    that is returned with them; infinite if it leaves the range of floats.
    """
    relative = TRANSFORM * UNIT * math.log2(size)
    product: ComplexArray = np.ones(size // 2 + 1, dtype=np.complex128)
    log_size = np.zeros(size // 2 + 1)
    each: list[tuple[int, float, FloatArray]] = []
    multiplied = 0
    for vector, count in factors:
        rows = -(-len(vector) // size)
        wrapped = _wrapped(vector, rows, size)
        spectrum = np.fft.rfft(wrapped)
        error = 1.01 * (relative + rows * UNIT) * math.sqrt(size) * _norm(wrapped)
        error += UNDERFLOW
        ceiling = np.abs(spectrum) * (1 + 4 * UNIT) + error
        product *= _power(spectrum, count)
        log_size += count * np.log(ceiling)
        each.append((count, error, ceiling))
        multiplied += count
    if log_size.max() > LARGEST_LOG:
        return np.zeros(size), math.inf
    largest = np.exp(log_size)
    total = 4 * UNIT * multiplied * 2 * float(np.sum(np.abs(product)))
    for count, error, ceiling in each:
        total += count * error * math.sqrt(2) * _norm(largest / ceiling)
    result = np.fft.irfft(product, size)
    total = total / size + relative * _norm(result)
    return result, 1.1 * total + UNDERFLOW


def _norm(vector: FloatArray) -> float:
    """The 2-norm; without BLAS, whose threads wait for each other on a busy machine."""
    return math.sqrt(float(np.sum(vector * vector)))


def _wrapped(vector: FloatArray, rows: int, size: int) -> FloatArray:
    """The vector with indices modulo `size`."""
    padded = np.zeros(rows * size)
    padded[: len(vector)] = vector
    return padded.reshape(rows, size).sum(axis=0) if rows > 1 else padded


def _power(values: ComplexArray, count: int) -> ComplexArray:
    """By repeated squaring: at most 3·count units relative."""
    result: ComplexArray | None = None
    square = values
    while True:
        if count & 1:
            result = square if result is None else result * square
        count >>= 1
        if count == 0:
            assert result is not None
            return result
        square = np.where(np.abs(square) < NEGLIGIBLE_ROOT, 0.0, square)  # denormals take long
        square = square * square
