"""The compiled kernels, loaded when the first profile is computed.

Importing numba takes longer than importing everything else together, and most commands compute no
profile. So it is imported inside a function, unlike all other required dependencies.

An interrupt inside numba, while it loads, compiles or converts arguments, would become a
SystemError. So interrupts wait until the import and the first call of each kernel are over; in
later calls the SystemError is turned back into KeyboardInterrupt.

`python -m farthing.numerics.compiled` compiles them once, so that no user waits for it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from types import FrameType
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np

from farthing.numerics.rounding import FloatArray, IntArray

Given = ParamSpec("Given")
Result = TypeVar("Result")


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


@cache
def compiled() -> Compiled:
    """The kernels; the first call loads numba."""
    with interrupts_waiting():
        from farthing.numerics import kernels

    return Compiled(
        _interruptible(kernels.chord_supremum),
        _interruptible(kernels.support_maximum),
        _interruptible(kernels.support_average),
    )


@contextmanager
def interrupts_waiting() -> Iterator[None]:
    """Delays interrupts until the end of the block. Python delivers them to the main thread."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            before(*waiting[0])


def was_interrupted(error: BaseException | None) -> bool:
    """Whether a SystemError from compiled code was caused by an interrupt."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _interruptible(kernel: Callable[Given, Result]) -> Callable[Given, Result]:
    """Interrupts wait during the first call, which loads or compiles; later calls are short."""
    loaded = False

    @wraps(kernel)
    def call(*given: Given.args, **named: Given.kwargs) -> Result:
        nonlocal loaded
        if not loaded:
            with interrupts_waiting():
                result = kernel(*given, **named)
            loaded = True
            return result
        try:
            return kernel(*given, **named)
        except SystemError as error:
            if was_interrupted(error):
                raise KeyboardInterrupt from None
            raise

    return call


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
