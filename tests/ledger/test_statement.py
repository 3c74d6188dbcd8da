"""What the statement must say, and that it says it from what is proved."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import farthing as fa
from farthing.ledger import Batch, Dataset, Ledger, NotInLedger, markdown, odometer, statement
from tests.ledger.conftest import Clock


@pytest.fixture
def spoken_for(ledger: Ledger, clock: Clock) -> Ledger:
    ledger.grant("events", "bob", farthings=300)
    ledger.reserve("events", "ann", {"select": 40})
    ledger.register("events", "dash_board", Batch({"q": [(fa.PureDP(0.1), 2)]}), analyst="ann")
    clock.time = datetime(2026, 4, 2, tzinfo=UTC)
    return ledger


def test_it_holds_what_a_deployment_must_say(spoken_for: Ledger) -> None:
    data = statement(spoken_for, "events")
    assert json.loads(json.dumps(data)) == data
    assert data["unit_of_privacy"] == "member"
    assert data["neighbouring_relation"] == "add or remove one unit"
    assert data["contribution_limits"] == {"keys": 3}
    tariff, listed = data["accounts"]
    assert {i["item"]: i["guarantee"] for i in tariff["per_query"]} == {
        "select": "br:0.1",
        "count": "lap:0.1",
        "threshold": "adp:0.05,1e-09",
    }
    by_analyst = {row["analyst"]: row["lifetime"]["epsilon"] for row in tariff["per_analyst"]}
    together = tariff["colluding"]
    assert together["farthings"] == 400
    assert 0 < by_analyst["ann"] < by_analyst["bob"] < together["epsilon"]
    planned, unplanned = data["lifetime"]
    assert together["epsilon"] < planned["epsilon"] < unplanned["epsilon"]
    assert data["so_far"]["epsilon"] == odometer(spoken_for, "events").epsilon
    assert data["so_far"]["epsilon"] < planned["epsilon"]
    assert listed["adaptivity"] == "none"
    for part in ("trust_model", "assumptions", "numerical_measures"):
        assert data[part]
    assert tariff["versions"]["farthing"] == fa.__version__
    assert "tariffs.md" in tariff["composition_theorem"]


def test_monthly_purses_state_month_and_lifetime(ledger: Ledger) -> None:
    ledger.grant("events", "may", farthings=30, renewal="monthly")
    (account,) = statement(ledger, "events")["accounts"]
    row = {row["analyst"]: row for row in account["per_analyst"]}["may"]
    assert row["in_one_month"]["epsilon"] < row["lifetime"]["epsilon"]
    assert row["lifetime"]["epsilon"] == account["colluding"]["epsilon"]
    assert account["colluding"]["farthings"] == 500
    assert "monthly (2026-03)" in markdown(statement(ledger, "events"))


def test_the_page_has_every_section_and_no_stray_markup(spoken_for: Ledger) -> None:
    page = markdown(statement(spoken_for, "events"))
    for words in (
        "# Privacy statement for events",
        "## Everything that can ever be released",
        "## Released so far, all analysts together",
        "## Account 1: tariff (tariff, in force)",
        "## Account 2: dash\\_board (batch, in force)",
        "All analysts colluding, 400 farthings",
        "| select | br:0.1 | 1 | 0 |",
        "## Trust",
        "## Assumptions",
        "## Numerical measures",
    ):
        assert words in page
    for line in page.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_where_nothing_is_proved_it_says_so(spoken_for: Ledger) -> None:
    data = statement(spoken_for, "events", delta=1e-8)  # below the leak of 100 units
    assert data["lifetime"][0]["epsilon"] is None
    assert data["so_far"]["epsilon"] is None
    page = markdown(data)
    assert "not proved" in page
    assert "Not stated" in page


def test_a_dataset_without_accounts(ledger: Ledger) -> None:
    ledger.add(Dataset("empty", unit="u", owner="o"))
    data = statement(ledger, "empty")
    assert data["accounts"] == []
    assert "nothing is released" in markdown(data)
    with pytest.raises(NotInLedger):
        statement(ledger, "missing")
