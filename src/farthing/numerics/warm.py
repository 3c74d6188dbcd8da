"""Compile the kernels once, so that no user waits for it: `python -m farthing.numerics.warm`."""

from __future__ import annotations

import numpy as np

from farthing.numerics.curves import UNIT
from farthing.numerics.kernels import chord_supremum, support_maximum


def main() -> None:
    """Call each kernel with the types it is used with; numba keeps the result on disk."""
    profile = np.linspace(1.0, 0.0, 64)
    chord_supremum(profile, 8, 48, 0.1, 0.5, np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]))
    support_maximum(profile, profile, 8, 48, 0.1, 0.5, 5, 0.0, UNIT)


if __name__ == "__main__":
    main()
