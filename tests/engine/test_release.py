"""From a question to a release: price, purse, cache, batches."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import farthing as fa
from farthing import engine
from farthing.composition.tariffs.tariff import Price
from farthing.engine import ChargeMismatch, planning
from farthing.engine import context as compiling
from farthing.errors import InvalidInput
from farthing.ledger import DoesNotFit, Ledger, NotInLedger, verify
from farthing.mechanisms import Contribution

ROWS = pa.table(
    {
        "member": [i // 3 for i in range(6000)],
        "article": [f"article {i % 3 if i % 3 < 2 else i % 50}" for i in range(6000)],
        "country": ["NO" if i % 2 else "SE" for i in range(6000)],
        "age": [i % 90 for i in range(6000)],
        "spend": [float(i % 7) for i in range(6000)],
    }
)


def test_the_interface_that_is_promised(opened) -> None:
    events = opened(ROWS)
    question = events.top_k("article", k=2, where={"country": "NO"}, counts=True)
    plan = question.plan()
    assert plan.price == Price(11, 10)
    assert plan.remaining == events.remaining() == Price(1000, 100)
    assert plan.fits
    assert plan.expectation.counts is not None
    assert plan.expectation.counts.half_width == 30
    release = question.run()
    assert set(release.labels) == {"article 0", "article 1"}
    assert release.price == Price(11, 10)
    assert release.remaining == events.remaining() == Price(989, 90)
    assert release.intervals is not None
    truth = 1000
    assert sum(low <= truth <= high for low, high in release.intervals) >= 1
    assert not release.cached


def test_planning_touches_no_data(opened, monkeypatch) -> None:
    events = opened(ROWS)
    monkeypatch.setattr(type(events.backend._context.source), "run", None)
    events.top_k("article").plan(half_width=20)
    events.quantile("age", lower=0, upper=100, per_key_limit=1).plan()
    assert events.remaining() == Price(1000, 100)


def test_asking_again_costs_nothing_and_says_so(opened, tmp_path) -> None:
    events = opened(ROWS)
    first = events.count(where={"country": "NO"}).run()
    again = events.ask({"kind": "count", "where": {"country": "NO"}}).run()
    assert again.cached
    assert (again.labels, again.counts, again.half_width) == (("count",), first.counts, 30)
    assert again.remaining == events.remaining() == Price(996, 100)
    assert "at no cost" in str(again)
    assert events.count(where={"country": "NO"}).plan().known == again
    # a fresh draw can be paid for; other rows and other analysts have releases of their own
    assert not events.count(where={"country": "NO"}).run(again=True).cached
    assert events.remaining() == Price(992, 100)
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        desk.grant("events", "somebody else", farthings=8)
        other = opened(ROWS, analyst="somebody else")
        assert not other.count(where={"country": "NO"}).run().cached
        assert opened(ROWS).count(where={"country": "NO"}).run().cached
        assert not opened(ROWS, version="2").count(where={"country": "NO"}).run().cached
        live = opened(ROWS, version=None)
        assert not live.count().run().cached
        assert not live.count().run().cached


def test_a_list_that_ends_early_is_paid_for_what_it_shows(opened) -> None:
    events = opened(ROWS)
    release = events.top_k("article", k=10).run()
    assert release.stopped
    assert len(release) == 2
    # two labels and the end of the list; counts of two labels; one leak
    assert release.used == {"select": 3, "count": 2, "leak": 1}
    assert events.remaining() == Price(1000 - 12, 90)


def test_every_kind_of_query(opened, tmp_path) -> None:
    events = opened(ROWS)
    assert abs(events.count().run().value - 2000) <= 60
    assert abs(events.count(per_key_limit=5).run().value - 6000) <= 300
    known = events.histogram("country", categories=["NO", "SE", "DK"], contribution_limit=2).run()
    assert known.labels == ("NO", "SE", "DK")
    assert abs((known.counts or ())[0] - 2000) <= 60
    unknown = events.histogram(["article", "country"], contribution_limit=3).run()
    assert ("article 0", "NO") in unknown.labels
    assert all(count >= 200 for count in unknown.counts or ())
    median = events.quantile("age", lower=0, upper=100, per_key_limit=1).run()
    assert 35 <= median.value <= 55
    total = events.sum("spend", lower=0, upper=20, places=1, repeats=4).run()
    assert abs(total.value - 6000 * 3) <= 800
    noisy = events.top_k("article", 2, mechanism="noise", contribution_limit=3).run()
    assert set(noisy.labels) == {"article 0", "article 1"}
    quiet = events.top_k("article", 2, counts=False, categories=["article 0", "article 1", "x"])
    assert set(quiet.run().labels) == {"article 0", "article 1"}
    with Ledger.open(tmp_path / "budget.db") as ledger:
        assert verify(ledger.reader())[0].entries > 10


def test_repeats_narrow_the_interval(opened) -> None:
    events = opened(ROWS)
    plan = events.count().plan(half_width=12)
    assert plan.query.repeats > 1
    release = plan.run()
    assert release.half_width is not None
    assert release.half_width <= 12
    assert abs(release.value - 2000) <= 24
    assert events.remaining().farthings == 1000 - 4 * plan.query.repeats


def test_what_does_not_fit_is_refused_and_changes_nothing(opened) -> None:
    events = opened(ROWS)
    question = events.top_k("article", k=150, contribution_limit=None, count="fine")
    assert not question.plan().fits
    with pytest.raises(DoesNotFit) as refused:
        question.run()
    assert refused.value.requested.farthings > refused.value.remaining.farthings == 1000
    assert events.remaining() == Price(1000, 100)


def test_dashboards_run_whole(opened) -> None:
    events = opened(ROWS)
    board = events.batch({"everybody": events.count(), "articles": events.top_k("article", k=2)})
    assert board.plan().price == Price(4 + 11, 10)
    answers = board.run()
    assert set(answers) == {"everybody", "articles"}
    assert events.remaining() == Price(985, 90)
    large = events.batch(
        {"a": events.count(repeats=64), "b": events.count(count="fine", repeats=9)}
    )
    with pytest.raises(DoesNotFit):
        large.run()
    assert events.remaining() == Price(985, 90)
    with pytest.raises(InvalidInput):
        events.batch({})


def test_registered_dashboards_have_an_account_of_their_own(opened, tmp_path) -> None:
    events = opened(ROWS)
    board = events.batch({"everybody": events.count(), "top": events.top_k("article", k=2)})
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        for day in ("monday", "tuesday"):
            desk.register("events", day, dict(board.queries), analyst="analyst")
    answers = board.run(registered="monday")
    assert abs(answers["everybody"].value - 2000) <= 60
    assert answers["top"].price == Price(0)
    assert events.remaining() == Price(1000, 100)
    assert board.run(registered="monday")["top"].cached
    with pytest.raises(DoesNotFit):
        board.run(registered="monday", again=True)
    other = events.batch({"everybody": events.count(repeats=2)})
    with pytest.raises(InvalidInput, match="not the one that was registered"):
        other.run(registered="tuesday")


def test_a_charge_that_differs_from_the_reservation_stops_everything(opened, monkeypatch) -> None:
    events = opened(ROWS)
    honest = planning.buy

    def cheap(query, tariff):
        purchase = honest(query, tariff)
        items = {name: max(1, times - 1) for name, times in purchase.items.items()}
        return replace(purchase, items=items, price=tariff.price_of(items))

    monkeypatch.setattr(planning, "buy", cheap)
    monkeypatch.setattr(type(events.backend._context.source), "run", None)  # nothing may run
    with pytest.raises(ChargeMismatch):
        events.top_k("article", k=3).run()
    with pytest.raises(ChargeMismatch):
        events.batch({"a": events.top_k("article", k=3)}).run()


def test_a_statement_without_the_limits_is_caught(opened, monkeypatch) -> None:
    events = opened(ROWS)
    honest, more = compiling.statement_of, Contribution(None, 1)

    def careless(context, query, candidates):
        return honest(context, query, candidates)[0], more

    monkeypatch.setattr(compiling, "statement_of", careless)
    with pytest.raises(ChargeMismatch, match="limits"):
        events.histogram("article", contribution_limit=2).run()
    assert not events.top_k("article", k=2).run().cached  # needs no limit, so nothing is missing
    more = Contribution(1, 10**6)
    with pytest.raises(ChargeMismatch, match="limits"):
        events.sum("age", lower=0, upper=90).run()


def test_a_statement_that_cannot_be_written_is_refused_before_anything_is_paid(
    opened, monkeypatch
) -> None:
    events = opened(ROWS)

    def refuse(*_):
        raise InvalidInput("it cannot be said here")

    monkeypatch.setattr(compiling, "statement_of", refuse)
    planned = events.count().plan()  # a price needs no statement
    with pytest.raises(InvalidInput, match="said here"):
        planned.run()
    assert events.remaining() == Price(1000, 100)


def test_the_ledger_hears_of_a_release_on_the_clock(opened, monkeypatch) -> None:
    """Else purse, releases and transcripts would tell an analyst how long the rows took."""
    events = opened(ROWS)
    analyst, ran, seen = events.backend._context.analyst, [], []
    honest = events.backend._context.source.run

    def run(statement):
        ran.append(statement)
        return honest(statement)

    monkeypatch.setattr(events.backend._context.source, "run", run)

    def strike() -> None:
        seen.append((len(ran), analyst.purse().farthings_spent, len(analyst.releases())))

    timed = engine.Session(
        engine.LocalBackend(replace(events.backend._context, on_the_clock=strike))
    )
    planned = timed.top_k("article", k=9).plan()
    planned.run()
    assert seen == [(1, planned.price.farthings, 0)]
    talk = timed.watch().open()
    before = len(ran)
    asked = []
    honest_ask = talk._opened._held.ask_many

    def ask_many(questions):
        asked.append(len(seen))
        return honest_ask(questions)

    monkeypatch.setattr(talk._opened._held, "ask_many", ask_many)
    talk.exceeds(timed.count(), 2)
    assert [one[0] for one in seen] == [1, before + 1]
    assert asked == [2]  # once the clock had struck


def test_opening_again_adds_nothing(opened, tmp_path) -> None:
    events = opened(ROWS)
    events.count().run()
    assert opened(ROWS).remaining() == Price(996, 100)
    plain = engine.open(ROWS, ledger=tmp_path / "budget.db", dataset="events")
    assert plain.remaining() == Price(996, 100)
    plain.shut()
    with pytest.raises(InvalidInput, match="unit of events"):
        opened(ROWS, unit="age")
    other = fa.Tariff({"count": (fa.PureDP(0.1), 1)}, farthings=3)
    with pytest.raises(InvalidInput, match="another tariff"):
        engine.open(
            ROWS, unit="member", ledger=tmp_path / "budget.db", dataset="events", tariff=other
        )
    with pytest.raises(InvalidInput, match="not in the ledger"):
        engine.open(ROWS, unit="member", ledger=tmp_path / "budget.db", dataset="new")
    with pytest.raises(NotInLedger, match="no purse"):
        opened(ROWS, analyst="somebody new")


def test_a_tariff_may_come_from_a_file(tmp_path) -> None:
    file = tmp_path / "tariff.toml"
    file.write_text('farthings = 20\n[items.count]\nguarantee = "dp:0.1"\nprice = 4\n')
    with Ledger.open(tmp_path / "b.db") as ledger:
        budget = {"unit": "member", "dataset": "events", "tariff": file, "farthings": 8}
        events = engine.open(ROWS, ledger=ledger, **budget)
        assert events.count().run().remaining == Price(4)
        with pytest.raises(InvalidInput, match="sells none"):
            events.top_k("article").plan()
        events.shut()
    with pytest.raises(InvalidInput, match="not a readable tariff"):
        engine.open(ROWS, ledger=tmp_path / "c.db", **{**budget, "tariff": tmp_path / "none"})


def test_intervals_of_many_bars(opened) -> None:
    """Given release after a threshold; wider for all bars together; wider where noise chose."""
    events = opened(ROWS)
    unknown = events.histogram(["article", "country"], contribution_limit=3)
    answer = unknown.run()
    assert answer.half_width is None
    assert answer.intervals is not None
    lowest = (answer.counts or ())[-1] - answer.intervals[-1][0]
    assert lowest >= 30
    for field in ({}, {"contribution_limit": 1, "mechanism": "noise"}):
        known = {"categories": [f"article {i}" for i in range(10)], **field}
        alone = events.top_k("article", 3, **known)
        together = events.top_k("article", 3, simultaneous=True, **known)
        planned = [one.plan().expectation.counts.half_width for one in (alone, together)]
        assert [one.run().half_width for one in (alone, together)] == planned
        assert (planned[0] < planned[1]) == (not field)
        assert "hold for all numbers together" in str(together.run())
    assert planned[0] > 45
