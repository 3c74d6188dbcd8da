"""Accounts and datasets that have come to their end."""

from __future__ import annotations

import pytest

import farthing as fa
from farthing.errors import InvalidInput
from farthing.interactive import ConversationOver, Exceeds
from farthing.ledger import (
    DoesNotFit,
    Ledger,
    NotInLedger,
    RegisteredBatch,
    RegisteredSet,
    odometer,
    statement,
    verify,
)
from tests.ledger.conftest import open_talk

SET = RegisteredSet({"s": (fa.PureDP(0.1), 3)})
BATCH = RegisteredBatch({"q": [fa.PureDP(0.1)]})


def test_nothing_can_be_spent_of_a_retired_tariff(ledger: Ledger) -> None:
    ann = ledger.analyst("events", "ann")
    held = ann.reserve({"select": 10})
    assert ledger.owner().retire("events", "tariff") == ("tariff",)
    with pytest.raises(NotInLedger, match="no tariff is in force"):
        ann.reserve({"select": 1})
    with pytest.raises(NotInLedger, match="no tariff is in force"):
        ledger.owner().grant("events", "ann", farthings=5)
    ann.close(held, "d", used={"select": 4})
    assert ledger.reader().accounts("events")[0].farthings_spent == 4
    assert not ledger.reader().accounts("events")[0].open
    verify(ledger.reader())


def test_another_tariff_may_follow_and_composes(
    ledger: Ledger, certificate: fa.Certificate
) -> None:
    before = statement(ledger.reader(), "events")["lifetime"][0]["epsilon"]
    ledger.owner().retire("events")
    assert statement(ledger.reader(), "events")["lifetime"][0]["epsilon"] == before
    ledger.owner().sign("events", certificate, name="second")
    ledger.owner().grant("events", "ann", farthings=3)
    ledger.analyst("events", "ann").reserve({"select": 3})
    assert statement(ledger.reader(), "events")["lifetime"][0]["epsilon"] > before
    verify(ledger.reader())


@pytest.mark.parametrize("listed", [SET, BATCH], ids=["set", "batch"])
def test_a_list_is_retired_whether_it_was_used_or_not(
    ledger: Ledger, listed: RegisteredSet | RegisteredBatch
) -> None:
    ledger.owner().register("events", "one", listed, analyst="ann")
    untouched = odometer(ledger.reader(), "events").epsilon
    ledger.owner().retire("events", "one")
    assert odometer(ledger.reader(), "events").epsilon == untouched
    with pytest.raises(InvalidInput, match="the list one was retired"):
        ledger.analyst("events", "ann").reserve_list(
            "one", items={"s": 1} if listed is SET else None
        )
    with pytest.raises(InvalidInput, match="retired before"):
        ledger.owner().retire("events", "one")
    verify(ledger.reader())


def test_what_was_used_of_a_list_still_counts_and_what_comes_back_cannot_be_used(
    ledger: Ledger,
) -> None:
    ledger.owner().register("events", "one", SET, analyst="ann")
    ann = ledger.analyst("events", "ann")
    held = ann.reserve_list("one", items={"s": 3})
    used = odometer(ledger.reader(), "events").epsilon
    ledger.owner().retire("events", "one")
    ann.close(held, "d", used={"s": 1})
    assert odometer(ledger.reader(), "events").epsilon == used
    with pytest.raises((InvalidInput, DoesNotFit)):
        ann.reserve_list("one", items={"s": 1})
    assert ledger.reader().lots("events", "one") == []
    verify(ledger.reader())


def test_a_dataset_is_retired_with_all_that_is_open(ledger: Ledger) -> None:
    ledger.owner().register("events", "one", SET, analyst="ann")
    talk = open_talk(ledger)
    assert ledger.owner().retire("events") == ("one", "talking")
    with pytest.raises(ConversationOver):
        talk.ask("q", Exceeds(0, 1000))
    with pytest.raises(InvalidInput, match="retired before"):
        ledger.owner().retire("events")
    verify(ledger.reader())


def test_what_is_not_there_cannot_be_retired(ledger: Ledger) -> None:
    with pytest.raises(NotInLedger, match="no account 'other'"):
        ledger.owner().retire("events", "other")
    with pytest.raises(NotInLedger, match="no dataset"):
        ledger.owner().retire("nothing")
