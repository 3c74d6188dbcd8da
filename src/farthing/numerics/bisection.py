"""Bisection, once: the place where a statement about numbers turns from true to false."""

from __future__ import annotations

import math
from collections.abc import Callable


def last_whole(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The largest n in [low, high) that holds, where `low` does and `high` does not."""
    while high - low > 1:
        between = (low + high) // 2
        low, high = (between, high) if holds(between) else (low, between)
    return low


def turning_point(
    holds: Callable[[float], bool | None], low: float, high: float, *, width: float
) -> tuple[float, float]:
    """(low, high) moved together up to `width` relative: `low` holds and `high` does not.

    None means that it cannot be decided, and ends the search. While the two ends differ by orders
    of magnitude the middle is the geometric one.
    """
    while high - low > width * high:
        between = math.sqrt(low) * math.sqrt(high) if 0 < 4 * low < high else 0.5 * (low + high)
        if not low < between < high:
            break
        answer = holds(between)
        if answer is None:
            break
        low, high = (between, high) if answer else (low, between)
    return low, high
