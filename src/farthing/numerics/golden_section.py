"""Golden-section search: about where a function that falls and then rises is lowest."""

from __future__ import annotations

import math
from collections.abc import Callable

_RATIO = (math.sqrt(5) - 1) / 2


def golden_section(
    height: Callable[[float], float], low: float, high: float, *, width: float
) -> tuple[float, float, float, float]:
    """Ends at most `width` apart around the lowest place, with two places between, in order."""
    left, right = high - _RATIO * (high - low), low + _RATIO * (high - low)
    at_left, at_right = height(left), height(right)
    while high - low > width:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _RATIO * (high - low)
            at_left = height(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _RATIO * (high - low)
            at_right = height(right)
    return low, left, right, high
