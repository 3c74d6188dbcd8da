"""Cyclic products of non-negative vectors by the fast Fourier transform, with their error.

With u the unit of rounding, a transform of 2^t numbers by Cooley and Tukey's algorithm errs by at
most t·η relative in the 2-norm, η = μ + γ₄(√2 + μ), if its roots of unity err by μ
[Higham02, Thm 24.2]. With μ ≤ 8u that is less than 14u; TRANSFORM allows 16. What follows from it
for powers and products is in docs/theory/subsampling.md, "The error of the transform".
"""

from __future__ import annotations

import math

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


def cyclic_product(factors: list[tuple[FloatArray, int]], size: int) -> tuple[FloatArray, float]:
    """Σ over all ways to add up indices modulo `size`, each factor taken so many times.

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
