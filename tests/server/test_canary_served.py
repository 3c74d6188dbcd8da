"""A word that stands in every text cell is in no answer, log or metric, whatever is asked."""

from __future__ import annotations

import contextlib

import httpx

from tests.server.deployment import WORD, Deployment

EVENTS = "/v1/datasets/events"
QUERIES = [
    {"kind": "count"},
    {"kind": "count", "where": {"name": {"present": True}}},
    {"kind": "count", "where": "name > 'a'"},
    {"kind": "histogram", "by": "name", "categories": ["a", "b"]},
    {"kind": "histogram", "by": "day", "categories": ["2026-01-01"]},
    {"kind": "distinct", "column": "name"},
    {"kind": "sum", "column": "name", "lower": 0, "upper": 1},
    {"kind": "sum", "column": "age", "lower": 0, "upper": 90},
    {"kind": "quantile", "column": "name", "lower": 0, "upper": 1},
    {"kind": "mean", "column": "age", "lower": 0, "upper": 90},
    {"kind": "count", "where": {"name": 3}},
]


def test_the_word_is_nowhere(deploy) -> None:
    deployed: Deployment = deploy()
    seen: list[str] = []
    with deployed.client("ann") as ann, deployed.client("team") as team:
        for query in QUERIES:
            for end in ("plan", "run"):
                seen.append(ann.post(f"{EVENTS}/{end}", json={"query": query}).text)
        for path in ("", "/releases", "/purse", "/statement", "/conversations"):
            seen.append(ann.get(f"{EVENTS}{path}").text)
        # the data goes away: every run fails inside the engine
        for name in ("events", "private"):
            file = deployed.folder / f"{name}.parquet"
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        failed = ann.post(f"{EVENTS}/run", json={"query": {"kind": "count"}, "again": True})
        assert failed.status_code == 500
        assert failed.json()["error"]["kind"] == "engine_failed"
        seen += [failed.text, team.get("/metrics").text]
        for path in ("", "/schema", "/grants", "/accounts", "/history", "/budget-over-time"):
            with contextlib.suppress(httpx.TransportError):
                seen.append(team.get(f"/v1/owner/datasets/events{path}").text)
        seen.append(team.get("/v1/owner/datasets/events/statement", params={"delta": 1e-3}).text)
    deployed.stop()
    seen += [deployed.log, (deployed.folder / "audit.jsonl").read_text(encoding="utf-8")]
    assert len(seen) > 30
    for text in seen:
        assert WORD.lower() not in text.lower()
