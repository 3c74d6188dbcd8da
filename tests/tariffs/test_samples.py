"""Tariffs that sell samples: each direction of neighbours is certified whole, the larger counts."""

from __future__ import annotations

import math
from collections import deque
from functools import cache

import pytest

import farthing as fa
from farthing import checker
from farthing.composition.accounts.account_profiles import AccountProfile, epsilon_of, list_profile
from farthing.composition.items import items_from

STEP = fa.Subsampled(fa.Gaussian(1.0), 0.01)
SMALL = {
    "sample": (fa.Subsampled(fa.PureDP(1.0), 0.3), 1),
    "rough": (fa.Subsampled(fa.PureDP(2.5), 0.6), 2),
    "pure": (fa.PureDP(0.4), 1),
}


def outcomes(guarantee: fa.Guarantee, *, with_unit: bool) -> list[tuple[float, float]]:
    """(probability, loss) of the worst mechanism under the dataset that is asked about."""
    rate = 1.0
    if isinstance(guarantee, fa.Subsampled):
        guarantee, rate = guarantee.guarantee, guarantee.rate
    assert isinstance(guarantee, fa.PureDP)
    truth = 1 / (1 + math.exp(-guarantee.epsilon))
    pairs = []
    for p, q in ((truth, 1 - truth), (1 - truth, truth)):
        present, absent = (1 - rate) * q + rate * p, q
        here, there = (present, absent) if with_unit else (absent, present)
        pairs.append((here, math.log(here / there)))
    return pairs


def best(tariff: fa.Tariff, epsilon: float, *, with_unit: bool) -> float:
    """Every way to spend, one after the other, all items facing one way."""
    moves = [(outcomes(g, with_unit=with_unit), price) for g, price in tariff.items.values()]

    @cache
    def value(farthings: int, x: float) -> float:
        found = max(0.0, -math.expm1(x))
        for pairs, price in moves:
            if price <= farthings:
                tried = math.fsum(p * value(farthings - price, x - loss) for p, loss in pairs)
                found = max(found, tried)
        return found

    return value(tariff.farthings, epsilon)


@pytest.mark.parametrize("names", [("sample",), ("rough",), ("sample", "rough", "pure")])
def test_every_way_to_spend_in_both_directions(names: tuple[str, ...]) -> None:
    tariff = fa.Tariff({name: SMALL[name] for name in names}, farthings=5)
    certificate = tariff.certify(tolerance=0.01, deltas=(1e-3,), epsilons=(0.0, 0.2, 0.9, 1.6))
    checked = checker.prove(certificate.to_json(), checker.Fraction(1, 10**9), lambda *_: None)
    for epsilon, bracket in certificate.deltas:
        each = [best(tariff, epsilon, with_unit=way) for way in (True, False)]
        assert bracket.lower * (1 - 1e-9) <= max(each) <= bracket.upper * (1 + 1e-12)
        proved = [
            checker.Fraction(checked.grid.at(row, checker.Fraction(epsilon)), checked.grid.one)
            for row in checked.end.rows
        ]
        for reached, row in zip(each, proved, strict=True):
            assert reached * (1 - 1e-12) <= row <= bracket.upper * (1 + 1e-9)
    assert checker.check(certificate.to_json()) > 4


def test_each_direction_has_its_recursion() -> None:
    tariff = fa.Tariff({"step": (STEP, 1), "select": (fa.BoundedRange(0.05), 2)}, farthings=12)
    both = tariff.budget.recursion(0.01, 1e-6)
    one, other = (deque(way, maxlen=1)[0] for way in both.directions)
    larger = both.last()
    assert (one.upper.values != other.upper.values).any()
    assert (larger.upper.values >= one.upper.values).all()
    assert (larger.upper.values >= other.upper.values).all()
    pure = fa.Tariff({"a": (fa.PureDP(0.1), 1)}, 3).budget
    assert len(pure.recursion(0.1, 1e-3).directions) == 1


@pytest.mark.parametrize("guarantee", [STEP, fa.Subsampled(fa.Laplace(0.5), 0.4)])
def test_one_sample_equals_plain_composition(guarantee: fa.Guarantee) -> None:
    bracket = dict(fa.Tariff({"step": (guarantee, 3)}, 121).certify(deltas=(1e-6,)).epsilons)[1e-6]
    plain = fa.compose([(guarantee, 40)]).epsilon_at(1e-6)
    assert bracket.lower <= plain.upper
    assert plain.lower <= bracket.upper <= plain.upper * 1.01


def test_the_leak_of_a_sample_is_paid_in_units() -> None:
    sampled = fa.Subsampled(fa.ApproximateDP(0.5, 1e-6), 0.01)
    tariff = fa.Tariff({"rough": (sampled, 1)}, 10, delta_units=100, delta_unit=1e-9)
    assert tariff.price("rough") == fa.Price(1, 10)
    certificate = tariff.certify(deltas=(1e-5,), tolerance=0.05)
    plain = fa.compose([(sampled, 10)]).epsilon_at(1e-5)
    assert plain.lower <= certificate.epsilon_at(1e-5)
    assert checker.check(certificate.to_json()) > 4


def test_prices_of_samples_and_how_many_fit() -> None:
    prices = fa.propose_prices({"step": STEP, "select": fa.BoundedRange(0.05)})
    assert prices["step"] == 1
    assert 1 <= prices["select"] <= 6
    most = fa.largest_farthings({"step": (STEP, 1)}, epsilon=0.8, delta=1e-5)
    assert fa.compose([(STEP, most)]).epsilon_at(1e-5).lower <= 0.8
    assert fa.compose([(STEP, most + most // 20)]).epsilon_at(1e-5).upper > 0.8


def test_everybody_sampled_is_no_sample() -> None:
    whole = fa.Tariff({"a": (fa.Subsampled(fa.Gaussian(5.0), 1.0), 1)}, 9).certify(tolerance=0.05)
    plain = fa.Tariff({"a": (fa.Gaussian(5.0), 1)}, 9).certify(tolerance=0.05)
    assert whole.epsilons == plain.epsilons
    assert checker.check(whole.to_json()) > 4


def test_replace_one_neighbours_are_not_sold() -> None:
    with pytest.raises(fa.Unsupported, match="add/remove"):
        fa.Tariff({"a": (fa.SubsampledWithoutReplacement(fa.Gaussian(1.0), 0.1), 1)}, 3)


def test_a_list_of_samples_has_one_profile_for_both_directions() -> None:
    listed = items_from([(STEP, 200), (fa.PureDP(0.1), 2)])
    account = list_profile(listed, "none", 1e-6)
    assert account.profile is not None
    found = fa.compose([(STEP, 200), (fa.PureDP(0.1), 2)], adaptivity="none")
    for epsilon in (0.0, 0.3, 1.0):
        truth = found.delta_at(epsilon)
        assert truth.lower <= account.profile.at(epsilon)
        assert account.profile.at(epsilon) <= truth.upper * 1.05
    alone = epsilon_of([account], 1e-6)
    beside = epsilon_of([account, AccountProfile(account.profile, 0.0)], 1e-6)
    assert found.epsilon_at(1e-6).lower <= alone <= beside
