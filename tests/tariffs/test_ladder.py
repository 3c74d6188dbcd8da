"""A price list from (ε, δ): within it, close to it, and what was left out was not needed."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

import farthing as fa
from farthing.composition.tariffs.budget import Budget, Offer
from farthing.composition.tariffs.certificate import Proof
from farthing.composition.tariffs.prices import LEAKS, _rungs, ladder
from farthing.composition.tariffs.tariff import Tariff
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import ApproximateDP, BoundedRange, Gaussian, PureDP
from farthing.guarantees.losses import loss_of
from farthing.numerics.ball import middle

CLOSE = 0.97


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (3.0, 1e-6),
        pytest.param(0.05, 1e-12, marks=pytest.mark.slow),
        pytest.param(0.05, 1e-3, marks=pytest.mark.slow),
        pytest.param(1.0, 1e-9, marks=pytest.mark.slow),
        pytest.param(20.0, 1e-12, marks=pytest.mark.slow),
        pytest.param(20.0, 1e-3, marks=pytest.mark.slow),
    ],
)
def test_it_is_within_what_was_asked_for_and_close(epsilon: float, delta: float) -> None:
    made = ladder(epsilon=epsilon, delta=delta)
    assert CLOSE * epsilon <= made.epsilon_at(delta) <= epsilon
    assert 850 <= made.tariff.farthings <= 1150
    assert dict(made.epsilons)[delta].lower >= 0.94 * epsilon, "and somebody reaches almost that"
    more = replace(made.tariff, farthings=int(1.1 * made.tariff.farthings))
    finer = Proof.of(more.budget, more.leak, 0.1, delta).epsilon_at(delta)
    assert finer is not None
    assert finer.upper > epsilon, "a tenth more would be too many"


def test_rungs_and_what_they_cost() -> None:
    sold = _rungs(0.02, 1e-6)
    assert sold.items["count"] == (Gaussian(1 / 0.08), 16)
    assert sold.items["select"] == (BoundedRange(0.08), 4)
    assert sold.items["count-0.02"] == (Gaussian(50.0), 1)
    assert sold.items["select-0.32"] == (BoundedRange(0.32), 64)
    assert sold.items["pure-0.08"] == (PureDP(0.08), 16)
    assert sold.price("leak") == fa.Price(1, 1)
    assert sold.leak == pytest.approx(1e-7)
    assert sold.delta_units == LEAKS
    for name, (guarantee, price) in sold.items.items():
        if isinstance(guarantee, ApproximateDP):
            continue
        rho = loss_of(guarantee).zero_concentrated()
        assert rho is not None
        fair = middle(rho[1]) / (0.02**2 / 2)
        assert 0.97 * price < fair <= price * (1 + 1e-12), name


def test_only_what_adds_something_is_in_the_recursion() -> None:
    offers = _rungs(0.02, 1e-6).budget.offers
    assert sum(isinstance(offer.losses[0].guarantee, Gaussian) for offer in offers) == 1
    assert [o.farthings for o in offers if isinstance(o.losses[0].guarantee, PureDP)] == [256]
    assert sum(isinstance(offer.losses[0].guarantee, BoundedRange) for offer in offers) == 7


def test_what_is_left_out_changes_nothing() -> None:
    """The same budget with everything in it, item by item, gives the same supremum."""
    few = Tariff(
        {
            "fine": (Gaussian(5.0), 1),
            "coarse": (Gaussian(2.5), 4),
            "draw": (BoundedRange(0.4), 1),
            "pure": (PureDP(0.2), 1),
        },
        12,
    )
    assert len(few.budget.offers) == 2
    whole = Budget(
        offers=tuple(Offer.of(g, price, 0) for g, price in few.items.values()),
        farthings=12,
        delta_units=0,
        farthing_step=1,
    )
    grid = whole.grid(1e-3, 1e-6)
    every = deque(whole.start(grid, 1e-6), maxlen=1)[0]
    needed = deque(few.budget.start(grid, 1e-6), maxlen=1)[0]
    for x in (0.0, 0.5, 1.0, 2.0):
        assert every.lower.at(x) <= needed.upper.at(x)
        assert needed.upper.at(x) == pytest.approx(every.upper.at(x), rel=2e-3)


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        ((Gaussian(5.0), 1), (Gaussian(2.5), 4), 1),
        ((Gaussian(5.0), 1), (Gaussian(2.5), 3), 2),  # cheaper than four of them
        ((Gaussian(5.0), 2), (Gaussian(4.9), 3), 2),  # one of them fits, and is coarser
        ((BoundedRange(0.4), 1), (PureDP(0.2), 1), 1),
        ((BoundedRange(0.4), 1), (PureDP(0.21), 1), 2),
        ((BoundedRange(0.4), 2), (PureDP(0.2), 1), 2),
        ((BoundedRange(0.4), 1), (BoundedRange(0.8), 4), 2),  # two points are not four draws
        ((PureDP(0.4), 1), (BoundedRange(0.4), 1), 2),
    ],
)
def test_what_replaces_what(one: tuple, other: tuple, kept: int) -> None:
    assert len(Tariff({"one": one, "other": other}, 12).budget.offers) == kept


@pytest.mark.parametrize(
    "wanted",
    [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": 51}, {"delta": 0}, {"delta": 0.5}],
)
def test_what_is_no_budget(wanted: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        ladder(**{"epsilon": 1.0, "delta": 1e-6, **wanted})
