"""Confidence intervals for counts that were released because they reached a threshold.

A noisy count that reached the threshold is likely to have positive noise. Given that n + Z ≥ T, the
released v = n + Z has the law of the noise cut off at T, and the interval holds every n ≥ 1 that
this law does not reject on either side (docs/theory/mechanisms.md, section 11).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from flint import arb

from farthing.mechanisms.accuracy import Interval
from farthing.mechanisms.noise.calibrated import Noise
from farthing.numerics.ball import in_balls
from farthing.numerics.search import last_whole, least_reaching


def intervals_after(
    noise: Noise, threshold: int, counts: Sequence[int | float], confidence: float
) -> tuple[Interval, ...]:
    """One interval for each released count, all of which reached the threshold."""
    whole = [int(count) for count in counts]
    offsets = (_offsets(noise, threshold, count - threshold, confidence) for count in whole)
    return tuple((v - down, v + up) for v, (down, up) in zip(whole, offsets, strict=True))


@lru_cache(maxsize=4096)
def _offsets(noise: Noise, threshold: int, above: int, confidence: float) -> tuple[int, int]:
    """How far the interval of a count that is `above` the threshold reaches down and up.

    The further above the threshold, the shorter the interval is downwards and the longer upwards;
    upwards it is never longer than without a threshold. So far above the threshold the lower offset
    is that of a nearer count and the upper one that without a threshold. Neither is too short, and
    many counts share them.
    """
    beyond = _without_threshold(noise, confidence)
    far = 4 * beyond + 4
    if above > far:
        down, _ = _offsets(noise, threshold, far, confidence)
        return min(down, threshold + above - 1), beyond
    return _searched(noise, threshold, above, confidence)


@lru_cache(maxsize=64)
@in_balls
def _without_threshold(noise: Noise, confidence: float) -> int:
    """The largest w with Pr[Z ≥ w] ≥ (1 − confidence)/2, or one more."""
    return least_reaching(noise.tail, (1 - arb(confidence)) / 2, start=0)


@in_balls
def _searched(noise: Noise, threshold: int, above: int, confidence: float) -> tuple[int, int]:
    """The exact ends; numbers that ball arithmetic cannot decide belong to the interval.

    With n = v − down the upper tail of v is tail(down)/tail(down − above), with n = v + up the
    lower one is 1 − tail(1 − up)/tail(−above − up); n beyond where tail is 0 is never released.
    """
    miss = (1 - arb(confidence)) / 2

    def low_enough(down: int) -> bool:
        reached = noise.tail(down - above)
        return reached != 0 and not noise.tail(down) < miss * reached

    def high_enough(up: int) -> bool:
        reached = noise.tail(-above - up)
        return not reached - noise.tail(1 - up) < miss * reached

    furthest = threshold + above  # n = 0, which no released label has
    down = last_whole(low_enough, 0, furthest)
    step = 1
    while high_enough(step):
        step *= 2
    return down, last_whole(high_enough, 0, step)
