"""How far the answers of a conversation can be off, before it is opened."""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from farthing.errors import require_count
from farthing.interactive.noise import Noise
from farthing.mechanisms.accuracy import require_confidence
from farthing.mechanisms.tails import least_reaching
from farthing.numerics.ball import Ball, in_balls

#: How the allowed failures are shared between thresholds and questions; the best one is used.
_SHARES = tuple(arb(2) ** -k for k in range(1, 9))


@dataclass(frozen=True, slots=True)
class WatchAccuracy:
    """With probability at least `confidence` all of this holds for every answer.

    A positive answer means that the number is at least threshold − `threshold_error`, a negative
    one that it is below threshold + `threshold_error`, and a number given out is within
    `value_error` of the truth (None: numbers were not bought). The questions may depend on
    earlier answers.
    """

    threshold_error: int
    value_error: int | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Watching:
    """The noises of a conversation, and how many thresholds and positive answers it has."""

    threshold_noise: Noise
    query_noise: Noise
    value_noise: Noise | None
    thresholds: int
    positives: int


@in_balls
def watch_accuracy(watching: Watching, questions: int, confidence: float) -> WatchAccuracy:
    """Union bound over thresholds (both tails), questions (one tail) and numbers (both tails).

    A number far below its threshold is answered wrongly only if its own noise is large, one far
    above only if it is small: one tail per question. Half of the failures go to numbers if there
    are any. Given everything before, the noise of the next answer is fresh, so the bound holds
    for questions chosen from earlier answers.
    """
    count = require_count("questions", questions, at_least=1)
    level = require_confidence(confidence)
    failures = 1 - arb(level)
    value_error = None
    if watching.value_noise is not None:
        failures /= 2
        value_error = _reach(watching.value_noise, 2 * min(count, watching.positives), failures)
    threshold_error = min(
        _reach(watching.threshold_noise, 2 * min(count, watching.thresholds), share * failures)
        + _reach(watching.query_noise, count, (1 - share) * failures)
        for share in (*_SHARES, *(1 - share for share in _SHARES[1:]))
    )
    return WatchAccuracy(threshold_error, value_error, level)


def _reach(noise: Noise, tails: int, failures: Ball) -> int:
    """The smallest w for which `tails` events "noise > w" have at most this probability in all."""
    return least_reaching(lambda w: tails * noise.tail(w + 1), failures)
