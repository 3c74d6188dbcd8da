"""What an analyst gets for a question, and what is kept of it."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from farthing.engine import context as compiling
from farthing.ledger import Ledger
from farthing.server.callers import AnalystCaller
from farthing.server.problems import Refused
from farthing.server.routes import conversations as conversation_routes
from farthing.server.routes.analysts import run_question
from farthing.server.routes.conversations import ConversationBody, ask_conversation
from farthing.server.routes.requests import RunBody
from farthing.server.service import Service
from farthing.server.settings import read_settings
from tests.server.deployment import LASTING, Deployment

EVENTS = "/v1/datasets/events"
SWEDES = {"query": {"kind": "count", "where": "country == 'SE' and age == 31"}}


def test_a_plan_costs_nothing_and_says_what_a_run_will(ann: httpx.Client) -> None:
    before = ann.get(f"{EVENTS}/purse").json()
    plan = ann.post(f"{EVENTS}/plan", json=SWEDES).json()
    assert plan["price"] == {"farthings": 4, "delta_units": 0}
    assert plan["fits"]
    assert (
        plan["caption"] == "The number of distinct `member`, where `country` is SE and `age` is 31"
    )
    assert plan["spending"]["share"] == 4 / LASTING
    assert ann.get(f"{EVENTS}/purse").json() == before


def test_a_run_is_paid_once_and_told_again(ann: httpx.Client) -> None:
    before = ann.get(f"{EVENTS}/purse").json()["left"]["farthings"]
    first = ann.post(f"{EVENTS}/run", json=SWEDES).json()
    again = ann.post(f"{EVENTS}/run", json=SWEDES).json()
    assert first["answer"]["counts"] == again["answer"]["counts"]
    assert first["id"] == again["id"]
    assert again["answer"]["cached"]
    assert first["answer"]["remaining"]["farthings"] == before - 4
    assert again["answer"]["remaining"]["farthings"] == before - 4
    ((low, high),) = first["answer"]["intervals"]
    assert low <= first["answer"]["counts"][0] <= high
    listed = ann.get(f"{EVENTS}/releases").json()["releases"]
    assert first["id"] in [one["id"] for one in listed]
    kept = ann.get(f"{EVENTS}/releases/{first['id']}").json()
    assert kept["release"][""]["counts"] == first["answer"]["counts"]
    assert kept["asked"] == "The number of distinct `member`, where `country` is SE and `age` is 31"


def test_sql_and_batches(ann: httpx.Client) -> None:
    asked = "SELECT COUNT(DISTINCT member) FROM events WHERE country = 'SE'"
    assert len(ann.post(f"{EVENTS}/run", json={"sql": asked}).json()["answer"]["counts"]) == 1
    half = asked.replace("member)", "member) / 2 AS half")
    told = ann.post(f"{EVENTS}/run", json={"sql": half}).json()  # computed from the same release
    (number,) = told["answers"]["COUNT(DISTINCT member)"]["counts"]
    assert told["table"]["columns"] == ["half", "lower", "upper"]
    assert told["table"]["rows"][0][0] == number / 2
    new = {"a": {"age": {"below": 71}}, "b": {"age": {"below": 72}}}  # no other test has them
    batch = {name: {"kind": "count", "where": where} for name, where in new.items()}
    plan = ann.post(f"{EVENTS}/plan", json={"batch": batch}).json()
    assert plan["price"]["farthings"] == 8
    assert set(plan["queries"]) == {"a", "b"}
    told = ann.post(f"{EVENTS}/run", json={"batch": batch}).json()
    assert set(told["answers"]) == {"a", "b"}
    assert ann.get(f"{EVENTS}/releases/{told['id']}").json()["batch"].keys() == {"a", "b"}


def test_pages_of_releases(ann: httpx.Client) -> None:
    for age in range(3):
        query = {"kind": "count", "where": {"age": {"below": 10 + age}}}
        assert ann.post(f"{EVENTS}/run", json={"query": query}).status_code == 200
    whole = [one["id"] for one in ann.get(f"{EVENTS}/releases").json()["releases"]]
    first = ann.get(f"{EVENTS}/releases", params={"limit": 2}).json()
    assert [one["id"] for one in first["releases"]] == whole[:2]
    assert first["more"]
    rest = ann.get(f"{EVENTS}/releases", params={"before": whole[1]}).json()
    assert [one["id"] for one in rest["releases"]] == whole[2:]


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({}, 422, "invalid"),
        ({"query": {"kind": "count"}, "sql": "SELECT 1"}, 422, "invalid"),
        ({"query": {"kind": "count", "where": {"nothing": 1}}}, 422, "invalid"),
        ({"query": {"kind": "count", "count": "nothing"}}, 422, "invalid"),
        ({"query": {"kind": "magic"}}, 422, "invalid"),
        ({"query": {"kind": "count"}, "extra": 1}, 422, "invalid"),
        ({"sql": "DROP TABLE events"}, 422, "invalid"),
        ({"batch": {f"q{n}": {"kind": "count"} for n in range(501)}}, 422, "invalid"),
        ({"query": {"kind": "top_k", "by": "name", "k": 5000}}, 402, "does_not_fit"),
    ],
)
def test_refusals_have_one_shape(
    ann: httpx.Client, body: dict[str, object], status: int, kind: str
) -> None:
    before = ann.get(f"{EVENTS}/purse").json()
    refused = ann.post(f"{EVENTS}/run", json=body)
    assert refused.status_code == status
    assert set(refused.json()) == {"error"}
    assert set(refused.json()["error"]) == {"kind", "message", "field"}
    assert refused.json()["error"]["kind"] == kind
    assert ann.get(f"{EVENTS}/purse").json() == before


def test_conversations(ann: httpx.Client) -> None:
    talks = f"{EVENTS}/conversations"
    before = ann.get(f"{EVENTS}/purse").json()["left"]["farthings"]
    plan = ann.post(talks, params={"plan": 1}, json={"kind": "threshold"}).json()
    assert plan["price"]["farthings"] == 4
    assert ann.get(f"{EVENTS}/purse").json()["left"]["farthings"] == before
    opened = ann.post(talks, json={"kind": "threshold"}).json()
    assert ann.get(f"{EVENTS}/purse").json()["left"]["farthings"] == before - 4
    asked = [{"query": {"kind": "count"}, "threshold": n} for n in (10**9, -(10**9), 5)]
    told = ann.post(f"{talks}/{opened['id']}/ask", json={"questions": asked}).json()
    assert [one["positive"] for one in told["answers"]] == [False, True]  # and then it halts
    assert not told["open"]
    over = ann.post(f"{talks}/{opened['id']}/ask", json={"questions": asked})
    assert (over.status_code, over.json()["error"]["kind"]) == (409, "over")
    shown = ann.get(f"{talks}/{opened['id']}").json()
    assert len(shown["transcript"]) == 2
    assert opened["id"] in [one["id"] for one in ann.get(talks).json()["conversations"]]


def test_a_conversation_does_not_grow_for_ever(
    ann: httpx.Client, deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is answered with no costs nothing, and every turn is kept."""
    opened = ann.post(f"{EVENTS}/conversations", json={"kind": "threshold"}).json()
    monkeypatch.setattr(conversation_routes, "MOST_TURNS", 3)
    service = Service.open(read_settings(deployed.configuration))
    body = ConversationBody(questions=[{"query": {"kind": "count"}, "threshold": 10**9}] * 2)

    def ask() -> int:
        caller = AnalystCaller("ann", "token")
        asked = ask_conversation("events", opened["id"], body, service, caller, "asked")
        return asyncio.run(asked).status_code

    try:
        assert ask() == 200
        assert ask() == 200  # the same under the same key
        body.questions.append(body.questions[0])
        with pytest.raises(Refused, match="key was used"):
            ask()
        with pytest.raises(Refused, match="at most 3 questions"):
            asyncio.run(
                ask_conversation("events", opened["id"], body, service, AnalystCaller("ann", "t"))
            )
    finally:
        service.shut()


def test_what_does_not_fit_costs_the_service_no_statement(
    deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else who has nothing left could keep it busy writing long ones."""

    def written(*_: object) -> None:
        raise AssertionError("a statement was written")

    monkeypatch.setattr(compiling, "statement_of", written)
    service = Service.open(read_settings(deployed.configuration))
    try:
        body = RunBody(query={"kind": "top_k", "by": "name", "k": 5000})
        refused = run_question("events", body, service, AnalystCaller("ann", "token"))
        assert asyncio.run(refused).status_code == 402
    finally:
        service.shut()


def test_nothing_that_an_analyst_sees_has_entries_or_hashes(
    ann: httpx.Client, deployed: Deployment
) -> None:
    seen = "".join(
        ann.get(path).text
        for path in (EVENTS, f"{EVENTS}/releases", f"{EVENTS}/statement", f"{EVENTS}/purse")
    )
    assert '"entry"' not in seen
    assert '"account"' not in seen
    with Ledger.open(deployed.ledger) as ledger:
        for entry in ledger.reader().entries("events"):
            assert entry.hash not in seen
            assert str(getattr(entry.fact, "release_digest", None)) not in seen


def test_a_registered_list_runs_once_and_is_no_part_of_a_purse(
    ann: httpx.Client, bob: httpx.Client, team: httpx.Client
) -> None:
    batch = {"a": {"kind": "count", "where": {"age": 1}}, "b": {"kind": "count"}}
    listed = {"name": "monday", "analyst": "ann", "queries": batch}
    made = team.post("/v1/owner/datasets/events/lists", json=listed)
    assert (made.status_code, made.json()["analyst"]) == (200, "ann")
    assert team.post("/v1/owner/datasets/nowhere/lists", json=listed).status_code == 404
    before = ann.get(f"{EVENTS}/purse").json()
    assert ann.get(f"{EVENTS}/lists").json() == {"lists": [{"name": "monday", "open": True}]}
    assert bob.get(f"{EVENTS}/lists").json() == {"lists": []}
    asked = {"batch": batch, "registered": "monday", "again": True}
    assert bob.post(f"{EVENTS}/run", json=asked).status_code == 404
    other = {**asked, "batch": {"a": {"kind": "count"}}}
    assert ann.post(f"{EVENTS}/run", json=other).status_code == 422
    assert set(ann.post(f"{EVENTS}/run", json=asked).json()["answers"]) == {"a", "b"}
    assert ann.post(f"{EVENTS}/run", json=asked).status_code in (402, 409)
    assert ann.get(f"{EVENTS}/purse").json() == before


def test_lists_of_others_and_tariffs_are_as_lists_that_do_not_exist(
    bob: httpx.Client, team: httpx.Client
) -> None:
    queries = {"a": {"kind": "count", "where": {"age": 2}}}
    listed = {"name": "hers", "analyst": "ann", "queries": queries}
    assert team.post("/v1/owner/datasets/events/lists", json=listed).status_code == 200
    accounts = team.get("/v1/owner/datasets/events/accounts").json()["accounts"]
    tariff = next(one["name"] for one in accounts if one["mode"] == "tariff")
    told = set()
    for name in ("hers", tariff, "none at all"):
        asked = {"batch": queries, "registered": name}
        refused = bob.post(f"{EVENTS}/run", json=asked)
        words = refused.json()["error"]["message"].replace(repr(name), "…")
        told.add((refused.status_code, refused.json()["error"]["kind"], words))
    assert told == {(404, "not_found", "bob has no list … for events")}


@pytest.mark.parametrize("path", ["plan", "run"])
def test_a_filter_of_thousands_of_conditions_is_refused_in_words(
    ann: httpx.Client, path: str
) -> None:
    before = ann.get(f"{EVENTS}/purse").json()
    for where in (
        {"any_of": [{"age": number} for number in range(3000)]},
        {"all_of": [{"not": {"age": number}} for number in range(3000)]},
    ):
        refused = ann.post(f"{EVENTS}/{path}", json={"query": {"kind": "count", "where": where}})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid")
        assert "at most 300 conditions" in refused.json()["error"]["message"]
    sql = "SELECT COUNT(*) FROM events WHERE " + " OR ".join(f"age > {n}" for n in range(1000))
    assert ann.post(f"{EVENTS}/{path}", json={"sql": sql}).status_code == 422
    assert ann.get(f"{EVENTS}/purse").json() == before


def test_free_questions_do_not_fill_the_disk(ann: httpx.Client) -> None:
    """One conversation of four farthings kept a filter of a megabyte with every question."""
    talk = ann.post(f"{EVENTS}/conversations", json={"kind": "threshold"}).json()["id"]
    large = {"kind": "count", "where": {"name": ["x" * 1000 + str(n) for n in range(900)]}}
    body = {"questions": [{"query": large, "threshold": 10**9}]}
    refused = ann.post(f"{EVENTS}/conversations/{talk}/ask", json=body)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid")
    assert "at most 16384 characters" in refused.json()["error"]["message"]
    assert ann.get(f"{EVENTS}/conversations/{talk}").json()["asked"] == 0
