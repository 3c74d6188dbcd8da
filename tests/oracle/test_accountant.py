"""Every way to spend an accountant, by brute force: none exceeds what it promised.

The adversary sees the privacy loss so far, which is all that matters, and chooses among all
guarantees that still fit; mechanisms are the worst ones of their kind. The same search against a
filter that composes what was bought so far must find a way past it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import combinations_with_replacement

import pytest

import farthing as fa

#: With probability `mass` the loss is `loss`; the probability of telling all is left over.
Outcomes = tuple[tuple[float, float], ...]
Bag = tuple[fa.Guarantee, ...]


def plays(guarantee: fa.Guarantee) -> list[Outcomes]:
    """The worst mechanisms of a kind: randomized responses, for bounded range with a choice."""
    match guarantee:
        case fa.PureDP(epsilon):
            truth = 1 / (1 + math.exp(-epsilon))
            return [((truth, epsilon), (1 - truth, -epsilon))]
        case fa.ApproximateDP(epsilon, delta):
            ((high, up), (low, down)) = plays(fa.PureDP(epsilon))[0]
            return [((high * (1 - delta), up), (low * (1 - delta), down))]
        case fa.BoundedRange(epsilon):
            found = []
            for part in (0.3, 0.5, 0.7):
                t = part * epsilon
                high = math.expm1(t - epsilon) / math.expm1(-epsilon)
                found.append(((high, t), (1 - high, t - epsilon)))
            return found
    raise AssertionError(guarantee)


def largest_delta(epsilon: float, kinds: Bag, fits: Callable[[Bag], bool]) -> float:
    """δ at ε of the best adversary that may buy every bag that fits."""
    may = lru_cache(maxsize=None)(fits)

    @cache
    def value(bag: Bag, x: float) -> float:
        best = max(0.0, -math.expm1(x))
        for kind in kinds:
            more = tuple(sorted((*bag, kind), key=repr))
            if not may(more):
                continue
            for outcomes in plays(kind):
                told = 1 - sum(mass for mass, _ in outcomes)
                rest = sum(mass * value(more, round(x - loss, 9)) for mass, loss in outcomes)
                best = max(best, told + rest)
        return best

    return value((), epsilon)


def fits_accountant(accountant: Callable[[], fa.Accountant]) -> Callable[[Bag], bool]:
    def fits(bag: Bag) -> bool:
        fresh = accountant()
        try:
            for guarantee in bag:
                fresh.spend(guarantee)
        except fa.BudgetExceeded:
            return False
        return True

    return fits


MIXED: Bag = (fa.PureDP(0.3), fa.BoundedRange(0.7), fa.ApproximateDP(0.2, 0.01))
CASES = [
    (0.8, 0.1, 0.0, (fa.PureDP(0.2), fa.PureDP(0.5))),
    (1.0, 0.1, 0.0, (fa.PureDP(0.3), fa.PureDP(0.9))),
    (1.0, 0.2, 0.03, MIXED),
    (0.5, 0.3, 0.02, MIXED),
    (1.5, 0.05, 0.0, (fa.PureDP(0.25), fa.BoundedRange(0.9))),
    (1.2, 0.0, 0.0, (fa.PureDP(0.3), fa.PureDP(0.5), fa.BoundedRange(0.4))),
]


@pytest.mark.parametrize(("epsilon", "delta", "leaks", "kinds"), CASES)
def test_no_way_to_spend_exceeds_it(epsilon: float, delta: float, leaks: float, kinds: Bag) -> None:
    def fresh() -> fa.Accountant:
        return fa.Accountant(epsilon, delta, leaks=leaks)

    found = largest_delta(epsilon, kinds, fits_accountant(fresh))
    assert found <= delta * (1 + 1e-12)
    # and the adversary does something: more than anybody gets from a single purchase
    alone = [bag for bag in combinations_with_replacement(kinds, 1) if fits_accountant(fresh)(bag)]
    assert alone
    least = min(fa.compose(bag).delta_at(epsilon).lower for bag in alone)
    assert found >= least


def composed(bag: Bag, x: float) -> float:
    """δ at x of a list that was fixed in advance."""
    if not bag:
        return max(0.0, -math.expm1(x))
    (outcomes,) = plays(bag[0])
    told = 1 - sum(mass for mass, _ in outcomes)
    return told + sum(mass * composed(bag[1:], x - loss) for mass, loss in outcomes)


@pytest.mark.parametrize(
    ("kinds", "reached"),
    [
        ((fa.PureDP(0.3), fa.PureDP(0.9)), 0.12),
        ((fa.PureDP(0.5), fa.ApproximateDP(0.0, 0.05)), 0.15),  # why `leaks` is set aside
    ],
)
def test_composing_what_was_bought_so_far_is_no_filter(kinds: Bag, reached: float) -> None:
    """Every list that can be bought is (1, 0.1)-DP, and yet everything together is not."""
    found = largest_delta(1.0, kinds, lambda bag: len(bag) <= 9 and composed(bag, 1.0) <= 0.1)
    assert found > reached
