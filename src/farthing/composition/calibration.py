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

#: A list as a function of its noise; more noise must mean more privacy.
NoisyList = Callable[[float], Iterable[Guarantee | tuple[Guarantee, int]]]

#: Noise is looked for in this range.
LEAST, MOST = 0.02, 1e9
#: Relative width of the brackets that the search begins with, and of the place it finds by them.
COARSE, NEAR = 0.05, 1.1


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

    low, high = _near(lambda noise: excess(noise, max(COARSE, tolerance)))
    if low == high:
        return low
    while (at_high := excess(high, tolerance)) > 0:
        low, high = high, NEAR * high
    while (at_low := excess(low, tolerance)) <= 0 and low > LEAST:
        high, at_high, low = low, at_low, low / NEAR
    return _crossing(
        (low, at_low), (high, at_high), lambda noise: excess(noise, tolerance), 0.5 * tolerance
    )


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


def _near(excess: Callable[[float], float]) -> tuple[float, float]:
    """(low, high) within a factor of NEAR, `high` certified; equal if the least noise will do."""
    low = high = 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
        if high > MOST:
            raise Unattainable(
                "no noise is enough: what else is in the list exceeds the target by itself"
            )
    while low == high or excess(low) <= 0:
        low, high = low / 2, low
        if low < LEAST:
            return (LEAST, LEAST) if excess(LEAST) <= 0 else (LEAST, high)
    while high > NEAR * low:
        between = math.sqrt(low * high)
        low, high = (between, high) if excess(between) > 0 else (low, between)
    return low, high


def _crossing(
    low: tuple[float, float],
    high: tuple[float, float],
    excess: Callable[[float], float],
    precision: float,
) -> float:
    """A certified noise, within `precision` of one that is not: false position in ln noise."""
    while high[0] > low[0] * (1 + precision):
        share = low[1] / (low[1] - high[1]) if math.isfinite(low[1] - high[1]) else 0.5
        share = min(max(share + 0.02, 0.1), 0.9)
        between = low[0] * (high[0] / low[0]) ** share
        value = excess(between)
        low, high = (low, (between, value)) if value <= 0 else ((between, value), high)
    return high[0]
