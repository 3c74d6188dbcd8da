"""Tokens: shown once, kept hashed, for a while, for some datasets."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from farthing.server.access import AccessStore, find, identity_in
from tests.server.deployment import Deployment
from tests.waiting import HANGS

EVENTS = "/v1/datasets/events"


def with_token(deployed: Deployment, token: str) -> httpx.Response:
    return httpx.get(
        f"{deployed.url}/v1/me", verify=False, headers={"Authorization": f"Bearer {token}"}
    )


@pytest.mark.parametrize("who", ["expired", "revoked"])
def test_what_is_over_is_refused_like_what_never_was(deployed: Deployment, who: str) -> None:
    never = with_token(deployed, "fth_0123456789abcdef_" + "0" * 64)
    over = with_token(deployed, deployed.tokens[who])
    assert over.status_code == never.status_code == 401
    assert over.json() == never.json()


def test_nearly_right_is_wrong(deployed: Deployment) -> None:
    good = deployed.tokens["ann"]
    assert with_token(deployed, good).status_code == 200
    last = "0" if good[-1] != "0" else "1"
    other = deployed.tokens["bob"].split("_")[2]
    for bad in (
        good[:-1] + last,
        good[:-1],
        good + "0",
        good.upper(),
        "_".join([*good.split("_")[:2], other]),
        "fth__",
        "fth_" + "a" * 10_000,
        "ä" * 20,
    ):
        header = f"Bearer {bad}".encode("latin-1", "replace")
        answer = httpx.get(f"{deployed.url}/v1/me", verify=False, headers={"Authorization": header})
        assert answer.status_code == 401, bad
    basic = httpx.get(
        f"{deployed.url}/v1/me", verify=False, headers={"Authorization": f"Basic {good}"}
    )
    assert basic.status_code == 401


def test_a_token_is_nowhere_but_with_its_holder(deployed: Deployment, team: httpx.Client) -> None:
    minted = team.post("/v1/owner/tokens", json={"role": "analyst", "name": "ann"}).json()
    secret = minted["token"].split("_")[2]
    with sqlite3.connect(deployed.access) as raw:
        kept = "\n".join(raw.iterdump())
    raw.close()
    assert minted["id"] in kept
    assert "$argon2id$v=19$m=64,t=1,p=1$" in kept  # wrong secrets must not keep anybody busy
    for token in (secret, *(one.split("_")[2] for one in deployed.tokens.values())):
        assert token not in kept
        assert token not in team.get("/v1/owner/tokens").text
        assert token not in deployed.log
        assert token not in (deployed.folder / "audit.jsonl").read_text(encoding="utf-8")


def test_a_withdrawn_token_ends_at_once(deployed: Deployment, team: httpx.Client) -> None:
    minted = team.post("/v1/owner/tokens", json={"role": "analyst", "name": "ann"}).json()
    assert with_token(deployed, minted["token"]).status_code == 200
    assert team.delete(f"/v1/owner/tokens/{minted['id']}").json()["revoked"]
    assert with_token(deployed, minted["token"]).status_code == 401


def test_the_log_tells_owners_why_a_token_was_refused(deployed: Deployment) -> None:
    good, log = deployed.tokens["ann"], deployed.folder / "audit.jsonl"
    identity = {who: token.split("_")[1] for who, token in deployed.tokens.items()}
    for bad, why, who in (
        (deployed.tokens["expired"], "it has expired", identity["expired"]),
        (deployed.tokens["revoked"], "it was withdrawn", identity["revoked"]),
        (good[:-1] + ("0" if good[-1] != "0" else "1"), "the secret is wrong", identity["ann"]),
        ("fth_0123456789abcdef_" + "0" * 64, "no token with this id was minted here", None),
        ("something else", "it does not look like a token", None),
    ):
        line = noted(log, lambda bad=bad: with_token(deployed, bad))
        assert (line["refused"], line["token"], line["who"]) == (why, who, None)
        assert bad not in log.read_text(encoding="utf-8")
    line = noted(log, lambda: httpx.get(f"{deployed.url}/v1/me", verify=False))
    assert line["refused"] == "no token was sent"


def noted(log: Path, ask: Callable[[], httpx.Response]) -> dict[str, Any]:
    """What the log says of a request that is refused; it is noted after the answer has left."""
    before = len(log.read_text(encoding="utf-8").splitlines())
    assert ask().status_code == 401
    for _ in range(1000):
        lines = log.read_text(encoding="utf-8").splitlines()
        if len(lines) > before:
            return json.loads(lines[-1])
        time.sleep(0.02)
    pytest.fail("nothing was noted")


def test_a_token_for_no_dataset_opens_none(deployed: Deployment) -> None:
    with deployed.client("team") as team:
        body = {"role": "analyst", "name": "ann", "datasets": []}
        made = team.post("/v1/owner/tokens", json=body)
        assert made.status_code == 200, made.text
        assert made.json()["datasets"] == []
    none = httpx.Client(
        base_url=deployed.url, headers={"Authorization": f"Bearer {made.json()['token']}"}
    )
    with none:
        assert none.get("/v1/me").json()["datasets"] == []


def test_a_token_for_some_datasets(deployed: Deployment) -> None:
    with deployed.client("narrow") as narrow:
        assert narrow.get("/v1/me").json()["datasets"] == ["slow"]
        assert narrow.get(EVENTS).status_code == 404
        assert narrow.get("/v1/datasets/slow").status_code == 200


def test_an_expiry_has_a_zone(team: httpx.Client) -> None:
    body = {"role": "analyst", "name": "ann", "expires": "2030-01-01T00:00:00"}
    assert team.post("/v1/owner/tokens", json=body).status_code == 422


def test_an_id_is_read_without_hashing(tmp_path) -> None:
    assert identity_in("fth_abc_def") == "abc"
    for strange in ("", "fth_abc", "xyz_abc_def", "fth_a'b_def", "fth_ä_b", "fth_" + "a" * 300):
        assert identity_in(strange) is None
    store = AccessStore(str(tmp_path / "access.db"))
    assert find(store, "abc") is None
    store.shut()


def test_revoking_a_purse_leaves_what_was_told(deployed: Deployment, team: httpx.Client) -> None:
    granted = {"analyst": "dora", "farthings": 10}
    assert team.post("/v1/owner/datasets/events/grants", json=granted).status_code == 200
    minted = team.post("/v1/owner/tokens", json={"role": "analyst", "name": "dora"}).json()
    headers = {"Authorization": f"Bearer {minted['token']}"}
    with httpx.Client(base_url=deployed.url, headers=headers, timeout=HANGS) as dora:
        told = dora.post(f"{EVENTS}/run", json={"query": {"kind": "count"}}).json()
        assert team.delete("/v1/owner/datasets/events/grants/dora").json()["taken"]
        assert dora.get(f"{EVENTS}/releases/{told['id']}").status_code == 200
        refused = dora.post(f"{EVENTS}/run", json={"query": {"kind": "count"}, "again": True})
        assert refused.status_code == 402
