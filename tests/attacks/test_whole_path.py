"""From `open` to `run`, thousands of times on neighbouring tables: the price is not exceeded.

Every kind of question, on every engine, with keys of every kind, and with filters that nobody or
one person alone passes. A run that fails is an outcome like any other. The same attack must catch
a path in which units are not limited, and an engine that fails where there are no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.engine import context as compiling
from farthing.engine.kinds import KINDS
from farthing.engine.sources.duckdb import DuckDBSource
from farthing.lab.audit import audit
from farthing.mechanisms.noise import exact_sampling
from farthing.schema import DATE, INTEGER, TEXT, TIMESTAMP, Column, Schema
from tests.engine.engines import on_postgres

#: On other engines than DuckDB the same noise is drawn from what their statements give.
TRIALS, TRIALS_ELSEWHERE = 300, 80
EPSILON = 1.0
TARIFF = fa.Tariff(
    {
        "count": (fa.PureDP(EPSILON), 1),
        "select": (fa.BoundedRange(EPSILON), 1),
        "leak": (fa.ApproximateDP(0, 1e-6), 1),
    },
    farthings=500,
    delta_units=100,
    delta_unit=1e-6,
)
#: One unit more, who tries to be seen everywhere and often.
OTHERS = {
    "member": [1, 2, 3, 4],
    "k": ["a", "a", "b", "a"],
    "x": [1, 2, 3, 4],
    "day": [date(2026, 1, 5), date(2026, 2, 5), None, date(2026, 1, 9)],
    "at": [datetime(2026, 1, 5, 8), None, datetime(2026, 1, 5, 9), None],
}
LOUD = {
    "member": [9] * 60,
    "k": ["a", "b", "c", "d", "e", "f"] * 10,
    "x": [10**6] * 60,
    "day": [date(2026, month, 1) for month in range(1, 13)] * 5,
    "at": [datetime(2026, 3, 5, hour) for hour in range(20)] * 3,
}
TYPES = {
    "member": pa.int64(),
    "k": pa.string(),
    "x": pa.int64(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
}
COLUMNS = "member bigint, k text, x bigint, day date, at timestamp"
SCHEMA = Schema(
    (
        Column("member", INTEGER),
        Column("k", TEXT),
        Column("x", INTEGER),
        Column("day", DATE),
        Column("at", TIMESTAMP),
    )
)
ENGINES = ("duckdb", "postgres", "spark")
FAILED = "failed"


class Path:
    """A question that is planned once and run afresh each time, paid for and released."""

    def __init__(self, ask, view=None) -> None:
        self._ask, self._view, self._plans = ask, view, {}
        self.failures: list[str] = []

    def run(self, session):
        if id(session) not in self._plans:
            self._plans[id(session)] = self._ask(session).plan()
        try:
            answer = self._plans[id(session)].run(again=True)
        except fa.FarthingError as error:
            self.failures.append(f"{type(error).__name__}: {error}")
            return FAILED
        return answer if self._view is None else self._view(answer)

    @property
    def price(self) -> float:
        """Each farthing pays for a guarantee of EPSILON."""
        plan = next(iter(self._plans.values()))
        return plan.price.farthings * EPSILON


@pytest.fixture(scope="module")
def certificate():
    return TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))


@contextmanager
def opened(engine: str, request: Any, folder: Any, certificate: Any) -> Iterator[list[Any]]:
    """Two sessions on neighbouring tables."""
    made = []
    for place, more in enumerate(({}, LOUD)):
        columns = {name: values + more.get(name, []) for name, values in OTHERS.items()}
        rows = pa.table(columns, schema=pa.schema(TYPES))
        given: dict[str, Any] = {"data": rows}
        if engine == "spark":
            path = folder / f"{place}.parquet"
            pq.write_table(rows, path)
            given = {"data": path, "spark": request.getfixturevalue("spark")}
        elif engine == "postgres":
            url = request.getfixturevalue("postgres").url()
            source = on_postgres(url, COLUMNS, list(zip(*columns.values(), strict=True)))
            given = {"data": url, "table": source.name}
            source.shut()
        session = fa.open(
            given.pop("data"),
            dataset="rows",
            unit="member",
            schema=SCHEMA,
            ledger=folder / f"{place}.db",
            tariff=certificate,
            farthings=500,
            delta_units=100,
            **given,
        )
        made.append(session)
    yield made
    for session in made:
        session.shut()


@pytest.fixture(scope="module", params=ENGINES)
def on_engine(request, tmp_path_factory, certificate):
    folder = tmp_path_factory.mktemp(request.param)
    with opened(request.param, request, folder, certificate) as made:
        yield request.param, made


@pytest.fixture
def unpaid(monkeypatch):
    """Noise that repeats, and a purse without a bottom."""
    from farthing.engine.sources.base import Source
    from farthing.ledger.roles.analyst import Analyst, Settled

    monkeypatch.setattr(Analyst, "reserve", _free(Analyst))
    monkeypatch.setattr(Analyst, "close", lambda *_, **__: Settled(1, None))
    monkeypatch.setattr(Source, "unchanged", lambda _: 0)  # nobody writes: each is read once
    with exact_sampling._seeded(11):
        yield


@pytest.fixture
def neighbours(request, tmp_path, certificate, unpaid):  # noqa: ARG001 # it changes the ledger
    """Sessions on DuckDB for one test alone, which changes what runs."""
    with opened("duckdb", request, tmp_path, certificate) as made:
        yield made


def _free(kind):
    """Reservations cost time on disk; what is attacked here is what runs between them."""
    real, kept = kind.reserve, {}

    def reserve(self, items, *, question, under):
        key = id(self), repr(sorted(items.items()))
        if key not in kept:
            kept[key] = real(self, items, question=question, under=under)
        return kept[key]

    return reserve


QUESTIONS = {
    "count": (lambda s: s.count(where={"k": "b"}), EPSILON, lambda a: a.value),
    "not": (
        lambda s: s.count(where={"not": {"k": ["b", "c"], "x": 3}}),
        EPSILON,
        lambda a: a.value,
    ),
    "rows": (lambda s: s.count(per_key_limit=2), EPSILON, lambda a: a.value),
    "sum": (lambda s: s.sum("x", lower=0, upper=5), EPSILON, lambda a: a.value),
    "histogram": (
        lambda s: s.histogram("k", categories=["b", "c", "d"], contribution_limit=1),
        EPSILON,
        lambda a: sum(a.counts),
    ),
    "selection": (
        lambda s: s.top_k("k", 1, categories=["a", "b", "c"], counts=False),
        EPSILON,
        lambda a: a.labels,
    ),
    "distinct": (
        lambda s: s.distinct("k", contribution_limit=2),
        EPSILON,
        lambda a: a.value,
    ),
    "distinct values of labels": (
        lambda s: s.distinct("x", by="k", categories=["b", "c", "d"], contribution_limit=2),
        EPSILON,
        lambda a: sum(a.counts),
    ),
    # two numbers of a unit in two labels, and a total that it changes by 2
    "rollup": (
        lambda s: s.rollup("k", categories=["b", "c", "d"], contribution_limit=2),
        3 * EPSILON,
        lambda a: a.counts[0],
    ),
    "loss": (
        lambda s: s.loss("k", contribution_limit=1, most=3),
        EPSILON,
        lambda a: a.value,
    ),
    "limit": (
        lambda s: s.limit("k", limits=(1, 2, 4), noise=(0.1, 0.2, 0.3)),
        EPSILON,
        lambda a: a.value,
    ),
    "limit of a known domain": (
        lambda s: s.limit("k", limits=(1, 2, 3), noise=(0.1, 0.2, 0.3), categories=["b", "c", "d"]),
        EPSILON,
        lambda a: a.value,
    ),
    "median": (
        lambda s: s.quantile("x", lower=0, upper=9, per_key_limit=1),
        EPSILON,
        lambda a: a.value,
    ),
    "quartiles": (
        lambda s: s.quantile("x", [0.25, 0.5, 0.75], lower=0, upper=9, per_key_limit=1),
        2 * EPSILON,
        lambda a: sum(a.counts) > 9,
    ),
    "largest": (
        lambda s: s.max("x", lower=0, upper=9, per_key_limit=1),
        EPSILON,
        lambda a: a.value,
    ),
    "a bound that is found": (
        lambda s: s.sum("x", lower=0, upper="auto"),
        2 * EPSILON,
        lambda a: (a.query.upper, a.value > 2),
    ),
    # two totals, in one label
    "mean": (
        lambda s: s.mean("x", lower=0, upper=5, per_key_limit=2),
        2 * EPSILON,
        lambda a: a.value > 2.5,
    ),
    "standard deviation": (
        lambda s: s.standard_deviation("x", lower=0, upper=5, per_key_limit=1),
        3 * EPSILON,
        lambda a: a.value > 1.5,
    ),
    "sums of known labels": (
        lambda s: s.sum(
            "x", by="k", categories=["b", "c", "d"], lower=0, upper=5, contribution_limit=1
        ),
        EPSILON,
        lambda a: sum(a.counts) > 3,
    ),
    # one count to find labels, one sum; a unit's labels are new, and hardly ever found
    "sums of labels that are found": (
        lambda s: s.sum("x", by="k", lower=0, upper=5, contribution_limit=1),
        2 * EPSILON,
        lambda a: a.labels,
    ),
    "medians of labels": (
        lambda s: s.quantile(
            "x",
            by="k",
            categories=["b", "c"],
            lower=0,
            upper=9,
            contribution_limit=1,
            per_key_limit=2,
        ),
        EPSILON,
        lambda a: sum(a.counts) > 9,
    ),
}


#: Filters that nobody passes, and that the loud unit passes alone.
NOBODY, ALONE = {"x": -5}, {"x": {"at_least": 10**6}, "k": "b"}
BOUNDS = {"lower": 0, "upper": 5, "per_key_limit": 1}
KNOWN = {"by": "k", "categories": ["b", "c"], "contribution_limit": 1}
MONTHS = {"by": "month(day)", "contribution_limit": 1}
RANGES = {"by": "bins(x, 0, 2, 9)", "contribution_limit": 1}
HOURS = {"by": ["hour(at)", "k"], "contribution_limit": 1}
#: Each kind with keys that are known, found and derived, where it has keys.
PLAIN: list[dict[str, Any]] = [
    {"kind": "count"},
    {"kind": "distinct", "column": "day", "contribution_limit": 1},
    {"kind": "distinct", "column": "day", "by": "k", "contribution_limit": 2},
    {"kind": "histogram", **KNOWN},
    {"kind": "rollup", "by": "k", "categories": ["b", "c"], "contribution_limit": 2},
    {"kind": "histogram", **HOURS},
    {"kind": "top_k", "by": "k", "categories": ["a", "b"], "k": 1},
    {"kind": "top_k", "by": "month(day)", "k": 1},
    {"kind": "loss", **RANGES, "most": 3},
    {"kind": "limit", "by": "month(day)", "limits": [1, 2], "noise": [0.1, 0.2]},
    {"kind": "sum", "column": "x", **MONTHS, **BOUNDS},
    {"kind": "mean", "column": "x", **KNOWN, **BOUNDS},
    {"kind": "mean", "column": "x", **HOURS, **BOUNDS},
    {"kind": "ratio", "column": "x", "per": "x", "per_upper": 5, **KNOWN, **BOUNDS},
    {"kind": "ratio", "column": "x", "per": "x", "per_upper": 5, **MONTHS, **BOUNDS},
    {"kind": "covariance", "column": "x", "on": "weekday(day)", **MONTHS, **BOUNDS},
    {"kind": "correlation", "column": "x", "on": "weekday(day)", **KNOWN, **BOUNDS},
    {"kind": "regression", "column": "x", "on": ["weekday(day)", "hour_of_day(at)"], **BOUNDS},
    {"kind": "variance", "column": "x", **BOUNDS},
    {"kind": "standard_deviation", "column": "x", **RANGES, **BOUNDS},
    {"kind": "quantile", "column": "x", **BOUNDS},
    {"kind": "quantile", "column": "x", **KNOWN, **BOUNDS},
    {"kind": "quantile", "column": "x", **MONTHS, **BOUNDS},
    {"kind": "quantile", "column": "x", "probability": [0.25, 0.5, 0.75], **BOUNDS},
    {"kind": "quantile", "column": "x", "probability": [0.2, 0.8], **KNOWN, **BOUNDS},
    {"kind": "min", "column": "x", **BOUNDS},
    {"kind": "max", "column": "x", **KNOWN, **BOUNDS},
    {"kind": "bound", "column": "x", "per_key_limit": 2},
    {"kind": "bound", "column": "x", "sums": True, "least": True, **MONTHS},
]
FILTERS = {"everybody": None, "nobody": NOBODY, "one alone": ALONE}


def seen(answer: Any) -> Any:
    """What an attacker looks at: which labels there are, and whether the numbers are large."""
    return answer.labels, answer.counts is not None and sum(answer.counts) > 1


def shown(query: dict[str, Any]) -> str:
    return f"{query['kind']} {query.get('by', '')}"


@pytest.mark.usefixtures("unpaid")
@pytest.mark.parametrize("filtered", FILTERS)
@pytest.mark.parametrize("query", PLAIN, ids=shown)
def test_every_kind_on_every_engine(on_engine, query, filtered) -> None:
    """No run fails, and none tells more than it costs."""
    engine, sessions = on_engine
    fields = {name: value for name, value in query.items() if name != "kind"}
    path = Path(lambda s: getattr(s, query["kind"])(**fields, where=FILTERS[filtered]), seen)
    trials = TRIALS if engine == "duckdb" else TRIALS_ELSEWHERE
    found = audit(path, *sessions, trials=trials, confidence=0.999, delta=1e-5)
    assert path.failures == []
    assert found.epsilon <= path.price


def test_no_kind_is_left_out() -> None:
    assert {query["kind"] for query in PLAIN} == set(KINDS)


def test_an_engine_that_fails_without_rows_is_caught(neighbours, monkeypatch) -> None:
    """Failing is an outcome: here it tells whether somebody passes."""
    real = DuckDBSource.fetch

    def failing(source, statement):
        rows = real(source, statement)
        assert rows.num_rows, "the engine failed"
        return rows

    monkeypatch.setattr(DuckDBSource, "fetch", failing)
    path = Path(lambda s: s.quantile("x", **KNOWN, **BOUNDS, where=ALONE), seen)
    found = audit(path, *neighbours, trials=TRIALS, confidence=0.999, delta=1e-5)
    assert len(path.failures) == TRIALS
    assert found.epsilon > path.price


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_price_is_what_is_told(neighbours, name) -> None:
    ask, price, view = QUESTIONS[name]
    path = Path(ask, view)
    found = audit(path, *neighbours, trials=TRIALS, confidence=0.999)
    assert path.failures == []
    assert found.epsilon <= price


def test_a_limit_chosen_too_sharply_is_caught(neighbours, monkeypatch) -> None:
    """Four labels of one unit move the totals by more than one: a range of 1 tells it apart."""
    from farthing.engine.kinds.limit import PARTS, LimitQuery

    monkeypatch.setattr(LimitQuery, "score_range", property(lambda _: PARTS // 3))
    monkeypatch.setattr(compiling.Contribution, "within", lambda *_: True)
    ask, price, view = QUESTIONS["limit of a known domain"]
    found = audit(Path(ask, view), *neighbours, trials=TRIALS, confidence=0.999)
    assert found.epsilon > price


def test_a_path_without_limits_is_caught(neighbours, monkeypatch) -> None:
    """The statement counts everything a unit has; nothing else is changed."""
    from farthing.engine.kinds.counts import CountQuery
    from farthing.engine.sql import bounding

    def everything(_, rows):
        return bounding.counted_rows(rows.table, rows.owner, 10**6)

    monkeypatch.setattr(CountQuery, "bounded", everything)
    monkeypatch.setattr(compiling.Contribution, "within", lambda *_: True)
    ask, price, view = QUESTIONS["rows"]
    found = audit(Path(ask, view), *neighbours, trials=TRIALS, confidence=0.999)
    assert found.epsilon > price


def test_labels_without_limits_are_caught(neighbours, monkeypatch) -> None:
    """A unit counts in every label; the price is that of one."""
    from farthing.engine.sql.measuring import Grouped

    monkeypatch.setattr(Grouped, "first", lambda _, rows, __: rows)
    categories = ["a", "b", "c", "d", "e", "f"]

    def ask(session):
        return session.sum(
            "x", by="k", categories=categories, lower=0, upper=5, contribution_limit=1
        )

    path = Path(ask)
    options = {"trials": TRIALS, "confidence": 0.999}
    found = audit(path, *neighbours, view=lambda a: sum(n > 2 for n in a.counts), **options)
    assert found.epsilon > EPSILON
