"""Noisy sums: the law, whole numbers of any size, and both bounds count."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from farthing.errors import InvalidInput
from farthing.guarantees.kinds import PureDP
from farthing.lab.audit import audit
from farthing.mechanisms import ClippedSum, Contribution, Release

from .fit import fits


def law(scale: float, around: int) -> dict[int, float]:
    a = math.exp(-1 / scale)
    return {around + z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-400, 401)}


@pytest.mark.parametrize("total", [0, -12, 10**40])
def test_the_law(total: int) -> None:
    mechanism = ClippedSum(coordinate=PureDP(0.5), lower=-4, upper=3)
    releases = [mechanism.run(total) for _ in range(8000)]
    assert {release.labels for release in releases} == {("sum",)}
    drawn = [count for release in releases for count in release.counts or ()]
    assert all(type(count) is int for count in drawn)
    assert fits(drawn, law(8.0, total))
    assert not fits(drawn, law(8.0 * 1.3, total))
    assert not fits(drawn, law(8.0 * 0.7, total))


@pytest.mark.parametrize(
    ("lower", "upper", "size"), [(-4, 3, 4), (0, 3, 3), (-9, -2, 9), (5, 5, 5)]
)
def test_assumptions_and_price(lower: int, upper: int, size: int) -> None:
    mechanism = ClippedSum(coordinate=PureDP(0.5), lower=lower, upper=upper)
    assert mechanism.assumes == Contribution(1, size)
    assert mechanism.guarantees == ((PureDP(0.5), 1),)
    assert mechanism.noise.scale == 2 * size


def test_accuracy_stated_before_running_holds() -> None:
    mechanism = ClippedSum(coordinate=PureDP(0.5), lower=-4, upper=3)
    stated = mechanism.expect(0.9).counts
    assert stated is not None
    errors = [abs((mechanism.run(7).counts or (0,))[0] - 7) for _ in range(4000)]
    inside = sum(error <= stated.half_width for error in errors) / 4000
    assert 0.88 < inside < 0.95
    assert sum(errors) / 4000 == pytest.approx(stated.expected_error, rel=0.1)


@dataclass(frozen=True)
class OnlyTheUpperBound:
    """Noise for the larger value instead of the larger absolute value."""

    claimed: ClippedSum

    def run(self, total: int) -> Release:
        narrow = ClippedSum(coordinate=self.claimed.coordinate, lower=0, upper=self.claimed.upper)
        return narrow.run(total)


def test_an_audit_tells_the_lower_bound_forgotten() -> None:
    sound = ClippedSum(coordinate=PureDP(1.0), lower=-4, upper=1)
    options = {"trials": 4000, "confidence": 0.999, "view": lambda r: r.counts[0]}
    assert audit(OnlyTheUpperBound(sound), 0, -4, **options).epsilon > 1.5
    assert 0.7 < audit(sound, 0, -4, **options).epsilon <= 1.0


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"lower": 0, "upper": 0}, "not both be 0"),
        ({"lower": 4, "upper": 3}, "upper must be"),
        ({"lower": 0.5, "upper": 3}, "lower must be"),
        ({"lower": 0, "upper": 2.5}, "upper must be"),
        ({"lower": 0, "upper": 2**60}, "scale"),
        ({"lower": -(2**70), "upper": 0}, "lower must be"),
    ],
)
def test_bounds_that_cannot_be_right(bounds: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ClippedSum(coordinate=PureDP(1.0), **bounds)
