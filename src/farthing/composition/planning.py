"""Planning: how many mechanisms, which parameter each, or how much noise, for a target (ε, δ).

Answers are rounded to the private side: the composition they describe is certified to meet
the target; one more mechanism, or a slightly larger parameter, may not be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from farthing.composition.bounds import Bracket
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
from farthing.numerics.rounding import UNIT, float_up
from farthing.numerics.search import (
    about_least,
    last_by_power,
    last_whole,
    least_place,
)
from farthing.progress import narrowing

#: No plan looks further than this many mechanisms.
MOST = 10**12
#: Relative widths that are tried before the one that was asked for; grids are kept in between.
COARSE = (0.5, 0.2, 0.05, 0.01)
#: A search for a count begins with this one: what fits there fits where brackets are narrower.
QUICK = 0.03
#: Noise is looked for in this range, with brackets of this relative width first.
LEAST, LOUDEST, WIDE = 0.02, 1e9, 0.05

Listed = Iterable[Guarantee | tuple[Guarantee, int]]
#: A list as a function of its noise; more noise must mean more privacy.
NoisyList = Callable[[float], Listed]


@dataclass(frozen=True, slots=True)
class _Target:
    """The (ε, δ) that a list of this adaptivity must meet."""

    epsilon: float
    delta: float
    adaptivity: str = "adaptive"

    def __post_init__(self) -> None:
        require_choice("adaptivity", self.adaptivity, ADAPTIVITIES)
        require_real("epsilon", self.epsilon, at_least=0)
        require_real("delta", self.delta, at_least=0, below=1)

    def composed(self, items: Listed, tolerance: float) -> Bracket | None:
        """ε of the list at this δ; None if none is proved."""
        try:
            composed = compose(items, adaptivity=self.adaptivity, tolerance=tolerance)
            return composed.epsilon_at(self.delta)
        except Unattainable:
            return None

    def excess(self, items: Listed, tolerance: float) -> float:
        """ln of how much too large ε is; at most 0 where the list is certified."""
        bracket = self.composed(items, tolerance)
        if bracket is None or self.epsilon == 0:
            return math.inf
        excess = math.log(bracket.upper / self.epsilon) if bracket.upper > 0 else -math.inf
        # a quotient next to 1 may be rounded to 1
        return excess if bracket.upper <= self.epsilon else max(excess, UNIT)

    def met_by(self, items: Listed, tolerance: float) -> bool:
        """Whether the list is certified; a coarse bracket often tells, and costs little."""
        for width in (*(coarse for coarse in COARSE if coarse > tolerance), tolerance):
            bracket = self.composed(items, width)
            if bracket is None:
                return False
            if bracket.upper <= self.epsilon:
                return True
            if bracket.lower > self.epsilon or bracket.width > width:
                return False
        return False

    def least_noise(
        self,
        items: NoisyList,
        seen: Callable[[float, bool], None],
        *,
        start: float,
        least: float,
        tolerance: float,
        precision: float,
    ) -> float:
        """The least noise that is enough, up to `precision` relative, looked for from `start` on.

        `seen` is told what was tried, and whether it was enough.
        """

        def answered(noise: float) -> float:
            excess = self.excess(items(noise), tolerance)
            seen(noise, excess <= 0)
            return excess

        def roughly(noise: float) -> float:
            return self.excess(items(noise), max(WIDE, tolerance))

        most = max(LOUDEST, 2 * start)
        about = about_least(roughly, least, most, start=start)
        return least_place(answered, about, least=least, most=most, precision=precision)


def largest_count(
    guarantee: Guarantee,
    *,
    epsilon: float,
    delta: float,
    adaptivity: str = "adaptive",
    tolerance: float = 1e-3,
) -> int:
    """How many mechanisms with this guarantee are certified (ε, δ)-DP together; 0 if none is."""
    target = _Target(epsilon, delta, adaptivity)

    def search(width: float, low: int) -> int:
        def fits(count: int) -> bool:
            answer = target.met_by([(guarantee, count)], width)
            if answer or width <= tolerance:
                seen(count, answer)
            return answer

        low = low if fits(low) else 1
        high = max(low + 1, math.ceil(1.02 * low))
        while fits(high):
            low, high = high, math.ceil(1.25 * high) + 1
            if high > MOST:
                raise Unattainable(
                    f"more than {MOST:g} such mechanisms fit; the count is unlimited"
                )
        return last_by_power(fits, lambda n: target.excess([(guarantee, n)], width), low, high)

    with narrowing("the count is") as seen:
        if not target.met_by([(guarantee, 1)], tolerance):
            return 0
        low = max(1, largest_repeats([(guarantee, 1)], epsilon=epsilon, delta=delta))
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
    target = _Target(epsilon, delta, adaptivity)
    count = require_count("count", count, at_least=1)
    if epsilon == 0:
        raise Unattainable("epsilon must be greater than 0 to leave anything for each mechanism")
    start = count / epsilon * (1 + 1e-12)  # as noise: so much is certainly enough
    with narrowing("ε of each is") as seen:
        noise = target.least_noise(
            lambda noise: [(kind(1 / noise), count)],
            lambda noise, enough: seen(1 / noise, enough),
            start=start,
            least=1e-9 * start,
            tolerance=tolerance,
            precision=max(1e-9, 0.02 * tolerance),
        )
    return 1 / noise


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
    require_real("epsilon", epsilon, above=0)
    tolerance = require_real("tolerance", tolerance, above=0, below=1)
    with narrowing("the noise is") as seen:
        try:
            return _Target(epsilon, delta, adaptivity).least_noise(
                items,
                lambda noise, enough: seen(noise, not enough),
                start=1.0,
                least=LEAST,
                tolerance=tolerance,
                precision=0.5 * tolerance,
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


def largest_repeats(items: Sequence[tuple[Guarantee, int]], *, epsilon: float, delta: float) -> int:
    """How often a whole list fits into (ε, δ), by moments: quick, and often a little too few.

    For a planner that answers while somebody types; `largest_count` and tariffs prove more.
    """
    _Target(epsilon, delta)
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
