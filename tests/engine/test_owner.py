"""What the owner decides and sees: tariffs that change, batches, logs."""

from __future__ import annotations

import logging
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import farthing as fa
from farthing.composition.tariff import Price
from farthing.engine.buying import buy
from farthing.engine.queries import CountQuery, query_from_json
from farthing.errors import InvalidInput
from farthing.ledger import TariffChanged

ROWS = pa.table({"member": list(range(400)), "k": ["a", "b"] * 200, "x": [1] * 400})


def test_a_tariff_signed_between_plan_and_charge_stops_the_query(opened, monkeypatch) -> None:
    """The new tariff sells something else by the same name at the same price."""
    data = opened(ROWS)
    weaker = fa.Tariff({"count": (fa.PureDP(0.001), 4)}, farthings=1000)
    certificate = weaker.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))
    reserve = data.spending.reserve

    def sign_first(*given, **options):
        data.spending.ledger.sign("events", certificate, name="second")
        data.spending.ledger.grant("events", "analyst", farthings=1000)
        return reserve(*given, **options)

    monkeypatch.setattr(data.spending, "reserve", sign_first)
    with pytest.raises(TariffChanged, match="plan again"):
        data.count().run()
    monkeypatch.undo()
    assert data.remaining() == Price(1000, 0)
    assert data.count().run().half_width > 1000


def test_the_cheapest_item_is_taken() -> None:
    tariff = fa.Tariff(
        {
            "alpha": (fa.PureDP(0.5), 100),
            "beta": (fa.PureDP(0.1), 4),
            "wide": (fa.ApproximateDP(0.5, 1e-9), 1),
            "leak": (fa.ApproximateDP(0, 1e-9), 2),
        },
        farthings=100,
        delta_units=5,
        delta_unit=1e-9,
    )
    assert dict(buy(CountQuery(), tariff).items) == {"beta": 1}
    histogram = query_from_json({"kind": "histogram", "by": "k"})
    assert dict(buy(histogram, tariff).items) == {"beta": 1, "leak": 1}


def test_a_registered_batch_is_exactly_that_list(opened) -> None:
    data = opened(ROWS)
    right = data.batch({"a": data.count(where={"k": "a"})})
    right.register("monday")
    other = data.batch({"a": data.histogram("k", categories=["b"])})
    more = data.batch({"a": data.count(where={"k": "a"}), "b": data.count()})
    for wrong in (other, more):
        with pytest.raises(InvalidInput, match="not the one that was registered"):
            wrong.run(registered="monday")
    with pytest.raises(InvalidInput, match="no batch is registered"):
        right.run(registered="tuesday")
    assert abs(right.run(registered="monday")["a"].value - 200) < 200
    assert data.remaining() == Price(1000, 100)


def test_a_batch_is_plain_data_and_is_remembered(opened) -> None:
    data = opened(ROWS)
    batch = data.batch({"all": data.count(), "a": {"kind": "count", "where": {"k": "a"}}})
    again = data.ask(batch.to_json())
    assert again.to_json() == batch.to_json()
    first = batch.run()
    assert data.remaining() == Price(992, 100)
    second = again.run()
    assert data.remaining() == Price(992, 100)
    assert all(answer.cached for answer in second.values())
    assert [a.counts for a in first.values()] == [a.counts for a in second.values()]
    assert not any(answer.cached for answer in batch.run(again=True).values())
    with pytest.raises(TypeError):
        batch.questions["more"] = data.count()
    for nothing in ({"kind": "batch"}, {"kind": "batch", "queries": {}}):
        with pytest.raises(InvalidInput, match="at least one question"):
            data.ask(nothing)


def test_questions_that_mean_the_same_are_the_same(opened) -> None:
    data = opened(ROWS)
    data.sum("x", lower=0, upper=2).run()
    assert data.sum("x", lower=0.0, upper=2.0).run().cached
    data.count(where={"k": ["a", "b", "a"]}).run()
    assert data.count(where={"k": ["b", "a"]}).run().cached
    with pytest.raises(InvalidInput, match="a list of labels"):
        data.histogram("k", categories="ab")
    with pytest.raises(InvalidInput, match="not complete: by, k"):
        data.ask({"kind": "top_k"})
    with pytest.raises(InvalidInput, match="table of fields"):
        data.ask("select 1")


def test_accuracy_of_selections_can_be_planned(opened) -> None:
    data = opened(ROWS)
    known = data.top_k("k", k=1, categories=["a", "b", "c"], counts=False)
    assert known.plan().expectation.selection.half_width > 0
    quantile = data.quantile("x", lower=0, upper=10)
    stated = quantile.plan().expectation.selection.half_width
    assert quantile.plan(half_width=stated).price == Price(1)
    with pytest.raises(fa.Unattainable, match="narrowest"):
        quantile.plan(half_width=stated / 100)


def test_what_an_engine_says_stays_with_the_owner(tmp_path) -> None:
    """A label that is not text makes the query fail; the analyst's terminal shows one line."""
    broken = pa.table({"member": [1, 2], "k": pa.array([b"\xff\xfesecret", b"x"], pa.binary())})
    broken = broken.set_column(1, "k", broken["k"].cast(pa.string(), safe=False))
    pq.write_table(broken, tmp_path / "events.parquet")
    (tmp_path / "tariff.toml").write_text(
        "farthings = 60\ndelta_units = 9\ndelta_unit = 1e-9\n"
        '[items.count]\nguarantee = "dp:0.1"\nprice = 4\n'
        '[items.leak]\nguarantee = "adp:0,1e-9"\nprice = 1\n',
        encoding="utf-8",
    )
    command = "query histogram events.parquet --unit member --by k --ledger b.db --tariff "
    command += "tariff.toml --farthings 60 --log owner.log"
    done = subprocess.run(
        [sys.executable, "-m", "farthing.cli", *command.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode != 0
    assert "the data engine failed" in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr + done.stdout
    assert "Traceback" in (tmp_path / "owner.log").read_text(encoding="utf-8")


def test_without_a_log_nothing_is_printed(opened, capfd, monkeypatch) -> None:
    data = opened(ROWS)
    monkeypatch.setattr(logging.getLogger("farthing"), "propagate", False)
    monkeypatch.setattr(data.source, "fetch", lambda _: 1 / 0)
    with pytest.raises(fa.engine.EngineFailure) as caught:
        data.count().run()
    assert caught.value.__context__ is None
    assert capfd.readouterr().err == ""


def test_a_ledger_is_not_started_by_a_slip_of_the_pen(tmp_path) -> None:
    with pytest.raises(fa.FarthingError, match="no ledger"):
        fa.open(ROWS, unit="member", ledger=tmp_path / "slip.db")
    assert not (tmp_path / "slip.db").exists()
    tariff = fa.Tariff({"count": (fa.PureDP(0.1), 4)}, farthings=10)
    with pytest.raises(InvalidInput, match="give farthings"):
        fa.open(ROWS, unit="member", ledger=tmp_path / "b.db", tariff=tariff)


def test_names_and_labels_do_not_command_the_terminal(opened) -> None:
    name, label = "a[/b]", "\x1b[31mred"
    data = opened(pa.table({"member": [1], name: [label]}))
    answer = data.histogram(name, categories=[label]).run()
    screen = Console(record=True, width=80, file=None, color_system=None)
    with screen.capture() as shown:
        screen.print(answer)
        screen.print(data.histogram(name, categories=[label]).plan())
    assert "histogram by a[/b]" in shown.get()
    assert "\x1b" not in shown.get()
    assert "counts for at most 1 label" in shown.get()
