"""All searches: bisection, golden section, thirds, Newton's method, slopes on logarithms.

A search only finds a place. The caller certifies what it evaluates there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from farthing.errors import NotCertified, Unattainable
from farthing.numerics.ball import Ball, down, middle, up
from farthing.numerics.binomial import HockeyStick

#: Relative distance from the guessed root at which each side is certified first.
WIDTH = 2.5e-10
#: No root is looked for outside this range.
SMALLEST, LARGEST = 1e-300, 1e300
#: Steps of `least_place` are no larger than this ratio, nor is the place that it begins with wider.
NEAR = 1.1

#: No whole number beyond this is tried.
_TOO_FAR = 1 << 70
_RATIO = (math.sqrt(5) - 1) / 2


def last_whole(
    holds: Callable[[int], bool], low: int, high: int, *, part: int | None = None
) -> int:
    """The largest n in [low, high) that holds, where `low` does and `high` does not.

    With `part`, one that lies within that part of itself below the largest: 100 is one per cent.
    """
    while high - low > (1 if part is None else max(1, low // part)):
        between = (low + high) // 2
        low, high = (between, high) if holds(between) else (low, between)
    return low


def least_reaching(tail: Callable[[int], Ball], target: Ball, *, start: int = 0) -> int:
    """The smallest whole w ≥ start at which the decreasing `tail` is certainly at most `target`.

    Doubling, then bisection. A comparison that the balls leave open counts as "not yet", so
    the answer may be one too large but never too small.
    """
    low, step = start - 1, 1
    while not tail(low + step) <= target:
        step *= 2
        if step > _TOO_FAR:
            raise NotCertified("no threshold reaches the wanted probability")
    low, high = low + step // 2, low + step
    return last_whole(lambda between: not tail(between) <= target, low, high) + 1


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


def whole_thirds(height: Callable[[int], float], low: int, high: int) -> range:
    """At most three whole numbers in [low, high], around where the height is largest."""
    while high - low > 2:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (left + 1, high) if height(left) < height(right) else (low, right)
    return range(low, high + 1)


def invert(
    attained: Callable[[float], HockeyStick],
    ceiling: Callable[[float], Ball],
    delta: float,
    *,
    total: Ball,
    mean: float,
    deviation: float,
) -> tuple[float, float]:
    """(lower, upper) for the smallest ε ≥ 0 with δ(ε) ≤ `delta`; relative width about 1e-9.

    `attained(ε)` encloses a value that some adversary reaches, `ceiling(ε)` one that none
    exceeds; at `total`, the sum of all ε, the true δ is 0. A Newton iteration on ln δ finds the
    place in floats, beginning from about the `mean` and the `deviation` of the loss. The two sides
    are then certified in ball arithmetic just beside it.
    """
    limit = up(total)
    if delta == 0 or limit == 0:
        return down(total), limit
    if ceiling(0.0) <= delta:
        return 0.0, 0.0

    def log_delta(x: float) -> tuple[float, float]:
        stick = attained(x)
        return middle(stick.value.log()), 1 - middle(stick.tail / stick.value)

    target, high = math.log(delta), limit * (1 - 1e-15)
    start = mean + deviation * math.sqrt(-2 * target)
    guess = _newton(log_delta, target, start=start, low=0.0, high=high)
    upper = next((x for x in _steps(guess, +1) if x >= limit or ceiling(x) <= delta), limit)
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


def last_by_power(
    fits: Callable[[int], bool], excess: Callable[[int], float], low: int, high: int
) -> int:
    """The largest count that fits, between one that does and one that does not.

    Where many are left, guessed from ε as a power of the count; the guess and the next count are
    asked, so a good guess ends the search.
    """
    while high - low > 8:
        at_low, at_high = excess(low), excess(high)
        if not -math.inf < at_low < at_high < math.inf:
            break
        share = min(max(-at_low / (at_high - at_low), 0.0), 1.0)
        guess = math.floor(low * (high / low) ** share)
        before = high - low
        for count in (guess, guess + 1):
            if low < count < high:
                low, high = (count, high) if fits(count) else (low, count)
        if high - low > before // 2:
            break
    return last_whole(fits, low, high)


def about_least(
    excess: Callable[[float], float], least: float, most: float, *, start: float
) -> tuple[float, float]:
    """About the least place between `least` and `most` with no excess, and −d excess/d ln place."""
    low = high = start
    while (at_high := excess(high)) > 0:
        low, high = high, 2 * high
        if high > most:
            raise Unattainable(f"nothing up to {most:g} is enough")
    low = low if low < high else 0.5 * low
    while (at_low := excess(low)) <= 0:
        if low == least:
            return least, 1.0
        low, high, at_high = max(0.5 * low, least), low, at_low
    while high > NEAR * low:
        between = math.sqrt(low * high)
        value = excess(between)
        if value > 0:
            low, at_low = between, value
        else:
            high, at_high = between, value
    slope = (at_low - at_high) / math.log(high / low)
    if not 0.1 < slope < math.inf:
        return high, 1.0
    return low * math.exp(at_low / slope), slope


def least_place(
    excess: Callable[[float], float],
    about: tuple[float, float],
    *,
    least: float,
    most: float,
    precision: float,
) -> float:
    """A place with no excess within `precision` of one that has some, or `least`.

    `about` is a place and a slope. Steps along excess = constant − slope·ln place, each a little
    beyond where that meets 0; halves if that does not end it soon.
    """
    place, slope = about
    low, high, beyond = 0.0, math.inf, 1 + precision / 3
    steps = 0
    while high > low * (1 + precision):
        value = excess(place)
        low, high = (low, place) if value <= 0 else (place, high)
        if high <= least:
            break
        if low > most:
            raise Unattainable(f"nothing up to {most:g} is enough")
        ratio = math.exp(min(max(value / slope, -1.0), 1.0))
        place *= min(max(ratio * beyond if value > 0 else ratio / beyond, 1 / NEAR), NEAR)
        steps += 1
        if not low < place < high or (steps > 5 and 0 < low < high < math.inf):
            place = math.sqrt(low) * math.sqrt(high)
        place = max(place, least)
    return high
