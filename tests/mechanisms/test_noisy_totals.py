"""Several totals of the same units: law, price, intervals, and mistakes in the limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import DiscreteGaussian, Gaussian, PureDP
from farthing.lab.audit import audit
from farthing.mechanisms import Contribution, NoisyTotals, Release

from .claims import claimed
from .fit import fits

TOTALS = NoisyTotals(coordinate=PureDP(0.5), limits=(1, 3))


def numbers(release: Release) -> tuple[int | float, ...]:
    assert release.counts is not None
    return release.counts


def laplace(scale: float, reach: int) -> dict[int, float]:
    a = math.exp(-1 / scale)
    return {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-reach, reach + 1)}


def law(totals: tuple[int, int], limits: tuple[int, int]) -> dict[tuple[int, int], float]:
    one, two = (laplace(limit / 0.5, 40 * limit) for limit in limits)
    return {
        (totals[0] + x, totals[1] + y): p * q
        for (x, p), (y, q) in product(one.items(), two.items())
    }


def test_the_law_is_that_of_independent_noise_for_each_limit() -> None:
    drawn = [numbers(TOTALS.run((5, -7))) for _ in range(6000)]
    assert fits(drawn, law((5, -7), (1, 3)))
    assert not fits(drawn, law((5, -7), (1, 2)))
    assert not fits([(x, x - 12) for x, _ in drawn], law((5, -7), (1, 3)))


def test_the_price_is_reached_and_not_exceeded() -> None:
    """By the exact laws: totals that move by their limits, up or down, lose twice ε."""
    before = law((0, 0), (1, 3))
    for moved in product((-1, 0, 1), (-3, 0, 2, 3)):
        after = law(moved, (1, 3))
        common = before.keys() & after.keys()
        loss = max(abs(math.log(before[out] / after[out])) for out in common)
        assert loss <= 2 * 0.5 + 1e-9
        if moved in ((1, 3), (-1, 3)):
            assert loss == pytest.approx(1.0)
    narrow = law((0, 0), (1, 1)), law((1, 3), (1, 1))
    common = narrow[0].keys() & narrow[1].keys()
    assert max(math.log(narrow[0][out] / narrow[1][out]) for out in common) > 1.9


@dataclass(frozen=True)
class LimitForgotten:
    """Every total has noise for a limit of 1."""

    sound: NoisyTotals

    def run(self, totals: tuple[int, ...]) -> Release:
        limits = (1,) * len(self.sound.limits)
        return NoisyTotals(coordinate=self.sound.coordinate, limits=limits).run(totals)


@pytest.mark.parametrize("coordinate", [PureDP(0.5), Gaussian(2.0)])
def test_an_audit_tells_a_limit_that_is_too_small(coordinate: Any) -> None:
    sound = NoisyTotals(coordinate=coordinate, limits=(1, 4))
    epsilon, delta = claimed(sound.guarantees)
    options = {"trials": 4000, "confidence": 0.999, "delta": delta}
    # the sum of both, in multiples of their noise, is what tells most
    view = lambda release: 4 * numbers(release)[0] + numbers(release)[1]
    found = audit(sound, (0, 0), (1, 4), view=view, **options)
    assert 0.15 * epsilon < found.epsilon <= epsilon
    broken = audit(LimitForgotten(sound), (0, 0), (1, 4), view=lambda r: numbers(r)[1], **options)
    assert broken.epsilon > found.epsilon
    if isinstance(coordinate, PureDP):
        assert broken.epsilon > epsilon


def test_what_it_says_of_itself() -> None:
    assert TOTALS.assumes == Contribution(1, 1, (3,))
    assert TOTALS.guarantees == ((PureDP(0.5), 2),)
    assert TOTALS.run((10**30, -(10**40))).labels == (0, 1)


@pytest.mark.parametrize("coordinate", [PureDP(0.5), Gaussian(3.0)])
def test_half_widths_hold_together(coordinate: Any) -> None:
    mechanism = NoisyTotals(coordinate=coordinate, limits=(20, 7, 300))
    stated = mechanism.expect(0.9).totals
    assert stated is not None
    runs = [numbers(mechanism.run((0, 0, 0))) for _ in range(4000)]

    def inside(part: float) -> float:
        held = (all(abs(n) <= part * w for n, w in zip(run, stated, strict=True)) for run in runs)
        return sum(held) / len(runs)

    assert 0.89 < inside(1.0) < 0.94
    assert inside(0.8) < 0.87, "narrower intervals must fail"


@pytest.mark.parametrize(
    ("limits", "message"),
    [((), "at least one"), ((0,), "limit of a total"), ((1, 2.5), "limit"), ((2**62,), "scale")],
)
def test_limits_that_cannot_be_right(limits: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        NoisyTotals(coordinate=PureDP(0.5), limits=limits)


def test_discrete_gaussian_noise_is_for_one_limit() -> None:
    with pytest.raises(InvalidInput, match="sensitivity"):
        NoisyTotals(coordinate=DiscreteGaussian(2.0, 1), limits=(1, 2))
