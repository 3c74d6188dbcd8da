"""Which items a query buys, the charge derived twice, and accuracy bought for least."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import farthing as fa
from farthing.composition.tariffs.tariff import Price
from farthing.engine.errors import ChargeMismatch
from farthing.engine.kinds.counts import CountQuery, HistogramQuery
from farthing.engine.kinds.quantile import QuantileQuery
from farthing.engine.kinds.top_k import TopKQuery
from farthing.engine.kinds.totals import SumQuery
from farthing.engine.purchase import Aim, buy
from farthing.engine.purchase import cheapest as cheapest_for
from farthing.errors import InvalidInput, Unattainable
from farthing.guarantees.kinds import DiscreteGaussian as GaussianItem
from farthing.guarantees.losses import loss_of
from farthing.mechanisms import Histogram
from tests.engine.conftest import TARIFF


def mechanism_of(purchase):
    return purchase.query.mechanism_for(purchase.paid)


def cheapest(query, tariff, half_width, confidence):
    return cheapest_for(query, tariff, Aim.of(half_width, None), confidence)


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
    (SumQuery(column="a", lower=0, upper=9, places=0, repeats=2), {"count": 2}),
    (
        QuantileQuery(column="a", probability=0.5, lower=0, upper=9, places=0, per_key_limit=1),
        {"select": 1},
    ),
]


@pytest.mark.parametrize(("query", "items"), EXPECTED)
def test_items_and_the_charge_derived_again(query, items) -> None:
    purchase = buy(query, TARIFF)
    assert dict(purchase.items) == items
    assert purchase.charge(mechanism_of(purchase).guarantees) == items
    # a query with its items named buys the same
    assert buy(purchase.query, TARIFF) == purchase


@pytest.mark.parametrize(("query", "items"), EXPECTED)
def test_what_was_used_is_never_more_than_what_was_bought(query, items) -> None:
    purchase = buy(query, TARIFF)
    mechanism = mechanism_of(purchase)
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
        release = mechanism.run(one)
        charged = purchase.charge(mechanism.guarantees_for(release))
        assert set(charged) == set(items)
        assert all(charged[name] <= times for name, times in items.items())


def test_prices() -> None:
    assert TARIFF.price_of({"select": 10, "count": 10, "leak": 1}) == Price(51, 10)


def test_a_mechanism_that_costs_more_than_was_bought_is_caught() -> None:
    purchase = buy(TOP, TARIFF)
    dearer = ((fa.BoundedRange(0.11), 1),)
    with pytest.raises(ChargeMismatch, match="was not bought"):
        purchase.charge(dearer)
    assert purchase.charge(((fa.BoundedRange(0.1), 11),))["select"] == 11


def test_items_are_matched_by_what_they_guarantee() -> None:
    assert loss_of(fa.PureDP(0.2)).covers(fa.PureDP(0.1))
    assert not loss_of(fa.PureDP(0.1)).covers(fa.PureDP(0.2))
    assert not loss_of(fa.Laplace(0.1)).covers(fa.PureDP(0.1))
    assert not loss_of(fa.Gaussian(5)).covers(GaussianItem(5))
    assert loss_of(fa.ApproximateDP(0.1, 1e-6)).covers(fa.ApproximateDP(0, 1e-9))
    assert not loss_of(fa.ApproximateDP(0.1, 1e-9)).covers(fa.ApproximateDP(0, 1e-6))
    other = fa.Tariff({"only": (fa.Laplace(0.1), 1)}, farthings=5)
    for query in (
        TOP,
        CountQuery(),
        QuantileQuery(column="a", probability=0.5, lower=0, upper=1, places=0, per_key_limit=1),
    ):
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
        assert purchase.charge(mechanism_of(purchase).guarantees) == dict(purchase.items)
    # a fixed threshold needs the whole histogram: nothing may be cut off in the engine
    noisy = mechanism_of(buy(replace(TOP, mechanism="noise", contribution_limit=2), tariff))
    assert noisy.candidates is None
    assert mechanism_of(buy(TOP, tariff)).candidates == 1000


def test_the_cheapest_way_to_a_width() -> None:
    def price(query) -> int:
        return buy(query, TARIFF).price.farthings

    once = cheapest(CountQuery(), TARIFF, 30, 0.95)
    assert (once.count, once.repeats, price(once)) == ("count", 1, 4)
    some = cheapest(CountQuery(), TARIFF, 12, 0.95)
    assert some.count == "count"
    assert price(some) < 100
    fine = cheapest(CountQuery(), TARIFF, 6, 0.95)
    assert (fine.count, fine.repeats, price(fine)) == ("fine", 1, 100)
    for width in (5, 8, 12, 20):
        query = cheapest(CountQuery(), TARIFF, width, 0.95)
        counts = mechanism_of(buy(query, TARIFF)).expect(0.95).counts
        assert counts is not None
        assert counts.half_width <= width
    with pytest.raises(Unattainable, match="narrowest"):
        cheapest(CountQuery(), TARIFF, 0.01, 0.95)
    quantile = QuantileQuery(
        column="a", probability=0.5, lower=0, upper=1, places=0, per_key_limit=1
    )
    with pytest.raises(Unattainable, match="narrowest"):
        cheapest(quantile, TARIFF, 3, 0.95)
    assert cheapest(quantile, TARIFF, 300, 0.95).select == "select"
    labels = cheapest(replace(TOP, counts=False), TARIFF, 300, 0.95)
    assert labels.select == "select"
    found = cheapest(HistogramQuery(by=("a",), contribution_limit=1), TARIFF, 8, 0.95)
    assert (found.count, found.repeats) == ("fine", 1)


#: Two rungs of each kind, and one with the name of its role.
LADDER = fa.Tariff(
    {
        "count-0.05": (fa.Gaussian(20), 4),
        "count": (fa.Gaussian(10), 16),
        "count-0.2": (fa.Gaussian(5), 64),
        "pure": (fa.PureDP(0.2), 64),
        "select-0.1": (fa.BoundedRange(0.1), 4),
        "select": (fa.BoundedRange(0.2), 16),
        "select-0.4": (fa.BoundedRange(0.4), 64),
        "leak": (fa.ApproximateDP(0, 1e-9), 1),
    },
    1000,
    delta_units=10,
    delta_unit=1e-9,
)
LABELS = replace(TOP, contribution_limit=1)


def test_the_item_with_the_name_of_the_role_is_the_standard() -> None:
    assert dict(buy(LABELS, LADDER).items) == {"select": 10, "count": 1, "leak": 1}
    without = fa.Tariff({n: i for n, i in LADDER.items.items() if n != "count"}, 1000)
    assert dict(buy(CountQuery(), without).items) == {"count-0.05": 1}


@pytest.mark.parametrize(
    ("epsilon", "count", "select"),
    [
        (0.01, "count-0.05", "select-0.1"),
        (0.05, "count-0.05", "select-0.1"),
        (0.1, "count", "select-0.1"),
        (0.11, "count-0.2", "select"),
        (0.2, "count-0.2", "select"),
    ],
)
def test_an_epsilon_is_met_by_the_next_rung(epsilon: float, count: str, select: str) -> None:
    bought = buy(replace(LABELS, epsilon=epsilon), LADDER)
    assert (bought.query.count, bought.query.select, bought.query.leak) == (count, select, "leak")
    named = buy(replace(LABELS, count=count, select=select), LADDER)
    assert bought == named, "the same question, whichever way it was asked"
    assert "epsilon" not in bought.query.to_json()


def test_what_an_epsilon_cannot_do() -> None:
    with pytest.raises(InvalidInput, match=r"epsilon must be at most 0\.2"):
        buy(CountQuery(epsilon=0.3), LADDER)
    with pytest.raises(InvalidInput, match="do not name count"):
        buy(CountQuery(epsilon=0.1, count="count"), LADDER)
    with pytest.raises(InvalidInput, match="epsilon"):
        CountQuery(epsilon=0)
    asked = CountQuery(epsilon=0.1)
    assert CountQuery.from_json(asked.to_json()) == asked


def test_selections_that_tell_labels_apart() -> None:
    """ln(19) = 2.94 over the rate: 30 of 0.1, 15 of 0.2, 8 of 0.4."""
    for gap, item in ((30, "select-0.1"), (20, "select"), (15, "select"), (8, "select-0.4")):
        chosen = cheapest_for(LABELS, LADDER, Aim.of(None, gap), 0.95)
        assert chosen.select == item
        assert buy(chosen, LADDER).query.count == "count"
    with pytest.raises(Unattainable, match="tells_apart = 5; the narrowest is 7"):
        cheapest_for(LABELS, LADDER, Aim.of(None, 5), 0.95)
    with pytest.raises(Unattainable, match="selects nothing"):
        cheapest_for(CountQuery(), LADDER, Aim.of(None, 5), 0.95)
    with pytest.raises(InvalidInput, match="not both"):
        Aim.of(1, 1)


def test_labels_that_far_apart_come_in_the_right_order() -> None:
    """By drawing: the stated gap is the smallest that reaches the confidence."""
    mechanism = mechanism_of(buy(replace(LABELS, k=2, categories=("a", "b", "c")), LADDER))
    selection = mechanism.mechanism.selection
    gap = selection.expect(0.9, domain_size=3).told_apart
    assert gap == pytest.approx(np.log(9) / 0.2)
    counts = np.array([100 + round(gap), 100, 100])
    right = 0
    for _ in range(3000):
        first, *rest = selection.choose(Histogram(np.array(["a", "b", "c"]), counts))[0]
        right += first == 0 or (rest[0] == 0 and first == 2)
    assert right / 3000 == pytest.approx(0.9, abs=0.02)


def test_repeats_are_tried_where_they_are_cheaper() -> None:
    """± 14 needs ρ of 26 farthings: seven of four, or two of 16, or one of 64."""
    chosen = cheapest(CountQuery(), LADDER, 16, 0.95)
    assert (chosen.count, chosen.repeats) == ("count-0.05", 7)
    assert buy(chosen, LADDER).price == Price(28, 0)
    assert cheapest(CountQuery(), LADDER, 20, 0.95).count == "count"
