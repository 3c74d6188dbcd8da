"""A loss distribution that is not its own mirror image had a lower side that nobody attains, and
alone made two bounds contradict each other. Brute force in exact rationals, small cases."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

import farthing as fa
from farthing.guarantees.losses.discrete import attained_loss

#: outcomes of P and Q as whole numbers of twentieths
Pair = list[tuple[Fraction, Fraction]]
#: (z, mass): Σ mass·(1 − e^x/z)₊ is a profile
Corners = list[tuple[Fraction, Fraction]]


def some_pair(source: random.Random, outcomes: int) -> Pair:
    def shares() -> list[Fraction]:
        cuts = sorted(source.sample(range(1, 60), outcomes - 1))
        return [Fraction(b - a, 60) for a, b in zip([0, *cuts], [*cuts, 60], strict=True)]

    return list(zip(shares(), shares(), strict=True))


def guarantee(pair: Pair) -> fa.LossDistribution:
    merged: dict[Fraction, Fraction] = {}
    for p, q in pair:
        merged[p / q] = merged.get(p / q, Fraction(0)) + p
    ratios = sorted(merged)
    return fa.LossDistribution(
        tuple(math.log(z) for z in ratios), tuple(float(merged[z]) for z in ratios)
    )


def profile(pair: Pair, z: Fraction) -> Fraction:
    return sum((max(p - z * q, Fraction(0)) for p, q in pair), Fraction(0))


def best_corners(pair: Pair) -> Corners:
    """The hull of V and its mirror image over the whole line, from all corners of both."""
    ratios = {p / q for p, q in pair}
    mirrored = [(q, p) for p, q in pair]
    points = {Fraction(0): Fraction(1)}
    for z in ratios | {1 / z for z in ratios}:
        points[z] = min(profile(pair, z), profile(mirrored, z))
    hull: list[tuple[Fraction, Fraction]] = []
    for point in sorted(points.items()):
        while len(hull) >= 2 and slope(hull[-2], hull[-1]) >= slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    slopes = [slope(a, b) for a, b in pairwise(hull)] + [Fraction(0)]
    bends = zip(hull[1:], slopes, slopes[1:], strict=False)
    corners = [(z, z * (right - left)) for (z, _), left, right in bends]
    assert sum(mass for _, mass in corners) == 1
    assert sum(mass / z for z, mass in corners) == 1
    return [(z, mass) for z, mass in corners if mass > 0]


def slope(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> Fraction:
    return (b[1] - a[1]) / (b[0] - a[0])


def composed(parts: list[Corners], z: Fraction) -> Fraction:
    total = Fraction(0)
    for outcome in product(*parts):
        ratio, mass = Fraction(1), Fraction(1)
        for corner, weight in outcome:
            ratio, mass = ratio * corner, mass * weight
        total += mass * max(1 - z / ratio, Fraction(0))
    return total


def response(z: Fraction) -> Corners:
    """Randomized response whose losses are ±ln z."""
    return [(z, z / (z + 1)), (1 / z, 1 / (z + 1))]


SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_promise_is_worth_the_smaller_envelope(seed):
    source = random.Random(seed)
    pair = some_pair(source, source.randint(2, 5))
    best = best_corners(pair)
    mirrored = [(q, p) for p, q in pair]
    ours = attained_loss(guarantee(pair))
    for _ in range(20):
        z = Fraction(source.randint(1, 400), 60)
        exact = composed([best], z)
        assert exact <= min(profile(pair, z), profile(mirrored, z))
        assert exact == 1 - z + z * composed([best], 1 / z)
        x = math.log(z)
        beyond = ours.losses > x
        value = float(np.sum(ours.masses[beyond] * -np.expm1(x - ours.losses[beyond])))
        assert float(exact) * (1 - 1e-8) - 1e-15 <= value <= float(exact) * (1 + 1e-14)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_alone_and_in_copies(seed, copies):
    source = random.Random(100 + seed)
    pair = some_pair(source, source.randint(2, 4))
    best = best_corners(pair)
    given = fa.compose([(guarantee(pair), copies)])
    for z in (Fraction(1), Fraction(6, 5), Fraction(2)):
        bracket = given.delta_at(math.log(z))
        exact = float(composed([best] * copies, z))
        assert bracket.lower <= exact * (1 + 1e-9) + 1e-15
        assert exact * (1 - 1e-9) <= bracket.upper
    exact = float(composed([best] * copies, Fraction(6, 5)))
    if exact > 1e-9:
        bracket = given.epsilon_at(exact)
        assert bracket.lower <= math.log(1.2) * (1 + 1e-6)
        assert math.log(1.2) * (1 - 1e-6) <= bracket.upper


@pytest.mark.parametrize("seed", SEEDS)
def test_beside_pure_dp(seed):
    source = random.Random(200 + seed)
    pair = some_pair(source, source.randint(2, 4))
    factor = Fraction(source.randint(11, 30), 10)
    items = [guarantee(pair), fa.PureDP(math.log(factor))]
    for z in (Fraction(1), Fraction(3, 2)):
        bracket = fa.compose(items, tolerance=1e-4).delta_at(math.log(z))
        exact = float(composed([best_corners(pair), response(factor)], z))
        assert bracket.lower <= exact * (1 + 1e-9) + 1e-15
        assert exact * (1 - 1e-9) <= bracket.upper


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("adaptivity", ["none", "adaptive", "setwise"])
def test_beside_bounded_range(seed, adaptivity):
    """The loss comes first, then the adversary picks t: for each outcome, unless it is fixed."""
    source = random.Random(300 + seed)
    pair = some_pair(source, source.randint(2, 4))
    epsilon, x = source.uniform(0.2, 1.0), source.uniform(0.0, 0.5)
    items = [guarantee(pair), fa.BoundedRange(epsilon)]
    bracket = fa.compose(items, adaptivity=adaptivity, tolerance=1e-4).delta_at(x)
    t = np.linspace(0, epsilon, 20_001)
    stay = np.expm1(t - epsilon) / np.expm1(-epsilon)

    def after(y: float) -> np.ndarray:
        up, down = np.maximum(-np.expm1(y - t), 0), np.maximum(-np.expm1(y - t + epsilon), 0)
        return stay * up + (1 - stay) * down

    best = best_corners(pair)
    rows = [float(mass) * after(x - math.log(z)) for z, mass in best]
    if adaptivity == "none":
        exact = float(np.max(np.sum(rows, axis=0)))
    else:
        exact = sum(float(np.max(row)) for row in rows)
    assert bracket.lower <= exact * (1 + 1e-6) + 1e-12
    assert exact <= bracket.upper * (1 + 1e-9) + 1e-15


def test_the_reported_case():
    """P = (0.9, 0.1) against Q = (0.5, 0.5): the mirror image makes it ln 1.8-DP."""
    loss = fa.LossDistribution((math.log(0.2), math.log(1.8)), (0.1, 0.9))
    alone = fa.compose([loss]).epsilon_at(0.1)
    proved = fa.compose([fa.PureDP(math.log(1.8))]).epsilon_at(0.1).upper
    assert alone.lower <= alone.upper <= proved
    beside = fa.compose([loss, fa.BoundedRange(0.5)]).epsilon_at(0.1)
    as_pure = fa.compose([fa.PureDP(math.log(1.8)), fa.BoundedRange(0.5)]).epsilon_at(0.1)
    assert beside.lower <= as_pure.upper


@pytest.mark.parametrize("infinity", [0.02, 0.3])
def test_infinite_loss_counts_below_only_if_both_directions_have_it(infinity):
    """Losses (−a, a) with infinity: under the other neighbour all of the mass is finite."""
    one_sided = fa.LossDistribution((-0.02, 0.5), (1 - infinity - 0.1, 0.1), infinity)
    other = one_sided.mirrored_mass
    bracket = fa.compose([one_sided]).delta_at(3.0)
    assert bracket.lower <= min(infinity, max(0.0, 1 - other)) * (1 + 1e-9)
    assert bracket.upper >= min(infinity, 1 - other)
    assert fa.compose([(one_sided, 3), fa.BoundedRange(0.1)]).delta_at(1.0).lower < 1
    symmetric = fa.LossDistribution(
        (-1.0, 1.0),
        ((1 - infinity) / (1 + math.e), (1 - infinity) / (1 + math.exp(-1))),
        infinity,
    )
    both = fa.compose([symmetric]).delta_at(2.0)
    assert both.lower == pytest.approx(infinity, rel=1e-9)
    assert both.upper == pytest.approx(infinity, rel=1e-9)


def test_a_loss_distribution_prints_in_one_line():
    many = fa.LossDistribution(
        tuple(i / 1000 for i in range(2000)), (0.5, *([0.5 / 1999] * 1999)), 0.0
    )
    assert len(repr(many)) < 100
    assert "2000 losses" in repr(many)
    assert "\n" not in repr(many)
