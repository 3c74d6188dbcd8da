"""Requests that were planned with a tariff, and tariffs that change under them."""

from __future__ import annotations

import pickle

import pytest

import farthing as fa
from farthing.ledger import Ledger, TariffChanged, verify


@pytest.fixture(scope="module")
def another() -> fa.Certificate:
    """A tariff that has one item in common with the first, at another price."""
    tariff = fa.Tariff({"sum": (fa.Laplace(0.1), 4), "count": (fa.Laplace(0.5), 1)}, farthings=90)
    return tariff.certify(tolerance=0.3, deltas=(1e-6,), epsilons=(1.0,))


def sign_elsewhere(target: str, certificate: fa.Certificate) -> None:
    with Ledger.open(target) as other:
        other.owner().sign("events", certificate, name="second")
        other.owner().grant("events", "ann", farthings=50)


def test_number_and_tariff_are_learned_together(ledger: Ledger, another: fa.Certificate) -> None:
    first = ledger.analyst("events", "ann").terms()
    assert first.account == 1
    assert set(first.tariff.items) == {"select", "count", "threshold"}
    ledger.owner().sign("events", another, name="second")
    second = ledger.analyst("events", "ann").terms()
    assert (second.account, set(second.tariff.items)) == (2, {"sum", "count"})
    assert ledger.reader().tariff("events", 2) is second.tariff


def test_a_plan_for_a_tariff_that_was_retired_is_refused(
    ledger: Ledger, target: str, another: fa.Certificate
) -> None:
    """Both tariffs sell a count, but not the same one: it must not be bought unseen."""
    planned = ledger.analyst("events", "ann").terms()
    ledger.analyst("events", "ann").reserve({"count": 1}, under=planned.account)
    sign_elsewhere(target, another)
    before = ledger.reader().purses("events")
    for _ in range(2):  # with the old tariff in memory, and without
        with pytest.raises(TariffChanged, match="plan again") as refused:
            ledger.analyst("events", "ann").reserve({"count": 1}, under=planned.account)
        assert (refused.value.planned, refused.value.in_force) == (1, 2)
    assert ledger.reader().purses("events") == before
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (copy.planned, copy.in_force) == (1, 2)
    again = ledger.analyst("events", "ann").terms()
    assert ledger.analyst("events", "ann").reserve({"count": 1}, under=again.account).account == 2
    assert ledger.analyst("events", "ann").reserve({"count": 1}).account == 2
    verify(ledger.reader())


def test_a_plan_made_elsewhere_with_a_newer_tariff_is_good(
    ledger: Ledger, target: str, another: fa.Certificate
) -> None:
    ledger.analyst("events", "ann").reserve({"count": 1})  # the first tariff is remembered
    sign_elsewhere(target, another)
    assert ledger.analyst("events", "ann").reserve({"count": 1}, under=2).account == 2


def test_items_of_a_tariff_signed_elsewhere_are_found(
    ledger: Ledger, target: str, another: fa.Certificate
) -> None:
    ledger.analyst("events", "ann").reserve({"select": 1})
    sign_elsewhere(target, another)
    assert ledger.analyst("events", "ann").reserve({"sum": 1}).account == 2
    with pytest.raises(fa.InvalidInput):
        ledger.analyst("events", "ann").reserve({"select": 1})
