"""One asymmetric item in a list, by brute force in exact rationals: what is charged is never below
what either direction attains, both directions are attained, and neither is the worse one always."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import pytest

import farthing as fa
from farthing.guarantees.losses.discrete import attained_one_way

#: probabilities with the unit and without it
Pair = tuple[Fraction, Fraction]


def some_pairs(source: random.Random, outcomes: int) -> list[Pair]:
    def shares() -> list[Fraction]:
        cuts = sorted(source.sample(range(1, 60), outcomes - 1))
        return [Fraction(b - a, 60) for a, b in zip([0, *cuts], [*cuts, 60], strict=True)]

    return list(zip(shares(), shares(), strict=True))


def reverse(pairs: list[Pair]) -> list[Pair]:
    return [(q, p) for p, q in pairs]


def loss(pairs: list[Pair]) -> fa.LossDistribution:
    merged: dict[Fraction, Fraction] = {}
    infinity = sum((p for p, q in pairs if q == 0), Fraction(0))
    for p, q in pairs:
        if p > 0 and q > 0:
            merged[p / q] = merged.get(p / q, Fraction(0)) + p
    ratios = sorted(merged)
    return fa.LossDistribution(
        tuple(math.log(z) for z in ratios),
        tuple(float(merged[z]) for z in ratios),
        float(infinity),
    )


def two_way(pairs: list[Pair]) -> fa.TwoWayLoss:
    return fa.TwoWayLoss(loss(pairs), loss(reverse(pairs)))


def response(odds: Fraction) -> list[Pair]:
    """Randomized response with e^ε = odds."""
    truth = odds / (1 + odds)
    return [(truth, 1 - truth), (1 - truth, truth)]


def ranged(top: Fraction, bottom: Fraction) -> list[Pair]:
    """Two outcomes with the ratios top > 1 > bottom: generalized randomized response."""
    q = (1 - bottom) / (top - bottom)
    return [(q * top, q), ((1 - q) * bottom, 1 - q)]


def attained(laws: list[list[Pair]], z: Fraction) -> Fraction:
    total = Fraction(0)
    for outcome in product(*laws):
        p = math.prod((one[0] for one in outcome), start=Fraction(1))
        q = math.prod((one[1] for one in outcome), start=Fraction(1))
        total += max(p - z * q, Fraction(0))
    return total


Z = [Fraction(1), Fraction(21, 20), Fraction(6, 5), Fraction(3, 2), Fraction(5, 2)]


@pytest.mark.parametrize("seed", range(12))
def test_an_asymmetric_item_is_charged_the_worse_direction(seed: int) -> None:
    """Without bounded range the optimum is known exactly: it lies in the bracket."""
    source = random.Random(seed)
    pairs, odds = some_pairs(source, 2 + seed % 2), Fraction(source.randint(11, 16), 10)
    items = [(two_way(pairs), 2), fa.PureDP(math.log(odds))]
    for z in Z:
        truth = max(attained([law, law, response(odds)], z) for law in (pairs, reverse(pairs)))
        for adaptivity in fa.ADAPTIVITIES:
            found = fa.compose(items, adaptivity=adaptivity).delta_at(math.log(z))
            assert found.lower <= truth + Fraction(1, 10**9)
            assert truth <= found.upper
        assert found.upper <= float(truth) * 1.02 + 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_beside_bounded_range(seed: int) -> None:
    """An adversary with a fixed t attains less than is charged, whichever way neighbours face."""
    source = random.Random(100 + seed)
    pairs = some_pairs(source, 3)
    span = Fraction(source.randint(12, 18), 10)  # e^ε
    items = [fa.BoundedRange(math.nextafter(math.log(span), 9.0)), (two_way(pairs), 2)]
    composition = fa.compose(items, adaptivity="adaptive")
    for z in Z:
        best = Fraction(0)
        for share in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            top = 1 + (span - 1) * share
            for law in (pairs, reverse(pairs)):
                best = max(best, attained([ranged(top, top / span), law, law], z))
        assert composition.delta_at(math.log(z)).upper >= best


def test_both_directions_are_attained() -> None:
    """At ε = ln 1.5 it is worse without the unit, at ln 2 with it; each is what is charged."""
    pairs = [(Fraction(14, 60), Fraction(40, 60)), (Fraction(17, 60), Fraction(1, 60))]
    pairs.append((Fraction(29, 60), Fraction(19, 60)))
    item = two_way(pairs)
    for z, with_unit in ((Fraction(3, 2), False), (Fraction(2), True)):
        values = {True: attained([pairs], z), False: attained([reverse(pairs)], z)}
        assert values[with_unit] == values[not with_unit] + Fraction(1, 20)
        for way, value in values.items():
            alone = fa.compose([item]).directions[0 if way else 1].delta_at(math.log(z))
            assert alone.lower - 1e-9 <= value <= alone.upper <= float(value) * 1.01
        both = fa.compose([item]).delta_at(math.log(z))
        assert both.lower - 1e-9 <= values[with_unit] <= both.upper
        assert both.lower >= float(values[with_unit]) * 0.99


def test_the_two_halves_are_not_mixed() -> None:
    """A list charged by the larger profile of each item first would be dearer than it must."""
    pairs = [(Fraction(1, 10), Fraction(1, 100)), (Fraction(9, 10), Fraction(99, 100))]
    other = reverse(pairs)
    apart = fa.compose([(two_way(pairs), 4), (two_way(other), 4)], adaptivity="none")
    for z in (Fraction(11, 10), Fraction(3, 2)):
        truth = max(attained([pairs] * 4 + [other] * 4, z), attained([other] * 4 + [pairs] * 4, z))
        found = apart.delta_at(math.log(z))
        assert found.lower <= truth + Fraction(1, 10**9)
        assert truth <= found.upper <= float(truth) * 1.02
        once = fa.compose([(two_way(pairs), 8)], adaptivity="none").delta_at(math.log(z))
        assert once.lower != pytest.approx(found.lower, rel=0.02)


@pytest.mark.parametrize("seed", range(8))
def test_what_two_promises_let_somebody_attain(seed: int) -> None:
    """The lower side is below both promises, mirrored or not, and exact where they agree."""
    source = random.Random(seed)
    one, other = some_pairs(source, 3), some_pairs(source, 2)
    pair = fa.TwoWayLoss(loss(one), loss(other))
    atoms = attained_one_way(pair, with_unit=True)
    consistent = attained_one_way(two_way(one), with_unit=True)

    def profile(atoms, z: Fraction) -> float:
        gains = (
            m * (1 - float(z) / math.exp(x))
            for x, m in zip(atoms.losses, atoms.masses, strict=True)
        )
        return math.fsum(gain for gain in gains if gain > 0)

    for z in [Fraction(i, 12) for i in range(1, 60)]:
        given = attained([one], z)
        mirrored = 1 - z + z * attained([other], 1 / z)
        assert profile(atoms, z) <= min(given, mirrored) + Fraction(1, 10**9)
        assert profile(consistent, z) == pytest.approx(float(given), abs=1e-7)


def test_infinite_loss_in_one_direction_only() -> None:
    """Only with the unit can an outcome appear that is impossible without it."""
    pairs = [(Fraction(1, 1000), Fraction(0)), (Fraction(999, 1000), Fraction(1))]
    item = two_way(pairs)
    for z in (Fraction(1), Fraction(2)):
        truth = max(attained([law, law], z) for law in (pairs, reverse(pairs)))
        found = fa.compose([(item, 2)]).delta_at(math.log(z))
        assert found.lower <= truth <= found.upper <= float(truth) * (1 + 1e-6) + 1e-9
    with pytest.raises(fa.Unattainable):
        fa.compose([(item, 2)]).epsilon_at(1e-3)
