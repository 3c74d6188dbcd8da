"""kill −9 while several spend and the book moves: nothing is sold in both, the cap is exact."""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import farthing as fa
from farthing.ledger import DoesNotFit, Ledger, move, verify
from tests.ledger import workers
from tests.ledger.conftest import fill
from tests.ledger.test_races import start

Context = multiprocessing.context.ForkServerContext
Told = tuple[str, int]

CAP = 500
ANALYSTS = ("ann", "bob", "eve")


def prepare(target: str, certificate: fa.Certificate) -> None:
    """Each may spend everything, so that only the cap stands in the way."""
    with Ledger.open(target) as ledger:
        fill(ledger, certificate)
        for name in ANALYSTS:
            ledger.owner().grant("events", name, farthings=CAP)


def drain(pipe: Connection) -> list[Told]:
    told = []
    try:
        while True:
            told.append(pipe.recv())
    except (EOFError, OSError):
        return told


def rounds_of_kills(
    processes: Context, targets: list[str], rounds: int, choose: random.Random
) -> list[Told]:
    """Three spend at once and are killed, again and again; what was acknowledged."""
    told: list[Told] = []
    for seed in range(rounds):
        running = [
            start(processes, workers.spend_wherever_it_goes_on, targets, name, seed)
            for name in ANALYSTS
        ]
        told += [pipe.recv() for _, pipe in running]
        time.sleep(choose.random() * 0.1)
        for process, _ in running:
            process.kill()
        for process, pipe in running:
            process.join()
            told += drain(pipe)
            pipe.close()
    return [one for one in told if one[0] != "refused"]


def spent_by_the_book(ledger: Ledger) -> int:
    book = ledger.reader().entries("events", "reserve", "close")
    return sum(entry.fact.farthings for entry in book)


def require_exact(ledger: Ledger, told: set[Told]) -> None:
    """Cap, purses and book agree, all that was acknowledged is there, and the rest can be spent
    to the last farthing and not one more."""
    reader = ledger.reader()
    verify(reader)
    written = {
        (entry.kind, getattr(entry.fact, "settles", entry.number))
        for entry in reader.entries("events", "reserve", "close")
    }
    assert told <= written
    (account,) = reader.accounts("events")
    spent = spent_by_the_book(ledger)
    purses = sum(purse.farthings_spent for purse in reader.purses("events"))
    assert account.farthings_spent == purses == spent <= CAP
    ann = ledger.analyst("events", "ann")
    if spent < CAP:
        ann.reserve({"select": CAP - spent})
    with pytest.raises(DoesNotFit):
        ann.reserve({"select": 1})
    assert spent_by_the_book(ledger) == CAP
    verify(reader)


@pytest.mark.slow
def test_the_cap_is_exact_after_kills(
    target: str, certificate: fa.Certificate, processes: Context
) -> None:
    prepare(target, certificate)
    told = rounds_of_kills(processes, [target], 15, random.Random(1))
    assert len(told) == len(set(told)) > 15
    with Ledger.open(target) as ledger:
        require_exact(ledger, {(what.split()[0], entry) for what, entry in told})


@pytest.mark.slow
def test_nothing_is_sold_in_both_books_whoever_is_killed(
    target: str, certificate: fa.Certificate, processes: Context, tmp_path: Path
) -> None:
    prepare(target, certificate)
    there = str(tmp_path / "there.db")
    Ledger.open(there).shut()
    choose = random.Random(2)
    told: list[Told] = []
    for seed in range(8):
        running = [
            start(processes, workers.spend_wherever_it_goes_on, [target, there], name, seed)
            for name in ANALYSTS
        ]
        told += [pipe.recv() for _, pipe in running]
        mover, news = start(processes, workers.move_book, target, there)
        news.recv()
        time.sleep(choose.random() * 0.05)
        for process in (mover, *(process for process, _ in running)):
            process.kill()
            process.join()
        for _, pipe in running:
            told += drain(pipe)
            pipe.close()
        news.close()
    with Ledger.open(target) as here, Ledger.open(there) as after:
        move(here, after)
        sealed, going_on = (list(one.reader().entries("events")) for one in (here, after))
        assert [one.hash for one in going_on[: len(sealed)]] == [one.hash for one in sealed]
        entries = [one for one in told if one[0] != "refused"]
        old = {number for what, number in entries if what == "reserve 0"}
        new = {number for what, number in entries if what == "reserve 1"}
        assert all(number < len(sealed) for number in old), "sold there before the seal alone"
        assert all(number > len(sealed) for number in new), "sold here after the seal alone"
        assert len(entries) == len(set(entries))
        with pytest.raises(fa.FarthingError):
            here.analyst("events", "ann").reserve({"select": 1})
        require_exact(after, {(what.split()[0], number) for what, number in entries})
