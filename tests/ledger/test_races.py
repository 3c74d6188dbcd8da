"""Processes racing for the same farthings, on both databases."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest

import farthing as fa
from farthing.ledger import Dataset, Ledger, verify
from tests.ledger import workers
from tests.ledger.conftest import fill

Context = multiprocessing.context.ForkServerContext


def start(processes: Context, work: Any, *arguments: Any) -> Any:
    here, there = processes.Pipe()
    process = processes.Process(target=work, args=(*arguments, there), daemon=True)
    process.start()
    there.close()
    return process, here


def race(processes: Context, target: str, jobs: list[tuple[str, int, dict[str, int]]]) -> list[Any]:
    """Every process is ready before the first one starts."""
    running = [start(processes, workers.race, target, *job) for job in jobs]
    for _, pipe in running:
        assert pipe.recv() == "ready"
    for _, pipe in running:
        pipe.send("go")
    results = [pipe.recv() for _, pipe in running]
    for process, pipe in running:
        process.join()
        pipe.close()
    return results


@pytest.mark.slow
def test_eight_processes_spend_exactly_the_cap(
    target: str, certificate: fa.Certificate, processes: Context
) -> None:
    with Ledger.open(target) as ledger:
        fill(ledger, certificate)
        ledger.owner().grant("events", "ann", farthings=10**6)
    results = race(processes, target, [("ann", 500, {"select": 1})] * 8)
    assert [strange for _, strange in results] == [[]] * 8
    assert sum(worked for worked, _ in results) == 500
    with Ledger.open(target) as ledger:
        (account,) = ledger.reader().accounts("events")
        assert account.farthings_spent == account.farthings == 500
        (found,) = verify(ledger.reader())
        assert found.entries == 4 + 500


def test_two_purses_race_for_one_cap(
    target: str, certificate: fa.Certificate, processes: Context
) -> None:
    with Ledger.open(target) as ledger:
        fill(ledger, certificate)
        ledger.owner().grant("events", "ann", farthings=200)
        ledger.owner().grant("events", "bob", farthings=300)
    jobs = [("ann", 60, {"select": 3, "count": 1}), ("bob", 60, {"select": 7})] * 2
    results = race(processes, target, jobs)
    assert [strange for _, strange in results] == [[]] * 4
    with Ledger.open(target) as ledger:
        (account,) = ledger.reader().accounts("events")
        spent = {purse.analyst: purse.farthings_spent for purse in ledger.reader().purses("events")}
        assert spent["ann"] == 7 * (results[0][0] + results[2][0]) <= 300
        assert spent["bob"] == 7 * (results[1][0] + results[3][0]) <= 300
        assert 500 - 7 < account.farthings_spent == sum(spent.values()) <= 500
        verify(ledger.reader())


def test_everybody_may_open_a_new_ledger_at_once(target: str, processes: Context) -> None:
    running = [start(processes, _open_and_add, target, f"d{i}") for i in range(6)]
    assert [pipe.recv() for _, pipe in running] == ["done"] * 6
    for process, pipe in running:
        process.join()
        pipe.close()
    with Ledger.open(target) as ledger:
        assert len(ledger.reader().datasets()) == 6


def _open_and_add(target: str, name: str, out: Any) -> None:
    try:
        with Ledger.open(target) as ledger:
            ledger.owner().add(Dataset(name, unit="u", owner="o"))
        out.send("done")
    except Exception as error:
        out.send(repr(error))


def test_a_fork_does_not_share_connections(ledger: Ledger) -> None:
    import os

    if ledger.book.store.engine.pool.checkedin() == 0:
        pytest.fail("the pool must hold a connection for this test to mean anything")
    child = os.fork()
    if child == 0:
        try:
            ledger.analyst("events", "ann").reserve({"select": 1})
            os._exit(0)
        except BaseException:
            os._exit(1)
    ledger.analyst("events", "ann").reserve({"select": 2})
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.analyst("events", "ann").remaining().farthings == 97
    verify(ledger.reader())
