"""A tariff may sell samples; the engine draws none, so none of its questions is paid with one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import farthing as fa
from farthing.guarantees.losses import loss_of

SAMPLES = {
    "dp": fa.Subsampled(fa.PureDP(1.0), 0.1),
    "gauss": fa.Subsampled(fa.Gaussian(2.0), 0.1),
    "lap": fa.Subsampled(fa.Laplace(1.0), 0.1),
}


@pytest.fixture
def data(tmp_path: Path) -> Iterator[fa.Session]:
    leak = {"leak": (fa.ApproximateDP(0, 1e-6), 1)}
    tariff = fa.Tariff(
        {name: (one, 1) for name, one in SAMPLES.items()} | leak,
        farthings=20,
        delta_units=5,
        delta_unit=1e-6,
    ).certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    rows = pa.table({"m": list(range(100)), "k": ["a", "b"] * 50, "x": [1] * 100})
    options = {"dataset": "rows", "tariff": tariff, "farthings": 20, "delta_units": 5}
    with fa.open(rows, unit="m", ledger=tmp_path / "budget.db", **options) as session:
        yield session


QUESTIONS: list[dict[str, Any]] = [
    {"kind": "count"},
    {"kind": "histogram", "by": "k", "categories": ["a"], "contribution_limit": 1},
    {"kind": "histogram", "by": "k", "contribution_limit": 1},
    {"kind": "top_k", "by": "k", "k": 1, "counts": False},
    {
        "kind": "quantile",
        "column": "x",
        "probability": 0.5,
        "lower": 0,
        "upper": 9,
        "per_key_limit": 1,
    },
    {"kind": "mean", "column": "x", "lower": 0, "upper": 3, "per_key_limit": 1},
    {"kind": "count", "epsilon": 0.5},
    *({"kind": "count", "count": name} for name in SAMPLES),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_no_question_is_paid_with_a_sample(data: fa.Session, question: dict[str, Any]) -> None:
    with pytest.raises(fa.InvalidInput, match="item"):
        data.ask(question).run()
    assert data.remaining().farthings == 20


@pytest.mark.parametrize("name", SAMPLES)
def test_no_conversation_is_paid_with_a_sample(data: fa.Session, name: str) -> None:
    for watch in (data.watch(item=name), data.watch_guesses(tolerance=3, item=name)):
        with pytest.raises(fa.InvalidInput, match="item"):
            watch.open()
    assert data.remaining().farthings == 20


@pytest.mark.parametrize("sold", SAMPLES.values(), ids=str)
def test_a_sample_covers_nothing(sold: fa.Subsampled) -> None:
    for used in (fa.PureDP(1e-9), fa.BoundedRange(1e-9), fa.Gaussian(1e9), sold):
        assert not loss_of(sold).covers(used)
