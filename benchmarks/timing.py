"""Seconds and megabytes."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def best_of(repeats: int, run: Callable[[], T]) -> tuple[float, T]:
    """The shortest of a few runs in seconds of processors, and the last result.

    For what computes and does not wait: the same as on the clock where nothing else runs, and
    not far from it where something does.
    """
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = run()
        times.append(time.process_time() - start)
    return min(times), result


def forget() -> None:
    """Whatever the library keeps from earlier questions is gone: each is asked as the first one."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("farthing.composition", "farthing.guarantees")):
            owners = [module, *(one for one in vars(module).values() if isinstance(one, type))]
            for kept in (one for owner in owners for one in vars(owner).values()):
                if hasattr(kept, "cache_clear"):
                    kept.cache_clear()


def peak_megabytes(code: str) -> float:
    """Peak memory of a fresh interpreter that runs `code`."""
    after = (
        "\nprint(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + after], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1]) / 1024


def seconds_of_process(*arguments: str, repeats: int = 3) -> float:
    """The shortest wall time of a command started from nothing."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(arguments, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def own_megabytes() -> float:
    """Peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
