"""Requests that were planned with a tariff, and tariffs that change under them."""

from __future__ import annotations

import pickle

import pytest

import farthing as fa
from farthing.ledger import Batch, Ledger, TariffChanged, verify


@pytest.fixture(scope="module")
def another() -> fa.Certificate:
    """A tariff that has one item in common with the first, at another price."""
    tariff = fa.Tariff({"sum": (fa.Laplace(0.1), 4), "count": (fa.Laplace(0.5), 1)}, farthings=90)
    return tariff.certify(tolerance=0.3, deltas=(1e-6,), epsilons=(1.0,))


def sign_elsewhere(target: str, certificate: fa.Certificate) -> None:
    with Ledger.open(target) as other:
        other.sign("events", certificate, name="second")
        other.grant("events", "ann", farthings=50)


def test_number_and_tariff_are_learned_together(ledger: Ledger, another: fa.Certificate) -> None:
    first = ledger.in_force("events")
    assert first.account == 1
    assert set(first.tariff.items) == {"select", "count", "threshold"}
    ledger.sign("events", another, name="second")
    second = ledger.in_force("events")
    assert (second.account, set(second.tariff.items)) == (2, {"sum", "count"})
    assert ledger.tariff("events") is second.tariff


def test_a_plan_for_a_tariff_that_was_retired_is_refused(
    ledger: Ledger, target: str, another: fa.Certificate
) -> None:
    """Both tariffs sell a count, but not the same one: it must not be bought unseen."""
    planned = ledger.in_force("events")
    ledger.reserve("events", "ann", {"count": 1}, under=planned.account)
    sign_elsewhere(target, another)
    before = ledger.purses("events")
    for _ in range(2):  # with the old tariff in memory, and without
        with pytest.raises(TariffChanged, match="plan again") as refused:
            ledger.reserve("events", "ann", {"count": 1}, under=planned.account)
        assert (refused.value.planned, refused.value.in_force) == (1, 2)
    assert ledger.purses("events") == before
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (copy.planned, copy.in_force) == (1, 2)
    again = ledger.in_force("events")
    assert ledger.reserve("events", "ann", {"count": 1}, under=again.account).account == 2
    assert ledger.reserve("events", "ann", {"count": 1}).account == 2
    verify(ledger)


def test_a_plan_made_elsewhere_with_a_newer_tariff_is_good(
    ledger: Ledger, target: str, another: fa.Certificate
) -> None:
    ledger.reserve("events", "ann", {"count": 1})  # the first tariff is remembered
    sign_elsewhere(target, another)
    assert ledger.reserve("events", "ann", {"count": 1}, under=2).account == 2


def test_items_of_a_tariff_signed_elsewhere_are_found(
    ledger: Ledger, target: str, another: fa.Certificate
) -> None:
    ledger.reserve("events", "ann", {"select": 1})
    sign_elsewhere(target, another)
    assert ledger.reserve("events", "ann", {"sum": 1}).account == 2
    with pytest.raises(fa.InvalidInput):
        ledger.reserve("events", "ann", {"select": 1})


def test_a_list_has_no_tariff_to_be_planned_with(ledger: Ledger) -> None:
    ledger.register("events", "list", Batch({"q": [fa.PureDP(0.1)]}), analyst="ann")
    with pytest.raises(fa.InvalidInput, match="leave under out"):
        ledger.reserve("events", "ann", account="list", under=1)
