"""The drill of docs/service.md: a ledger is lost while it is served, and goes on from a copy."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import farthing as fa
from farthing.cli.main import app
from farthing.engine import Desk
from farthing.ledger import Ledger, statement
from tests.server.deployment import Deployment


def farthing(*words: str) -> dict[str, object]:
    ran = CliRunner().invoke(app, [*words, "--json"])
    assert ran.exit_code == 0, ran.output
    told: dict[str, object] = json.loads(ran.stdout)
    return told


def ask_anew(one: Deployment) -> None:
    with fa.connect(one.url, token=one.tokens["ann"], dataset="events") as session:
        session.count(where={"country": "NO"}).run()


def test_a_lost_ledger_goes_on_from_a_copy(
    deploy: Callable[..., Deployment], certificate: fa.Certificate, tmp_path: Path
) -> None:
    one, copy = deploy(), str(tmp_path / "copy.jsonl")
    with fa.connect(one.url, token=one.tokens["ann"], dataset="events") as session:
        told = session.count().run()
        farthing("owner", "backup", copy, "--ledger", one.ledger)  # while it is served
        session.count(where={"country": "NO"}).run()  # is in no copy

    assert one.process is not None
    one.process.send_signal(signal.SIGKILL)
    one.process.wait()
    for lost in tmp_path.glob("budget.db*"):
        lost.unlink()

    one.ledger = str(tmp_path / "restored.db")
    farthing("owner", "restore", copy, "--ledger", one.ledger)
    one.start()
    with pytest.raises(fa.FarthingError):  # everything in the copy counts as spent
        ask_anew(one)

    with Ledger.open(one.ledger) as ledger:
        desk = Desk(ledger, owner="team")
        desk.sign("events", certificate, name="after the loss")
        desk.grant("events", "ann", farthings=20)
    with fa.connect(one.url, token=one.tokens["ann"], dataset="events") as session:
        assert session.remaining().farthings == 20
        again = session.count().run()
        assert again.cached  # what was told is told again
        assert again.value == told.value
        assert not session.count(where={"country": "NO"}).run().cached
        assert session.remaining().farthings == 16

    farthing("ledger", "verify", "--ledger", one.ledger)
    with Ledger.open(one.ledger) as ledger:
        accounts = statement(ledger.reader(), "events")["accounts"]
        assert [(held["farthings_spent"], held["farthings"]) for held in accounts] == [
            (400, 400),  # all of the lost one
            (4, 400),
        ]
