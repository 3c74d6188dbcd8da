"""The compiled kernels, loaded when the first profile is computed.

Importing numba takes longer than importing everything else together, and most commands compute no
profile: so this is the one import of a required dependency inside a function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from farthing.numerics.rounding import FloatArray, IntArray


class Compiled(NamedTuple):
    """What numerics/kernels.py defines."""

    chord_supremum: Callable[[FloatArray, int, float, float, FloatArray], FloatArray]
    support_maximum: Callable[
        [FloatArray, FloatArray, int, float, float, int, float],
        tuple[FloatArray, FloatArray, FloatArray],
    ]
    support_average: Callable[
        [FloatArray, FloatArray, IntArray, FloatArray, FloatArray, int, float],
        tuple[FloatArray, FloatArray],
    ]
    event_ceiling: Callable[
        [FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, float, int], float
    ]


@cache
def compiled() -> Compiled:
    """The kernels; the first call loads numba."""
    from farthing.numerics import kernels

    return Compiled(
        kernels.chord_supremum,
        kernels.support_maximum,
        kernels.support_average,
        kernels.event_ceiling,
    )
