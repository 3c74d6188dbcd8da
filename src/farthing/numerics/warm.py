"""Compile the kernels once, so that no user waits for it: `python -m farthing.numerics.warm`."""

from __future__ import annotations

import numpy as np

from farthing.numerics.compiled import compiled


def main() -> None:
    """Call each kernel with the types it is used with; numba keeps the result on disk."""
    profile = np.linspace(1.0, 0.0, 64)
    kernels = compiled()
    kernels.chord_supremum(profile, 8, 0.1, 0.5, np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]))
    kernels.support_maximum(profile, profile, 8, 0.1, 0.5, 5, 0.0)
    places, parts = np.zeros(2, np.int64), np.array([0.0, 0.05])
    kernels.support_average(profile, profile, places, parts, parts, 8, 0.1)


if __name__ == "__main__":
    main()
