"""The tariff recursion against plain composition, and planning with it."""

from __future__ import annotations

import pytest

import farthing as fa
from farthing.composition.tariffs.tariff import tariff_profiles


def test_one_item_equals_plain_composition() -> None:
    tariff = fa.Tariff({"select": (fa.BoundedRange(0.1), 1)}, farthings=40)
    ours = dict(tariff.certify(tolerance=1e-3).epsilons)[1e-6]
    plain = fa.compose([(fa.BoundedRange(0.1), 40)]).epsilon_at(1e-6)
    assert ours.lower <= plain.upper
    assert plain.lower <= ours.upper
    assert ours.upper <= plain.upper * 1.002


def test_price_divides_what_can_be_bought() -> None:
    """Seven farthings buy two items of price three, and the seventh buys nothing."""
    seven = fa.Tariff({"count": (fa.PureDP(0.5), 3)}, farthings=7)
    bracket = dict(seven.certify(deltas=(1e-3,)).epsilons)[1e-3]
    plain = fa.compose([(fa.PureDP(0.5), 2)]).epsilon_at(1e-3)
    assert bracket.lower <= plain.upper
    assert plain.lower <= bracket.upper
    assert bracket.upper <= plain.upper * 1.01


def test_freedom_costs_something_but_little() -> None:
    """The example of the design page: 100 farthings certify at most 2.27 at 1e-6."""
    items = {
        "select": (fa.BoundedRange(0.1), 1),
        "count": (fa.PureDP(0.1), 4),
        "wide": (fa.BoundedRange(0.2), 4),
    }
    bracket = dict(fa.Tariff(items, farthings=100).certify(tolerance=1e-3).epsilons)[1e-6]
    alone = fa.compose([(fa.BoundedRange(0.1), 100)]).epsilon_at(1e-6)
    assert alone.lower <= bracket.upper <= 2.27
    assert bracket.lower > alone.lower


def test_profiles_grow_with_every_farthing() -> None:
    items = {"select": (fa.BoundedRange(0.3), 1), "count": (fa.PureDP(0.2), 2)}
    tariff = fa.Tariff(items, farthings=6)
    uppers = [spent.upper.at(0.4) for spent in tariff_profiles(tariff, 1e-2, 1e-3)]
    lowers = [spent.lower.at(0.4) for spent in tariff_profiles(tariff, 1e-2, 1e-3)]
    assert uppers == sorted(uppers)
    assert lowers == sorted(lowers)
    assert all(low <= high for low, high in zip(lowers, uppers, strict=True))
    assert len(uppers) == 7


def test_moments_of_the_best_single_item_are_never_beaten() -> None:
    """A tariff is at least each of its items bought alone."""
    items = {"select": (fa.BoundedRange(0.2), 1), "noise": (fa.Gaussian(5.0), 5)}
    upper = dict(fa.Tariff(items, farthings=20).certify().epsilons)[1e-6].upper
    for guarantee, price in items.values():
        assert upper >= fa.compose([(guarantee, 20 // price)]).epsilon_at(1e-6).lower


def test_delta_units_add_what_they_are_worth() -> None:
    item = {"rough": (fa.ApproximateDP(0.1, 1e-8), 1)}
    without = fa.Tariff({"rough": (fa.PureDP(0.1), 1)}, farthings=10)
    tariff = fa.Tariff(item, farthings=10, delta_units=100, delta_unit=1e-9)
    assert tariff.price("rough") == fa.Price(farthings=1, delta_units=10)
    assert tariff.price("rough", 3) == fa.Price(farthings=3, delta_units=30)
    delta = tariff.certify(epsilons=(0.5,)).delta_at(0.5)
    plain = without.certify(epsilons=(0.5,)).delta_at(0.5)
    assert plain + 0.99e-7 * (1 - plain) <= delta <= plain + 1.01e-7


def test_largest_farthings_is_the_last_that_fits() -> None:
    items = {"select": (fa.BoundedRange(0.2), 1), "count": (fa.PureDP(0.2), 4)}
    most = fa.largest_farthings(items, epsilon=2.0, delta=1e-6)
    fits = dict(fa.Tariff(items, farthings=most).certify(tolerance=1e-3).epsilons)[1e-6]
    over = dict(fa.Tariff(items, farthings=most + 2).certify(tolerance=1e-3).epsilons)[1e-6]
    assert fits.upper <= 2.0
    assert over.upper > 2.0 * (1 - 5e-3)
    assert fa.largest_farthings(items, epsilon=0.01, delta=1e-6) == 0


LEAKY: dict[str, tuple[fa.Guarantee, int]] = {
    "select": (fa.BoundedRange(0.1), 1),
    "count": (fa.PureDP(0.1), 4),
    "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
}


def test_planning_accepts_what_has_only_a_delta() -> None:
    prices = fa.propose_prices({name: guarantee for name, (guarantee, _) in LEAKY.items()})
    assert prices == {"select": 1, "count": 4, "leak": 1}
    plain = fa.largest_farthings(
        {name: LEAKY[name] for name in ("select", "count")}, epsilon=3, delta=1e-6 - 1e-7
    )
    leaky = fa.largest_farthings(LEAKY, epsilon=3, delta=1e-6, delta_units=100, delta_unit=1e-9)
    assert abs(plain - leaky) <= 1
    certified = fa.Tariff(LEAKY, leaky, 100, 1e-9).certify(tolerance=1e-3)
    assert certified.epsilon_at(1e-6) <= 3
    with pytest.raises(fa.Unattainable, match="unlimited"):
        fa.largest_farthings({"leak": LEAKY["leak"]}, epsilon=3, delta=1e-6)
    assert fa.propose_prices({"leak": LEAKY["leak"][0]}) == {"leak": 1}


def test_prices_follow_rho() -> None:
    guarantees = {
        "select": fa.BoundedRange(0.1),
        "count": fa.PureDP(0.1),
        "noise": fa.Gaussian(20.0),
    }
    assert fa.propose_prices(guarantees) == {"select": 1, "count": 4, "noise": 1}
    assert fa.propose_prices(guarantees, finest=3) == {"select": 3, "count": 12, "noise": 3}
