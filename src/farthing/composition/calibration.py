"""Calibration: the least noise with which a whole list meets a target (ε, δ).

Answers are rounded to the private side: the list with exactly this noise is certified to meet the
target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from farthing.composition.compose import compose
from farthing.errors import Unattainable, require_count, require_real
from farthing.guarantees.kinds import Gaussian, Guarantee, Subsampled
from farthing.numerics.rounding import float_up
from farthing.progress import narrowing

#: A list as a function of its noise; more noise must mean more privacy.
NoisyList = Callable[[float], Iterable[Guarantee | tuple[Guarantee, int]]]

#: Noise is looked for in this range.
LEAST, MOST = 0.02, 1e9
#: Relative width of the brackets that the search begins with, and of the place it finds by them;
#: no step is larger after that.
COARSE, NEAR = 0.05, 1.1
NOT_ENOUGH = "no noise is enough: what else is in the list exceeds the target by itself"


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
            found = compose(items(noise), adaptivity=adaptivity, tolerance=width)
            upper = found.epsilon_at(delta).upper
        except Unattainable:
            return math.inf
        return math.log(upper / epsilon) if upper > 0 else -math.inf

    def answered(noise: float) -> float:
        value = excess(noise, tolerance)
        seen(noise, value > 0)
        return value

    with narrowing("the noise is") as seen:
        start, slope = _about(lambda noise: excess(noise, max(COARSE, tolerance)))
        return _crossing(start, slope, answered, 0.5 * tolerance)


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


def _about(excess: Callable[[float], float]) -> tuple[float, float]:
    """Where brackets that cost little put the least noise, and how fast ε falls there.

    As −d ln ε / d ln noise; everything is asked again later.
    """
    low = high = 1.0
    while (at_high := excess(high)) > 0:
        low, high = high, 2 * high
        if high > MOST:
            raise Unattainable(NOT_ENOUGH)
    low = low if low < high else 0.5 * low
    while (at_low := excess(low)) <= 0:
        if low == LEAST:
            return LEAST, 1.0
        low, high, at_high = max(0.5 * low, LEAST), low, at_low
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


def _crossing(
    start: float, slope: float, excess: Callable[[float], float], precision: float
) -> float:
    """A certified noise, within `precision` of one that is not, or the LEAST.

    Steps along ln ε = constant − slope·ln noise, each a little beyond where that meets the target;
    halves if that does not end it soon.
    """
    low, high, noise, beyond = 0.0, math.inf, start, 1 + precision / 3
    steps = 0
    while high > low * (1 + precision):
        value = excess(noise)
        low, high = (low, noise) if value <= 0 else (noise, high)
        if high <= LEAST:
            break
        if low > MOST:
            raise Unattainable(NOT_ENOUGH)
        ratio = math.exp(min(max(value / slope, -1.0), 1.0))
        noise *= min(max(ratio * beyond if value > 0 else ratio / beyond, 1 / NEAR), NEAR)
        steps += 1
        if not low < noise < high or (steps > 5 and 0 < low < high < math.inf):
            noise = math.sqrt(low) * math.sqrt(high)
        noise = max(noise, LEAST)
    return high
