"""Certified brackets against every way to spend small random tariffs, farthings and units."""

from __future__ import annotations

import random

import pytest

import farthing as fa
from tests.tariffs.strategies import best_delta, loss_of_refinement

UNIT = 2.0**-12
REFINED = 4


def random_tariff(source: random.Random, *, ranges: bool) -> fa.Tariff:
    """One to three items, ε in eighths; most of the units are too few for every item."""
    items: dict[str, tuple[fa.Guarantee, int]] = {}
    for i in range(source.randint(1, 3)):
        epsilon = source.randint(0, 16) / 8
        kind = source.choice(["adp", "adp", "dp", "br" if ranges else "dp"])
        guarantee: fa.Guarantee = fa.PureDP(epsilon)
        if kind == "adp":
            guarantee = fa.ApproximateDP(epsilon, source.randint(0, 3) * UNIT)
        elif kind == "br":
            guarantee = fa.BoundedRange(max(epsilon, 1 / 8))
        items[f"item{i}"] = guarantee, source.randint(1, 4)
    farthings = source.randint(1, 4 if ranges else 9)
    return fa.Tariff(items, farthings, delta_units=source.randint(0, 6), delta_unit=UNIT)


def checks(source: random.Random, *, ranges: bool) -> int:
    """Each side of each claim of one random tariff; how many there were."""
    tariff = random_tariff(source, ranges=ranges)
    epsilons = tuple(sorted(source.uniform(0, 4) for _ in range(12)))
    deltas = (tariff.leak + 1e-3, tariff.leak + 0.1)
    certificate = tariff.certify(tolerance=0.02, epsilons=epsilons, deltas=deltas)
    refined = REFINED if ranges else 1
    missed = loss_of_refinement(tariff, refined)
    for epsilon, bracket in certificate.deltas:
        reached = float(best_delta(tariff, epsilon, refined=refined))
        assert bracket.lower * (1 - 1e-12) <= reached + missed, (tariff, epsilon)
        assert reached * (1 - 1e-12) <= bracket.upper, (tariff, epsilon)
    for delta, bracket in certificate.epsilons:
        left = float(best_delta(tariff, bracket.upper, refined=refined))
        assert left <= delta * (1 + 1e-12) + 1e-40, (tariff, delta)  # 50 digits
        reached = float(best_delta(tariff, bracket.lower, refined=refined))
        assert bracket.lower == 0 or reached + missed >= delta * (1 - 1e-12), (tariff, delta)
    return 2 * len(certificate.deltas) + 2 * len(certificate.epsilons)


@pytest.mark.parametrize("seed", range(12))
def test_responses_are_enclosed_exactly(seed: int) -> None:
    source = random.Random(seed)
    assert sum(checks(source, ranges=False) for _ in range(20)) > 500


@pytest.mark.parametrize("seed", range(4))
def test_bounded_range_too(seed: int) -> None:
    source = random.Random(100 + seed)
    assert sum(checks(source, ranges=True) for _ in range(8)) > 200


def test_the_check_sees_units_that_are_ignored() -> None:
    """The same tariff with plenty of units reaches more than its bracket without them."""
    items = {"rough": (fa.ApproximateDP(1.0, UNIT), 1), "fine": (fa.PureDP(0.125), 1)}
    scarce = fa.Tariff(items, 5, delta_units=1, delta_unit=UNIT)
    plenty = fa.Tariff(items, 5, delta_units=5, delta_unit=UNIT)
    bracket = dict(scarce.certify(epsilons=(1.0,)).deltas)[1.0]
    assert best_delta(scarce, 1.0) <= bracket.upper < best_delta(plenty, 1.0)


def test_the_bracket_is_narrow_where_units_bind() -> None:
    items = {"rough": (fa.ApproximateDP(2.0, 1e-9), 1), "fine": (fa.BoundedRange(0.1), 1)}
    tariff = fa.Tariff(items, 50, delta_units=1, delta_unit=1e-9)
    for delta, bracket in tariff.certify().epsilons:
        if delta >= 1e-8:
            assert bracket.width <= 5e-3
