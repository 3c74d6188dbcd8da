"""What to expect of a mechanism before it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing.errors import require_real
from farthing.mechanisms.discrete_gaussian import DiscreteGaussian
from farthing.mechanisms.discrete_laplace import DiscreteLaplace

DEFAULT_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Expected error, half-width of a confidence interval, and the chance of missing a label.

    For counts the error is |released − true| of one count before anything is withheld; for
    selections it is how far the score of the chosen candidate lies below the best one.
    `miss_probability` is an upper bound, given where a question about missing was asked.
    """

    expected_error: float
    half_width: float
    confidence: float
    miss_probability: float | None = None


def noise_accuracy(
    noise: DiscreteLaplace | DiscreteGaussian,
    confidence: float,
    miss_probability: float | None = None,
) -> Accuracy:
    """Accuracy of one count with this noise added."""
    level = require_confidence(confidence)
    return Accuracy(noise.expected_absolute, noise.half_width(level), level, miss_probability)


def selection_accuracy(
    rate: float, competitors: int, confidence: float, miss_probability: float | None = None
) -> Accuracy:
    """Accuracy of one draw of the exponential mechanism among competitors + 1 candidates.

    Expected error: the draw maximises E[score] + entropy/rate, the maximum is at least the
    best score, and the entropy is at most ln(competitors + 1). Half-width: all candidates at
    least w below the best one weigh together at most competitors·e^(−rate·w) of it.
    """
    level = require_confidence(confidence)
    odds = competitors * level / (1 - level)
    width = math.log(odds) / rate if odds > 1 else 0.0
    return Accuracy(math.log1p(competitors) / rate, width, level, miss_probability)


def losing(log_odds: list[float]) -> float:
    """X/(1 + X), X = Σ e^l: the chance that one candidate comes after some other one.

    l is the log-weight of each rival (or group of rivals) relative to the candidate.
    """
    if not log_odds:
        return 0.0
    peak = max(log_odds)
    total = peak + math.log(sum(math.exp(value - peak) for value in log_odds))
    return 1 / (1 + math.exp(-total)) if total > -700 else 0.0


def require_confidence(confidence: float) -> float:
    """A confidence level strictly between 0 and 1."""
    return require_real("confidence", confidence, above=0, below=1)
