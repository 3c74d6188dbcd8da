"""A book with two lives: after an export and an import both ledgers went on selling.

A copy is for reading. A book that moves is sealed where it was, and goes on in one place.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

import farthing as fa
from farthing.ledger import (
    AlreadyThere,
    Damaged,
    Dataset,
    DoesNotFit,
    Ledger,
    ReadOnly,
    RegisteredBatch,
    Sealed,
    export_lines,
    import_lines,
    markdown,
    move,
    odometer,
    statement,
    verify,
)
from farthing.ledger import transfer as moving
from farthing.ledger.store.tables import datasets
from farthing.ledger.transfer import Carried
from tests.ledger.conftest import fill


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "there.db") as opened:
        yield opened


def sells(ledger: Ledger) -> bool:
    if "events" not in ledger.reader().datasets():
        return False
    try:
        ledger.analyst("events", "ann").reserve({"select": 1})
    except ReadOnly:
        return False
    return True


def writes(ledger: Ledger, certificate: fa.Certificate) -> list[Callable[[], object]]:
    """Everything that would add an entry."""
    owner, ann = ledger.owner(), ledger.analyst("events", "ann")
    (held,) = ledger.reader().open_reservations("events")
    listed = RegisteredBatch({"q": [fa.PureDP(0.1)]})
    return [
        lambda: ann.reserve({"select": 1}),
        lambda: ann.reserve_list("board"),
        lambda: ann.close(held, "d"),
        lambda: ann.abandon(held, reason="r"),
        lambda: owner.abandon(held, reason="r"),
        lambda: owner.grant("events", "ann", farthings=1),
        lambda: owner.revoke("events", "ann"),
        lambda: owner.sign("events", certificate, name="second"),
        lambda: owner.register("events", "more", listed, analyst="ann"),
        lambda: owner.declare_version("events", "2"),
        lambda: owner.seal("events", successor="f" * 32),
    ]


def prepare(ledger: Ledger) -> None:
    board = RegisteredBatch({"q": [fa.PureDP(0.1)]})
    ledger.owner().register("events", "board", board, analyst="ann")
    ledger.analyst("events", "ann").reserve({"select": 30})


def test_a_copy_is_read_and_never_written(
    ledger: Ledger, there: Ledger, certificate: fa.Certificate
) -> None:
    prepare(ledger)
    import_lines(there, export_lines(ledger.reader()))
    for attempt in writes(there, certificate):
        with pytest.raises(ReadOnly, match="copy for reading"):
            attempt()
    assert verify(there.reader()) == verify(ledger.reader())
    assert odometer(there.reader(), "events") == odometer(ledger.reader(), "events")
    assert there.analyst("events", "ann").remaining().farthings == 70
    assert sells(ledger)
    assert not sells(there)


def test_a_longer_export_extends_a_copy_and_no_other_does(
    ledger: Ledger, there: Ledger, certificate: fa.Certificate
) -> None:
    prepare(ledger)
    short = list(export_lines(ledger.reader()))
    import_lines(there, short)
    ledger.analyst("events", "ann").reserve({"select": 5})
    ledger.owner().sign("events", certificate, name="second")
    long = list(export_lines(ledger.reader()))
    assert import_lines(there, long) == {"events": 7}
    assert import_lines(there, long) == {"events": 7}  # nothing new
    assert list(export_lines(there.reader())) == long
    verify(there.reader())
    assert there.reader().accounts("events") == ledger.reader().accounts("events")
    with pytest.raises(AlreadyThere, match="longer"):
        import_lines(there, short)
    with pytest.raises(AlreadyThere, match="goes on here"):
        import_lines(ledger, long)
    assert not sells(there)


def test_another_chain_of_the_same_name_extends_nothing(
    ledger: Ledger, there: Ledger, tmp_path: Path, certificate: fa.Certificate
) -> None:
    import_lines(there, export_lines(ledger.reader()))
    with Ledger.open(tmp_path / "third.db") as third:
        fill(third, certificate)
        third.analyst("events", "ann").reserve({"select": 1})
        with pytest.raises(AlreadyThere, match="another one"):
            import_lines(there, export_lines(third.reader()))


def test_a_book_that_moved_sells_in_one_place(
    ledger: Ledger, there: Ledger, certificate: fa.Certificate
) -> None:
    prepare(ledger)
    left = ledger.analyst("events", "ann").remaining()
    secret = ledger.analyst("events", "ann").secret()
    (open_before,) = ledger.reader().open_reservations("events")
    assert move(ledger, there) == {"events": 7}
    for attempt in writes(ledger, certificate):
        with pytest.raises(Sealed, match="sealed here") as refused:
            attempt()
        assert refused.value.successor == there.reader().identity()
    ann = there.analyst("events", "ann")
    assert ann.remaining() == left
    assert ann.secret() == secret
    assert there.reader().open_reservations("events") == [open_before]
    ann.close(open_before, "d", used={"select": 10})
    assert ann.remaining().farthings == left.farthings + 20
    for one in (ledger, there):
        verify(one.reader())
    assert "Privacy statement" in markdown(statement(ledger.reader(), "events"))
    assert move(ledger, there) == {"events": 8}  # once more changes nothing
    kinds = [entry.kind for entry in there.reader().entries("events")]
    assert kinds[-3:] == ["seal", "resume", "close"]


def test_a_book_can_come_back(ledger: Ledger, there: Ledger) -> None:
    move(ledger, there)
    there.analyst("events", "ann").reserve({"select": 10})
    early = list(export_lines(there.reader()))
    move(there, ledger)
    assert sells(ledger)
    assert not sells(there)
    assert ledger.analyst("events", "ann").remaining().farthings == 89
    verify(ledger.reader())
    for stale in (early, early[:-2]):  # ends with a seal for the other, or with its resumption
        with pytest.raises(AlreadyThere):
            import_lines(there, stale)
    assert not sells(there)


def test_a_seal_for_another_ledger_takes_nothing_over(
    ledger: Ledger, there: Ledger, tmp_path: Path
) -> None:
    ledger.owner().seal("events", successor=there.reader().identity())
    with Ledger.open(tmp_path / "third.db") as third:
        import_lines(third, export_lines(ledger.reader()))
        assert not sells(third)
        with pytest.raises(ReadOnly, match="not sealed for this ledger"):
            move(ledger, third, "events")
        assert move(ledger, third) == {}  # nothing goes on here that could move there
    move(ledger, there)  # begun by the seal, ended now
    assert sells(there)


def test_opening_a_copy_with_the_database_s_own_tools_is_found(
    ledger: Ledger, there: Ledger
) -> None:
    import_lines(there, export_lines(ledger.reader()))
    with there.book.store.engine.connect() as connection, connection.begin():
        connection.execute(update(datasets).values(writable=1))
    with pytest.raises(Damaged, match="goes on elsewhere"):
        verify(there.reader())


def test_what_shares_data_moves_together(ledger: Ledger, there: Ledger, tmp_path: Path) -> None:
    owner = ledger.owner()
    owner.add(Dataset("all", unit="u", owner="o", location="file:/data"))
    owner.add(Dataset("part", unit="u", owner="o", location="file:/data/x"), beside="all")
    assert set(move(ledger, there, "all")) == {"all", "part"}
    assert there.reader().beside("part") == ("all", "part")
    assert ledger.reader().is_writable("events")
    lines = [
        line
        for line in export_lines(ledger.reader())
        if json.loads(line).get("dataset") in (None, "part")
    ]
    with (
        Ledger.open(tmp_path / "third.db") as third,
        pytest.raises(fa.InvalidInput, match="must come with it"),
    ):
        import_lines(third, lines)


def test_what_is_in_the_way_is_found_before_anything_is_sealed(
    ledger: Ledger, there: Ledger, certificate: fa.Certificate
) -> None:
    ledger.owner().add(Dataset("a", unit="u", owner="o", location="file:/data/a"))
    there.owner().add(Dataset("b", unit="u", owner="o", location="file:/data"))
    with pytest.raises(AlreadyThere, match="as the dataset b"):
        move(ledger, there, "a")
    fill(there, certificate)
    with pytest.raises(AlreadyThere, match="exists in the ledger"):
        move(ledger, there, "events")
    assert ledger.reader().is_writable("a")
    assert sells(ledger)
    with pytest.raises(fa.InvalidInput, match="not to its own"):
        move(ledger, ledger)


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("point", ["before the import", "in the import", "after the import"])
def test_interrupted_anywhere_at_most_one_sells_and_it_can_be_ended(
    ledger: Ledger, there: Ledger, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    real = moving.import_lines

    def killed(
        target: Ledger, lines: Iterator[str], carried: Carried, *, take_over: set[str]
    ) -> dict[str, int]:
        if point == "in the import":
            with monkeypatch.context() as inside:
                inside.setattr("farthing.ledger.transfer._take_over", _kill)
                real(target, lines, carried, take_over=take_over)
        if point == "after the import":
            real(target, lines, carried, take_over=take_over)
        raise Killed

    def _kill(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as during:
        during.setattr(moving, "import_lines", killed)
        with pytest.raises(Killed):
            move(ledger, there)
    assert not sells(ledger)
    assert sells(there) == (point == "after the import")
    move(ledger, there)
    assert not sells(ledger)
    assert sells(there)
    verify(there.reader())


def _move(source: str, target: str) -> None:
    with Ledger.open(source) as here, Ledger.open(target) as there:
        move(here, there)


@pytest.mark.slow
def test_killed_at_any_moment_at_most_one_sells(
    tmp_path: Path, certificate: fa.Certificate
) -> None:
    choose = random.Random(3)
    ended = 0
    for n in range(8):
        source, target = str(tmp_path / f"{n}.db"), str(tmp_path / f"{n}-there.db")
        with Ledger.open(source) as here:
            fill(here, certificate)
        Ledger.open(target).shut()
        process = multiprocessing.get_context("fork").Process(target=_move, args=(source, target))
        process.start()
        time.sleep(choose.random() * 0.12)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        with Ledger.open(source) as here, Ledger.open(target) as there:
            assert not (sells(here) and sells(there))
            ended += sells(there)
            move(here, there)
            assert (sells(here), sells(there)) == (False, True)
            verify(there.reader())
    assert ended < 8  # some were killed before the end


def test_what_is_sold_while_a_book_moves_moves_along(ledger: Ledger, there: Ledger) -> None:
    sold: list[int] = []
    started = threading.Event()

    def sell() -> None:
        ann = ledger.analyst("events", "ann")
        for _ in range(90):
            try:
                sold.append(ann.reserve({"select": 1}).entry)
            except (Sealed, DoesNotFit):  # it has moved, or everything was sold before
                return
            started.set()

    threads = [threading.Thread(target=sell) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    move(ledger, there)
    for thread in threads:
        thread.join()
    moved = [entry.number for entry in there.reader().entries("events", "reserve")]
    assert sorted(sold) == moved
    assert there.analyst("events", "ann").remaining().farthings == 100 - len(sold)
    verify(there.reader())
