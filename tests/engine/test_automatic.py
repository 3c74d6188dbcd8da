"""Limits that are looked for: what they cost, that they are good, and that one unit cannot tell."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain, combinations, pairwise, product

import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine import query_from
from farthing.engine.contribution_limits import automatic
from farthing.engine.kinds.counts import HistogramQuery
from farthing.engine.kinds.limit import PARTS, LimitQuery, total_error
from farthing.errors import InvalidInput
from farthing.ledger import Ledger, Limits, verify

RUNGS = {f"count-{price}": (fa.Gaussian(16 / price**0.5), price) for price in (1, 2, 4, 8, 16)}
TARIFF = fa.Tariff(
    {
        "select": (fa.BoundedRange(0.5), 4),
        "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
        **RUNGS,
    },
    farthings=400,
    delta_units=50,
    delta_unit=1e-9,
)
#: 3000 units with four of eight labels each, and a few with all.
UNITS = [(u, (u + j) % 8) for u in range(3000) for j in range(4 if u % 100 else 8)]
ROWS = pa.table({"member": [u for u, _ in UNITS], "k": [k for _, k in UNITS]})
EIGHT = {"categories": list(range(8)), "count": "count-16"}


@pytest.fixture
def data(tmp_path):
    certificate = TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(5.0,))
    with fa.open(
        ROWS,
        unit="member",
        ledger=tmp_path / "b.db",
        tariff=certificate,
        farthings=300,
        dataset="events",
    ) as session:
        yield session


def test_the_plan_shows_both_parts(data) -> None:
    plan = data.histogram("k", contribution_limit="auto", **EIGHT).plan()
    assert plan.price.farthings == 4 + 16
    text = str(plan)
    for part in ("first", "The limit on values of `k`", "at limit 1", "at limit 8", "count-2"):
        assert part in text
    choices = plan.to_json()["limits"]["choices"]
    assert [(c["limit"], c["farthings"]) for c in choices] == [(1, 16), (2, 16), (4, 16), (8, 16)]
    errors = [c["expected_error"] for c in choices]
    assert errors[3] == pytest.approx(errors[0] * 8**0.5, rel=0.1)
    assert "that is chosen first" in plan.caption
    assert plan.fits


def test_it_is_found_once_and_then_known(data, tmp_path) -> None:
    asked = data.histogram("k", contribution_limit="auto", **EIGHT)
    before = data.remaining().farthings
    answer = asked.run()
    assert before - data.remaining().farthings == 20
    assert answer.query.contribution_limit in (4, 8)
    assert "at most 4 values of `k`" in answer.caption or answer.query.contribution_limit == 8
    assert not asked.plan().chooses_limits
    assert asked.run().cached
    assert before - data.remaining().farthings == 20
    asked.run(again=True)
    assert before - data.remaining().farthings == 36  # the limit is known
    with Ledger.open(tmp_path / "b.db") as ledger:
        kinds = [entry.kind for entry in ledger.reader().entries("events")]
        assert kinds.count("close") == 3
        assert verify(ledger.reader())[0].entries == len(kinds)


def test_for_every_way_to_count_labels(data) -> None:
    unknown = data.histogram("k", contribution_limit="auto", count="count-16").run()
    assert unknown.query.contribution_limit in (4, 8, 16)
    top = data.top_k("k", 3, contribution_limit="auto", count="count-16")
    assert top.plan().price.farthings == 4 + 3 * 4 + 16 + 1
    assert top.run().query.contribution_limit in (1, 2, None)
    asked = data.histogram("k", contribution_limit="auto", epsilon=0.2, categories=[0, 1]).plan()
    assert asked.price.farthings == 4 + 16  # 1/σ = 0.25 is the next rung
    measured = data.histogram("k", contribution_limit="auto", measure_loss=True, **EIGHT)
    assert measured.plan().price.farthings in (17, 20, 21)
    measured.run()
    with pytest.raises(InvalidInput, match="without counts"):
        data.top_k("k", 3, counts=False, contribution_limit="auto").plan()
    with pytest.raises(InvalidInput, match="must be a number"):
        data.distinct("k", contribution_limit="auto").plan()
    with pytest.raises(InvalidInput, match="must be a number"):
        data.histogram("k", contribution_limit="auto").plan(half_width=3)


def test_batches_resolve_first_and_lists_refuse(data, tmp_path) -> None:
    asked = data.histogram("k", contribution_limit="auto", **EIGHT)
    batch = data.batch({"a": asked, "b": data.count(count="count-4"), "c": asked})
    planned = batch.plan()
    assert planned.price.farthings == 4 + 16 + 4  # the same question under two names is one
    before = data.remaining().farthings
    found = batch.run()
    assert before - data.remaining().farthings == planned.price.farthings
    assert found["a"].query.contribution_limit in (4, 8)
    assert batch.run()["a"].cached
    with (
        fa.Desk.open(tmp_path / "b.db") as desk,
        pytest.raises(InvalidInput, match="must be a number"),
    ):
        desk.register("events", "monday", {"a": asked.query}, analyst="analyst")
    other = data.histogram("k", contribution_limit="auto", where={"k": 1}, **EIGHT)
    with pytest.raises(InvalidInput, match="limits that are numbers"):
        data.batch({"a": other}).run(registered="monday")


def test_what_is_tried() -> None:
    def tried(query, most=None) -> list[int]:
        found = automatic(query_from(query), TARIFF, 0.95, most)
        assert found is not None
        return list(found.choices)

    auto = {"kind": "histogram", "by": "k", "contribution_limit": "auto", "count": "count-16"}
    assert tried(auto) == [1, 2, 4, 8, 16, 32, 64]
    assert tried(auto, most=10) == [1, 2, 4, 8, 10]
    assert tried({**auto, "count": "count-1"}) == [1, 2, 4]  # at most four times the price
    assert tried({**auto, "categories": ["a"]}) == [1]
    assert tried({**auto, "kind": "top_k", "k": 5}) == [1, 2, 4, 5]
    assert automatic(HistogramQuery("k", contribution_limit=3), TARIFF, 0.95, None) is None


def totals(query: LimitQuery, units: list[tuple[str, ...]]) -> list[int]:
    """What the statement gives for units with these labels, and what is made of it."""
    most = query.limits[-1]
    sizes = Counter(label for labels in units for label in labels[:most])
    rows = Counter(f"u{min(len(labels), most)}" for labels in units if labels)
    if query.numbers is None:
        rows.update(f"l{min(size, max(query._caps))}" for size in sizes.values())
    table = pa.table({"label": list(rows), "n": pa.array(rows.values(), pa.decimal128(38, 0))})
    return query.data(table).counts.tolist()


@pytest.mark.parametrize("noise", [(0.0, 0.0, 0.0), (1.0, 1.4, 2.0), (30.0, 42.4, 60.0)])
@pytest.mark.parametrize("numbers", [None, 5])
def test_no_unit_spreads_the_totals_by_more_than_the_range(noise, numbers) -> None:
    """Exhaustive: up to three units with any of four labels, and one more."""
    query = LimitQuery("k", limits=(1, 2, 4), noise=noise, labels=numbers)
    kinds = list(chain.from_iterable(combinations("abcd", n) for n in range(5)))
    most = 0
    for size in range(3):
        for units in product(kinds, repeat=size):
            before = totals(query, list(units))
            for one in kinds:
                after = totals(query, [*units, one])
                moved = [b - a for a, b in zip(before, after, strict=True)]
                most = max(most, max(moved) - min(moved))
    assert most <= query.score_range
    if not any(noise):
        assert most == query.score_range - (2 if numbers else PARTS)


def test_total_errors_grow_by_at_most_what_is_lost() -> None:
    for error, numbers in ((0.0, 3), (0.8, 1), (10.0, 33), (500.0, 4)):
        found = [total_error(lost, error, numbers) for lost in range(0, 3000, 7)]
        steps = [b - a for a, b in pairwise(found)]
        assert min(steps) >= 0
        assert max(steps) <= 7 * PARTS + 1
        assert found[0] == pytest.approx(PARTS * numbers * error, abs=1)


def test_limits_of_the_owner_bound_what_is_tried(tmp_path) -> None:
    certificate = TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(5.0,))
    opened = fa.open(
        ROWS,
        unit="member",
        ledger=tmp_path / "b.db",
        tariff=certificate,
        farthings=300,
        limits=Limits(contribution_limit=3),
        dataset="events",
    )
    with opened as data:
        plan = data.histogram("k", contribution_limit="auto", count="count-16").plan()
        assert [c["limit"] for c in plan.to_json()["limits"]["choices"]] == [1, 2, 3]


def test_plain_data() -> None:
    query = LimitQuery("k", limits=[1, 2], noise=[1, 2.5], labels=3)
    assert query_from(json.loads(json.dumps(query.to_json()))) == query
    for wrong in ({"limits": [2, 1]}, {"limits": []}, {"noise": [1.0]}, {"noise": "12"}):
        with pytest.raises(InvalidInput):
            query_from({**query.to_json(), **wrong})


def test_a_plan_that_runs_twice_looks_for_the_limit_once(data) -> None:
    before = data.remaining().farthings
    plan = data.histogram("k", contribution_limit="auto", **EIGHT).plan()
    assert plan.run().price.farthings == 20
    assert plan.run().cached
    assert before - data.remaining().farthings == 20
