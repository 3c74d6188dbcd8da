"""A budget in two numbers: made once, kept beside the data, the same when it is opened again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.composition.tariffs import prices as rungs
from farthing.composition.tariffs.prices import ladder

ROWS = pa.table({"player": ["a", "a", "b"], "year": [2001, 2002, 2001]})
BUDGET: dict[str, Any] = {"unit": "player", "epsilon": 3, "delta": 1e-6}


@pytest.fixture(scope="module")
def certificate() -> fa.Certificate:
    return ladder(epsilon=3, delta=1e-6)


@pytest.fixture
def salaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: fa.Certificate) -> Path:
    """A file, and a ladder that is not computed again for each test."""
    monkeypatch.setattr(rungs, "ladder", lambda **_: certificate)
    pq.write_table(ROWS, tmp_path / "salaries.parquet")
    return tmp_path / "salaries.parquet"


def test_it_just_works(salaries: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fa.open(salaries, **BUDGET) as data:
        place = str(salaries.with_name("salaries.farthing.db"))
        assert data.ledger_path == place
        assert place in capsys.readouterr().err
        assert place in repr(data)
        whole = data.purse()
        assert data.remaining() == fa.Price(whole.farthings, whole.delta_units)
        assert whole.farthings > 900
        assert data.count().run().price.farthings > 0
    assert Path(place).exists()


@pytest.mark.parametrize("again", [BUDGET, {}, {"unit": "player"}])
def test_opening_again_opens_the_same(
    salaries: Path, again: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with fa.open(salaries, **BUDGET) as data:
        left = data.count().run().remaining
    capsys.readouterr()
    with fa.open(salaries, **again) as data:
        assert data.remaining() == left
        assert data.count().plan().known is not None
    assert capsys.readouterr().err == "", "it is said once"


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"epsilon": 2.5}, r"signed before, for ε ≤ 2\.9"),
        ({"epsilon": 4}, "signed before"),
        ({"delta": 1e-5}, "signed before"),
        ({"delta": None}, "delta is the chance"),
        ({"epsilon": None}, "go together"),
        ({"tariff": "tariff.toml"}, "not both"),
        ({"unit": "year"}, "unit of salaries"),
    ],
)
def test_another_budget_is_refused(salaries: Path, other: dict[str, Any], why: str) -> None:
    fa.open(salaries, **BUDGET).shut()
    with pytest.raises(fa.InvalidInput, match=why):
        fa.open(salaries, **{**BUDGET, **other})


def test_nothing_is_left_behind_by_a_slip(salaries: Path) -> None:
    with pytest.raises(fa.InvalidInput, match="has no budget yet"):
        fa.open(salaries, unit="player")
    assert [one.name for one in salaries.parent.iterdir()] == ["salaries.parquet"]


def test_a_table_in_memory_has_its_ledger_here(
    salaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(salaries.parent)
    with fa.open(ROWS, dataset="players", **BUDGET) as data:
        assert data.ledger_path == str(salaries.with_name("players.farthing.db"))


def test_a_tariff_that_was_written_by_hand_is_no_ladder(salaries: Path, tmp_path: Path) -> None:
    own = fa.Tariff({"count": (fa.PureDP(0.1), 1)}, 10)
    book = tmp_path / "own.db"
    fa.open(salaries, ledger=book, unit="player", tariff=own, farthings=10).shut()
    with pytest.raises(fa.InvalidInput, match="signed before"):
        fa.open(salaries, ledger=book, **BUDGET)
