"""From `open` to `run`, thousands of times on neighbouring tables: the price is not exceeded.

The same attack must catch a path in which units are not limited.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine import translate
from farthing.lab.audit import audit
from farthing.mechanisms.noise import randomness

TRIALS = 300
EPSILON = 1.0
TARIFF = fa.Tariff(
    {
        "count": (fa.PureDP(EPSILON), 1),
        "select": (fa.BoundedRange(EPSILON), 1),
        "leak": (fa.ApproximateDP(0, 1e-6), 1),
    },
    farthings=40,
    delta_units=10,
    delta_unit=1e-6,
)
#: One unit more, who tries to be seen everywhere and often.
OTHERS = {"member": [1, 2, 3, 4], "k": ["a", "a", "b", "a"], "x": [1, 2, 3, 4]}
LOUD = {"member": [9] * 60, "k": ["a", "b", "c", "d", "e", "f"] * 10, "x": [10**6] * 60}


class Path:
    """A question that is planned once and run afresh each time, paid for and released."""

    def __init__(self, ask) -> None:
        self._ask, self._plans = ask, {}

    def run(self, session):
        if id(session) not in self._plans:
            self._plans[id(session)] = self._ask(session).plan()
        return self._plans[id(session)].run(again=True)


@pytest.fixture(scope="module")
def certificate():
    return TARIFF.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))


@pytest.fixture
def neighbours(tmp_path, certificate, monkeypatch):
    """Two sessions on neighbouring tables, with noise that repeats and a purse without a bottom."""
    from farthing.ledger.roles.analyst import Analyst, Settled

    made = []
    for place, more in enumerate(({}, LOUD)):
        rows = {name: values + more.get(name, []) for name, values in OTHERS.items()}
        session = fa.open(
            pa.table(rows),
            dataset="rows",
            unit="member",
            ledger=tmp_path / f"{place}.db",
            tariff=certificate,
            farthings=40,
        )
        made.append(session)
    monkeypatch.setattr(Analyst, "reserve", _free(Analyst))
    monkeypatch.setattr(Analyst, "close", lambda *_, **__: Settled(1, None))
    with randomness._seeded(11):
        yield made
    for session in made:
        session.shut()


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


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_price_is_what_is_told(neighbours, name) -> None:
    ask, price, view = QUESTIONS[name]
    found = audit(Path(ask), *neighbours, trials=TRIALS, confidence=0.999, view=view)
    assert found.epsilon <= price


def test_a_limit_chosen_too_sharply_is_caught(neighbours, monkeypatch) -> None:
    """Four labels of one unit move the totals by more than one: a range of 1 tells it apart."""
    from farthing.engine.kinds.limit import PARTS, LimitQuery

    monkeypatch.setattr(LimitQuery, "score_range", property(lambda _: PARTS // 3))
    monkeypatch.setattr(translate.Contribution, "within", lambda *_: True)
    ask, price, view = QUESTIONS["limit of a known domain"]
    found = audit(Path(ask), *neighbours, trials=TRIALS, confidence=0.999, view=view)
    assert found.epsilon > price


def test_a_path_without_limits_is_caught(neighbours, monkeypatch) -> None:
    """The statement counts everything a unit has; nothing else is changed."""
    from farthing.engine.kinds.counts import CountQuery
    from farthing.engine.sql import bounding

    def everything(_, rows):
        return bounding.counted_rows(rows.table, rows.owner, 10**6)

    monkeypatch.setattr(CountQuery, "bounded", everything)
    monkeypatch.setattr(translate.Contribution, "within", lambda *_: True)
    ask, price, view = QUESTIONS["rows"]
    found = audit(Path(ask), *neighbours, trials=TRIALS, confidence=0.999, view=view)
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
