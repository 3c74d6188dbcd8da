"""Sizes, rates, headers, the log, the clock."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import httpx
import pytest

from farthing.composition.tariffs.tariff import Price
from farthing.engine import EngineFailure
from farthing.errors import InvalidInput
from farthing.ledger import DoesNotFit
from farthing.server import protection
from farthing.server.callers import AnalystCaller
from farthing.server.problems import Refused
from farthing.server.protection import AuditLog, ReleaseClock, request_rate
from farthing.server.routes.requests import Inquiry, on_time
from farthing.server.service import Service
from farthing.server.settings import read_settings
from tests.server.deployment import Deployment

EVENTS = "/v1/datasets/events"
COUNT = {"query": {"kind": "count"}}
JSON = {"Content-Type": "application/json"}


def test_oversized_bodies_are_refused(ann: httpx.Client) -> None:
    large = json.dumps({"sql": "x" * (2 << 20)})
    answer = ann.post(f"{EVENTS}/plan", content=large, headers=JSON)
    assert answer.status_code == 413
    assert answer.json()["error"]["kind"] == "too_large"


def test_oversized_bodies_without_a_length_are_refused(ann: httpx.Client) -> None:
    parts = (b"x" * 65536 for _ in range(64))
    answer = ann.post(f"{EVENTS}/plan", content=parts, headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"query":' * 5000 + b"1" + b"}" * 5000,
        b'{"query": {"kind": "count", "where": {"age": NaN}}}',
        b'{"query": {"kind": "count", "where": {"age": 1e999}}}',
        b'{"query": {"kind": "count", "where": {"name": "\\ud800"}}}',
        b'{"half_width": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b"null",
        b'"text"',
        b"[1, 2]",
    ],
)
def test_strange_bodies_are_refused(ann: httpx.Client, content: bytes) -> None:
    for end in ("plan", "run", "conversations"):
        answer = ann.post(f"{EVENTS}/{end}", content=content, headers=JSON)
        assert answer.status_code in (400, 422), answer.text
        assert set(answer.json()) == {"error"}


def test_nothing_is_read_of_a_stranger(deployed: Deployment) -> None:
    """A body of 1 MB took 0.2 s of the thread that answers everybody."""
    with deployed.client(None) as stranger:
        for content in (b"{", b"[" * 1_000_000):
            refused = stranger.post(f"{EVENTS}/run", content=content, headers=JSON)
            assert refused.status_code == 401


def test_reading_a_large_body_is_unpaid_work(deploy) -> None:
    deployed: Deployment = deploy(limits={"unpaid_seconds_per_minute": 0.001})
    with deployed.client("ann") as ann:
        large = b"[" + b"[]," * 100_000 + b"[]"  # without its end
        assert ann.post(f"{EVENTS}/run", content=large, headers=JSON).status_code == 400
        refused = ann.post(f"{EVENTS}/run", content=large, headers=JSON)
        assert refused.status_code == 429
        assert refused.json()["error"]["kind"] == "too_much_work"


def test_every_answer_has_the_headers(deployed: Deployment) -> None:
    with deployed.client("ann") as ann:
        answers = [
            ann.get("/v1/me"),
            ann.get("/nowhere"),
            ann.get("/health"),
            ann.post(f"{EVENTS}/plan", content=b"{", headers=JSON),
            ann.get("/openapi.json"),
        ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers
    assert answers[0].headers["cache-control"] == "no-store"


def test_so_many_requests_a_minute(deploy) -> None:
    deployed: Deployment = deploy(limits={"requests_per_minute": 1})
    with deployed.client("ann") as ann, deployed.client("bob") as bob:
        answers = [ann.get("/v1/me") for _ in range(3)]
        refused = [one for one in answers if one.status_code == 429]
        assert answers[0].status_code == 200
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        assert refused[0].json()["error"]["kind"] == "too_many_requests"
        assert bob.get("/v1/me").status_code == 200


def test_a_rate_comes_back() -> None:
    rates = request_rate(6000)  # a hundred a second

    def hurry() -> None:
        for _ in range(20_000):
            rates.take("ann", 1, at_least=1)

    with pytest.raises(Refused):
        hurry()
    time.sleep(0.1)
    rates.take("ann", 1, at_least=1)


def test_a_log_that_cannot_be_written_is_said_at_the_start(tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"logs.audit must be a file that can be written"):
        AuditLog(str(tmp_path / "nowhere" / "audit.jsonl"))


def test_the_log_says_who_did_what_and_nothing_else(
    deployed: Deployment, ann: httpx.Client
) -> None:
    asked = {"query": {"kind": "count", "where": {"name": "a secret word"}}}
    assert ann.post(f"{EVENTS}/run", json=asked).status_code == 200
    text = (deployed.folder / "audit.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    mine = [one for one in lines if one["route"] == "/v1/datasets/{dataset}/run"]
    assert mine[-1]["who"] == "analyst:ann"
    assert mine[-1]["dataset"] == "events"
    assert mine[-1]["status"] == 200
    assert set(mine[-1]) == {
        "at", "who", "token", "method", "route", "dataset", "status", "seconds"
    }  # fmt: skip # one set
    assert "secret word" not in text
    assert (deployed.folder / "audit.jsonl").stat().st_mode & 0o077 == 0


def test_the_clock_strikes_at_whole_multiples(monkeypatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(protection.time, "time", lambda: 100.2)
    monkeypatch.setattr(protection.time, "sleep", slept.append)
    ReleaseClock(0.5).wait()
    ReleaseClock(0).wait()
    assert slept == [pytest.approx(0.3)]


def test_what_fails_leaves_on_the_clock() -> None:
    waited: list[int] = []
    runner = SimpleNamespace(wait_for_the_clock=lambda: waited.append(1))
    inquiry = SimpleNamespace(
        service=SimpleNamespace(runner=runner), analyst=SimpleNamespace(remaining=lambda: Price(3))
    )

    def fail(error: Exception) -> dict[str, object]:
        raise error

    for error, kind in (
        (EngineFailure(), EngineFailure),
        (DoesNotFit(Price(9), Price(1), {}), Refused),
        (InvalidInput("no"), InvalidInput),
    ):
        with pytest.raises(kind):
            on_time(inquiry, partial(fail, error))
    assert len(waited) == 3
    assert on_time(inquiry, dict) == {}  # the engine waited for it
    assert len(waited) == 3


def test_the_engine_waits_for_the_clock_of_the_service(deployed: Deployment) -> None:
    with_clock = replace(read_settings(deployed.configuration), release_every=0.5)
    service = Service.open(with_clock)
    inquiry = Inquiry.of(service, AnalystCaller("ann", "token"), "events")
    assert inquiry.session.backend._context.on_the_clock == service.runner.wait_for_the_clock
    service.shut()


def test_nobody_finds_what_others_left(deployed: Deployment) -> None:
    """How soon an answer comes would tell what they asked."""
    service = Service.open(read_settings(deployed.configuration))
    ann, bob, again = (
        Inquiry.of(service, AnalystCaller(name, "token"), "events").session.backend._context.recent
        for name in ("ann", "bob", "ann")
    )
    service.shut()
    assert ann is again
    assert ann is not bob
