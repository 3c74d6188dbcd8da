"""What the owner decides and sees: tariffs that change, batches, logs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import farthing as fa
from farthing.composition.tariffs.tariff import Price
from farthing.engine import Declaration, EngineFailure, open_source, query_from
from farthing.engine.kinds.count import CountQuery
from farthing.engine.purchase import buy
from farthing.errors import InvalidInput
from farthing.ledger import AlreadyThere, Dataset, Ledger, Limits, TariffChanged

ROWS = pa.table({"member": list(range(400)), "k": ["a", "b"] * 200, "x": [1] * 400})


def test_a_tariff_signed_between_plan_and_charge_stops_the_query(opened, tmp_path) -> None:
    """The new tariff sells something else by the same name at the same price."""
    data = opened(ROWS)
    planned = data.count().plan()
    weaker = fa.Tariff({"count": (fa.PureDP(0.001), 4)}, farthings=1000)
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        desk.sign(
            "events", weaker.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,)), name="b"
        )
        desk.grant("events", "analyst", farthings=1000)
    with pytest.raises(TariffChanged, match="plan again"):
        planned.run()
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
    histogram = query_from({"kind": "histogram", "by": "k", "contribution_limit": 1})
    assert dict(buy(histogram, tariff).items) == {"beta": 1, "leak": 1}


def test_nothing_is_dropped_by_default(opened, tmp_path) -> None:
    """A limit comes from the question, from the owner, or the question is refused."""
    data = opened(ROWS)
    refused = (
        data.histogram("k"),
        data.histogram("k", categories=["a", "b"]),
        data.top_k("k", 1, mechanism="noise"),
        data.distinct("k"),
        data.sum("x", by="k", lower=0, upper=3),
        data.mean("x", by="k", lower=0, upper=3, per_key_limit=1),
    )
    for question in refused:
        with pytest.raises(InvalidInput, match="contribution_limit must be given"):
            question.plan()
    with pytest.raises(InvalidInput, match="per_key_limit must be given"):
        data.quantile("x", lower=0, upper=10).plan()
    assert data.histogram("k", categories=["a"]).plan().price == data.count().plan().price
    assert data.top_k("k", 1).plan().query.contribution_limit is None  # nothing is dropped
    limits = Limits(contribution_limit=2, per_key_limit=3)
    declared = opened(ROWS, dataset="again", ledger=tmp_path / "other.db", limits=limits)
    assert declared.histogram("k").plan().query.contribution_limit == 2
    assert declared.quantile("x", lower=0, upper=10).plan().query.per_key_limit == 3
    assert declared.histogram("k").plan().query.per_key_limit == 1  # units, not rows
    with pytest.raises(InvalidInput, match="at most 2"):
        declared.histogram("k", contribution_limit=3).plan()


def test_a_registered_batch_is_exactly_that_list(opened, tmp_path) -> None:
    data = opened(ROWS)
    right = data.batch({"a": data.count(where={"k": "a"})})
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        desk.register("events", "monday", dict(right.queries), analyst="analyst")
    other = data.batch({"a": data.histogram("k", categories=["b"])})
    more = data.batch({"a": data.count(where={"k": "a"}), "b": data.count()})
    for wrong in (other, more):
        with pytest.raises(InvalidInput, match="not the one that was registered"):
            wrong.run(registered="monday")
    with pytest.raises(fa.FarthingError, match="tuesday"):
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
        batch.queries["more"] = data.count().query
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
    with pytest.raises(InvalidInput, match="top_k needs by"):
        data.ask({"kind": "top_k"})
    with pytest.raises(InvalidInput, match="table of fields"):
        data.ask("select 1")


def test_accuracy_of_selections_can_be_planned(opened) -> None:
    data = opened(ROWS)
    known = data.top_k("k", k=1, categories=["a", "b", "c"], counts=False)
    assert known.plan().expectation.selection.half_width > 0
    quantile = data.quantile("x", lower=0, upper=10, per_key_limit=1)
    stated = quantile.plan().expectation.selection.half_width
    assert quantile.plan(half_width=stated).price == Price(1)
    with pytest.raises(fa.Unattainable, match="narrowest"):
        quantile.plan(half_width=stated / 100)


def test_without_a_log_nothing_is_printed(opened, capfd, monkeypatch) -> None:
    data = opened(ROWS)
    monkeypatch.setattr(type(data.backend.context.source), "fetch", lambda *_: 1 / 0)
    with pytest.raises(EngineFailure) as caught:
        data.count().run()
    assert caught.value.__context__ is None
    assert capfd.readouterr().err == ""


def test_a_ledger_is_not_started_by_a_slip_of_the_pen(tmp_path) -> None:
    with pytest.raises(fa.FarthingError, match="no ledger"):
        fa.open(ROWS, dataset="events", unit="member", ledger=tmp_path / "slip.db")
    assert not (tmp_path / "slip.db").exists()
    tariff = fa.Tariff({"count": (fa.PureDP(0.1), 4)}, farthings=10)
    with pytest.raises(InvalidInput, match="farthings for an analyst"):
        fa.open(ROWS, dataset="events", unit="member", ledger=tmp_path / "b.db", tariff=tariff)


def test_names_and_labels_do_not_command_the_terminal(opened) -> None:
    name, label = "a[/b]", "\x1b[31mred"
    data = opened(pa.table({"member": [1], name: [label]}))
    answer = data.histogram(name, categories=[label]).run()
    screen = Console(record=True, width=80, file=None, color_system=None)
    with screen.capture() as shown:
        screen.print(answer)
        screen.print(data.histogram(name, categories=[label]).plan())
    assert "member per a[/b]" in shown.get()
    assert "\x1b" not in shown.get()


def test_a_dataset_from_before_there_were_schemas_is_described_once(tmp_path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(ROWS, path)
    coarse = fa.Tariff({"count": (fa.PureDP(0.1), 4)}, farthings=40).certify(
        tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,)
    )
    with Ledger.open(tmp_path / "b.db") as ledger:
        ledger.owner().add(Dataset("events", unit="member", owner="team"))
        ledger.owner().sign("events", coarse)
        ledger.owner().grant("events", "analyst", farthings=8)
    source = open_source(str(path))
    with fa.Desk.open(tmp_path / "b.db", owner="team") as desk:
        assert not desk.is_described("events")
        with pytest.raises(fa.InvalidInput, match="already"):
            fa.open(
                path,
                ledger=tmp_path / "b.db",
                dataset="events",
                unit="member",
                tariff=coarse,
                farthings=40,
                analyst="eve",
            )
        described = desk.describe(source, Declaration(unit="member"), "events")
        with pytest.raises(AlreadyThere):
            desk.add(source, Declaration(unit="member"), name="events")
    source.shut()
    assert described.schema is not None
    with fa.open(path, ledger=tmp_path / "b.db") as session:
        assert session.count().run().remaining == Price(4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tariff": "nowhere.toml"},
        {"tariff": fa.Tariff({"count": (fa.PureDP(400.0), 1)}, farthings=10)},
        {"farthings": -1},
    ],
)
def test_what_cannot_be_signed_leaves_no_dataset_behind(wrong, tmp_path, certificate) -> None:
    rows, ledger = pa.table({"member": [1, 2]}), tmp_path / "budget.db"
    right = {"unit": "member", "ledger": ledger, "dataset": "d", "tariff": certificate}
    with pytest.raises(fa.FarthingError):
        fa.open(rows, **{**right, "farthings": 10, **wrong})
    with fa.open(rows, **right, farthings=10) as data:
        assert data.remaining().farthings == 10


def test_a_tariff_is_named_by_its_file_or_by_that_of_its_certificate(tmp_path) -> None:
    rows = pa.table({"member": [1, 2]})
    tariff = fa.Tariff({"count": (fa.PureDP(0.1), 1)}, farthings=20)
    tariff.write(tmp_path / "tariff.toml")
    tariff.certify(tolerance=0.5, deltas=(1e-3,)).write(tmp_path / "certificate.json")
    known = {"unit": "member", "ledger": tmp_path / "budget.db", "dataset": "d"}
    with fa.open(rows, **known, tariff=tmp_path / "certificate.json", farthings=10):
        pass
    with fa.open(rows, **known, tariff=tmp_path / "tariff.toml") as data:
        assert data.remaining().farthings == 10
