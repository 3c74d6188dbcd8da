"""Accounts that were opened because of releases, in datasets beside each other.

An account's share of δ followed its place in a list sorted by dataset, so an account that was
opened later in one dataset changed the share of an earlier one in another. The views that stop
early had counted on the larger share: with δ = 0.01 all of them together added 1.241 δ.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import farthing as fa
from farthing.composition.accounts.account_profiles import shares_of_delta
from farthing.ledger import Dataset, Entry, Ledger, RegisteredBatch, verify
from farthing.ledger.entries.fact import Fact
from farthing.ledger.reports.budget import Lifetimes
from farthing.ledger.store import commands

DELTA = 0.01
#: Rate and ε of a sampled randomized response, and the dataset whose list it is.
STEPS = (("b", 0.00499, 10.0), ("a", 0.00499, 16.0), ("a", 0.0025, 16.0))


def open_step(ledger: Ledger, number: int) -> None:
    dataset, rate, epsilon = STEPS[number]
    listed = RegisteredBatch({"q": [fa.Subsampled(fa.PureDP(epsilon), rate)]})
    ledger.owner().register(dataset, f"list {number}", listed, analyst="ann")


def chances(number: int) -> tuple[float, float]:
    """Of the answer that tells: with the unit in the table, and without it."""
    _, rate, epsilon = STEPS[number]
    lie = 1 / (1 + math.exp(epsilon))
    return (1 - rate) * lie + rate * (1 - lie), lie


def total_excess(stated: list[float]) -> float:
    """∑ [P − e^ε Q]₊ over the views, with the ε that is stated when so many accounts are there.

    The next account is opened only if the one before told little.
    """
    total, little_p, little_q = 0.0, 1.0, 1.0
    for number, epsilon in enumerate(stated):
        p, q = chances(number)
        total += max(0.0, little_p * p - math.exp(epsilon) * little_q * q)
        little_p, little_q = little_p * (1 - p), little_q * (1 - q)
    return total + max(0.0, little_p - math.exp(stated[-1]) * little_q)


def stated(ledger: Ledger, dataset: str) -> float:
    """ε of all accounts, whatever led to opening them; infinite if nothing is proved."""
    unplanned = Lifetimes(ledger.reader(), dataset, DELTA).whatever_led_to_them()
    return math.inf if unplanned is None else unplanned


def start(path: Path, *, linked: bool = True) -> Ledger:
    ledger = Ledger.open(path)
    ledger.owner().add(Dataset("a", unit="u", owner="o"))
    ledger.owner().add(Dataset("b", unit="u", owner="o"), beside="a" if linked else None)
    return ledger


def test_the_attack_is_as_strong_as_it_was_said() -> None:
    """What was stated with the shares of the sorted list, as each account is opened."""
    assert total_excess([0.0, 4.0224620, 4.4233215]) == pytest.approx(1.2414 * DELTA, rel=1e-4)


@pytest.mark.parametrize("dataset", ["a", "b"])
def test_what_is_stated_holds_over_all_views(tmp_path: Path, dataset: str) -> None:
    with start(tmp_path / "x.db") as ledger:
        read = []
        for number in range(3):
            open_step(ledger, number)
            read.append(stated(ledger, dataset))
        assert total_excess(read) <= DELTA
        assert read[-1] < math.inf, "something must be stated"
        verify(ledger.reader())


def test_a_share_is_fixed_when_the_account_is_opened(tmp_path: Path) -> None:
    with start(tmp_path / "x.db") as ledger:
        for number in range(3):
            open_step(ledger, number)
        for dataset in ("a", "b"):
            indexes = {
                account.record.name: account.share
                for account in Lifetimes(ledger.reader(), dataset, DELTA).accounts
            }
            assert indexes == {"list 0": 1, "list 1": 2, "list 2": 3}


@pytest.mark.parametrize("dataset", ["a", "b"])
def test_books_of_earlier_versions_never_understate(
    tmp_path: Path, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their accounts have no share but their own number, which two of them have in common."""
    append = commands.append

    def as_before(connection: Any, row: int, fact: Fact, token: str) -> Entry:
        if "share" in fact.rules:
            fact = replace(fact, absent=frozenset({"share"}))
        return append(connection, row, fact, token)

    monkeypatch.setattr(commands, "append", as_before)
    with start(tmp_path / "x.db") as ledger:
        read = []
        for number in range(3):
            open_step(ledger, number)
            read.append(stated(ledger, dataset))
        assert total_excess(read) <= DELTA
        verify(ledger.reader())
        for entry in ledger.reader().entries(dataset):
            assert "share" not in entry.fact.to_json()


@pytest.mark.parametrize("dataset", ["a", "b"])
def test_datasets_that_are_linked_later_never_understate(tmp_path: Path, dataset: str) -> None:
    """Each had counted its own accounts only, so two of them have the same share."""
    with start(tmp_path / "x.db", linked=False) as ledger:
        open_step(ledger, 0)
        read = [stated(ledger, "b")]
        open_step(ledger, 1)
        ledger.owner().describe(ledger.reader().dataset("b"), beside="a")
        read.append(stated(ledger, dataset))
        open_step(ledger, 2)
        read.append(stated(ledger, dataset))
        assert total_excess(read) <= DELTA
        verify(ledger.reader())


def test_shares_add_up_to_delta_over_every_way_to_open_accounts() -> None:
    """For each number of accounts that have one index in common, over all views that end there."""
    most = {
        common: sum(sum(shares_of_delta([index] * common, 1.0)) for index in range(1, 60))
        for common in range(1, 40)
    }
    assert most[1] > 0.98
    assert sum(most.values()) <= 1
    for indexes in itertools.product((1, 2, 3), repeat=3):
        common = max(map(indexes.count, indexes))
        assert sum(shares_of_delta(indexes, 1.0)) <= most[common]
