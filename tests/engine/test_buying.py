"""Which items a query buys, the charge derived twice, and accuracy bought for least."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import farthing as fa
from farthing.composition.tariff import Price
from farthing.engine.averages import laplace_sum_tail, mean_accuracy
from farthing.engine.buying import buy, charge_of, covers
from farthing.engine.errors import ChargeMismatch
from farthing.engine.plans import cheapest
from farthing.engine.procedures import procedure_for
from farthing.engine.queries import (
    CountQuery,
    HistogramQuery,
    QuantileQuery,
    SumQuery,
    TopKQuery,
)
from farthing.errors import InvalidInput, Unattainable
from farthing.guarantees.kinds import DiscreteGaussian as GaussianItem
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace, Histogram
from farthing.mechanisms.randomness import open_source
from tests.engine.conftest import TARIFF

TOP = TopKQuery(by=("a",), k=10)
EXPECTED = [
    (TOP, {"select": 10, "count": 10, "leak": 1}),
    (replace(TOP, counts=False), {"select": 10, "leak": 1}),
    (replace(TOP, contribution_limit=3), {"select": 10, "count": 3, "leak": 1}),
    (replace(TOP, contribution_limit=3, repeats=5), {"select": 10, "count": 15, "leak": 1}),
    (replace(TOP, k=2, categories=("x", "y", "z")), {"select": 2, "count": 2}),
    (replace(TOP, mechanism="noise", contribution_limit=3), {"count": 3, "leak": 1}),
    (
        replace(TOP, k=1, mechanism="noise", contribution_limit=9, categories=("x", "y")),
        {"count": 2},
    ),
    (replace(TOP, count="fine"), {"select": 10, "fine": 10, "leak": 1}),
    (HistogramQuery(by=("a",), contribution_limit=4), {"count": 4, "leak": 1}),
    (
        HistogramQuery(by=("a",), contribution_limit=4, categories=("x", "y"), repeats=3),
        {"count": 6},
    ),
    (CountQuery(repeats=2), {"count": 2}),
    (SumQuery(column="a", lower=0, upper=9, repeats=2), {"count": 2}),
    (QuantileQuery(column="a", probability=0.5, lower=0, upper=9), {"select": 1}),
]


@pytest.mark.parametrize(("query", "items"), EXPECTED)
def test_items_and_the_charge_derived_again(query, items) -> None:
    purchase = buy(query, TARIFF)
    assert dict(purchase.items) == items
    assert charge_of(procedure_for(purchase).guarantees, purchase) == items
    # a query with its items named buys the same
    assert buy(purchase.query, TARIFF) == purchase


@pytest.mark.parametrize(("query", "items"), EXPECTED)
def test_what_was_used_is_never_more_than_what_was_bought(query, items) -> None:
    procedure = procedure_for(buy(query, TARIFF))
    histograms = [
        Histogram(np.array(["sx", "sy", "sz"], dtype=object), np.array([500, 4, 0])),
        Histogram.without_rows(),
    ]
    if query.kind == "sum":
        data = [0, -5, 10**30]
    elif query.kind == "quantile":
        data = [Histogram(np.array([1, 5]), np.array([3, 4])), Histogram.without_rows()]
    elif getattr(query, "categories", None) is not None:
        data = [Histogram(np.array(["sx", "sy", "sz"], dtype=object), np.array([9, 4, 0]))]
    else:
        data = histograms
    for one in data:
        _, used = procedure.run(one)
        charged = charge_of(used, buy(query, TARIFF))
        assert set(charged) == set(items)
        assert all(charged[name] <= times for name, times in items.items())


def test_prices() -> None:
    assert TARIFF.price_of({"select": 10, "count": 10, "leak": 1}) == Price(51, 10)


def test_a_mechanism_that_costs_more_than_was_bought_is_caught() -> None:
    purchase = buy(TOP, TARIFF)
    dearer = ((fa.BoundedRange(0.11), 1),)
    with pytest.raises(ChargeMismatch, match="was not bought"):
        charge_of(dearer, purchase)
    assert charge_of(((fa.BoundedRange(0.1), 11),), purchase)["select"] == 11


def test_items_are_matched_by_what_they_guarantee() -> None:
    assert covers(fa.PureDP(0.2), fa.PureDP(0.1))
    assert not covers(fa.PureDP(0.1), fa.PureDP(0.2))
    assert not covers(fa.Laplace(0.1), fa.PureDP(0.1))
    assert not covers(fa.Gaussian(5), GaussianItem(5))
    assert covers(fa.ApproximateDP(0.1, 1e-6), fa.ApproximateDP(0, 1e-9))
    assert not covers(fa.ApproximateDP(0.1, 1e-9), fa.ApproximateDP(0, 1e-6))
    other = fa.Tariff({"only": (fa.Laplace(0.1), 1)}, farthings=5)
    for query in (TOP, CountQuery(), QuantileQuery(column="a", probability=0.5, lower=0, upper=1)):
        with pytest.raises(InvalidInput, match="the tariff sells none"):
            buy(query, other)
    with pytest.raises(InvalidInput, match="count needs"):
        buy(CountQuery(count="select"), TARIFF)
    with pytest.raises(InvalidInput, match="one of select"):
        buy(CountQuery(count="coupon"), TARIFF)


def test_gaussian_items_buy_gaussian_counts_for_their_own_limit() -> None:
    tariff = fa.Tariff(
        {
            "wide": (GaussianItem(10, 1), 1),
            "rows": (GaussianItem(10, 5), 1),
            "select": (fa.BoundedRange(0.1), 1),
            "leak": (fa.ApproximateDP(0, 1e-9), 1),
        },
        farthings=50,
        delta_units=10,
        delta_unit=1e-9,
    )
    assert dict(buy(CountQuery(), tariff).items) == {"wide": 1}
    assert dict(buy(CountQuery(per_key_limit=5), tariff).items) == {"rows": 1}
    for query in (
        TOP,
        replace(TOP, mechanism="noise", contribution_limit=2),
        HistogramQuery(by=("a",), contribution_limit=2),
        HistogramQuery(by=("a",), contribution_limit=2, categories=("x", "y", "z"), repeats=2),
    ):
        purchase = buy(query, tariff)
        procedure = procedure_for(purchase)
        assert charge_of(procedure.guarantees, purchase) == dict(purchase.items)
    # a fixed threshold needs the whole histogram: nothing may be cut off in the engine
    noisy = procedure_for(buy(replace(TOP, mechanism="noise", contribution_limit=2), tariff))
    assert noisy.candidates is None
    assert procedure_for(buy(TOP, tariff)).candidates == 1000


def test_the_cheapest_way_to_a_width() -> None:
    def price(query) -> int:
        return TARIFF.price_of(buy(query, TARIFF).items).farthings

    once = cheapest(CountQuery(), TARIFF, half_width=30, confidence=0.95)
    assert (once.count, once.repeats, price(once)) == ("count", 1, 4)
    some = cheapest(CountQuery(), TARIFF, half_width=12, confidence=0.95)
    assert some.count == "count"
    assert price(some) < 100
    fine = cheapest(CountQuery(), TARIFF, half_width=6, confidence=0.95)
    assert (fine.count, fine.repeats, price(fine)) == ("fine", 1, 100)
    for width in (5, 8, 12, 20):
        query = cheapest(CountQuery(), TARIFF, half_width=width, confidence=0.95)
        counts = procedure_for(buy(query, TARIFF)).expect(0.95).counts
        assert counts is not None
        assert counts.half_width <= width
    with pytest.raises(Unattainable, match="narrowest"):
        cheapest(CountQuery(), TARIFF, half_width=0.01, confidence=0.95)
    quantile = QuantileQuery(column="a", probability=0.5, lower=0, upper=1)
    with pytest.raises(Unattainable, match="narrowest"):
        cheapest(quantile, TARIFF, half_width=3, confidence=0.95)
    assert cheapest(quantile, TARIFF, half_width=300, confidence=0.95).select == "select"
    labels = cheapest(replace(TOP, counts=False), TARIFF, half_width=300, confidence=0.95)
    assert labels.select == "select"
    found = cheapest(HistogramQuery(by=("a",)), TARIFF, half_width=8, confidence=0.95)
    assert (found.count, found.repeats) == ("fine", 1)


class TestAverages:
    """The stated half-widths hold at the stated rate, and not much more than that."""

    def test_the_tail_is_that_of_a_sum_of_laplace_numbers(self) -> None:
        draw = np.random.default_rng(7)
        for repeats in (1, 2, 5, 16):
            sums = np.abs(draw.laplace(size=(200_000, repeats)).sum(axis=1))
            for at in (0.5, 2.0, 6.0):
                seen = float((sums > at * np.sqrt(repeats)).mean())
                stated = laplace_sum_tail(repeats, at * np.sqrt(repeats))
                assert abs(seen - stated) < 0.005
            assert laplace_sum_tail(repeats, 1e-9) == pytest.approx(1, abs=1e-6)
        assert laplace_sum_tail(1, 3.0) == pytest.approx(np.exp(-3.0))

    @pytest.mark.parametrize("repeats", [1, 3, 10])
    def test_coverage(self, repeats) -> None:
        trials, level, slack = 40_000, 0.9, 0.006
        for noise in (DiscreteLaplace(10), DiscreteGaussian(900)):
            accuracy = mean_accuracy(noise, repeats, level)
            drawn = noise.draw(trials * repeats, open_source()).reshape(trials, repeats)
            means = np.abs(drawn.mean(axis=1))
            assert float((means <= accuracy.half_width).mean()) >= level - slack
            assert accuracy.expected_error == pytest.approx(means.mean(), rel=0.05)
            exact = isinstance(noise, DiscreteLaplace) or repeats == 1
            narrower = 0.7 if exact else 0.5  # the subgaussian bound has room to spare
            assert float((means <= narrower * accuracy.half_width).mean()) < level - slack
