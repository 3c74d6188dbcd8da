"""Means, variances, quantiles and sums: exact without noise, covered with it, honest in plans."""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as fa
from farthing.engine.kinds import KINDS, query_from
from farthing.engine.kinds.completed import completed_query
from farthing.engine.kinds.quantile import QuantileQuery
from farthing.engine.kinds.steps import TotalsQuery
from farthing.engine.kinds.totals import (
    MeanQuery,
    StandardDeviationQuery,
    SumQuery,
    VarianceQuery,
)
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import text_of
from farthing.engine.sql.measuring import WEIGHT
from farthing.errors import InvalidInput, Unattainable
from farthing.guarantees.kinds import Gaussian, PureDP
from farthing.ledger.declared_data import Limits
from farthing.mechanisms import Expectation
from farthing.schema import INTEGER, REAL, TEXT, Column, Schema
from tests.engine.engines import measured
from tests.engine.rows import place_of

SCHEMA = Schema(
    (Column("member", INTEGER), Column("k", TEXT), Column("x", INTEGER), Column("y", REAL))
)
NO_LIMIT = {"per_key_limit": 1000}

Row = tuple[int | None, str | None, int | None, float | None]


def cases(count: int, *, apart: bool) -> list[Row]:
    """Small groups of rows with a label each; `apart`: no unit has rows in two of them."""
    draw = random.Random(count)
    rows: list[Row] = []
    for case in range(count):
        for _ in range(draw.choice([1, 2, 3, 12, 30])):
            who = draw.choice([None, *range(6)])
            whole = draw.choice([None, draw.randint(-60, 60), draw.randint(-60, 60), -50, 50])
            real = draw.choice([None, draw.uniform(-60, 60), 1e300, float("inf"), float("nan")])
            unit = who if who is None or not apart else 10 * case + who
            rows.append((unit, None if case == 0 else f"c{case}", whole, real))
    return rows


def held(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    types = (pa.int64(), pa.string(), pa.int64(), pa.float64())
    named = zip(SCHEMA.kinds, columns, types, strict=True)
    return pa.table({name: pa.array(cells, kind) for name, cells, kind in named})


def groups(rows: list[Row], query: Any) -> tuple[Any, dict[str, Any], Any]:
    """The question as it is asked, and what the statement gives for each label."""
    source = open_source(held(rows))
    try:
        whole, table, _ = measured(source, SCHEMA, query)
    finally:
        source.shut()
    found = whole.collected(table)
    return whole, dict(found.of), found


def exactly(query: TotalsQuery, totals: tuple[int, ...]) -> float:
    """The number that totals without noise stand for."""
    (number,) = query.estimates(query._once(totals), ())
    return number


EVERYTHING = {"lower": -50, "upper": 50, "contribution_limit": 100, **NO_LIMIT}


class TestWithoutNoise:
    """Limits that nobody reaches, and no noise: what everybody else computes."""

    rows = cases(40, apart=True)

    @pytest.mark.parametrize(
        ("kind", "wanted", "least"),
        [
            (MeanQuery, statistics.mean, 1),
            (VarianceQuery, statistics.variance, 2),
            (StandardDeviationQuery, statistics.stdev, 2),
        ],
    )
    def test_means_and_variances(self, kind: Any, wanted: Any, least: int) -> None:
        of: dict[str, list[int]] = defaultdict(list)
        for who, key, x, _ in self.rows:
            if who is not None and x is not None:
                of[text_of(key)].append(min(max(x, -50), 50))
        query, found, _ = groups(self.rows, kind("x", by="k", **EVERYTHING))
        assert found.keys() == of.keys()
        for key, values in of.items():
            if len(values) >= least:
                assert exactly(query, found[key]) == pytest.approx(wanted(values), abs=1e-6)
        everybody = [value for values in of.values() for value in values]
        query, found, _ = groups(self.rows, kind("x", lower=-50, upper=50, **NO_LIMIT))
        assert exactly(query, found[""]) == pytest.approx(wanted(everybody), abs=1e-6)

    def test_reals(self) -> None:
        of: dict[str, list[float]] = defaultdict(list)
        for who, key, _, y in self.rows:
            if who is not None and y is not None and y == y:
                of[text_of(key)].append(min(max(y, -50.0), 50.0))
        mean, found, _ = groups(self.rows, MeanQuery("y", by="k", places=4, **EVERYTHING))
        assert found.keys() == of.keys()
        for key, values in of.items():
            assert exactly(mean, found[key]) == pytest.approx(statistics.fmean(values), abs=1e-4)
        coarse = StandardDeviationQuery("y", by="k", places=4, **EVERYTHING)
        deviation, found, _ = groups(self.rows, coarse)
        for key, values in of.items():
            if len(values) > 1:
                # a thousand rows of a unit leave about two thousand steps
                near = pytest.approx(statistics.stdev(values), abs=0.06)
                assert exactly(deviation, found[key]) == near

    def test_weights_and_sums(self) -> None:
        values = [x for who, _, x, _ in self.rows if who is not None and x is not None]
        _, found, _ = groups(self.rows, QuantileQuery("x", lower=-99, upper=99, **NO_LIMIT))
        heavy = found[""]
        counted = dict(zip(heavy.labels.tolist(), heavy.counts.tolist(), strict=True))
        assert counted == {value: values.count(value) * WEIGHT for value in values}
        _, found, _ = groups(self.rows, SumQuery("x", lower=-(10**6), upper=10**6))
        assert found[""] == sum(values)


def kept(rows: list[Row], limit: int) -> dict[int, dict[str, list[int]]]:
    """Of each unit the values of its first labels."""
    of: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for who, key, x, _ in rows:
        if who is not None and x is not None:
            of[who][text_of(key)].append(min(max(x, -50), 50))
    return {
        who: {k: keys[k] for k in sorted(keys, key=lambda k: place_of("key", f"i{who}", k))[:limit]}
        for who, keys in of.items()
    }


class TestWithLimits:
    """The definitions, written down once more in Python's whole numbers and fractions."""

    rows = cases(30, apart=False)

    @pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 2)])
    def test_totals(self, limit: int, most: int) -> None:
        rows = self.rows
        options = {"lower": -50, "upper": 50, "contribution_limit": limit, "per_key_limit": most}
        query, found, whole = groups(rows, VarianceQuery("x", by="k", **options))
        ((finer, _),) = (scale.sizes for scale in query.scales)
        reach, wanted = 100 * finer, defaultdict(lambda: [0, 0, 0])
        units: dict[str, int] = defaultdict(int)
        for keys in kept(rows, limit).values():
            for key, values in keys.items():
                w, steps = min(len(values), most), [(x + 50) * finer for x in values]
                share = Fraction(w, len(values))
                one = _nearest(share * sum(2 * reach * a for a in steps))
                two = _nearest(share * sum(2 * (2 * a - reach) ** 2 for a in steps))
                for place, amount in enumerate((w, one - reach**2 * w, two - reach**2 * w)):
                    wanted[key][place] += amount
                units[key] += 1
        assert {key: list(totals) for key, totals in found.items()} == dict(wanted)
        present = whole.counts
        counted = dict(zip(present.labels.tolist(), present.counts.tolist(), strict=True))
        assert {k: n for k, n in counted.items() if n} == dict(units)

    @pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 2)])
    def test_weights(self, limit: int, most: int) -> None:
        rows = self.rows
        options = {"lower": -50, "upper": 50, "contribution_limit": limit, "per_key_limit": most}
        _, found, _ = groups(rows, QuantileQuery("x", by="k", **options))
        wanted: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for keys in kept(rows, limit).values():
            for key, values in keys.items():
                each = min(len(values), most) * WEIGHT // len(values)
                for value in values:
                    wanted[key][value] += each
        assert found.keys() == wanted.keys()
        for key, weights in found.items():
            pairs = zip(weights.labels.tolist(), weights.counts.tolist(), strict=True)
            assert dict(pairs) == dict(wanted[key])

    def test_a_share_of_ones_is_no_nothing(self) -> None:
        """Two of a unit's three rows are 1 and one row counts: two thirds, not 0."""
        rows: list[Row] = [(who, "a", x, None) for who in range(40) for x in (1, 1, 0)]
        query, found, _ = groups(rows, MeanQuery("x", lower=0, upper=1, per_key_limit=1))
        assert exactly(query, found[""]) == pytest.approx(2 / 3, abs=1e-6)
        query, found, _ = groups(rows, VarianceQuery("x", lower=0, upper=1, per_key_limit=1))
        assert exactly(query, found[""]) == pytest.approx(2 / 9 * 40 / 39, abs=1e-4)


def _nearest(number: Fraction) -> int:
    return int((number + Fraction(1, 2)).__floor__())


GROUPS = {
    "one row": [[7]],
    "two rows": [[0], [100]],
    "two equal rows": [[3], [3]],
    "all at a bound": [[100]] * 60,
    "spread": [[n % 101] for n in range(150)],
    "busy units": [[n % 101, (n * n) % 101, 50] for n in range(100)],
}


@cache
def totals_of(kind: Any, places: int) -> tuple[Any, dict[str, Any]]:
    """What the statement gives for each of the groups."""
    rows: list[Row] = [
        (1000 * place + who, name, x, None)
        for place, (name, units) in enumerate(GROUPS.items())
        for who, values in enumerate(units)
        for x in values
    ]
    options = {"lower": 0, "upper": 100, "per_key_limit": 1, "contribution_limit": 1}
    query, found, _ = groups(rows, kind("x", by="k", places=places, **options))
    return query, found


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", [MeanQuery, VarianceQuery, StandardDeviationQuery])
@pytest.mark.parametrize(
    ("places", "paid"), [(0, PureDP(0.8)), (7, Gaussian(1.5))], ids=["finer", "coarser"]
)
def test_intervals_hold(kind: Any, group: str, places: int, paid: Any) -> None:
    """At the stated level, whatever the data; 300 runs are 3 deviations off at 0.912."""
    query, found = totals_of(kind, places)
    units, totals = GROUPS[group], found[text_of(group)]
    values = [(Fraction(x), Fraction(1, len(of))) for of in units for x in of]
    n = len(units)
    mean = sum(x * w for x, w in values) / n
    truth = float(mean)
    if kind is not MeanQuery:
        truth = float(sum((x - mean) ** 2 * w for x, w in values) / max(n - 1, 1))
        truth = truth**0.5 if kind is StandardDeviationQuery else truth
    mechanism = query.measure({"count": paid})
    plain = replace(query, by=None, categories=None, contribution_limit=None)

    def covered(confidence: float) -> float:
        drawn = [mechanism.run(totals) for _ in range(600)]
        told = [plain.errors(mechanism, release, confidence)[0] for release in drawn]
        assert all(low <= high for low, high in told)
        return sum(low - 1e-9 <= truth <= high + 1e-9 for low, high in told) / 600

    assert covered(0.95) >= 0.912
    if group == "spread":
        assert covered(0.5) < 0.8, "a narrower interval must fail"


@pytest.mark.parametrize("kind", [MeanQuery, VarianceQuery, StandardDeviationQuery])
@pytest.mark.parametrize("paid", [PureDP(0.5), Gaussian(4.0)])
@pytest.mark.parametrize("centre", [20, 50, 85])
def test_intervals_hold_as_often_as_they_say(kind: Any, paid: Any, centre: int) -> None:
    """Not much more often either: 600 runs are 5 deviations off at 0.905 and at 0.995."""
    draw = random.Random(centre)
    values = [min(max(round(draw.gauss(centre, 12)), 0), 100) for _ in range(3000)]
    query = kind("x", lower=0, upper=100, per_key_limit=1, places=0)
    truth = {"mean": statistics.mean, "variance": statistics.variance}.get(
        kind.kind, statistics.stdev
    )(values)
    (scale,) = query.scales
    halves = [2 * x * scale.sizes[0] - scale.reach for x in values]
    fine = 1 if kind is MeanQuery else scale.reach
    totals = (3000, fine * sum(halves), sum(2 * d * d - scale.reach**2 for d in halves))
    mechanism = query.measure({"count": paid})
    drawn = [mechanism.run(totals[: len(query.terms)]) for _ in range(600)]
    told = [query.errors(mechanism, release, 0.95)[0] for release in drawn]
    assert 0.905 <= sum(low <= truth <= high for low, high in told) / 600 <= 0.995


def test_a_group_without_rows_has_numbers_too() -> None:
    """Nothing fails, and nothing outside of what is possible is said."""
    for kind, widest in ((MeanQuery, 100), (StandardDeviationQuery, 71), (VarianceQuery, 5001)):
        query, found, _ = groups([], kind("x", lower=0, upper=100, per_key_limit=1))
        mechanism = query.measure({"count": PureDP(0.5)})
        for _ in range(50):
            release = mechanism.run(found[""])
            (number,), ((low, high),) = (
                query.result(release, Expectation()).counts,
                query.errors(mechanism, release, 0.9),
            )
            assert 0 <= low <= high <= widest
            assert 0 <= number <= widest


KEYED = [
    MeanQuery("x", lower=0, upper=1, per_key_limit=1),
    MeanQuery("y", by=("k", "month(day)"), lower=-1.5, upper=1e6, contribution_limit=2, places=3),
    VarianceQuery("x", by="bins(x, 0, 1.5, 1e300)", categories=("[0, 1.5)",), lower=0, upper=1),
    StandardDeviationQuery("x", by={"column": "month(day)"}, where={"k": ["a", None]}),
    SumQuery("x", by="k", categories=("a", None), lower=-3, upper=2.5, repeats=4, leak="leak"),
    QuantileQuery("x", 0.25, by={"column": "a,b", "bins": [0, 1]}, select="s", count="c"),
]


@pytest.mark.parametrize("query", KEYED, ids=lambda query: f"{query.kind} by {len(query.key)}")
def test_plain_data_is_read_back_as_the_same(query: Any) -> None:
    assert query_from(query.to_json()) == query
    assert query_from(query.to_json()).to_json() == query.to_json()
    assert eval(repr(query), {**vars_of_queries()}) == query


def vars_of_queries() -> dict[str, Any]:
    from farthing.engine import filters, keys

    kinds = {kind.__name__: kind for kind in KINDS.values()}
    return {**vars(filters), **vars(keys), **kinds}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (MeanQuery("x"), "needs lower and upper"),
        (MeanQuery("x", lower=0, upper=1), "per_key_limit must be given"),
        (MeanQuery("x", by="k", lower=0, upper=1, per_key_limit=1), "contribution_limit must be"),
        (QuantileQuery("x", lower=0, upper=1), "per_key_limit must be given"),
        (SumQuery("x"), "needs lower and upper"),
        (MeanQuery("k", lower=0, upper=1, per_key_limit=1), "column must be integer"),
        (MeanQuery("x", by="y", lower=0, upper=1, per_key_limit=1), "a key must be"),
        (MeanQuery("x", by="month(x)", lower=0, upper=1, per_key_limit=1), "with a month must be"),
        (MeanQuery("x", by="bins(k, 0, 1)", lower=0, upper=1, per_key_limit=1), "with bins must"),
        (MeanQuery("x", by="bins(member, 0, 1)", lower=0, upper=1), "unit of privacy"),
        (MeanQuery("member", lower=0, upper=1), "unit of privacy"),
    ],
)
def test_what_cannot_be_asked(query: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        completed_query(query, SCHEMA, "member", Limits())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"categories": ["a"]}, "need by"),
        ({"contribution_limit": 2}, "need by"),
        ({"by": "k", "contribution_limit": "auto"}, "must be a number"),
        ({"by": "k", "categories": [("a", "b")]}, "one value for each"),
        ({"by": []}, "at least one column"),
        ({"lower": 2, "upper": 1}, "lower must be at most upper"),
        ({"per_key_limit": 0}, "per_key_limit"),
    ],
)
def test_fields_that_do_not_go_together(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        MeanQuery(**{"column": "x", **fields})


def test_totals_that_would_not_be_exact() -> None:
    one = MeanQuery("x", lower=3, upper=3, per_key_limit=1, places=0)
    with pytest.raises(InvalidInput, match="must differ"):
        _ = one.scales
    for kind, most in ((MeanQuery, 2**20), (VarianceQuery, 2**12)):
        query = kind("x", lower=0, upper=2**40, per_key_limit=most, places=0)
        assert query.scales[0].reach >= 1024
        assert query.limits[-1] <= 2**32
        with pytest.raises(InvalidInput, match=f"must be at most {most}"):
            _ = kind("x", lower=0, upper=1, per_key_limit=most + 1, places=0).scales


@settings(max_examples=200)
@given(st.integers(0, 2**40), st.integers(1, 2**41), st.integers(1, 4096), st.sampled_from([1, 2]))
def test_steps_reach_from_bound_to_bound(lower: int, wide: int, rows: int, powers: int) -> None:
    kind = MeanQuery if powers == 1 else VarianceQuery
    upper = min(lower + wide, 2**40)
    if upper == lower:
        return
    query = kind("x", lower=lower, upper=upper, per_key_limit=rows, places=0)
    (scale,) = query.scales
    finer, coarser = scale.sizes
    assert 1 in (finer, coarser)
    assert scale.reach >= 512
    assert rows * scale.reach**powers <= 2**32
    assert abs(Fraction((upper - lower) * finer, coarser) - scale.reach) <= Fraction(1, 2)


class TestSessions:
    """Plans, prices and releases through the whole path."""

    @pytest.fixture
    def data(self, opened: Any) -> Any:
        draw = random.Random(4)
        rows = {
            "member": [n // 2 for n in range(4000)],
            "k": [draw.choice("abc") for _ in range(4000)],
            "x": [draw.randint(0, 100) for _ in range(4000)],
        }
        return opened(pa.table(rows))

    def test_a_plan_says_what_to_expect(self, data: Any) -> None:
        asked = data.mean("x", lower=0, upper=100, per_key_limit=2)
        plan = asked.plan()
        times_rows = plan.to_json()["width_times_rows"]
        assert "/n at 95%" in str(plan)
        ((low, high),) = asked.run().intervals
        assert times_rows / 4000 / 1.8 < (high - low) / 2 <= 1.05 * times_rows / 4000
        asked = data.variance("x", lower=0, upper=100, per_key_limit=2)
        ((low, high),) = asked.run().intervals
        promised = asked.plan().to_json()["width_times_rows"]
        assert promised / 4000 / 8 < (high - low) / 2 <= promised / 4000

    def test_a_half_width_needs_rows(self, data: Any) -> None:
        asked = data.mean("x", lower=0, upper=100, per_key_limit=1)
        with pytest.raises(InvalidInput, match="say rows"):
            asked.plan(half_width=1)
        with pytest.raises(InvalidInput, match="rows must be"):
            asked.plan(half_width=1, rows=0)
        assert asked.plan(half_width=10, rows=1000).query.count == "count"
        assert asked.plan(half_width=1, rows=1000).query.count == "fine"
        with pytest.raises(Unattainable, match="narrowest"):
            asked.plan(half_width=0.01, rows=1000)
        with pytest.raises(Unattainable, match="depends on the answer"):
            data.standard_deviation("x", lower=0, upper=100, per_key_limit=1).plan(half_width=1)

    def test_grouped_quantiles_choose_among_selections(self, data: Any) -> None:
        options = {"by": "k", "lower": 0, "upper": 100, "contribution_limit": 1}
        asked = data.quantile("x", **options, per_key_limit=1)
        assert asked.plan(half_width=10**6).query.select == "select"
        with pytest.raises(Unattainable):
            asked.plan(half_width=1e-9)

    def test_what_was_found_is_what_is_paid(self, data: Any) -> None:
        options = {"lower": 0, "upper": 100, "per_key_limit": 1}
        asked = data.mean("x", by="k", contribution_limit=2, **options)
        assert dict(asked.plan().items) == {"count": 6, "leak": 1}
        answer = asked.run()
        assert sorted(answer.labels) == ["a", "b", "c"]
        assert dict(answer.used) == {"count": 6, "leak": 1}
        nobody = data.mean("x", by="k", where={"k": "z"}, contribution_limit=2, **options).run()
        assert nobody.labels == ()
        assert dict(nobody.used) == {"count": 2, "leak": 1}
        again = data.mean("x", by="k", contribution_limit=2, **options).run()
        assert again.cached
        assert again.intervals == answer.intervals

    def test_fewer_labels_than_a_unit_may_have(self, data: Any) -> None:
        for asked, items in (
            (data.sum("x", by="k", categories=["a"], lower=0, upper=100), {"count": 1}),
            (
                data.mean(
                    "x",
                    by="k",
                    categories=["a", "b"],
                    contribution_limit=9,
                    lower=0,
                    upper=100,
                    per_key_limit=1,
                ),
                {"count": 4},
            ),
        ):
            assert dict(asked.plan().items) == items
            assert dict(asked.run().used) == items

    def test_a_median_for_each_label_has_ranks_and_no_intervals(self, data: Any) -> None:
        options = {"lower": 0, "upper": 100, "per_key_limit": 1, "contribution_limit": 3}
        answer = data.quantile("x", by="k", categories=["a", "b", "z"], **options).run()
        assert answer.labels == ("a", "b", "z")
        assert answer.intervals is None
        assert all(0 <= value <= 100 for value in answer.counts)
        assert "ranks" in str(answer)
        assert "ranks" in answer._repr_html_()
        assert answer.to_pandas().columns.tolist() == ["k", "value", "rank_half_width"]

    def test_in_a_batch(self, data: Any, tmp_path: Any) -> None:
        options = {"lower": 0, "upper": 100, "per_key_limit": 1}
        batch = data.batch(
            {
                "mean": data.mean("x", **options),
                "by": data.variance("x", by="k", categories=["a"], **options),
            }
        )
        assert batch.plan().price.farthings == 5 * 4
        found = batch.run()
        assert found["mean"].value == pytest.approx(50, abs=10)
        assert found["by"].labels == ("a",)
        assert data.ask(batch.to_json()).run()["mean"].cached
        with fa.Desk.open(tmp_path / "budget.db") as desk:
            desk.register("events", "monday", dict(batch.queries), analyst="analyst")
        assert batch.run(registered="monday", again=True)["by"].labels == ("a",)

    def test_labels_that_follow_from_bins_and_the_schema(self, opened: Any) -> None:
        schema = Schema(
            (
                Column("member", INTEGER),
                Column("k", TEXT, categories=("a", "b")),
                Column("x", INTEGER, lower=0, upper=10),
            )
        )
        rows = pa.table({"member": list(range(300)), "k": list("abz") * 100, "x": [1, 5, 30] * 100})
        data = opened(rows, schema=schema)
        one = data.mean("x", by="k", contribution_limit=1, per_key_limit=1).plan().query
        assert one.categories == ("a", "b")
        two = data.histogram(("k", "bins(x, 0, 2, 11)"), contribution_limit=1).run()
        found = dict(zip(two.labels, two.counts, strict=True))
        assert found.keys() == {(k, b) for k in ("a", "b") for b in ("[0, 2)", "[2, 11)")}
        assert found["a", "[0, 2)"] == pytest.approx(100, abs=80)
        with pytest.raises(InvalidInput, match="has the labels"):
            data.histogram("bins(x, 0, 2)", categories=["[0, 3)"], contribution_limit=1).plan()
        added = data.sum("x", by="k", contribution_limit=1, per_key_limit=2).plan().query
        assert (added.lower, added.upper) == (0, 20)
