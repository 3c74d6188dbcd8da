"""Both sides of a tariff count units of δ: what cannot be bought raises neither of them.

Before, the lower side bought items with a δ as often as farthings allowed, and said that somebody
reaches ε = 99.999 where 3.5 is the truth; and the upper side was loose by the same factor.
"""

from __future__ import annotations

import random

import pytest

import farthing as fa
from farthing.composition.tariffs import budget
from farthing.composition.tariffs.tariff import tariff_profiles
from tests.tariffs.strategies import best_delta

ONE_OF_THEM = fa.Tariff(
    {"rough": (fa.ApproximateDP(2.0, 1e-9), 1), "fine": (fa.BoundedRange(0.1), 1)},
    farthings=50,
    delta_units=1,
    delta_unit=1e-9,
)


def test_one_unit_buys_one_item_with_a_delta() -> None:
    fine = fa.compose([(fa.PureDP(2.0), 1), (fa.BoundedRange(0.1), 49)], adaptivity="setwise")
    for delta, bracket in ONE_OF_THEM.certify(deltas=(1e-3, 1e-6)).epsilons:
        if delta < 1e-6:
            continue
        truth = fine.epsilon_at(delta)
        assert bracket.lower <= truth.upper
        assert truth.lower <= bracket.upper <= 1.01 * truth.upper


def test_an_item_that_no_unit_is_left_for_is_not_bought() -> None:
    items = {"rough": (fa.ApproximateDP(2.0, 1e-9), 1), "fine": (fa.PureDP(0.5), 1)}
    without = fa.Tariff(items, 5, delta_units=0, delta_unit=1e-9).certify()
    alone = fa.Tariff({"fine": (fa.PureDP(0.5), 1)}, 5).certify()
    assert without.epsilons == alone.epsilons
    assert without.epsilon_at(0) == 2.5


def scarce(source: random.Random) -> fa.Tariff:
    """Two items that need units, of which there are few, and one that does not."""
    items: dict[str, tuple[fa.Guarantee, int]] = {
        f"rough{i}": (
            fa.ApproximateDP(source.randint(4, 16) / 8, source.randint(1, 5) * 2.0**-20),
            source.randint(1, 3),
        )
        for i in range(2)
    }
    items["fine"] = fa.PureDP(source.randint(1, 3) / 8), 1
    return fa.Tariff(items, 8, delta_units=source.randint(0, 9), delta_unit=2.0**-20)


@pytest.mark.parametrize("cheap", [2e9, 8e6, 1.0])
def test_both_sides_hold_against_every_way_to_spend(
    cheap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units one by one, and in coarser steps when there is little time for them."""
    monkeypatch.setattr(budget, "CHEAP_WORK", cheap)
    source = random.Random(7)
    widths = []
    for _ in range(25):
        tariff = scarce(source)
        epsilons = (0.0, 0.3, 1.1, 2.2, 3.7, 5.0)
        for epsilon, bracket in tariff.certify(epsilons=epsilons, tolerance=0.05).deltas:
            reached = float(best_delta(tariff, epsilon))
            assert bracket.lower * (1 - 1e-12) <= reached <= bracket.upper * (1 + 1e-12)
            widths += [bracket.width] if bracket.upper > 1e-3 else []
    narrow = sum(width < 0.05 for width in widths) / len(widths)
    assert (narrow > 0.9) == (cheap == 2e9)


def test_profiles_grow_with_farthings_where_units_bind() -> None:
    profiles = list(tariff_profiles(ONE_OF_THEM, 0.05, 1e-6))
    assert [profile.farthings for profile in profiles] == list(range(51))
    for x in (0.0, 1.0, 2.5):
        uppers = [profile.upper.at(x) for profile in profiles]
        lowers = [profile.lower.at(x) for profile in profiles]
        assert uppers == sorted(uppers)
        assert lowers == sorted(lowers)
        assert all(low <= high for low, high in zip(lowers, uppers, strict=True))
