"""Covariance, correlation and regression: exact without noise, covered with it, honest where noise
says nothing."""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.kinds import query_from
from farthing.engine.kinds.completed import completed_query
from farthing.engine.kinds.moments import (
    ColumnsQuery,
    CorrelationQuery,
    CovarianceQuery,
    RegressionQuery,
)
from farthing.engine.session import Session
from farthing.engine.sources.opening import open_source
from farthing.errors import InvalidInput
from farthing.guarantees.kinds import Gaussian, PureDP
from farthing.ledger.declared_data import Limits
from farthing.mechanisms import Release
from farthing.schema import INTEGER, REAL, TEXT, Column, Schema
from tests.engine.conftest import Opened
from tests.engine.engines import measured

SCHEMA = Schema(
    (
        Column("member", INTEGER),
        Column("k", TEXT, categories=("a", "b")),
        Column("x", INTEGER, lower=0, upper=10),
        Column("y", INTEGER, lower=-5, upper=20),
        Column("z", REAL, lower=-1, upper=1),
        Column("free", REAL),
    )
)
COVARIANCE = CovarianceQuery("y", "x", per_key_limit=1)
CORRELATION = CorrelationQuery("y", "x", per_key_limit=1)
REGRESSION = RegressionQuery("y", ["x", "z"], per_key_limit=1)
ALL = (COVARIANCE, CORRELATION, REGRESSION)


def rows(count: int, *, busy: bool = False) -> list[dict[str, Any]]:
    """y depends on x and z; some values are missing, strange or beyond their bounds."""
    draw = random.Random(count)
    made = []
    for place in range(count):
        x, z = draw.randint(-1, 11), draw.uniform(-1.2, 1.2)
        y = round(0.7 * x - 3 * z + draw.gauss(2, 2))
        row = {"member": place // 3 if busy else place, "k": draw.choice("ab"), "x": x, "y": y}
        row |= {"z": z, "free": z}
        if draw.random() < 0.1:
            row[draw.choice(["x", "y"])] = draw.choice([None, None, 10**18])
        if draw.random() < 0.05:
            row["z"] = draw.choice([float("nan"), float("inf"), -1e300, None])
        made.append(row)
    return made


def table(made: list[dict[str, Any]]) -> pa.Table:
    types = {"member": pa.int64(), "k": pa.string(), "x": pa.int64(), "y": pa.int64()}
    types |= {"z": pa.float64(), "free": pa.float64()}
    return pa.Table.from_pylist(made, schema=pa.schema(types))


def counted(row: dict[str, Any], names: tuple[str, ...]) -> list[float] | None:
    """The values of a row within their bounds; None if one is missing."""
    found = []
    for name in names:
        value = row[name]
        if value is None or value != value:
            return None
        column = SCHEMA[name]
        found.append(min(max(value, column.lower), column.upper))
    return found


def totals(query: ColumnsQuery, made: list[dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
    """The question as it is asked, and what the statement gives for each label."""
    source = open_source(table(made))
    try:
        whole, found, _ = measured(source, SCHEMA, query)
    finally:
        source.shut()
    return whole, dict(whole.collected(found).of)


@pytest.mark.parametrize("made", [rows(300), rows(1), []], ids=["many", "one", "none"])
def test_without_noise(made: list[dict[str, Any]]) -> None:
    """Limits that nobody reaches, and no noise: what NumPy computes."""
    for query in ALL:
        names = (query.column, *query.others)
        kept = [one for one in (counted(row, names) for row in made) if one is not None]
        whole, found = totals(query, made)
        numbers = whole.estimates(whole._once(found[""]), (0.0,) * len(whole.terms))
        assert all(np.isfinite(numbers))
        if len(kept) < 20:
            continue
        columns = np.array(kept).T
        if query.kind == "covariance":
            wanted = [np.cov(columns[0], columns[1])[0, 1]]
        elif query.kind == "correlation":
            wanted = [np.corrcoef(columns[0], columns[1])[0, 1]]
        else:
            design = np.column_stack([np.ones(len(kept)), *columns[1:]])
            wanted = np.linalg.lstsq(design, columns[0], rcond=None)[0]
        assert numbers == pytest.approx(wanted, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("most", [1, 2])
def test_totals_with_limits(most: int) -> None:
    """The definition once more, in fractions: units with more rows count with their averages."""
    made = rows(200, busy=True)
    asked = RegressionQuery("y", ["x", "z"], by="k", per_key_limit=most, contribution_limit=2)
    whole, found = totals(asked, made)
    scales = whole.scales
    own: dict[tuple[str, int], list[list[int]]] = defaultdict(list)
    for row in made:
        values = counted(row, ("y", "x", "z"))
        if values is None:
            continue
        halves = []
        for value, scale in zip(values, scales, strict=True):
            units = int(np.floor(value * 10**scale.places + 0.5))
            finer, coarser = scale.sizes
            above = nearest(Fraction((units - scale.lower) * finer, coarser))
            halves.append(2 * above - scale.reach)
        own[f"s{row['k']}", row["member"]].append(halves)
    wanted: dict[str, list[int]] = defaultdict(lambda: [0] * len(whole.terms))
    for (label, _), halves in own.items():
        w = min(len(halves), most)
        for place, term in enumerate(whole.terms):
            fine = scales[term[0]].reach if len(term) == 1 else 1
            size = fine * int(np.prod([scales[i].reach for i in term], dtype=object))

            def product(d: list[int], term: Any = term, fine: int = fine, size: int = size) -> int:
                if len(term) == 2 and term[0] == term[1]:
                    return 2 * d[term[0]] ** 2
                return fine * int(np.prod([d[i] for i in term], dtype=object)) + size

            share = Fraction(w, len(halves)) * sum(map(product, halves)) if term else 2 * w
            wanted[label][place] += nearest(Fraction(share)) - size * w
    assert {label: list(numbers) for label, numbers in found.items()} == dict(wanted)


def nearest(number: Fraction) -> int:
    return int((number + Fraction(1, 2)).__floor__())


def exact_totals(query: Any, columns: list[list[int]]) -> tuple[int, ...]:
    """The totals of whole values that are steps themselves."""
    halves = []
    for values, scale in zip(columns, query.scales, strict=True):
        assert scale.rounding == 0
        halves.append([2 * (v - scale.lower) * scale.sizes[0] - scale.reach for v in values])
    found = []
    for term in query.terms:
        parts = zip(*(halves[i] for i in term), strict=True) if term else ((),) * len(columns[0])
        total = sum(int(np.prod(part, dtype=object)) if part else 1 for part in parts)
        if len(term) == 1:
            total *= query.scales[term[0]].reach
        if len(term) == 2 and term[0] == term[1]:
            total = 2 * total - query.scales[term[0]].reach ** 2 * len(columns[0])
        found.append(total)
    return tuple(found)


WHOLE = Schema(
    tuple(
        Column(name, INTEGER, lower=low, upper=high)
        for name, low, high in (("member", 0, 9), ("y", -50, 50), ("x", 0, 20), ("z", 5, 9))
    )
)


def sample(size: int, slope: float) -> list[list[int]]:
    draw = random.Random(size)
    x = [min(max(round(draw.gauss(12, 4)), 0), 20) for _ in range(size)]
    z = [draw.randint(5, 9) for _ in range(size)]
    pairs = zip(x, z, strict=True)
    y = [round(min(max(slope * a - 2 * b + draw.gauss(0, 8), -50), 50)) for a, b in pairs]
    return [y, x, z]


@pytest.mark.parametrize("paid", [PureDP(1.0), Gaussian(3.0)], ids=["laplace", "gauss"])
@pytest.mark.parametrize("asked", ALL, ids=lambda query: query.kind)
def test_intervals_hold_about_as_often_as_they_say(asked: Any, paid: Any) -> None:
    """300 runs are 5 deviations off at 0.887, 100 at 0.84."""
    query = completed_query(asked, WHOLE, "member", Limits())
    size = 20_000 if query.kind == "regression" else 5000
    columns = sample(size, 2.0)[: len(query.others) + 1]
    true = exact_totals(query, columns)
    wanted = query.estimates(query._once(true), (0.0,) * len(true))
    mechanism = query.measure({"count": paid})
    held, runs = np.zeros(len(wanted)), 300 if isinstance(paid, Gaussian) else 100
    for _ in range(runs):
        release = mechanism.run(true)
        told = query.errors(mechanism, release, 0.95)
        held += [low <= w <= high for w, (low, high) in zip(wanted, told, strict=True)]
        numbers = query.result(release, mechanism.expect(0.95)).counts
        assert all(low <= n <= high for n, (low, high) in zip(numbers, told, strict=True))
    assert all(held / runs >= (0.887 if runs == 300 else 0.84))
    narrow = query.errors(mechanism, release, 0.5)
    for (low, high), (inner_low, inner_high) in zip(told, narrow, strict=True):
        assert inner_high - inner_low < 0.5 * (high - low), "a narrower one must be narrower"
    assert not query.notes(told)


@pytest.mark.parametrize("paid", [PureDP(0.2), Gaussian(9.0)], ids=["laplace", "gauss"])
@pytest.mark.parametrize("size", [0, 1, 2, 30])
@pytest.mark.parametrize("asked", ALL, ids=lambda query: query.kind)
def test_where_noise_hides_everything(asked: Any, size: int, paid: Any) -> None:
    """Numbers are finite, and intervals hold: mostly they claim nothing."""
    query = completed_query(asked, WHOLE, "member", Limits())
    columns = sample(size, 2.0)[: len(query.others) + 1]
    true = exact_totals(query, columns)
    mechanism = query.measure({"count": paid})
    wanted = query.estimates(query._once(true), (0.0,) * len(true))
    for _ in range(20):
        release = mechanism.run(true)
        told = query.errors(mechanism, release, 1 - 1e-9)
        assert np.isfinite(told).all()
        if size == 30:
            assert all(low <= w <= high for w, (low, high) in zip(wanted, told, strict=True))
        numbers = query.result(release, mechanism.expect(0.95)).counts
        assert np.isfinite(numbers).all()
    if query.kind == "correlation":
        assert told == ((-1.0, 1.0),)
    if query.kind == "regression":
        assert "claim nothing" in query.notes(told)[0]


def test_a_column_that_never_varies() -> None:
    """Equations that are singular without noise: nothing is claimed."""
    query = completed_query(REGRESSION, WHOLE, "member", Limits())
    columns = sample(5000, 2.0)[:2]
    true = exact_totals(query, [*columns, [7] * 5000])
    mechanism = query.measure({"count": Gaussian(3.0)})
    for _ in range(20):
        release = mechanism.run(true)
        assert query.notes(query.errors(mechanism, release, 0.95))
        assert np.isfinite(query.result(release, mechanism.expect(0.95)).counts).all()
    flat = completed_query(CORRELATION, WHOLE, "member", Limits())
    drawn = flat.measure({"count": Gaussian(3.0)})
    true = exact_totals(flat, [columns[0], [7] * 5000])
    assert flat.errors(drawn, Release((), tuple(map(int, true))), 0.95) == ((-1.0, 1.0),)


@pytest.mark.parametrize("asked", ALL, ids=lambda query: query.kind)
def test_what_a_unit_may_change(asked: Any) -> None:
    """Each total by its limit, which a row at the bounds attains: no smaller one would do."""
    query = completed_query(asked, WHOLE, "member", Limits())
    far = [[scale.upper] for scale in query.scales]
    assert tuple(map(abs, exact_totals(query, far))) == query.limits
    assert query.roles() == {"count": len(query.limits)}


SAME = [
    ("SELECT CORR(y, x) FROM events OPTIONS (per_key_limit = 2)", "correlation", ["x"]),
    ("SELECT k, COVAR_SAMP(y, x * z) FROM events GROUP BY k "
     "OPTIONS (per_key_limit = 2, contribution_limit = 2)", "covariance", ["x * z"]),
    ("SELECT REGR_SLOPE(y, x) FROM events OPTIONS (per_key_limit = 2)", "regression", ["x"]),
    ("SELECT REGR_INTERCEPT(y, x) FROM events OPTIONS (per_key_limit = 2)", "regression", ["x"]),
]  # fmt: skip # a line each


@pytest.fixture
def data(opened: Opened) -> Session:
    return opened(table(rows(4000)), schema=SCHEMA)


@pytest.mark.parametrize(("text", "kind", "on"), SAME)
def test_in_sql(data: Session, text: str, kind: str, on: list[str]) -> None:
    by = {"by": "k", "contribution_limit": 2} if "GROUP" in text else {}
    asked = getattr(data, kind)("y", on, per_key_limit=2, **by)
    assert data.sql(text).query == asked.query
    assert data.sql(asked.to_sql()).query == asked.query


def test_what_sql_cannot_say(data: Session) -> None:
    with pytest.raises(InvalidInput, match="COVAR_SAMP"):
        data.sql("SELECT COVAR_POP(y, x) FROM events")
    with pytest.raises(InvalidInput, match="no SQL"):
        data.regression("y", ["x", "z"]).to_sql()


def test_answers(data: Session) -> None:
    """Labels are the names of the coefficients; computed columns are like others."""
    answer = data.regression("y", ["x", "z"], per_key_limit=1).run()
    assert answer.labels == ("intercept", "x", "z")
    assert answer.counts == pytest.approx((2.5, 0.6, -2.7), abs=1.5)
    assert answer.to_arrow().column_names == ["term", "coefficient", "lower", "upper"]
    assert answer.caption.startswith("The linear regression of `y` on `x` and `z` (")
    assert "claim nothing" not in str(answer)
    groups = data.regression("y", "x", by="k", per_key_limit=1, contribution_limit=1).run()
    assert groups.labels == (("a", "intercept"), ("a", "x"), ("b", "intercept"), ("b", "x"))
    assert groups.to_arrow().column_names[:2] == ["k", "term"]
    linked = data.correlation("y", "least(greatest(free, -1), 1) * 2", per_key_limit=1).run()
    assert linked.value == pytest.approx(-0.55, abs=0.25)
    named = data.with_columns(twice="x * 2").covariance("y", "twice", per_key_limit=1)
    assert named.query.on == ("x * 2",)
    assert named.run().caption.startswith("The covariance of `y` and `x * 2`")
    people = data.per_unit(visits=fa.rows(), most=fa.max("y"))
    asked = people.correlation("visits", "most", lower=0, upper=9)
    assert asked.plan().query.per_key_limit == 1
    again = data.ask(answer.query.to_json()).run()
    assert again.cached
    assert again.intervals == answer.intervals
    lost = data.regression("y", ["x", "z"], where="x = 3 and y = 19", per_key_limit=1).run()
    assert "claim nothing" in str(lost)


def test_a_plan_says_what_to_expect(data: Session) -> None:
    asked = data.covariance("y", "x", per_key_limit=1)
    promised = asked.plan().to_json()["width_times_rows"]
    ((low, high),) = asked.run().intervals
    assert promised / 3400 / 6 < (high - low) / 2 <= promised / 3000


@pytest.mark.parametrize("query", [*ALL, RegressionQuery("y", "x", by="k", on_lower=[0.5])])
def test_plain_data(query: Any) -> None:
    assert query_from(query.to_json()) == query


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"column": "y", "on": "free"}, "free needs on_lower and on_upper"),
        ({"column": "y", "on": "k"}, "a column in on must be"),
        ({"column": "y", "on": "y"}, "other columns"),
        ({"column": "y", "on": []}, "at least one"),
        ({"column": "y", "on": ["x", "x"]}, "each of them once"),
        ({"column": "y", "on": ["x", 7]}, "column"),
        ({"column": "y", "on": "member"}, "unit of privacy"),
        ({"column": "y", "on": "x", "on_lower": [0, 1]}, "a number for each"),
        ({"column": "y", "on": "x", "on_lower": [float("nan")]}, "on_lower"),
        ({"column": "y", "on": "x", "on_lower": "0"}, "a list of numbers"),
        ({"column": "y", "on": "free", "on_lower": [-1e308], "on_upper": [1e308]}, "at most 2"),
        ({"column": "y", "on": "x", "on_places": [True]}, "on_places"),
        ({"column": "y", "on": {"x": 1}}, "column"),
        ({"column": "y", "on": "x", "on_lower": [30]}, "overlap the declared bounds"),
        ({"column": "y", "on": ["x", "z"], "kind": "covariance"}, "at most 1"),
        ({"column": "y", "on": [f"x + {i}" for i in range(7)]}, "at most 6"),
        ({"column": "y", "on": "x", "per_key_limit": 4097}, "at most 4096"),
        ({"column": "y", "on": "x", "on_lower": [3], "on_upper": [3]}, "must differ"),
        ({"column": "y", "on": "x", "per_key_limit": None}, "per_key_limit must be given"),
    ],
)
def test_what_cannot_be_asked(query: dict[str, Any], message: str) -> None:
    def asked() -> None:
        made = query_from({"kind": "regression", "per_key_limit": 1, **query})
        whole = completed_query(made, SCHEMA, "member", Limits())
        whole.mechanism_for({"count": PureDP(1.0)})

    with pytest.raises(InvalidInput, match=message):
        asked()
