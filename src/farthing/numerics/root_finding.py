"""From a certified δ(ε) to a certified ε(δ)."""

from __future__ import annotations

import math
from collections.abc import Callable

from farthing.errors import NotCertified
from farthing.numerics.ball import Ball, middle
from farthing.numerics.binomial import HockeyStick
from farthing.numerics.bisection import turning_point

#: Relative distance from the guessed root at which each side is certified first.
WIDTH = 2.5e-10
#: No root is looked for outside this range.
SMALLEST, LARGEST = 1e-300, 1e300


def invert(
    attained: Callable[[float], HockeyStick],
    ceiling: Callable[[float], Ball],
    delta: float,
    *,
    start: float,
    limit: float,
) -> tuple[float, float]:
    """(lower, upper) for the smallest ε in [0, limit] with δ(ε) ≤ `delta` > 0.

    `attained(ε)` encloses a value that some adversary reaches, `ceiling(ε)` one that none
    exceeds; at `limit` the true δ is 0. A Newton iteration on ln δ finds the place in floats,
    and the two sides are then certified in ball arithmetic just beside it.
    """
    if ceiling(0.0) <= delta:
        return 0.0, 0.0

    def log_delta(x: float) -> tuple[float, float]:
        stick = attained(x)
        return middle(stick.value.log()), 1 - middle(stick.tail / stick.value)

    guess = _newton(log_delta, math.log(delta), start=start, low=0.0, high=limit * (1 - 1e-15))
    upper = next(
        (x for x in _steps(guess, +1) if x >= limit or ceiling(x) <= delta),
        limit,
    )
    lower = next((x for x in _steps(guess, -1) if x <= 0 or attained(x).value > delta), 0.0)
    lower, upper = max(lower, 0.0), min(upper, limit)
    if not lower <= upper:
        raise NotCertified(f"no bracket could be certified around epsilon = {guess}")
    return lower, upper


def _newton(
    log_delta: Callable[[float], tuple[float, float]],
    target: float,
    *,
    start: float,
    low: float,
    high: float,
) -> float:
    """Where a decreasing function with known slope is about `target`: a guess, not a bound."""
    x = min(max(start, low), 0.5 * (low + high))
    for _ in range(200):
        value, slope = log_delta(x)
        if value > target:
            low = x
        else:
            high = x
        step = (value - target) / -slope if slope < 0 else math.nan
        if abs(step) <= 1e-12 * abs(x) and abs(value - target) <= 0.1:
            return x + step
        following = x + step
        if not low < following < high or abs(step) > 0.9 * (high - low):
            following = 0.5 * (low + high)
        if following in (low, high):
            return following
        x = following
    return x


def _steps(guess: float, direction: int) -> list[float]:
    return [guess * (1 + direction * WIDTH * 2.0**i) for i in range(40)]


def crossing(
    decreasing: Callable[[float], Ball], target: float, *, start: float, width: float = 1e-12
) -> tuple[float, float]:
    """(lower, upper) around the x > 0 where a decreasing function crosses `target`.

    At `lower` the function is certainly above the target, at `upper` certainly at or below.
    """

    def above(x: float) -> bool | None:
        value = decreasing(x)
        if value <= target:
            return False
        return True if value > target and x > SMALLEST else None

    lower, upper = 0.0, start
    while above(upper) is not False:
        lower, upper = (upper, 2 * upper) if above(upper) else (lower, 2 * upper)
        if upper > LARGEST:
            raise NotCertified("the function never falls to its target")
    return turning_point(above, lower, upper, width=width)
