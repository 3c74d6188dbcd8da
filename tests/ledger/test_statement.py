"""What the statement must say, and that it says it from what is proved."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import farthing as fa
from farthing.composition.accounts.account_profiles import (
    CAP_SHARE,
    epsilon_of,
    profiles_when_spent,
)
from farthing.ledger import (
    Dataset,
    Ledger,
    NotInLedger,
    RegisteredBatch,
    RegisteredSet,
    Use,
    markdown,
    odometer,
    statement,
    verify,
)
from farthing.ledger.reports.budget import PLANNED
from farthing.wording import percent_up
from tests.ledger.conftest import Clock


@pytest.fixture
def spoken_for(ledger: Ledger, clock: Clock) -> Ledger:
    ledger.owner().grant("events", "bob", farthings=300)
    ledger.analyst("events", "ann").reserve({"select": 40})
    ledger.owner().register(
        "events", "dash_board", RegisteredBatch({"q": [(fa.PureDP(0.1), 2)]}), analyst="ann"
    )
    clock.time = datetime(2026, 4, 2, tzinfo=UTC)
    return ledger


def test_it_holds_what_a_deployment_must_say(spoken_for: Ledger) -> None:
    data = statement(spoken_for.reader(), "events")
    assert json.loads(json.dumps(data)) == data
    assert data["unit_of_privacy"] == "member"
    assert data["neighbouring_relation"] == "add or remove one unit"
    assert data["limits"] == {"contribution_limit": 3, "per_key_limit": None}
    assert data["beside"] == []
    tariff, listed = data["accounts"]
    assert {i["item"]: i["guarantee"] for i in tariff["per_query"]} == {
        "select": "br:0.1",
        "count": "lap:0.1",
        "threshold": "adp:0.05,1e-09",
    }
    guess = data["guess"]["right_at_most"]
    assert 0.5 < guess < 1 / (1 + math.exp(-data["lifetime"][0]["epsilon"]))
    told = f"starting from even odds, is right at most {percent_up(guess)} of the time."
    assert f"whether one member is in the data, {told}" in markdown(data)
    by_analyst = {row["analyst"]: row["lifetime"]["epsilon"] for row in tariff["per_analyst"]}
    together = tariff["colluding"]
    assert together["farthings"] == 400
    assert 0 < by_analyst["ann"] < by_analyst["bob"] < together["epsilon"]
    planned, unplanned = data["lifetime"]
    assert together["epsilon"] < planned["epsilon"] < unplanned["epsilon"]
    assert data["so_far"]["epsilon"] == odometer(spoken_for.reader(), "events").epsilon
    assert data["so_far"]["epsilon"] < planned["epsilon"]
    assert listed["adaptivity"] == "none"
    for part in ("trust_model", "assumptions", "numerical_measures"):
        assert data[part]
    assert tariff["versions"]["farthing"] == fa.__version__
    assert all("tariffs.md" in claim["theorem"] for claim in tariff["claims"])


def test_a_month_is_stated_alone_only_while_the_cap_cannot_have_refused(
    ledger: Ledger, clock: Clock
) -> None:
    """500 there, 100 for ann; 30 a month for may: 13 months fit, the fourteenth does not."""

    def row() -> dict[str, Any]:
        (account,) = statement(ledger.reader(), "events")["accounts"]
        assert account["colluding"]["farthings"] == 500
        assert account["everybody_in_one_month"]["farthings"] == 130
        found = {row["analyst"]: row for row in account["per_analyst"]}["may"]
        assert found["lifetime"]["epsilon"] == account["colluding"]["epsilon"]
        return found

    ledger.owner().grant("events", "may", farthings=30, delta_units=0, renewal="monthly")
    first = row()
    assert first["in_one_month"]["alone"]
    assert first["in_one_month"]["epsilon"] < first["lifetime"]["epsilon"]
    assert "monthly (2026-03)" in markdown(statement(ledger.reader(), "events"))
    clock.time = datetime(2027, 3, 2, tzinfo=UTC)
    assert row()["in_one_month"] == first["in_one_month"]
    clock.time = datetime(2027, 4, 2, tzinfo=UTC)
    late = row()
    assert not late["in_one_month"]["alone"]
    assert late["in_one_month"]["epsilon"] == late["lifetime"]["epsilon"]
    assert "refusals tell of others" in markdown(statement(ledger.reader(), "events"))


def test_the_page_has_every_section_and_no_stray_markup(spoken_for: Ledger) -> None:
    page = markdown(statement(spoken_for.reader(), "events"))
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
    data = statement(spoken_for.reader(), "events", delta=1e-8)  # below the leak of 100 units
    assert data["lifetime"][0]["epsilon"] is None
    assert data["so_far"]["epsilon"] is None
    page = markdown(data)
    assert "not proved" in page
    assert "Not stated" in page


def test_a_dataset_without_accounts(ledger: Ledger) -> None:
    ledger.owner().add(Dataset("empty", unit="u", owner="o"))
    data = statement(ledger.reader(), "empty")
    assert data["accounts"] == []
    assert "nothing is released" in markdown(data)
    with pytest.raises(NotInLedger):
        statement(ledger.reader(), "missing")


def test_every_analyst_is_stated_over_all_accounts(
    ledger: Ledger, certificate: fa.Certificate
) -> None:
    ledger.owner().grant("events", "bob", farthings=100)
    ledger.owner().sign("events", certificate, name="second")
    ledger.owner().grant("events", "ann", farthings=100)
    ledger.owner().register(
        "events", "board", RegisteredBatch({"q": [(fa.Laplace(0.5), 4)]}), analyst="eve"
    )
    data = statement(ledger.reader(), "events")
    rows = {row["analyst"]: row for row in data["per_analyst"]}
    assert {name: row["accounts"] for name, row in rows.items()} == {
        "ann": ["1", "2"],
        "bob": ["1"],
        "eve": ["3"],
    }
    within_one = data["accounts"][0]["per_analyst"][0]["lifetime"]["epsilon"]
    assert rows["bob"]["epsilon"] == within_one < rows["ann"]["epsilon"] < 2 * within_one
    assert rows["ann"]["epsilon"] == epsilon_of(
        [profiles_when_spent(certificate.tariff, frozenset({100}), 1e-6)[100]] * 2,
        1e-6,
        share=CAP_SHARE,
    )
    together = data["colluding"]
    assert together["accounts"] == ["1", "2", "3"]
    assert rows["ann"]["epsilon"] < together["epsilon"] < data["lifetime"][0]["epsilon"]
    assert data["so_far"]["assuming"] == PLANNED
    page = markdown(data)
    for who in ("ann | 1, 2", "bob | 1", "eve | 3", "all analysts colluding, as granted | 1, 2, 3"):
        assert f"| {who} |" in page
    assert "ε of this account in a lifetime" in page
    assert f"It holds if {PLANNED}" in page


def test_where_a_cap_can_refuse_every_analyst_is_stated_with_all(ledger: Ledger) -> None:
    ledger.owner().grant("events", "bob", farthings=401)
    data = statement(ledger.reader(), "events")
    assert [row["epsilon"] for row in data["per_analyst"]] == [data["colluding"]["epsilon"]] * 2


def test_what_was_run_is_listed_in_the_words_of_who_ran_it(ledger: Ledger) -> None:
    assert "Nothing was run yet" in markdown(statement(ledger.reader(), "events"))
    ann = ledger.analyst("events", "ann")
    top = Use("top_k (gumbel)", "3 keys, 1 rows each", (("br:0.1", 10), ("lap:0.1", 10)))
    for _ in range(2):
        ann.close(ann.reserve({"select": 5, "count": 5}, question={"any": 1}), "d", use=top)
    ann.close(ann.reserve({"count": 1}, question={"query": {"kind": "count"}}), "d")
    ann.abandon(ann.reserve({"threshold": 1}), reason="r")
    ann.reserve({"select": 1})
    ledger.owner().register(
        "events", "set", RegisteredSet({"s": (fa.PureDP(0.1), 3)}), analyst="ann"
    )
    ledger.owner().register(
        "events", "board", RegisteredBatch({"q": [fa.PureDP(0.1)]}), analyst="ann"
    )
    ann.reserve_list("set", items={"s": 2})
    ann.close(ann.reserve_list("board"), "d", use=Use("batch of 1", "1 key", (("dp:0.1", 1),)))
    data = statement(ledger.reader(), "events")
    rows = [(r["what"], r["guarantees"], r["times"]) for r in data["used_so_far"]]
    assert rows[0] == ("top_k (gumbel)", "10 x br:0.1, 10 x lap:0.1", 2)
    assert sorted(rows[1:]) == [
        ("batch of 1", "1 x dp:0.1", 1),
        ("not stated", "1 x adp:0.05,1e-09", 1),
        ("not stated", "1 x br:0.1", 1),
        ("not stated", "1 x lap:0.1", 1),
        ("not stated", "2 x dp:0.1", 1),
    ]
    cells = r"| top\_k (gumbel) | 3 keys, 1 rows each | 10 x br:0.1, 10 x lap:0.1 | 2 |"
    assert cells in markdown(data)
    verify(ledger.reader())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Use("", "c", ()),
        lambda: Use("a\x1b[2J", "c", ()),
        lambda: Use("w", "c", (("br:0.1", 0),)),
        lambda: Use("w", "c\n", ()),
    ],
)
def test_a_use_is_plain_words_and_whole_numbers(make: Callable[[], Use]) -> None:
    with pytest.raises(fa.InvalidInput):
        make()


def test_a_bound_is_not_shown_smaller_than_it_is(ledger: Ledger) -> None:
    ledger.analyst("events", "ann").reserve({"select": 40})
    data = statement(ledger.reader(), "events")
    data["so_far"]["epsilon"] = 2.0000001
    assert "ε ≤ 2.000001 at δ = 1e-06" in markdown(data)


def test_a_statement_says_when_it_was_made_and_of_which_book(ledger: Ledger) -> None:
    ledger.owner().declare_version("events", "2026-03")
    reader = ledger.reader()
    data, head = statement(reader, "events"), reader.head("events")
    assert data["made"].startswith("2026-03-15T12:00")
    assert data["heads"] == {"events": {"entries": head.number, "hash": head.hash}}
    page = markdown(data)
    assert "Version of the rows: 2026-03" in page
    assert f"{head.number} entries, head {head.hash}" in page
    assert data["made"] in page


def test_a_number_above_the_signed_one_is_explained(ledger: Ledger) -> None:
    fine = fa.Tariff({"ask": (fa.PureDP(0.2), 1)}, farthings=40)
    ledger.owner().add(Dataset("fine", unit="member", owner="team"))
    ledger.owner().sign("fine", fine.certify(tolerance=1e-3, deltas=(1e-6,), epsilons=()))
    data = statement(ledger.reader(), "fine")
    (account,) = data["accounts"]
    signed = {claim["delta"]: claim["epsilon"] for claim in account["claims"]}
    planned, _ = data["lifetime"]
    assert planned["epsilon"] > signed[1e-6]
    assert "above the ε that an account was signed for" in markdown(data)
