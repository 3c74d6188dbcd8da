"""Bounds that are found first: what they cost, how good they are, and that nothing fails."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine import query_from
from farthing.engine.automatic_bounds import automatic_bounds
from farthing.engine.kinds.base import COUNT, SELECT
from farthing.engine.kinds.bound import BoundQuery
from farthing.engine.kinds.completed import completed_query, schema_of
from farthing.errors import FarthingError, InvalidInput
from farthing.guarantees.kinds import BoundedRange
from farthing.ledger import Limits
from farthing.mechanisms import Release
from farthing.schema import Column

TARIFF = fa.Tariff(
    {
        "select-1": (fa.BoundedRange(0.5), 1),
        "select-4": (fa.BoundedRange(1.0), 4),
        "leak": (fa.ApproximateDP(0.0, 1e-9), 1),
        "count-16": (fa.Gaussian(2.0), 16),
    },
    farthings=4000,
    delta_units=50,
    delta_unit=1e-9,
)
SIZE = 4000
DRAW = np.random.default_rng(3)
PAY = DRAW.lognormal(8, 1, SIZE)
TABLE = pa.table(
    {
        "member": [i // 2 for i in range(SIZE)],
        "k": [("a", "b")[i % 2] for i in range(SIZE)],
        "pay": PAY,
        "debt": -PAY,
        "hours": DRAW.integers(20, 60, SIZE),
        "same": np.full(SIZE, 7),
        "zero": np.zeros(SIZE, dtype=np.int64),
        "huge": np.full(SIZE, 2**62),
        "odd": [None, math.nan, math.inf, -math.inf] * (SIZE // 4),
    }
)
SCHEMA = fa.Schema(
    (
        Column("member", "integer"),
        Column("k", "text", categories=("a", "b")),
        *(Column(name, "real") for name in ("pay", "debt", "odd")),
        Column("hours", "integer", lower=0, upper=10_000),
        *(Column(name, "integer") for name in ("same", "zero", "huge")),
    )
)
AUTO = {"lower": "auto", "upper": "auto"}
ITEMS = {"count": "count-16"}
TWO = {"per_key_limit": 2}


@pytest.fixture(scope="module")
def certificate() -> Any:
    return TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(50.0,))


@pytest.fixture
def data(tmp_path: Any, certificate: Any) -> Any:
    with fa.open(
        TABLE,
        unit="member",
        ledger=tmp_path / "b.db",
        tariff=certificate,
        farthings=3000,
        dataset="pay",
        schema=SCHEMA,
    ) as session:
        yield session


def test_the_plan_has_the_price_of_both(data: Any) -> None:
    plan = data.mean("pay", **AUTO, **ITEMS, **TWO).plan()
    assert plan.price.farthings == 2 * 4 + 2 * 16
    assert plan.items == {"count-16": 2, "select-4": 2}
    assert plan.chooses_limits
    text = str(plan)
    assert "A power of two that a few rows of `pay` lie below" in text
    assert "A power of two that a few rows of `pay` lie above" in text
    assert "bounds are found first" in plan.caption
    assert plan.to_json()["limits"]["first"]["price"]["farthings"] == 8
    one = data.sum("pay", lower=0, upper="auto", **ITEMS).plan()
    assert one.price.farthings == 4 + 16
    assert one.to_json()["limits"]["first"]["query"]["kind"] == "bound"


def test_they_are_found_once_and_said(data: Any) -> None:
    asked = data.mean("pay", **AUTO, **ITEMS, **TWO)
    before = data.remaining().farthings
    answer = asked.run()
    assert before - data.remaining().farthings == answer.price.farthings == 40
    lower, upper = answer.query.lower, answer.query.upper
    assert f"clipped to the range {lower} to {upper}" in answer.caption
    assert upper / 8 <= np.quantile(PAY, 0.98) <= 2 * upper
    low, high = answer.intervals[0]
    assert low <= np.clip(PAY, lower, upper).mean() <= high
    assert asked.run().cached
    assert not asked.plan().chooses_limits
    asked.run(again=True)
    assert before - data.remaining().farthings == 40 + 32  # the bounds are known
    spread = data.variance("pay", **AUTO, **ITEMS, **TWO).plan()
    assert not spread.chooses_limits  # the same bounds, found before
    assert spread.query.upper == upper


def test_the_other_bound_stays_and_declared_ones_hold(data: Any) -> None:
    answer = data.mean("hours", lower=30, upper="auto", **ITEMS, **TWO).run()
    assert answer.query.lower == 30
    assert answer.query.upper == 64
    tighter = data.quantile("hours", upper="auto", select="select-4", **TWO).run()
    assert (tighter.query.lower, tighter.query.upper) == (0, 64)
    debt = data.sum("debt", lower="auto", upper=0, **ITEMS).run()
    assert debt.query.lower < 0 == debt.query.upper


def test_sums_are_bounded_by_what_a_unit_adds_up_to(data: Any) -> None:
    alone = data.sum("hours", upper="auto", **ITEMS, **TWO).run()
    assert alone.query.upper == 128
    assert alone.query.lower == 0
    by = data.sum("hours", by="k", contribution_limit=2, upper="auto", **ITEMS, **TWO).run()
    assert by.query.upper == 64  # for each label
    assert len(by.labels) == 2
    ratio = data.ratio("pay", "hours", lower=0, upper="auto", per_upper="auto", **ITEMS)
    assert ratio.plan().price.farthings == 2 * 4 + 2 * 16
    answer = ratio.run()
    assert answer.query.per_upper == 128
    assert answer.value == pytest.approx(PAY.sum() / TABLE["hours"].to_numpy().sum(), rel=0.3)


KINDS = [
    ("mean", TWO | ITEMS),
    ("variance", TWO | ITEMS),
    ("standard_deviation", TWO | ITEMS),
    ("quantile", TWO | {"select": "select-4"}),
    ("max", TWO | {"select": "select-4"}),
    ("sum", ITEMS),
]


@pytest.mark.parametrize("column", ["zero", "same", "huge", "odd", "debt", "hours"])
def test_nothing_fails_whatever_the_rows_hold(data: Any, column: str) -> None:
    for kind, options in KINDS:
        for where in (None, {"k": "a", "same": {"above": 7}}):
            answer = getattr(data, kind)(column, **AUTO, **options, where=where).run()
            assert answer.query.lower < answer.query.upper
    per = data.ratio(column, column, **AUTO, per_upper="auto", **ITEMS)
    assert per.run().query.per_upper > 0


def test_every_pair_of_bounds_makes_a_question() -> None:
    """Whatever is drawn, the question that follows can be asked: it was paid for."""
    columns = [
        Column("x", "integer"),
        Column("x", "integer", lower=100, upper=200),
        Column("x", "real", lower=-1.5, upper=2.25),
        Column("x", "real"),
        Column("x", "decimal", places=2),
    ]
    drawn = [-53, -41, -8, -1, 0, 1, 7, 8, 41, 53]
    for column in columns:
        schema = fa.Schema((Column("member", "integer"), column))

        def checked(query: Any, schema: Any = schema) -> Any:
            return completed_query(query, schema, "member", Limits())

        for kind, options in (*KINDS, ("ratio", ITEMS | {"per": "x", "per_upper": "auto"})):
            for bounds in (
                AUTO,
                {"lower": "auto"},
                {"upper": "auto"},
                {"lower": 150, "upper": "auto"},
            ):
                asked = {"kind": kind, "column": "x", **options, **bounds}
                try:
                    query = checked(query_from(asked))
                    found = automatic_bounds(
                        query, TARIFF, partial(schema_of, declared=schema), checked
                    )
                except InvalidInput:
                    continue  # unpaid
                assert found is not None
                firsts = {name: checked(first) for name, first in found.firsts.items()}
                for low in drawn:
                    for high in drawn:
                        digits = {"lower": low, "upper": high, "per_upper": high}
                        values = {
                            name: first.labels_in(Release((digits[name],)))[0]
                            for name, first in firsts.items()
                        }
                        chosen = found.chosen(values)
                        lower, upper = chosen.bounds
                        assert lower < upper or kind in ("quantile", "max")
                        chosen.mechanism_for(
                            {SELECT: fa.BoundedRange(1.0), COUNT: fa.Gaussian(2.0)}
                        )


def test_what_cannot_be_found_is_refused_unpaid(data: Any) -> None:
    left = data.remaining()
    for asked, words in (
        (lambda: data.mean("pay", upper="auto", **TWO).plan(), "needs lower and upper"),
        (lambda: data.mean("pay", **AUTO).plan(), "per_key_limit must be given"),
        (lambda: data.mean("k", **AUTO, **TWO).plan(), "must be integer or real"),
        (lambda: data.mean("pay", **AUTO, **TWO).plan(half_width=3), "must be a number here"),
        (lambda: data.bound("pay", lower=0).plan(), "bound has no lower"),
        (lambda: data.mean("pay", lower="auto", upper="x", **TWO).plan(), "upper must be"),
    ):
        with pytest.raises(FarthingError, match=words):
            asked()
    assert data.remaining() == left


def test_a_bound_is_a_power_that_few_lie_beyond() -> None:
    """By its definition, over 200 draws: at most the stated number of rows lie beyond."""
    query = BoundQuery("x", per_key_limit=1, places=0)
    mechanism = query.mechanism_for({SELECT: BoundedRange(0.5)})
    for values in (
        np.arange(1, 3001),
        np.concatenate((-np.arange(1500), np.arange(1500) ** 2)),
        np.concatenate((np.zeros(2990, dtype=np.int64), np.full(10, 10**9))),
    ):
        weights = [1 << 20] * values.size
        rows = pa.table({"value": values, "n": pa.array(weights, pa.decimal128(38, 0))})
        expected = query.expect(mechanism, 0.95).selection
        assert expected is not None
        for least in (False, True):
            side = query.changed(least=least)
            draw = side.mechanism_for({SELECT: BoundedRange(0.5)})
            found = [side.labels_in(draw.run(side.data(rows)))[0] for _ in range(60)]
            beyond = [
                int((values < bound).sum() if least else (values > bound).sum()) for bound in found
            ]
            assert np.mean(np.array(beyond) <= expected.half_width) > 0.7
            assert all(bound == 0 or math.log2(abs(bound)).is_integer() for bound in found)
            largest = np.sort(values if not least else -values)[-20] if values.size > 20 else 0
            sides = [-bound if least else bound for bound in found]
            assert np.mean(np.array(sides) <= max(2 * abs(int(largest)), 1)) > 0.55
