"""CountMLE: the likeliest counts behind Gaussian noise, given their order [CR22, Algorithm 1]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from farthing.errors import InvalidInput


def ordered_counts(noisy: Sequence[float] | npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """The x_1 ≥ x_2 ≥ … ≥ x_k ≥ 0 that is nearest to `noisy` in least squares. O(k).

    Pool adjacent violators, then replace negative values by 0. *The second step is right*: let y
    be the nearest decreasing sequence. Replacing values below 0 by 0 keeps it decreasing, and
    the optimality conditions of y (on each constant block the residuals sum to 0 and their
    partial sums from the left do not exceed 0) turn into those of the problem with x_k ≥ 0,
    where the blocks at 0 may have a negative sum. Post-processing of a release: free.
    """
    values = np.asarray(noisy, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not bool(np.isfinite(values).all()):
        raise InvalidInput(
            "noisy counts must be a non-empty sequence of finite numbers, "
            f"got {int(np.isfinite(values).sum())} finite ones in shape {values.shape}"
        )
    sums: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        total, size = value, 1
        while sums and sums[-1] * size < total * sizes[-1]:
            total += sums.pop()
            size += sizes.pop()
        sums.append(total)
        sizes.append(size)
    means = np.array(sums) / np.array(sizes)
    return np.repeat(np.maximum(means, 0.0), sizes)
