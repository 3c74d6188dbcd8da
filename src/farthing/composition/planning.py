"""Planning: how many mechanisms, which parameter each, or how much noise, for a target (ε, δ).

Answers are rounded to the private side: the composition they describe is certified to meet
the target; one more mechanism, or a slightly larger parameter, may not be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from farthing.composition.bounds.moments import MomentBound
from farthing.composition.compose import ADAPTIVITIES, compose
from farthing.composition.items import Losses, items_from, take_out_leaks
from farthing.errors import InvalidInput, Unattainable, require_choice, require_count, require_real
from farthing.guarantees.kinds import (
    BoundedRange,
    Gaussian,
    Guarantee,
    Laplace,
    PureDP,
    Subsampled,
)
from farthing.numerics.rounding import float_up
from farthing.numerics.search import (
    about_least,
    largest_place,
    last_by_power,
    last_whole,
    least_place,
)
from farthing.progress import narrowing

#: No plan looks further than this many mechanisms.
MOST = 10**12
#: Relative widths that are tried before the one that was asked for; grids are kept in between.
COARSE = (0.5, 0.2, 0.05, 0.01)
#: A search begins with this one: what fits there fits where brackets are narrower.
QUICK = 0.03
#: Noise is looked for in this range, with brackets of this relative width first.
LEAST, LOUDEST, WIDE = 0.02, 1e9, 0.05

#: A list as a function of its noise; more noise must mean more privacy.
NoisyList = Callable[[float], Iterable[Guarantee | tuple[Guarantee, int]]]


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
        return last_by_power(fits, excess, low, high)

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
            bracket = compose(items, adaptivity=adaptivity, tolerance=width).epsilon_at(delta)
            if bracket.upper <= epsilon or width <= tolerance:
                seen(each, bracket.upper <= epsilon)
            return bracket.upper

        precision = max(1e-9, 0.02 * width)
        return largest_place(total, epsilon, start=start, growth=growth, precision=precision)

    if epsilon == 0:
        raise Unattainable("epsilon must be greater than 0 to leave anything for each mechanism")
    start, growth = epsilon / count * (1 - 1e-12), 2.0
    with narrowing("ε of each is") as seen:
        if tolerance < QUICK:
            start, growth = search(QUICK, start, growth), 1 + 0.2 * QUICK
        return search(tolerance, start, growth)


def noise_for(
    items: NoisyList,
    *,
    epsilon: float,
    delta: float,
    adaptivity: str = "adaptive",
    tolerance: float = 1e-3,
) -> float:
    """The least noise with which `items(noise)` is certified (ε, δ)-DP together.

    `items` makes the list from the free parameter, for example
    `lambda noise: [(Subsampled(Gaussian(noise), 0.01), 1000), (BoundedRange(0.1), 100)]`; for a
    Laplace mechanism the noise multiplier is 1/ε. The answer is within `tolerance` of the least.
    """
    epsilon = require_real("epsilon", epsilon, above=0)
    delta = require_real("delta", delta, at_least=0, below=1)
    tolerance = require_real("tolerance", tolerance, above=0, below=1)

    def excess(noise: float, width: float) -> float:
        """ln of how much too large ε is; at most 0 where the list is certified."""
        try:
            composed = compose(items(noise), adaptivity=adaptivity, tolerance=width)
            upper = composed.epsilon_at(delta).upper
        except Unattainable:
            return math.inf
        return math.log(upper / epsilon) if upper > 0 else -math.inf

    def answered(noise: float) -> float:
        value = excess(noise, tolerance)
        seen(noise, value > 0)
        return value

    with narrowing("the noise is") as seen:
        try:
            about = about_least(lambda noise: excess(noise, max(WIDE, tolerance)), LEAST, LOUDEST)
            return least_place(
                answered, about, least=LEAST, most=LOUDEST, precision=0.5 * tolerance
            )
        except Unattainable:
            raise Unattainable(
                "no noise is enough: the other items exceed the target by themselves"
            ) from None


def sgd_noise(
    *,
    epsilon: float,
    delta: float,
    epochs: float,
    batch_size: int,
    dataset_size: int,
    tolerance: float = 1e-3,
) -> float:
    """The noise multiplier of DP-SGD: Poisson batches of `batch_size` on average.

    Every step sees each of `dataset_size` examples with probability batch_size/dataset_size and
    adds Gaussian noise of this many clipping norms to the sum of clipped gradients. Neighbours are
    add/remove of one example.
    """
    batch = require_count("batch_size", batch_size, at_least=1)
    examples = require_count("dataset_size", dataset_size, at_least=batch)
    epochs = require_real("epochs", epochs, above=0)
    rate = min(1.0, float_up(Fraction(batch, examples)))
    steps = math.ceil(Fraction(epochs) * Fraction(examples, batch))
    return noise_for(
        lambda noise: [(Subsampled(Gaussian(noise), rate), steps)],
        epsilon=epsilon,
        delta=delta,
        tolerance=tolerance,
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


def _upper(
    items: list[tuple[Guarantee, int]], delta: float, adaptivity: str, tolerance: float
) -> float:
    try:
        return compose(items, adaptivity=adaptivity, tolerance=tolerance).epsilon_at(delta).upper
    except Unattainable:
        return math.inf


def _by_moments(guarantee: Guarantee, epsilon: float, delta: float) -> int:
    """A count that certainly fits, by the cheap bound only; 1 if that proves nothing."""
    return max(1, largest_repeats([(guarantee, 1)], epsilon=epsilon, delta=delta))


def largest_repeats(items: Sequence[tuple[Guarantee, int]], *, epsilon: float, delta: float) -> int:
    """How often a whole list fits into (ε, δ), by moments: quick, and often a little too few.

    For a planner that answers while somebody types; `largest_count` and tariffs prove more.
    """
    epsilon, delta = _target(epsilon, delta, "adaptive")
    if not items:
        raise InvalidInput("at least one mechanism must be planned, got none")

    def fits(times: int) -> bool:
        whole = items_from([(one, n * times) for one, n in items])
        return all(_fits_by_moments(one, epsilon, delta) for one in whole.directions())

    if not fits(1):
        return 0
    low, high = 1, 2
    while high < MOST and fits(high):
        low, high = high, 2 * high
    return last_whole(fits, low, high)


def _fits_by_moments(losses: Losses, epsilon: float, delta: float) -> bool:
    leaky = take_out_leaks(losses)
    rest = delta - float(leaky.leak.upper())
    if rest <= 0:
        return False
    return not leaky.items.pairs or MomentBound(leaky.items).epsilon_at(rest) <= epsilon
