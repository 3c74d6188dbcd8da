"""What to expect of a mechanism before it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from farthing.errors import require_real
from farthing.mechanisms.noise.calibrated import Noise

DEFAULT_CONFIDENCE = 0.95

#: Where a number lies: both ends belong to it.
Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Expected error, and half-width of a confidence interval.

    For counts the error is |released − true| of one count before anything is withheld; for
    selections it is how far the score of the chosen candidate lies below the best one.
    """

    expected_error: float
    half_width: float
    confidence: float

    def divided(self, by: float) -> Accuracy:
        """The same accuracy in a unit that is `by` times larger."""
        return Accuracy(self.expected_error / by, self.half_width / by, self.confidence)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect before running.

    `counts`: the error of each released number. `selection`: how far, in counts, a selected
    label may lie below the best remaining one. `told_apart`: of two labels whose counts differ
    by this much, the larger comes first with probability `confidence`.

    The cutoff is the largest count that the mechanism does not look at. `found_from`: a label whose
    count exceeds the cutoff by this much is found with probability `confidence`. `above_cutoff`:
    a noisy count that exceeds the noisy cutoff by less is withheld. `threshold`: noisy counts
    below it are withheld.

    `totals`: half-widths, which hold together, of the totals that a number is computed from.
    """

    counts: Accuracy | None = None
    selection: Accuracy | None = None
    found_from: float | None = None
    threshold: int | None = None
    above_cutoff: int | None = None
    totals: tuple[float, ...] | None = None
    told_apart: float | None = None

    @property
    def shown_from(self) -> int | None:
        """About how large the count of a label must be to be shown; None if all are."""
        given = (self.threshold, self.above_cutoff, self.found_from)
        return next((math.ceil(least) for least in given if least is not None), None)


@lru_cache(maxsize=1024)
def noise_accuracy(noise: Noise, confidence: float, times: int = 1) -> Accuracy:
    """Accuracy of one count with this noise, or of the mean of `times` such counts."""
    level = require_confidence(confidence)
    return Accuracy(noise.expected_absolute(times), noise.half_width(level, times), level)


def joint_level(confidence: float, count: int) -> float:
    """The confidence that each of `count` independent intervals needs for all of them to hold.

    level^(1/count), rounded up.
    """
    level = require_confidence(confidence)
    if count <= 1:
        return level
    return min(math.nextafter(math.exp(math.log(level) / count), 1), math.nextafter(1, 0))


def selection_accuracy(rate: float, competitors: int, confidence: float) -> Accuracy:
    """Accuracy of one draw of the exponential mechanism among competitors + 1 candidates.

    Expected error: the draw maximises E[score] + entropy/rate, the maximum is at least the
    best score, and the entropy is at most ln(competitors + 1). Half-width: all candidates at
    least w below the best one weigh together at most competitors·e^(−rate·w) of it.
    """
    level = require_confidence(confidence)
    odds = competitors * level / (1 - level)
    width = math.log(odds) / rate if odds > 1 else 0.0
    return Accuracy(math.log1p(competitors) / rate, width, level)


def told_apart(rate: float, confidence: float) -> float:
    """The difference between two counts from which their order is right with this probability.

    A candidate of weight e^(rate·gap) comes before one of weight 1 with probability
    1/(1 + e^(−rate·gap)), whatever other candidates there are.
    """
    level = require_confidence(confidence)
    return max(0.0, math.log(level / (1 - level)) / rate)


def losing(log_odds: list[float]) -> float:
    """X/(1 + X), X = Σ e^l: the chance that a candidate comes after one of its rivals.

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
