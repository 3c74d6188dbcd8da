"""Every endpoint × every role, as a table. A route that has no line here fails."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Mount, Route

from farthing.server.routes.dependencies import analyst_caller, any_caller, owner_caller
from farthing.server.routes.owners import owner_router
from farthing.server.serving import ROUTERS, make_app
from farthing.server.settings import Settings
from tests.server.deployment import Deployment

NOBODY, ANN, TEAM = None, "ann", "team"
#: What each may do. open: everybody; both: with any valid token; else one role alone.
TABLE = {
    "GET /health": "open",
    "GET /ready": "open",
    "GET /metrics": "metrics",
    "GET /v1/me": "both",
    "GET /v1/forms": "both",
    "GET /v1/jobs/{identity}": "both",
    "DELETE /v1/jobs/{identity}": "both",
    "GET /v1/jobs/{identity}/events": "both",
    "GET /v1/datasets": "analyst",
    "GET /v1/datasets/{dataset}": "analyst",
    "POST /v1/datasets/{dataset}/plan": "analyst",
    "POST /v1/datasets/{dataset}/run": "analyst",
    "GET /v1/datasets/{dataset}/releases": "analyst",
    "GET /v1/datasets/{dataset}/releases/{identity}": "analyst",
    "GET /v1/datasets/{dataset}/purse": "analyst",
    "GET /v1/datasets/{dataset}/statement": "analyst",
    "GET /v1/datasets/{dataset}/lists": "analyst",
    "GET /v1/datasets/{dataset}/conversations": "analyst",
    "POST /v1/datasets/{dataset}/conversations": "analyst",
    "GET /v1/datasets/{dataset}/conversations/{identity}": "analyst",
    "POST /v1/datasets/{dataset}/conversations/{identity}/ask": "analyst",
    "POST /v1/datasets/{dataset}/conversations/{identity}/close": "analyst",
    "GET /v1/owner/datasets": "owner",
    "POST /v1/owner/datasets": "owner",
    "GET /v1/owner/datasets/{dataset}": "owner",
    "GET /v1/owner/datasets/{dataset}/schema": "owner",
    "POST /v1/owner/datasets/{dataset}/versions": "owner",
    "GET /v1/owner/datasets/{dataset}/grants": "owner",
    "POST /v1/owner/datasets/{dataset}/grants": "owner",
    "DELETE /v1/owner/datasets/{dataset}/grants/{analyst}": "owner",
    "GET /v1/owner/datasets/{dataset}/accounts": "owner",
    "POST /v1/owner/tariffs": "owner",
    "POST /v1/owner/datasets/{dataset}/tariffs": "owner",
    "POST /v1/owner/datasets/{dataset}/lists": "owner",
    "GET /v1/owner/datasets/{dataset}/statement": "owner",
    "POST /v1/owner/datasets/{dataset}/verify": "owner",
    "GET /v1/owner/datasets/{dataset}/history": "owner",
    "GET /v1/owner/datasets/{dataset}/budget-over-time": "owner",
    "GET /v1/owner/datasets/{dataset}/odometer": "owner",
    "GET /v1/owner/datasets/{dataset}/profile": "owner",
    "GET /v1/owner/datasets/{dataset}/certificate": "owner",
    "POST /v1/owner/datasets/{dataset}/retire": "owner",
    "POST /v1/owner/datasets/{dataset}/abandon": "owner",
    "POST /v1/owner/datasets/{dataset}/conversations/{identity}/end": "owner",
    "POST /v1/owner/planner": "owner",
    "GET /v1/owner/tokens": "owner",
    "POST /v1/owner/tokens": "owner",
    "DELETE /v1/owner/tokens/{identity}": "owner",
}
#: Bodies that are right, so that it is the role that refuses.
BODIES = {
    "/plan": {"query": {"kind": "count"}},
    "/run": {"query": {"kind": "count"}},
    "/conversations": {"kind": "threshold"},
    "/ask": {"questions": [{"query": {"kind": "count"}, "threshold": 5}]},
    "/versions": {"version": "1"},
    "/lists": {"name": "monday", "analyst": "ann", "queries": {"all": {"kind": "magic"}}},
    "/grants": {"analyst": "ann", "farthings": 1},
    "/tariffs": {"epsilon": -1, "delta": 1e-6},  # refused, once the role is right
    "/retire": {"account": "no such account"},
    "/abandon": {"entry": 1, "reason": "none"},
    "/end": {"reason": "none"},
    "/planner": {"items": ["br:0.1"], "epsilon": 1, "delta": 1e-6},
    "/tokens": {"role": "analyst", "name": "carl"},
    "/owner/datasets": {"name": "nowhere", "unit": "member"},
}


def routes() -> list[str]:
    return [
        f"{method} {route.path}"
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in sorted(route.methods)
    ]


def test_every_route_has_a_line() -> None:
    assert sorted(routes()) == sorted(TABLE)
    app = make_app(Settings(ledger="unused", access="unused"))
    beside = {route.path for route in app.routes if isinstance(route, Route | Mount)}
    assert beside <= {"/openapi.json", ""}  # the description, and the console's files


@pytest.mark.parametrize("line", TABLE)
@pytest.mark.parametrize("who", [NOBODY, ANN, TEAM, "expired", "revoked"])
def test_a_route_is_for_whom_the_table_says(
    deployed: Deployment, line: str, who: str | None
) -> None:
    method, path = line.split()
    place = path.format(dataset="events", identity="0" * 32, analyst="nobody")
    body = next((body for end, body in BODIES.items() if path.endswith(end)), None)
    with deployed.client(who) as client:
        answer = client.request(method, place, json=body if method == "POST" else None)
    role = {ANN: "analyst", TEAM: "owner"}.get(who)
    allowed = TABLE[line]
    if allowed == "open" or (allowed == "metrics"):  # these clients are on the same machine
        assert answer.status_code == 200
    elif role is None:
        assert answer.status_code == 401
        assert answer.json()["error"]["kind"] == "unauthorized"
        assert answer.headers["www-authenticate"] == "Bearer"
    elif allowed in ("both", role):
        assert answer.status_code not in (401, 403, 405)
        assert answer.status_code < 500
    else:
        assert answer.status_code == 403
        assert answer.json()["error"]["kind"] == "forbidden"


def test_metrics_are_not_for_who_comes_through_a_proxy(deployed: Deployment) -> None:
    through = {"X-Forwarded-For": "203.0.113.9"}
    for who, status in ((NOBODY, 403), (ANN, 403), (TEAM, 200)):
        with deployed.client(who) as client:
            assert client.get("/metrics", headers=through).status_code == status


def test_roles_are_types() -> None:
    """A handler that takes an owner cannot be reached by an analyst, and the other way round."""
    for route in owner_router.routes:
        assert isinstance(route, APIRoute)
        asked = {one.call for one in route.dependant.dependencies}
        assert owner_caller in asked, route.path
        assert not {analyst_caller, any_caller} & asked, route.path
