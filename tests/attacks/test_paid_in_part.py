"""A limit was found and paid for, then the data fell silent. The answer was "nothing was paid", its
key was free again, and who sent it again about live data paid for the limit twice."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import farthing as fa
from farthing.engine import Desk, EngineSilent, PaidInPart
from farthing.engine.sources.base import Source
from farthing.ledger import Ledger
from tests.server.in_process import kinds_of_entries, prepared, served

ASKED = {"kind": "histogram", "by": "country", "categories": ["NO", "SE", "DK"]}
AUTO = {**ASKED, "contribution_limit": "auto"}
RUN = "/v1/datasets/events/run"


@pytest.fixture
def silent_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The engine falls silent when it is asked for the so-manieth time."""
    silent, asked, ready = [2], [], Source.ready

    @contextmanager
    def sometimes(source: Source):
        asked.append(source)
        if len(asked) in silent:
            raise EngineSilent
        with ready(source):
            yield

    monkeypatch.setattr(Source, "ready", sometimes)
    return silent


@pytest.mark.usefixtures("silent_at")
@pytest.mark.parametrize("body", [{"query": AUTO}, {"batch": {"a": AUTO, "b": {"kind": "count"}}}])
def test_what_was_paid_for_keeps_its_key(tmp_path, body) -> None:
    deployed = prepared(tmp_path)
    with Ledger.open(deployed.ledger) as ledger:
        Desk(ledger, owner="team").declare_version("events", None)
    with served(deployed) as ann:
        key = {"Idempotency-Key": "once"}
        first = ann.post(RUN, json=body, headers=key)
        again = ann.post(RUN, json=body, headers=key)
    assert (first.status_code, first.json()["error"]["kind"]) == (500, "paid_in_part")
    assert "1 farthing was paid" in first.json()["error"]["message"]
    assert again.json() == first.json()
    assert kinds_of_entries(deployed, "events").count("reserve") == 1


@pytest.mark.usefixtures("silent_at")
def test_what_was_paid_before_is_not_paid_for_again(tmp_path) -> None:
    with served(prepared(tmp_path)) as ann:
        assert ann.post(RUN, json={"query": AUTO}).json()["error"]["kind"] == "paid_in_part"
        left = ann.get("/v1/datasets/events/purse").json()["left"]["farthings"]
        answer = ann.post(RUN, json={"query": AUTO}).json()["answer"]
        assert answer["remaining"]["farthings"] == left - answer["price"]["farthings"]


def test_nothing_was_paid_if_the_first_is_refused(tmp_path, silent_at) -> None:
    silent_at[:] = [1]
    with served(prepared(tmp_path)) as ann:
        refused = ann.post(RUN, json={"query": AUTO})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "data_unavailable")


def test_the_error_says_how_much(tmp_path, silent_at) -> None:
    assert silent_at
    deployed = prepared(tmp_path)
    with (
        fa.open(deployed.folder / "events.parquet", ledger=deployed.ledger, analyst="ann") as data,
        pytest.raises(PaidInPart, match="1 farthing was paid") as told,
    ):
        data.ask(AUTO).run()
    assert told.value.price.farthings == 1
