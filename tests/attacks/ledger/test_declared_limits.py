"""Limits that were written down and meant nothing: any name was a limit, and none was enforced.

There are two limits now, with names of their own; the ledger tells them to whoever asks a question,
which may count less of a unit and never more.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import farthing as fa
from farthing.ledger import Dataset, Ledger, Limits, markdown, statement, verify

OLD = Path(__file__).parents[2] / "ledger" / "data" / "ledger-0001.db"


def test_limits_are_told_to_the_analyst_and_in_the_statement(ledger: Ledger) -> None:
    limits = Limits(contribution_limit=5, per_key_limit=2)
    ledger.owner().add(Dataset("clicks", unit="user", owner="team", limits=limits))
    assert ledger.analyst("clicks", "ann").about().limits == limits
    page = markdown(statement(ledger.reader(), "clicks"))
    assert "at most 5 keys, at most 2 rows of a key" in page
    verify(ledger.reader())


def test_a_limit_that_nobody_could_enforce_is_refused() -> None:
    with pytest.raises(TypeError):
        Limits(anything=7)
    with pytest.raises(TypeError):
        Dataset("d", unit="u", owner="o", contribution_limits={"x": 7})
    for bad in (0, -1, 1.5, True):
        with pytest.raises(fa.InvalidInput):
            Limits(contribution_limit=bad)
        with pytest.raises(fa.InvalidInput):
            Limits(per_key_limit=bad)


def test_the_limit_of_an_old_ledger_is_one_now(tmp_path: Path) -> None:
    with Ledger.open(shutil.copy(OLD, tmp_path / "old.db")) as ledger:
        assert ledger.analyst("events", "ann").about().limits == Limits(contribution_limit=3)
        assert ledger.analyst("visits", "ann").about().limits == Limits()
