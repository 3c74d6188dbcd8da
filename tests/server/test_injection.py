"""Words that mean something elsewhere, in every field that takes text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from farthing.ledger import Ledger, verify
from tests.server.conftest import WIDE
from tests.server.deployment import Deployment

EVENTS = "/v1/datasets/events"
WORDS = [
    "'; DROP TABLE farthing_purses; --",
    '" OR 1=1 --',
    "$1 ${x} {y} %s %(a)s :b ?",
    "<script>alert(1)</script>",
    "../../../../etc/passwd",
    "\x00",
    "e\x00vents",
    "\u202e\u0007\x1b[31m",
    "a" * 5000,
    "",
]
#: Bodies with text in every place, HERE where the word goes.
HERE = "HERE"
BODIES: list[tuple[str, dict[str, Any]]] = [
    (f"{EVENTS}/run", {"query": {"kind": HERE}}),
    (f"{EVENTS}/run", {"query": {"kind": "count", "where": HERE}}),
    (f"{EVENTS}/run", {"query": {"kind": "count", "where": {"name": HERE}}}),
    (f"{EVENTS}/run", {"query": {"kind": "count", "where": {HERE: 1}}}),
    (f"{EVENTS}/run", {"query": {"kind": "count", "where": {"name": {HERE: 1}}}}),
    (f"{EVENTS}/run", {"query": {"kind": "count", "count": HERE}}),
    (f"{EVENTS}/run", {"query": {"kind": "count", HERE: 1}}),
    (f"{EVENTS}/run", {"query": {"kind": "histogram", "by": HERE}}),
    (f"{EVENTS}/run", {"query": {"kind": "histogram", "by": "name", "categories": [HERE]}}),
    (f"{EVENTS}/run", {"query": {"kind": "sum", "column": HERE, "lower": 0, "upper": 1}}),
    (f"{EVENTS}/run", {"sql": HERE}),
    (f"{EVENTS}/run", {"sql": f"SELECT COUNT(*) FROM events WHERE name = '{HERE}'"}),
    (f"{EVENTS}/run", {"sql": f"SELECT COUNT(*) FROM {HERE}"}),
    (f"{EVENTS}/run", {"batch": {HERE: {"kind": "count", "where": {"age": 4}}}}),
    (f"{EVENTS}/run", {"batch": {"a": {"kind": "count"}}, "registered": HERE}),
    (f"{EVENTS}/plan", {"query": {"kind": "top_k", "by": HERE, "k": 2}}),
    (f"{EVENTS}/conversations?plan=1", {"kind": HERE}),
    (f"{EVENTS}/conversations?plan=1", {"kind": "threshold", "item": HERE}),
    (f"{EVENTS}/conversations?plan=1", {"kind": "threshold", "value_item": HERE}),
]
OWNERS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/owner/datasets", {"name": HERE, "unit": "member"}),
    ("/v1/owner/datasets", {"name": "later", "unit": HERE}),
    ("/v1/owner/datasets", {"name": "events", "unit": "member", "version": HERE}),
    ("/v1/owner/datasets", {"name": "events", "unit": "member", "beside": HERE}),
    (
        "/v1/owner/datasets",
        {"name": "events", "unit": "member", "columns": [{"name": HERE, "kind": HERE}]},
    ),
    ("/v1/owner/datasets/events/grants", {"analyst": HERE, "farthings": 1}),
    ("/v1/owner/datasets/events/grants", {"analyst": "x", "farthings": 1, "renewal": HERE}),
    ("/v1/owner/tokens", {"role": "analyst", "name": HERE}),
    ("/v1/owner/tokens", {"role": HERE, "name": "x"}),
    ("/v1/owner/tokens", {"role": "analyst", "name": "x", "datasets": [HERE]}),
    ("/v1/owner/tokens", {"role": "analyst", "name": "x", "expires": HERE}),
    ("/v1/owner/planner", {"items": [HERE], "epsilon": 1, "delta": 1e-6}),
    ("/v1/owner/tariffs", {"tariff": {HERE: HERE}}),
    ("/v1/owner/tariffs", {"certificate": {HERE: HERE}}),
    ("/v1/owner/datasets/later/versions", {"version": HERE}),
    (
        "/v1/owner/datasets/events/lists",
        {"analyst": HERE, "name": "x", "queries": {"q": {"kind": "count"}}},
    ),
    (
        "/v1/owner/datasets/events/lists",
        {"analyst": "ann", "name": HERE, "queries": {HERE: {"kind": HERE}}},
    ),
]
PLACES = [
    "/v1/datasets/{}",
    "/v1/datasets/{}/purse",
    "/v1/datasets/events/releases/{}",
    "/v1/datasets/events/conversations/{}",
    "/v1/jobs/{}",
    "/v1/datasets/events/releases?before={}",
]
OWNERS_PLACES = [
    "/v1/owner/datasets/{}",
    "/v1/owner/datasets/{}/grants",
    "/v1/owner/datasets/{}/accounts",
    "/v1/owner/datasets/{}/schema",
    "/v1/owner/datasets/{}/statement",
    "/v1/owner/datasets/{}/history",
    "/v1/owner/datasets/events/history?analyst={}",
]


@pytest.fixture(params=["sqlite", "postgresql"])
def deployed(request: pytest.FixtureRequest, deploy: Callable[..., Deployment]) -> Deployment:
    """What is asked here may be anything. PostgreSQL keeps no text with NUL in it."""
    ledger = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    return deploy(ledger, WIDE)


def with_word(value: Any, word: str) -> Any:
    if isinstance(value, dict):
        return {with_word(k, word): with_word(v, word) for k, v in value.items()}
    if isinstance(value, list):
        return [with_word(one, word) for one in value]
    return value.replace(HERE, word) if isinstance(value, str) else value


def answers(client: httpx.Client, bodies: list[Any], places: list[str]) -> Iterator[httpx.Response]:
    for word in WORDS:
        for path, body in bodies:
            yield client.post(path, json=with_word(body, word))
        quoted = "".join(f"%{byte:02x}" for byte in word[:500].encode())
        for place in places:
            yield client.get(place.format(quoted))
        yield client.post(
            f"{EVENTS}/run",
            json={"query": {"kind": "magic"}},
            headers={"Idempotency-Key": quoted[:300], "Prefer": quoted[:300]},
        )


@pytest.mark.parametrize("who", ["ann", "team"])
def test_words_are_words(deployed: Deployment, who: str) -> None:
    bodies, places = (BODIES, PLACES) if who == "ann" else (OWNERS, OWNERS_PLACES)
    with deployed.client(who) as client:
        for answer in answers(client, bodies, places):
            assert answer.status_code < 500, (answer.request.url, answer.request.content)
            assert answer.headers["content-type"] == "application/json"
            if answer.status_code >= 400:
                assert set(answer.json()) == {"error"}
    with Ledger.open(deployed.ledger) as ledger:
        verify(ledger.reader())


def test_an_owner_opens_no_other_files(team: httpx.Client) -> None:
    body = {"name": "/etc/passwd", "unit": "member"}
    assert team.post("/v1/owner/datasets", json=body).status_code == 404
