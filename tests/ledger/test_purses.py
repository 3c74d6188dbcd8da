"""What is granted, what comes along, and what is taken away again."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

import farthing as fa
from farthing.ledger import DoesNotFit, Ledger, NotInLedger, markdown, odometer, statement, verify
from tests.ledger.conftest import Clock


@pytest.mark.parametrize(("farthings", "units"), [(500, 100), (50, 10), (4, 0), (1000, 100)])
def test_units_of_delta_come_along_in_proportion(
    ledger: Ledger, farthings: int, units: int
) -> None:
    """500 farthings and 100 units in the tariff; never more units than there are."""
    assert ledger.owner().grant("events", "bob", farthings=farthings).delta_units == units
    assert ledger.owner().grant("events", "eve", farthings=9, delta_units=3).delta_units == 3


def test_what_is_left_of_a_purse_is_taken_away(ledger: Ledger) -> None:
    owner, ann = ledger.owner(), ledger.analyst("events", "ann")
    held = ann.reserve({"select": 40})
    assert owner.revoke("events", "ann") == fa.Price(60, 10)
    assert ann.remaining() == fa.Price(0)
    with pytest.raises(DoesNotFit) as refused:
        ann.reserve({"select": 1})
    assert refused.value.remaining == fa.Price(0)
    with pytest.raises(fa.InvalidInput, match="revoked before"):
        owner.revoke("events", "ann")
    ann.close(held, "d", used={"select": 10})  # what comes back later is not spent either
    assert ann.remaining() == fa.Price(0)
    (account,) = ledger.reader().accounts("events")
    assert account.farthings_spent == 10
    with pytest.raises(NotInLedger):
        owner.revoke("events", "nobody")
    verify(ledger.reader())


def test_a_grant_opens_a_purse_again_with_just_that(ledger: Ledger) -> None:
    owner, ann = ledger.owner(), ledger.analyst("events", "ann")
    ann.reserve({"select": 40})
    owner.revoke("events", "ann")
    owner.grant("events", "ann", farthings=7, delta_units=0)
    assert ann.remaining() == fa.Price(7)
    ann.reserve({"select": 7})
    with pytest.raises(DoesNotFit):
        ann.reserve({"select": 1})
    verify(ledger.reader())


def test_a_purse_that_renews_stops_until_it_is_granted_again(ledger: Ledger, clock: Clock) -> None:
    owner, may = ledger.owner(), ledger.analyst("events", "may")
    owner.grant("events", "may", farthings=5, renewal="monthly")
    may.reserve({"select": 2})
    assert owner.revoke("events", "may").farthings == 3
    clock.time = datetime(2026, 4, 1, tzinfo=UTC)
    with pytest.raises(DoesNotFit):
        may.reserve({"select": 1})
    assert may.remaining() == fa.Price(0)
    owner.grant("events", "may", farthings=0, renewal="monthly")
    assert may.remaining().farthings == 5
    may.reserve({"select": 5})
    verify(ledger.reader())


def test_statements_do_not_forget_what_was_granted(ledger: Ledger) -> None:
    """How much was spent when a purse was revoked depends on the answers; what was granted not."""

    def of_ann() -> float:
        (row,) = statement(ledger.reader(), "events")["per_analyst"]
        return float(row["epsilon"])

    before = of_ann()
    ledger.analyst("events", "ann").reserve({"select": 1})
    read = odometer(ledger.reader(), "events", analysts=["ann"]).epsilon
    ledger.owner().revoke("events", "ann")
    assert of_ann() == before
    assert odometer(ledger.reader(), "events", analysts=["ann"]).epsilon >= read


def test_a_certificate_is_proved_before_it_is_in_force(
    ledger: Ledger, certificate: fa.Certificate
) -> None:
    delta, bracket = certificate.epsilons[0]
    better = dataclasses.replace(bracket, lower=0.0, upper=bracket.upper * 0.9)
    forged = dataclasses.replace(certificate, epsilons=((delta, better), *certificate.epsilons[1:]))
    before = len(list(ledger.reader().entries("events")))
    with pytest.raises(fa.NotCertified):
        ledger.owner().sign("events", forged, name="forged")
    assert len(list(ledger.reader().entries("events"))) == before


def test_what_was_revoked_is_not_said_to_be_spent(ledger: Ledger) -> None:
    """An analyst who spent nothing was shown with all of their purse spent."""
    owner, reader = ledger.owner(), ledger.reader()
    owner.grant("events", "bob", farthings=190, delta_units=0)
    ann = ledger.analyst("events", "ann")
    held = ann.reserve({"select": 30})
    owner.revoke("events", "bob")
    owner.revoke("events", "ann")
    ann.close(held, "digest", used={"select": 10})
    owner.grant("events", "ann", farthings=5, delta_units=0)
    ann.reserve({"select": 2})
    purses = {purse.analyst: purse for purse in reader.purses("events")}
    assert (purses["bob"].farthings_spent, purses["bob"].farthings_revoked) == (0, 190)
    assert (purses["ann"].farthings_spent, purses["ann"].farthings_revoked) == (12, 90)
    assert ledger.analyst("events", "bob").purse().farthings_spent == 0
    (account,) = reader.accounts("events")
    assert sum(purse.farthings_spent for purse in purses.values()) == account.farthings_spent
    assert odometer(reader, "events", analysts=["bob"]).epsilon == 0
    page = markdown(statement(reader, "events"))
    assert "| bob (190 revoked) | 190 | 0 |" in page
    assert "| ann (90 revoked) | 105 | 12 |" in page
    verify(reader)
