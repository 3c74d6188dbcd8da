"""JSON Lines out and in: the chain that comes back is the one that went out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import farthing as fa
from farthing.ledger import (
    AlreadyThere,
    Damaged,
    Ledger,
    RegisteredBatch,
    RegisteredSet,
    export_lines,
    import_lines,
    markdown,
    statement,
    verify,
)
from tests.ledger.conftest import Clock, fill


@pytest.fixture
def full(ledger: Ledger, certificate: fa.Certificate, clock: Clock) -> Ledger:
    """One of everything that a book can hold."""
    ledger.owner().grant("events", "may", farthings=5, renewal="monthly")
    held = ledger.analyst("events", "may").reserve({"select": 5}, question={"é": "\u2028"})
    ledger.owner().declare_version("events", "2026-03")
    ledger.owner().grant("events", "bob", farthings=2)
    ledger.owner().revoke("events", "bob")
    clock.time = datetime(2026, 5, 1, tzinfo=UTC)
    ledger.analyst("events", "may").reserve({"select": 4})
    ledger.analyst(held.dataset, held.analyst).close(
        held, "d", used={"select": 1}, release={"x": 0.1}
    )
    ledger.owner().abandon(ledger.analyst("events", "ann").reserve({"select": 1}), reason="r")
    ledger.owner().register(
        "events", "batch", RegisteredBatch({"q": [fa.PureDP(0.1)]}), analyst="ann"
    )
    ledger.owner().register(
        "events", "set", RegisteredSet({"s": (fa.PureDP(0.1), 3)}), analyst="ann"
    )
    ledger.analyst("events", "ann").reserve_list("batch")
    ledger.analyst("events", "ann").reserve_list("set", items={"s": 2})
    ledger.owner().sign("events", certificate, name="second")
    ledger.owner().grant("events", "ann", farthings=3)
    fill(ledger, certificate, name="more")
    return ledger


@pytest.fixture
def other(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "other.db", clock=clock) as opened:
        yield opened


def test_what_is_imported_is_identical(full: Ledger, other: Ledger) -> None:
    lines = list(export_lines(full.reader()))
    assert import_lines(other, lines) == {"events": 18, "more": 3}
    assert list(export_lines(other.reader())) == lines
    assert verify(other.reader()) == verify(full.reader())
    for name in ("events", "more"):
        assert other.reader().purses(name) == full.reader().purses(name)
        assert other.reader().accounts(name) == full.reader().accounts(name)
        assert other.reader().open_reservations(name) == full.reader().open_reservations(name)
    assert markdown(statement(other.reader(), "events")) == markdown(
        statement(full.reader(), "events")
    )


def test_an_import_is_all_or_nothing(full: Ledger, other: Ledger) -> None:
    lines = list(export_lines(full.reader()))
    with pytest.raises(AlreadyThere, match="goes on here"):
        import_lines(full, lines)
    record = json.loads(lines[-1])
    record["fact"]["farthings"] = 10**6
    for broken in ([*lines[:-1], json.dumps(record)], lines[:3] + lines[4:], lines[:1] + lines[2:]):
        with pytest.raises(Damaged):
            import_lines(other, broken)
        assert other.reader().datasets() == []
    for garbage in ([], ["{}"], ["not json"], [lines[0], "[]"], [lines[0], "nonsense"]):
        if garbage:
            with pytest.raises(fa.InvalidInput):
                import_lines(other, garbage)
        else:
            assert import_lines(other, garbage) == {}
    assert other.reader().datasets() == []


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": ["x"]},
        {"dataset": 5},
        {"dataset": "\x00"},
        {"dataset": "y" * 300},
        {"number": "1"},
        {"number": True},
        {"fact": []},
        {"previous": None},
        {"hash": 1},
        {"more": 1},
    ],
)
def test_lines_of_the_wrong_shape_are_refused(other: Ledger, change: dict[str, object]) -> None:
    line = {"dataset": "d", "number": 1, "fact": {}, "previous": "", "hash": "", **change}
    with pytest.raises(fa.InvalidInput, match="line 2"):
        import_lines(other, ['{"format":"farthing ledger 1"}', json.dumps(line)])
