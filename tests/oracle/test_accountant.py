"""Every way to spend an accountant, by brute force: none exceeds what it promised.

The adversary sees the privacy loss so far, which is all that matters, and chooses among all
guarantees that still fit; mechanisms are the worst ones of their kind. The same search against a
filter that composes what was bought so far must find a way past it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from statistics import NormalDist
from typing import Any

import pytest

import farthing as fa
from farthing.composition.accounts.filters import Filters
from farthing.composition.bounds.moment_witness import Moments

#: With probability `mass` the loss is `loss`; the probability of telling all is left over.
Outcomes = tuple[tuple[float, float], ...]
Bag = tuple[fa.Guarantee, ...]
State = Any


def plays(guarantee: fa.Guarantee, with_unit: bool = True) -> list[Outcomes]:
    """The worst mechanisms of a kind: randomized responses, for bounded range with a choice."""
    match guarantee:
        case fa.Gaussian(sigma):  # whether the noisy number is above a threshold, nothing more
            above = NormalDist().cdf
            half = 1 / (2 * sigma)
            tails = [(above(half - at), above(-half - at)) for at in (0.0, 1.0)]
            return [((p, math.log(p / q)), (1 - p, math.log((1 - p) / (1 - q)))) for p, q in tails]
        case fa.ZeroConcentratedDP(rho):
            witness = Moments(0.0, rho, math.inf).witness(0.6)
            assert witness is not None
            return [tuple(zip(witness.masses, witness.losses, strict=True))]
        case fa.Subsampled(fa.PureDP(epsilon), rate):
            truth = 1 / (1 + math.exp(-epsilon))
            pairs = [(rate * p + (1 - rate) * (1 - p), 1 - p) for p in (truth, 1 - truth)]
            if not with_unit:
                pairs = [(q, p) for p, q in pairs]
            return [tuple((p, math.log(p / q)) for p, q in pairs)]
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


def largest_delta(
    epsilon: float, kinds: Bag, start: State, buy: Callable[[State, fa.Guarantee], State | None]
) -> float:
    """δ at ε of the best adversary, who chooses from the loss so far what to buy next.

    In a sample the unit may be with P or with Q; the adversary fixes that for the whole game.
    """

    states: list[State] = [start]  # by number, because large states are slow keys
    numbers: dict[State, int] = {start: 0}
    choices = {
        with_unit: [(kind, plays(kind, with_unit)) for kind in kinds] for with_unit in (True, False)
    }

    @cache
    def bought(number: int, kind: fa.Guarantee) -> int | None:
        after = buy(states[number], kind)
        if after is None:
            return None
        if after not in numbers:
            numbers[after] = len(states)
            states.append(after)
        return numbers[after]

    @cache
    def value(number: int, x: float, with_unit: bool) -> float:
        best = max(0.0, -math.expm1(x))
        for kind, ways in choices[with_unit]:
            after = bought(number, kind)
            if after is None:
                continue
            for outcomes in ways:
                told = 1 - sum(mass for mass, _ in outcomes)
                rest = sum(
                    mass * value(after, round(x - loss, 9), with_unit) for mass, loss in outcomes
                )
                best = max(best, told + rest)
        return best

    return max(value(0, epsilon, with_unit) for with_unit in (True, False))


def bag_that(fits: Callable[[Bag], bool]) -> Callable[[State, fa.Guarantee], State | None]:
    """Buying where only what was bought so far counts, in any order."""
    may = lru_cache(maxsize=None)(fits)

    def buy(bag: State, kind: fa.Guarantee) -> State | None:
        more = tuple(sorted((*bag, kind), key=repr))
        return more if may(more) else None

    return buy


def from_accountant(accountant: fa.Accountant) -> tuple[State, Any]:
    """The state of an accountant, and buying from it."""
    leaks = Fraction(accountant.leaks)

    def buy(state: State, kind: fa.Guarantee) -> State | None:
        choices, leaked = state
        leaked += Fraction(getattr(kind, "delta", 0))
        best = choices[0]
        if len(choices) > 1:  # nothing was bought yet
            best = max(choices, key=lambda filters: filters.how_many(kind))
        after = best.after(kind, 1) if leaked <= leaks else None
        return None if after is None else ((after,), leaked)

    return (accountant._filters, Fraction(0)), lru_cache(maxsize=None)(buy)


MIXED: Bag = (fa.PureDP(0.3), fa.BoundedRange(0.7), fa.ApproximateDP(0.2, 0.01))
CASES = [
    (0.8, 0.1, 0.0, (fa.PureDP(0.2), fa.PureDP(0.5))),
    (1.0, 0.1, 0.0, (fa.PureDP(0.3), fa.PureDP(0.9))),
    (1.0, 0.12, 0.02, MIXED),
    (0.5, 0.15, 0.02, MIXED),
    (1.5, 0.05, 0.0, (fa.PureDP(0.25), fa.BoundedRange(0.9))),
    (1.2, 0.0, 0.0, (fa.PureDP(0.3), fa.PureDP(0.5), fa.BoundedRange(0.4))),
    (1.0, 0.1, 0.0, (fa.BoundedRange(0.5), fa.Gaussian(3.0))),
    (0.7, 0.2, 0.0, (fa.Subsampled(fa.PureDP(1.0), 0.4), fa.BoundedRange(0.9))),
    (0.8, 0.1, 0.0, (fa.ZeroConcentratedDP(0.05), fa.BoundedRange(0.6))),
    (0.8, 0.1, 0.0, (fa.Gaussian(3.0), fa.ZeroConcentratedDP(0.05))),
]


@pytest.mark.parametrize(("epsilon", "delta", "leaks", "kinds"), CASES)
def test_no_way_to_spend_exceeds_it(epsilon: float, delta: float, leaks: float, kinds: Bag) -> None:
    """With every way to divide δ: what is bought first decides, or what is bought mostly."""
    for mostly in (None, kinds[0]):
        accountant = fa.Accountant(epsilon, delta, leaks=leaks, mostly=mostly)
        start, buy = from_accountant(accountant)
        found = largest_delta(epsilon, kinds, start, buy)
        assert found <= delta * (1 + 1e-9)
        # and the adversary does something: more than anybody gets from a single purchase
        alone = [kind for kind in kinds if buy(start, kind) is not None]
        assert alone
        assert found >= min(fa.compose([kind]).delta_at(epsilon).lower for kind in alone)


WAYS = [
    lambda order: Filters.of_noise(1.0, 0.1, order),
    lambda order: Filters.of_units(1.0, 0.1, order, fa.PureDP(0.3)),
    lambda order: Filters.of_units(1.0, 0.1, order, fa.BoundedRange(0.5)),
    lambda order: Filters.of_units(1.0, 0.1, order, fa.Subsampled(fa.PureDP(1.0), 0.4)),
]


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_every_currency_keeps_its_promise_whatever_is_bought(way: int) -> None:
    filters = WAYS[way](8.0)
    kinds = (fa.PureDP(0.3), fa.BoundedRange(0.5), fa.Subsampled(fa.PureDP(1.0), 0.4))
    found = largest_delta(1.0, kinds, filters, lambda state, kind: state.after(kind, 1))
    assert 0.02 < found <= 0.1


def test_a_currency_that_is_too_cheap_is_found_out() -> None:
    """The same game against a filter that gives away half as much δ again."""
    honest = Filters.of_noise(1.0, 0.1, 8.0)
    cheap = Filters.of_noise(1.0, 0.15, 8.0)
    kinds = (fa.PureDP(0.3), fa.BoundedRange(0.5))
    buy = lambda state, kind: state.after(kind, 1)
    assert largest_delta(1.0, kinds, cheap, buy) > 0.1
    assert largest_delta(1.0, kinds, honest, buy) <= 0.1
    own = Filters.of_units(1.0, 0.1, 8.0, fa.PureDP(0.3))
    assert own is not None
    assert largest_delta(1.0, kinds, replace(own, units=own.units + 2), buy) > 0.1


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
    buy = bag_that(lambda bag: len(bag) <= 9 and composed(bag, 1.0) <= 0.1)
    found = largest_delta(1.0, kinds, (), buy)
    assert found > reached
