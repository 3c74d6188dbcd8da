"""Two analysts who try to learn of each other: through refusals, numbers, names and lists."""

from __future__ import annotations

import httpx
import pytest

from farthing.ledger import Ledger
from tests.server.deployment import Deployment

EVENTS = "/v1/datasets/events"


@pytest.mark.parametrize(
    ("method", "end", "body"),
    [
        ("GET", "", None),
        ("GET", "/purse", None),
        ("GET", "/statement", None),
        ("GET", "/releases", None),
        ("GET", "/releases/" + "0" * 32, None),
        ("GET", "/conversations", None),
        ("POST", "/conversations", {"kind": "threshold"}),
        ("POST", "/plan", {"query": {"kind": "count"}}),
        ("POST", "/run", {"query": {"kind": "count"}}),
        ("POST", "/plan", {"query": {"kind": "nonsense"}}),
    ],
)
def test_what_is_not_granted_does_not_exist(
    ann: httpx.Client, method: str, end: str, body: object
) -> None:
    answers = [
        ann.request(method, f"/v1/datasets/{name}{end}", json=body)
        for name in ("private", "nowhere", "later", "pri'vate", "%00", "x" * 3000)
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.text for answer in answers}) == 1


def test_releases_jobs_and_conversations_of_others_do_not_exist(
    ann: httpx.Client, bob: httpx.Client
) -> None:
    told = bob.post(f"{EVENTS}/run", json={"query": {"kind": "count"}}).json()
    later = bob.post(
        f"{EVENTS}/run",
        json={"query": {"kind": "count", "where": {"country": "SE"}}},
        headers={"Prefer": "respond-async"},
    ).json()
    talk = bob.post(f"{EVENTS}/conversations", json={"kind": "threshold"}).json()
    asked = {"questions": [{"query": {"kind": "count"}, "threshold": 5}]}
    for method, path, body in (
        ("GET", f"{EVENTS}/releases/{told['id']}", None),
        ("GET", f"/v1/jobs/{later['job']['id']}", None),
        ("GET", f"/v1/jobs/{later['job']['id']}/events", None),
        ("DELETE", f"/v1/jobs/{later['job']['id']}", None),
        ("GET", f"{EVENTS}/conversations/{talk['id']}", None),
        ("POST", f"{EVENTS}/conversations/{talk['id']}/ask", asked),
        ("POST", f"{EVENTS}/conversations/{talk['id']}/close", None),
    ):
        mine = ann.request(method, path, json=body)
        other = ann.request(method, path.replace(path.split("/")[-1], "0" * 32), json=body)
        assert mine.status_code == 404, path
        if "/ask" not in path and "/close" not in path and "/events" not in path:
            assert mine.text == other.text
    assert told["id"] not in ann.get(f"{EVENTS}/releases").text
    assert talk["id"] not in ann.get(f"{EVENTS}/conversations").text


def test_a_narrow_token_sees_nothing_of_its_holders_other_datasets(
    ann: httpx.Client, deployed: Deployment
) -> None:
    asked = {"query": {"kind": "count", "where": {"age": 44}}}
    key = {"Idempotency-Key": "narrow"}
    later = ann.post(f"{EVENTS}/run", json=asked, headers={"Prefer": "respond-async"}).json()
    talk = ann.post(f"{EVENTS}/conversations", json={"kind": "threshold"}, headers=key).json()
    job, body = f"/v1/jobs/{later['job']['id']}", {"questions": [{**asked, "threshold": 5}]}
    with deployed.client("narrow") as narrow:  # of ann, for slow alone
        for method, path, given in (
            ("GET", job, None),
            ("DELETE", job, None),
            ("GET", f"{job}/events", None),
            ("POST", f"{EVENTS}/conversations", {"kind": "threshold"}),  # under the same key
            ("POST", f"{EVENTS}/conversations/{talk['id']}/ask", body),
            ("GET", f"/v1/datasets/slow/conversations/{talk['id']}", None),
            ("POST", f"/v1/datasets/slow/conversations/{talk['id']}/ask", body),
        ):
            assert narrow.request(method, path, json=given, headers=key).status_code == 404, path
    assert ann.get(job).status_code == 200


def test_what_one_sees_does_not_move_with_what_the_other_does(
    ann: httpx.Client, bob: httpx.Client
) -> None:
    plan = {"query": {"kind": "count", "where": {"age": 7}}}

    def seen() -> list[str]:
        paths = ("", "/purse", "/statement", "/releases", "/conversations")
        answers = [ann.get(f"{EVENTS}{path}").text for path in paths]
        return [*answers, ann.post(f"{EVENTS}/plan", json=plan).text]

    before = seen()
    assert bob.post(f"{EVENTS}/run", json=plan).status_code == 200
    assert bob.post(f"{EVENTS}/conversations", json={"kind": "threshold"}).status_code == 200
    assert bob.post(f"{EVENTS}/run", json={"query": {"kind": "magic"}}).status_code == 422
    assert seen() == before


def test_the_cap_refuses_in_the_words_of_an_empty_purse(deploy) -> None:
    deployed: Deployment = deploy()
    with Ledger.open(deployed.ledger) as ledger:
        for name in ("ann", "bob"):
            ledger.owner().grant("events", name, farthings=400)  # together more than the cap
    with deployed.client("ann") as ann, deployed.client("bob") as bob:
        for age in range(4):
            query = {"kind": "count", "where": {"age": age}, "repeats": 20}
            assert bob.post(f"{EVENTS}/run", json={"query": query}).status_code == 200
        wanted = {"query": {"kind": "count", "where": {"age": 50}, "repeats": 30}}
        purse, plan = ann.get(f"{EVENTS}/purse").json(), ann.post(f"{EVENTS}/plan", json=wanted)
        assert purse["left"]["farthings"] == 550  # her own, and nothing of the cap
        assert plan.json()["remaining"] == purse["left"]
        capped = ann.post(f"{EVENTS}/run", json=wanted)
        assert capped.status_code == 402
        with Ledger.open(deployed.ledger) as ledger:
            ledger.owner().revoke("events", "ann")
        empty = ann.post(f"{EVENTS}/run", json=wanted)
        assert empty.status_code == 402
        assert empty.json() == capped.json()
