"""A plan is what runs: under the tariff it was made with, or not at all."""

from __future__ import annotations

import pyarrow as pa
import pytest

import farthing as fa
from farthing.composition.tariffs.tariff import Price
from farthing.ledger import TariffChanged

ROWS = pa.table({"member": list(range(400)), "k": ["a", "b"] * 200})


def test_a_plan_is_not_bought_again_under_another_tariff(opened, tmp_path) -> None:
    """Planned for 4 farthings; a dearer tariff is signed; 60 must not be charged."""
    session = opened(ROWS)
    planned = session.count().plan()
    assert planned.price == Price(4)
    dear = fa.Tariff({"count": (fa.PureDP(0.4), 60)}, farthings=600)
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        desk.sign("events", dear.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,)), name="b")
        desk.grant("events", "analyst", farthings=600)
    with pytest.raises(TariffChanged):
        planned.run()
    with pytest.raises(TariffChanged):
        session.batch({"a": session.count()}).plan() and planned.run()
    assert session.remaining() == Price(600)
    assert session.count().run().price == Price(60)


def test_a_plan_for_a_width_runs_with_its_own_repeats(opened) -> None:
    session = opened(ROWS)
    planned = session.count().plan(half_width=12)
    answer = planned.run()
    assert answer.price == planned.price
    assert answer.half_width is not None
    assert answer.half_width <= 12
    assert answer.query == planned.query


def test_registered_lists_are_told_apart_by_the_whole_digest(opened, tmp_path) -> None:
    session = opened(ROWS)
    board = session.batch({"a": session.count(where={"k": "a"})})
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        account = desk.register("events", "monday", dict(board.queries), analyst="analyst")
        document = desk.ledger.reader().document("events", account.number)
    ((name, _),) = document["list"]
    key, digest = name.split(" ")
    assert (key, len(digest)) == ("a", 64)


def test_the_price_of_asking_again_is_planned(opened) -> None:
    """What is known costs nothing to see, and its plan says what it costs to pay for it anew."""
    session = opened(ROWS)
    session.count().run()
    plan = session.count().plan()
    assert plan.known is not None
    assert plan.price == plan.price_again == Price(4)
    batch = session.batch({"a": session.count(), "b": session.count(where={"k": "a"})})
    batch.run()
    known = batch.plan()
    assert (known.price, known.price_again) == (Price(0), Price(8))
    before = session.remaining().farthings
    known.run(again=True)
    assert before - session.remaining().farthings == 8


def test_questions_of_a_list_have_names(opened, tmp_path) -> None:
    session = opened(ROWS)
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        for name in ("", "n" * 201, "a\nb"):
            with pytest.raises(fa.InvalidInput, match="a question's name"):
                desk.register("events", "monday", {name: session.count().query}, analyst="analyst")
