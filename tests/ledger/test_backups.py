"""The drill: a ledger is copied, goes on, and is lost; its books go on from the copy.

Whatever was sold after the copy was made, from the restored book nothing is sold a second time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import farthing as fa
from farthing.errors import InvalidInput
from farthing.ledger import (
    AlreadySettled,
    AlreadyThere,
    Damaged,
    Ledger,
    NotInLedger,
    RegisteredSet,
    Sealed,
    back_up,
    coalition,
    export_lines,
    import_lines,
    markdown,
    odometer,
    restore,
    statement,
    verify,
)
from farthing.ledger.entries.fact import linked
from farthing.ledger.errors import ReadOnly
from tests.ledger.conftest import Clock, fill, open_talk

DELTA = 1e-3


@pytest.fixture
def other(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    """Where the books go on."""
    with Ledger.open(tmp_path / "other.db", clock=clock) as opened:
        yield opened


def copied(ledger: Ledger, folder: Path) -> list[str]:
    """A copy as an owner would make it."""
    file = folder / "copy.jsonl"
    (walk,) = back_up(ledger.reader(), file).values()
    assert walk.hash == ledger.reader().head("events").hash
    return file.read_text(encoding="utf-8").splitlines()


def test_nothing_is_sold_twice(ledger: Ledger, other: Ledger, tmp_path: Path) -> None:
    ledger.analyst("events", "ann").reserve({"select": 10})
    lines = copied(ledger, tmp_path)
    ledger.owner().grant("events", "bob", farthings=300)
    ledger.analyst("events", "bob").reserve({"select": 300})
    truth = odometer(ledger.reader(), "events", delta=DELTA).epsilon
    restore(other, lines)
    with pytest.raises(NotInLedger, match="no tariff is in force"):
        other.analyst("events", "ann").reserve({"select": 1})
    (cap,) = other.reader().accounts("events")
    assert (cap.farthings_spent, cap.delta_units_spent) == (500, 100)
    assert odometer(other.reader(), "events", delta=DELTA).epsilon >= truth
    alone = odometer(other.reader(), "events", delta=DELTA, analysts=["ann"])
    assert alone.shared, "bob is not in the copy, and may have shown in what ann was refused"
    assert alone.epsilon >= truth
    assert coalition(other.reader(), "events", ["ann"], delta=DELTA).epsilon >= truth
    verify(other.reader(), prove=True)


def test_the_owner_signs_for_what_is_still_to_be_given(
    ledger: Ledger, other: Ledger, certificate: fa.Certificate, tmp_path: Path
) -> None:
    restore(other, copied(ledger, tmp_path))
    other.owner().sign("events", certificate, name="after the loss")
    other.owner().grant("events", "ann", farthings=5)
    other.analyst("events", "ann").reserve({"select": 5})
    whole = statement(other.reader(), "events", delta=DELTA)
    before = statement(ledger.reader(), "events", delta=DELTA)
    assert whole["lifetime"][0]["epsilon"] > before["lifetime"][0]["epsilon"]
    for number in (*whole["lifetime"], *whole["per_analyst"], whole["colluding"]):
        assert "after the copy" in number["if"]
    assert "after the copy" in whole["so_far"]["assuming"]
    page = markdown(whole)
    assert "went on from a copy" in page
    assert "went on from a copy" not in markdown(before)
    verify(other.reader())


def test_what_was_open_is_over(ledger: Ledger, other: Ledger, tmp_path: Path) -> None:
    ann = ledger.analyst("events", "ann")
    held = ann.reserve({"select": 4})
    talk = open_talk(ledger)
    ledger.owner().register(
        "events", "set", RegisteredSet({"s": (fa.PureDP(0.1), 3)}), analyst="ann"
    )
    restore(other, copied(ledger, tmp_path))
    again = other.analyst("events", "ann")
    with pytest.raises(AlreadySettled):
        again.close(held, "d", used={"select": 0})
    assert not other.reader().open_reservations("events")
    with pytest.raises(InvalidInput, match="retired"):
        again.reserve_list("set", items={"s": 1})
    with pytest.raises(NotInLedger):
        again.conversation(talk.id)
    assert [one.farthings_spent for one in other.reader().accounts("events")] == [500, 10, 0]
    verify(other.reader())


def test_nothing_comes_back_of_what_a_copy_held(
    ledger: Ledger, other: Ledger, tmp_path: Path
) -> None:
    """By hand: an entry that returns farthings of a reservation from before the copy."""
    held = ledger.analyst("events", "ann").reserve({"select": 4})
    restore(other, copied(ledger, tmp_path))
    lines = list(export_lines(other.reader()))
    last = json.loads(lines.pop())
    assert last["fact"]["kind"] == "abandon"
    fact = {
        **{k: v for k, v in last["fact"].items() if k != "reason"},
        "kind": "close",
        "settles": held.entry,
        "unused": {"select": 4},
        "farthings": -4,
        "release": None,
        "release_digest": "d",
        "use": None,
    }
    forged = {**last, "fact": fact, "hash": linked(last["previous"], fa.ledger.digest(fact))}
    with (
        Ledger.open(tmp_path / "third.db") as third,
        pytest.raises(Damaged, match="can only be abandoned"),
    ):
        import_lines(third, [*lines, json.dumps(forged)])


def test_a_copy_of_the_file_itself(
    tmp_path: Path, other: Ledger, certificate: fa.Certificate
) -> None:
    """SQLite's online backup, or any copy of the database: `farthing owner restore` reads both."""
    with Ledger.open(tmp_path / "budget.db") as ledger:
        fill(ledger, certificate)
        _online_copy(tmp_path)
        ledger.analyst("events", "ann").reserve({"select": 10})
    with Ledger.open(tmp_path / "online.db", upgrade=False) as copy:
        restore(other, export_lines(copy.reader()))
    with pytest.raises(NotInLedger, match="no tariff is in force"):
        other.analyst("events", "ann").reserve({"select": 1})
    verify(other.reader())


def _online_copy(tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "budget.db")) as source,
        closing(sqlite3.connect(tmp_path / "online.db")) as target,
    ):
        source.backup(target)


def test_a_book_that_has_moved_is_not_restored(
    ledger: Ledger, other: Ledger, tmp_path: Path
) -> None:
    ledger.owner().seal("events", successor="elsewhere")
    with pytest.raises(Sealed):
        restore(other, copied(ledger, tmp_path))
    assert other.reader().datasets() == []


def test_a_book_that_goes_on_is_not_restored_over(ledger: Ledger, tmp_path: Path) -> None:
    lines = copied(ledger, tmp_path)
    with pytest.raises(AlreadyThere, match="goes on here"):
        restore(ledger, lines)
    ledger.analyst("events", "ann").reserve({"select": 1})


def test_a_copy_that_was_imported_to_be_read_can_go_on(
    ledger: Ledger, other: Ledger, tmp_path: Path
) -> None:
    lines = copied(ledger, tmp_path)
    import_lines(other, lines)
    with pytest.raises(ReadOnly):
        other.owner().declare_version("events", "2")
    restore(other, lines)
    other.owner().declare_version("events", "2")
    verify(other.reader())


def test_a_copy_is_whole_or_not_there(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        back_up(ledger.reader(), tmp_path / "missing" / "copy")
    (tmp_path / "taken").mkdir()
    with pytest.raises(InvalidInput, match="cannot be written"):
        back_up(ledger.reader(), tmp_path / "taken")
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".taken")]
