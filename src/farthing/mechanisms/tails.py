"""Certified thresholds from decreasing tails."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from farthing.errors import NotCertified
from farthing.numerics.ball import Ball, in_balls
from farthing.numerics.search import last_whole

_TOO_FAR = 1 << 70


def least_reaching(tail: Callable[[int], Ball], target: Ball, *, start: int = 0) -> int:
    """The smallest whole w ≥ start at which the decreasing `tail` is certainly at most `target`.

    Doubling, then bisection. A comparison that the balls leave open counts as "not yet", so
    the answer may be one too large but never too small.
    """
    low, step = start - 1, 1
    while not tail(low + step) <= target:
        step *= 2
        if step > _TOO_FAR:
            raise NotCertified("no threshold reaches the wanted probability")
    low, high = low + step // 2, low + step
    return last_whole(lambda between: not tail(between) <= target, low, high) + 1


@in_balls
def symmetric_half_width(tail: Callable[[int], Ball], confidence: float) -> int:
    """The smallest w with Pr[|Z| ≤ w] ≥ confidence, where Pr[Z ≥ w] = Pr[Z ≤ −w] = tail(w)."""
    return least_reaching(lambda w: 2 * tail(w + 1), 1 - arb(confidence))


def at_least_one(probability: Ball, count: int) -> Ball:
    """1 − (1 − p)^count: the probability that one of `count` independent events happens."""
    if probability >= 1:
        return arb(1)
    return -(count * (-probability).log1p()).expm1()
