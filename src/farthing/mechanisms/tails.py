"""Certified thresholds from decreasing tails."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from farthing.errors import NotCertified
from farthing.numerics.ball import Ball

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
    while high - low > 1:
        between = (low + high) // 2
        if tail(between) <= target:
            high = between
        else:
            low = between
    return high


def at_least_one(probability: Ball, count: int) -> Ball:
    """1 − (1 − p)^count: the probability that one of `count` independent events happens."""
    if probability >= 1:
        return arb(1)
    return -(count * (-probability).log1p()).expm1()
