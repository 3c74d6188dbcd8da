"""Every way to spend a small tariff, tried one after the other."""

from __future__ import annotations

import math

import farthing as fa


def best_delta(tariff: fa.Tariff, epsilon_g: float, choices: int) -> float:
    """The largest δ over all strategies with t among `choices` + 1 equally spaced values.

    Deliberately naive: a tree over what to buy next, which t, and both answers.
    """
    items = [(guarantee, price) for guarantee, price in tariff.items.values()]

    def value(left: int, x: float) -> float:
        best = max(1 - math.exp(x), 0.0)
        for guarantee, price in items:
            if price > left:
                continue
            for up, t, spread in _moves(guarantee, choices):
                rest = left - price
                tried = up * value(rest, x - t) + (1 - up) * value(rest, x - t + spread)
                best = max(best, tried)
        return best

    return value(tariff.farthings, epsilon_g)


def _moves(guarantee: fa.Guarantee, choices: int) -> list[tuple[float, float, float]]:
    if isinstance(guarantee, fa.PureDP):
        epsilon = guarantee.epsilon
        return [(1 / (1 + math.exp(-epsilon)), epsilon, 2 * epsilon)]
    assert isinstance(guarantee, fa.BoundedRange)
    epsilon = guarantee.epsilon
    ts = [epsilon * i / choices for i in range(1, choices)]
    return [((1 - math.exp(t - epsilon)) / (1 - math.exp(-epsilon)), t, epsilon) for t in ts]
