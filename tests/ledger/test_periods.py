"""Purses that renew by calendar month, and clocks that are set back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

import farthing as fa
from farthing.ledger import DoesNotFit, Ledger, verify
from farthing.ledger.records import month_name, month_number, month_of
from tests.ledger.conftest import Clock


@pytest.fixture
def monthly(ledger: Ledger) -> Ledger:
    ledger.owner().grant("events", "may", farthings=20, delta_units=2, renewal="monthly")
    return ledger


def spend(ledger: Ledger, times: int) -> None:
    ledger.analyst("events", "may").reserve({"select": times})


def test_a_month_grants_once(monthly: Ledger, clock: Clock) -> None:
    spend(monthly, 20)
    with pytest.raises(DoesNotFit):
        spend(monthly, 1)
    clock.time = datetime(2026, 4, 1, tzinfo=UTC)
    assert monthly.analyst("events", "may").remaining() == fa.Price(20, 2)
    spend(monthly, 15)
    spend(monthly, 5)
    with pytest.raises(DoesNotFit):
        spend(monthly, 1)
    assert monthly.analyst("events", "may").purse().month == "2026-04"
    verify(monthly.reader())


def test_a_clock_set_back_grants_nothing(monthly: Ledger, clock: Clock) -> None:
    for time in (datetime(2026, 3, 31, 23, 59, tzinfo=UTC), datetime(2026, 4, 2, tzinfo=UTC)):
        clock.time = time
        spend(monthly, 20)
    for back in (datetime(2026, 3, 1, tzinfo=UTC), datetime(2025, 12, 1, tzinfo=UTC)):
        clock.time = back
        with pytest.raises(DoesNotFit) as refused:
            spend(monthly, 1)
        assert refused.value.remaining == fa.Price(0, 2)
    clock.time = datetime(2026, 4, 30, tzinfo=UTC)  # forward again to a month that was granted
    with pytest.raises(DoesNotFit):
        spend(monthly, 1)
    clock.time = datetime(2026, 5, 1, tzinfo=UTC)
    spend(monthly, 20)
    (account,) = monthly.reader().accounts("events")
    assert account.farthings_spent == 60
    verify(monthly.reader())


def test_a_month_is_that_of_utc(monthly: Ledger, clock: Clock) -> None:
    spend(monthly, 20)
    east = timezone(timedelta(hours=14))
    clock.time = datetime(2026, 4, 1, 13, 59, tzinfo=east)  # still March in UTC
    with pytest.raises(DoesNotFit):
        spend(monthly, 1)
    clock.time = datetime(2026, 4, 1, 14, 1, tzinfo=east)
    spend(monthly, 1)


def test_unused_farthings_do_not_return_into_a_later_month(monthly: Ledger, clock: Clock) -> None:
    held = monthly.analyst("events", "may").reserve({"select": 20})
    clock.time = datetime(2026, 4, 1, tzinfo=UTC)
    spend(monthly, 10)
    monthly.analyst(held.dataset, held.analyst).close(held, "d", used={"select": 0})
    assert monthly.analyst("events", "may").remaining().farthings == 10
    (account,) = monthly.reader().accounts("events")
    assert account.farthings_spent == 10
    verify(monthly.reader())


def test_nothing_carries_over_and_the_cap_is_for_life(monthly: Ledger, clock: Clock) -> None:
    spent = 0
    for month in range(40):
        clock.time = datetime(2027 + month // 12, month % 12 + 1, 3, tzinfo=UTC)
        left = monthly.analyst("events", "may").remaining().farthings
        assert left == min(20, 500 - spent)
        if left:
            spend(monthly, left)
            spent += left
    assert spent == 500
    with pytest.raises(DoesNotFit):
        spend(monthly, 1)
    verify(monthly.reader())


def test_a_purse_keeps_its_renewal(monthly: Ledger) -> None:
    with pytest.raises(fa.InvalidInput, match="renewal"):
        monthly.owner().grant("events", "may", farthings=1)
    with pytest.raises(fa.InvalidInput, match="one of monthly"):
        monthly.owner().grant("events", "jun", farthings=1, renewal="weekly")
    monthly.owner().grant("events", "may", farthings=5, renewal="monthly")
    assert monthly.analyst("events", "may").remaining().farthings == 25
    verify(monthly.reader())


def test_months_as_numbers() -> None:
    assert month_name(month_of(datetime(2026, 12, 31, tzinfo=UTC))) == "2026-12"
    for name in ("2026-01", "2026-12", "0999-07"):
        assert month_name(month_number(name)) == name
    assert month_number("2027-01") == month_number("2026-12") + 1


@pytest.mark.parametrize("clock_at_close", [datetime(2026, 3, 31), datetime(2026, 4, 2)])
def test_what_a_late_clock_charged_comes_back_to_the_month_it_was_charged_to(
    monthly: Ledger, clock: Clock, clock_at_close: datetime
) -> None:
    """The purse is in April already, by another clock; this one still says March."""
    clock.time = datetime(2026, 4, 1, tzinfo=UTC)
    spend(monthly, 1)
    clock.time = datetime(2026, 3, 31, 23, 59, tzinfo=UTC)
    held = monthly.analyst("events", "may").reserve({"select": 10})
    assert monthly.reader().entry("events", held.entry).fact.month == "2026-04"
    clock.time = clock_at_close.replace(tzinfo=UTC)
    monthly.analyst(held.dataset, held.analyst).close(held, "d", used={"select": 2})
    assert monthly.analyst("events", "may").purse().farthings_spent == 3
    (account,) = monthly.reader().accounts("events")
    assert account.farthings_spent == 3
    verify(monthly.reader())


def test_purses_are_shown_as_of_this_month(monthly: Ledger, clock: Clock) -> None:
    spend(monthly, 15)
    clock.time = datetime(2026, 5, 1, tzinfo=UTC)
    shown = {purse.analyst: purse for purse in monthly.reader().purses("events")}["may"]
    assert (shown.month, shown.farthings_spent) == ("2026-05", 0)
    assert shown == monthly.analyst("events", "may").purse()
