"""What is kept reads in a line when somebody looks at it."""

from __future__ import annotations

import pytest

from farthing.ledger import Ledger, history


@pytest.fixture
def target(tmp_path) -> str:
    return str(tmp_path / "budget.db")


def test_records_read_in_a_line(ledger: Ledger) -> None:
    reader, ann = ledger.reader(), ledger.analyst("events", "ann")
    held = ann.reserve({"select": 9}, question={"top": 9})
    assert repr(held) == "<Reservation of ann on events: 9 x select>"
    ann.close(held, "digest", release={"long": "x" * 1000})
    assert repr(ann.purse()) == ("<Purse of ann: 9 of 100 farthings and 0 of 10 δ units spent>")
    assert repr(reader.dataset("events")) == "<Dataset events: unit member, version live>"
    assert repr(reader.accounts("events")) == (
        "[<Account 1 tariff: tariff, in force, 9 of 500 farthings and 0 of 100 δ units spent>]"
    )
    assert repr(ann.terms()) == ("<Terms of account 1: 500 farthings for count, select, threshold>")
    head = reader.head("events")
    assert repr(head) == f"<Entry 5: close, {head.hash[:16]}…>"
    assert repr(next(history(reader, "events"))) == (
        "<Asked of events by ann at 2026-03-15T12:00: 9 farthings>"
    )
    assert "xxx" not in repr(ann.releases())
    ledger.owner().revoke("events", "ann")
    assert repr(ann.purse()).endswith("spent, revoked>")
