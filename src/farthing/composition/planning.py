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
from farthing.progress import narrowing

#: No plan looks further than this many mechanisms.
MOST = 10**12
#: Relative widths that are tried before the one that was asked for; grids are kept in between.
COARSE = (0.5, 0.2, 0.05, 0.01)
#: A search begins with this one: what fits there fits where brackets are narrower.
QUICK = 0.03


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

    def search(width: float, low: int) -> int:
        def fits(count: int) -> bool:
            answer = _fits([(guarantee, count)], epsilon, delta, adaptivity, width)
            if answer or width <= tolerance:
                seen(count, answer)
            return answer

        def excess(count: int) -> float:
            """ln of how much ε is exceeded."""
            upper = _upper([(guarantee, count)], delta, adaptivity, width)
            return math.log(max(upper, 1e-300) / epsilon) if epsilon > 0 else math.inf

        low = low if fits(low) else 1
        high = max(low + 1, math.ceil(1.02 * low))
        while fits(high):
            low, high = high, math.ceil(1.25 * high) + 1
            if high > MOST:
                raise Unattainable(
                    f"more than {MOST:g} such mechanisms fit; the count is unlimited"
                )
        return _last_that_fits(fits, excess, low, high)

    with narrowing("the count is") as seen:
        if not _fits([(guarantee, 1)], epsilon, delta, adaptivity, tolerance):
            return 0
        low = max(1, _by_moments(guarantee, epsilon, delta))
        if tolerance < QUICK:
            low = search(QUICK, low)
        return search(tolerance, low)


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

    def search(width: float, start: float, growth: float) -> float:
        def total(each: float) -> float:
            items = [(kind(each), count)]
            found = compose(items, adaptivity=adaptivity, tolerance=width).epsilon_at(delta)
            if found.upper <= epsilon or width <= tolerance:
                seen(each, found.upper <= epsilon)
            return found.upper

        precision = max(1e-9, 0.02 * width)
        return _largest(total, epsilon, start=start, growth=growth, precision=precision)

    if epsilon == 0:
        raise Unattainable("epsilon must be greater than 0 to leave anything for each mechanism")
    start, growth = epsilon / count * (1 - 1e-12), 2.0
    with narrowing("ε of each is") as seen:
        if tolerance < QUICK:
            start, growth = search(QUICK, start, growth), 1 + 0.2 * QUICK
        return search(tolerance, start, growth)


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


def _upper(
    items: list[tuple[Guarantee, int]], delta: float, adaptivity: str, tolerance: float
) -> float:
    try:
        return compose(items, adaptivity=adaptivity, tolerance=tolerance).epsilon_at(delta).upper
    except Unattainable:
        return math.inf


def _last_that_fits(
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
    total: Callable[[float], float],
    target: float,
    *,
    start: float,
    growth: float,
    precision: float,
) -> float:
    """The largest x, up to `precision` relative, with total(x) ≤ target; `start` fits.

    Secant steps on ln total against ln x, which is close to a line, kept inside the bracket.
    """
    low, at_low = start, total(start)
    if at_low > target:
        raise Unattainable(f"no parameter fits: even {start:g} each gives {at_low:g} > {target:g}")
    high = growth * low
    while (at_high := total(high)) <= target:
        low, at_low, growth = high, at_high, growth**2
        high = growth * low
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
