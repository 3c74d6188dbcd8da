"""What the statement must say, and that it says it from what is proved."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import farthing as fa
from farthing.ledger import (
    Batch,
    Dataset,
    Ledger,
    NotInLedger,
    Setwise,
    markdown,
    odometer,
    statement,
)
from farthing.ledger.blocks import epsilon_of, tariff_parts
from farthing.ledger.odometer import PLANNED
from farthing.ledger.rounding import rounded_up
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
    assert all("tariffs.md" in claim["theorem"] for claim in tariff["claims"])


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
        "## Everything that can ever be released, over all accounts",
        "## Released so far, all analysts together",
        "## Account 1: tariff (tariff, in force)",
        "## Account 2: dash\\_board (batch, in force)",
        "All analysts colluding, 400 farthings of this account",
        "Run by ann, adaptivity none: q: 2 x dp:0.1",
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


def test_every_analyst_is_stated_over_all_accounts(
    ledger: Ledger, certificate: fa.Certificate
) -> None:
    ledger.grant("events", "bob", farthings=100)
    ledger.sign("events", certificate, name="second")
    ledger.grant("events", "ann", farthings=100)
    ledger.register("events", "board", Batch({"q": [(fa.Laplace(0.5), 4)]}), analyst="eve")
    data = statement(ledger, "events")
    rows = {row["analyst"]: row for row in data["per_analyst"]}
    assert {name: row["accounts"] for name, row in rows.items()} == {
        "ann": [1, 2],
        "bob": [1],
        "eve": [3],
    }
    within_one = data["accounts"][0]["per_analyst"][0]["lifetime"]["epsilon"]
    assert rows["bob"]["epsilon"] == within_one < rows["ann"]["epsilon"] < 2 * within_one
    assert rows["ann"]["epsilon"] == epsilon_of(
        [tariff_parts(certificate.tariff, frozenset({100}), 1e-6)[100]] * 2, 1e-6
    )
    together = data["colluding"]
    assert together["accounts"] == [1, 2, 3]
    assert rows["ann"]["epsilon"] < together["epsilon"] < data["lifetime"][0]["epsilon"]
    assert data["so_far"]["assuming"] == PLANNED
    page = markdown(data)
    for who in ("ann | 1, 2", "bob | 1", "eve | 3", "all analysts colluding, as granted | 1, 2, 3"):
        assert f"| {who} |" in page
    assert "ε of this account in a lifetime" in page
    assert f"It holds if {PLANNED}" in page


def test_where_a_cap_can_refuse_every_analyst_is_stated_with_all(ledger: Ledger) -> None:
    ledger.grant("events", "bob", farthings=401)
    data = statement(ledger, "events")
    assert [row["epsilon"] for row in data["per_analyst"]] == [data["colluding"]["epsilon"]] * 2


def test_what_was_asked_is_listed(ledger: Ledger) -> None:
    assert "Nothing was asked yet" in markdown(statement(ledger, "events"))
    top = {"query": {"kind": "top_k", "mechanism": "gumbel", "k": 10, "contribution_limit": 3}}
    for question, items in (
        ({"query": {"kind": "count"}}, {"count": 1}),
        (top, {"select": 10, "count": 10}),
        (top, {"select": 3, "count": 3}),
        ("anything", {"threshold": 1}),
        ({"query": ["count"]}, {"select": 1}),
        ({"a": top, "b": top}, {"select": 2}),
        ({"query": {"kind": "sum", "lower": 0, "upper": 9}}, {"count": 2}),
    ):
        ledger.reserve("events", "ann", items, question=question)
    ledger.register("events", "set", Setwise({"s": (fa.PureDP(0.1), 3)}), analyst="ann")
    ledger.register("events", "board", Batch({"q": [fa.PureDP(0.1)]}), analyst="ann")
    ledger.reserve("events", "ann", {"s": 2}, account="set")
    ledger.reserve("events", "ann", account="board")
    data = statement(ledger, "events")
    assert data["asked_so_far"][0]["contribution"] == "3 keys, 1 rows each"
    rows = [(r["query"], r["guarantees"], r["times"]) for r in data["asked_so_far"]]
    assert rows[0] == ("top_k (gumbel)", "count lap:0.1; select br:0.1", 2)
    assert sorted(rows[1:]) == [
        ("batch of 2", "select br:0.1", 1),
        ("count", "count lap:0.1", 1),
        ("not stated", "list board", 1),
        ("not stated", "s dp:0.1", 1),
        ("not stated", "select br:0.1", 1),
        ("not stated", "threshold adp:0.05,1e-09", 1),
        ("sum", "count lap:0.1", 1),
    ]
    assert "a sum from 0 to 9" in markdown(data)
    cells = r"| top\_k (gumbel) | 3 keys, 1 rows each | count lap:0.1; select br:0.1 | 2 |"
    assert cells in markdown(data)


@given(st.floats(min_value=0, max_value=1e6))
def test_bounds_are_shown_rounded_up(bound: float) -> None:
    shown = Decimal(rounded_up(bound))
    assert Decimal(bound) <= shown <= Decimal(bound) * (1 + Decimal("1.0001e-5"))
    assert float(shown) == 0 or len(shown.normalize().as_tuple().digits) <= 6


def test_a_bound_is_not_shown_smaller_than_it_is(ledger: Ledger) -> None:
    assert rounded_up(1.2345671) == "1.23457"
    assert rounded_up(1.2345601) == "1.23457"
    assert rounded_up(None) == "not proved"
    ledger.reserve("events", "ann", {"select": 40})
    data = statement(ledger, "events")
    data["so_far"]["epsilon"] = 2.0000001
    assert "ε ≤ 2.00001 at δ = 1e-06" in markdown(data)
