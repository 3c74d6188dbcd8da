"""Planning a budget: how many mechanisms, or which parameter each, for a target (ε, δ).

Answers are rounded to the private side: the composition they describe is certified to meet
the target; one more mechanism, or a slightly larger parameter, may not be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from farthing.composition.compose import ADAPTIVITIES, compose
from farthing.composition.items import Items, items_from, take_out_leaks
from farthing.composition.moments import MomentBound
from farthing.errors import InvalidInput, Unattainable, require_choice, require_count, require_real
from farthing.guarantees.kinds import BoundedRange, Guarantee, Laplace, PureDP
from farthing.numerics.bisection import last_whole

#: No plan looks further than this many mechanisms.
MOST = 10**12
#: Relative widths that are tried before the one that was asked for; grids are kept in between.
COARSE = (0.5, 0.2, 0.05, 0.01)


def largest_count(
    guarantee: Guarantee,
    *,
    epsilon: float,
    delta: float,
    adaptivity: str = "adaptive",
    tolerance: float = 1e-3,
) -> int:
    """How many mechanisms with this guarantee are certified (ε, δ)-DP together; 0 if none is."""
    epsilon, delta = _target(epsilon, delta, adaptivity)

    def fits(count: int) -> bool:
        return _fits([(guarantee, count)], epsilon, delta, adaptivity, tolerance)

    if not fits(1):
        return 0
    low = max(1, _by_moments(guarantee, epsilon, delta))
    low = low if fits(low) else 1
    high = max(low + 1, math.ceil(1.02 * low))
    while fits(high):
        low, high = high, math.ceil(1.25 * high) + 1
        if high > MOST:
            raise Unattainable(f"more than {MOST:g} such mechanisms fit; the count is unlimited")
    return last_whole(fits, low, high)


def largest_epsilon(
    kind: type[PureDP] | type[BoundedRange] | type[Laplace],
    *,
    count: int,
    epsilon: float,
    delta: float,
    adaptivity: str = "adaptive",
    tolerance: float = 1e-3,
) -> float:
    """The largest parameter for which `count` mechanisms of this kind are certified (ε, δ)-DP."""
    if kind not in (PureDP, BoundedRange, Laplace):
        raise InvalidInput(
            "kind must be PureDP, BoundedRange or Laplace (which have an epsilon each), got "
            f"{getattr(kind, '__name__', kind)!r}"
        )
    epsilon, delta = _target(epsilon, delta, adaptivity)
    count = require_count("count", count, at_least=1)

    def total(each: float) -> float:
        items = [(kind(each), count)]
        return compose(items, adaptivity=adaptivity, tolerance=tolerance).epsilon_at(delta).upper

    if epsilon == 0:
        raise Unattainable("epsilon must be greater than 0 to leave anything for each mechanism")
    return _largest(
        total, epsilon, start=epsilon / count * (1 - 1e-12), precision=max(1e-9, 0.02 * tolerance)
    )


def _target(epsilon: float, delta: float, adaptivity: str) -> tuple[float, float]:
    require_choice("adaptivity", adaptivity, ADAPTIVITIES)
    return (
        require_real("epsilon", epsilon, at_least=0),
        require_real("delta", delta, at_least=0, below=1),
    )


def _fits(
    items: list[tuple[Guarantee, int]],
    epsilon: float,
    delta: float,
    adaptivity: str,
    tolerance: float,
) -> bool:
    """Whether the list is certified (ε, δ)-DP; a coarse bracket often tells, and costs little."""
    for width in (*(coarse for coarse in COARSE if coarse > tolerance), tolerance):
        try:
            bracket = compose(items, adaptivity=adaptivity, tolerance=width).epsilon_at(delta)
        except Unattainable:
            return False
        if bracket.upper <= epsilon:
            return True
        if bracket.lower > epsilon or bracket.width > width:
            return False
    return False


def _by_moments(guarantee: Guarantee, epsilon: float, delta: float) -> int:
    """A count that certainly fits, found with the cheap bound only; 1 if it shows nothing."""
    return max(1, largest_repeats([(guarantee, 1)], epsilon=epsilon, delta=delta))


def largest_repeats(items: Sequence[tuple[Guarantee, int]], *, epsilon: float, delta: float) -> int:
    """How often a whole list fits into (ε, δ), found at once: by moments, so rather too few.

    For a planner that answers while somebody types; `largest_count` and tariffs prove more.
    """
    epsilon, delta = _target(epsilon, delta, "adaptive")
    if not items:
        raise InvalidInput("at least one mechanism must be planned, got none")

    def fits(times: int) -> bool:
        leaky = take_out_leaks(items_from([(one, n * times) for one, n in items]))
        rest = delta - float(leaky.leak.upper())
        return rest > 0 and _moment_epsilon(leaky.items, rest) <= epsilon

    if not fits(1):
        return 0
    low, high = 1, 2
    while high < MOST and fits(high):
        low, high = high, 2 * high
    return last_whole(fits, low, high)


def _moment_epsilon(items: Items, delta: float) -> float:
    return MomentBound(items).epsilon_at(delta) if items.pairs else 0.0


def _largest(
    total: Callable[[float], float], target: float, *, start: float, precision: float
) -> float:
    """The largest x, up to `precision` relative, with total(x) ≤ target; `start` fits.

    Secant steps on ln total against ln x, which is close to a line, kept inside the bracket.
    """
    low, at_low = start, total(start)
    if at_low > target:
        raise Unattainable(f"no parameter fits: even {start:g} each gives {at_low:g} > {target:g}")
    high = 2 * low
    while (at_high := total(high)) <= target:
        low, at_low, high = high, at_high, 2 * high
        if high > 1e12:
            raise Unattainable("every parameter fits")
    while high - low > precision * low:
        slope = math.log(at_high / max(at_low, 1e-300)) / math.log(high / low)
        guess = low * math.exp(math.log(target / max(at_low, 1e-300)) / max(slope, 1e-9))
        margin = 0.2 * precision * low
        guess = min(max(guess - margin, low + margin), high - margin)
        for x in (guess, min(guess + 2 * margin, high - 0.5 * margin)):
            if not low < x < high:
                continue
            value = total(x)
            if value <= target:
                low, at_low = x, value
            else:
                high, at_high = x, value
                break
        else:
            between = 0.5 * (low + high)
            value = total(between)
            if value <= target:
                low, at_low = between, value
            else:
                high, at_high = between, value
    return low
