"""The tariff recursion against every strategy, and against plain composition."""

from __future__ import annotations

import random

import pytest

import farthing as fa
from farthing.composition.tariff import spendings
from tests.tariffs.strategies import best_delta


def random_tariff(source: random.Random) -> fa.Tariff:
    items = {}
    for i in range(source.randint(1, 2)):
        kind = source.choice([fa.PureDP, fa.BoundedRange])
        items[f"item{i}"] = kind(source.uniform(0.2, 1.5)), source.randint(1, 2)
    return fa.Tariff(items, farthings=source.randint(1, 3))


@pytest.mark.parametrize("seed", range(12))
def test_random_small_tariffs_against_exhaustive_enumeration(seed: int) -> None:
    source = random.Random(seed)
    tariff = random_tariff(source)
    epsilon = source.uniform(0.05, 1.0)
    reached = best_delta(tariff, epsilon, choices=12)
    certificate = tariff.certify(tolerance=1e-3, epsilons=(epsilon,), deltas=(1e-2,))
    bracket = dict(certificate.deltas)[epsilon]
    assert reached <= bracket.upper
    assert bracket.lower >= reached * (1 - 5e-3) - 1e-9
    assert bracket.upper - bracket.lower <= 0.02 * bracket.upper + 1e-6


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
    uppers = [spent.upper.at(0.4) for spent in spendings(tariff, 1e-2, 1e-3)]
    lowers = [spent.lower.at(0.4) for spent in spendings(tariff, 1e-2, 1e-3)]
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


def test_prices_follow_rho() -> None:
    guarantees = {
        "select": fa.BoundedRange(0.1),
        "count": fa.PureDP(0.1),
        "noise": fa.Gaussian(20.0),
    }
    assert fa.propose_prices(guarantees) == {"select": 1, "count": 4, "noise": 1}
    assert fa.propose_prices(guarantees, finest=3) == {"select": 3, "count": 12, "noise": 3}
