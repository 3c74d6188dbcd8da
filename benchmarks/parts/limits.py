"""Automatic limits beside the best fixed one.

Three tables of different shape, with known and with unknown labels. Every limit is asked on the
rungs of a ladder made from (ε, δ) = (3, 1e-6), those up to 16 for the price of limit 1. The error
is the sum over all labels of |released − true|, with 0 for a label that is withheld, as a mean over
releases; the automatic one is the mean over the limits that its own question draws. The best fixed
limit is the best of those that cost no more than limit 1. The first table has the
shape of Lahman's salaries (players by year).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import farthing as fa
from benchmarks.findings import Findings, Goal, Table
from farthing.composition.tariffs.prices import ladder
from farthing.engine.planning import Prepared
from farthing.engine.session import Question
from farthing.mechanisms import Release

RELEASES, DRAWS = 30, 300
EPSILON, DELTA = 3.0, 1e-6


@dataclass(frozen=True)
class Row:
    """One table: the error at each fixed limit, and that of the automatic one."""

    table: str
    fixed: dict[int, float]
    automatic: float
    chosen: dict[int, int]
    equal: Sequence[int]

    @property
    def ratio(self) -> float:
        """How much more than the best fixed limit of the same price."""
        return self.automatic / min(self.fixed[limit] for limit in self.equal)


def salaries() -> pa.Table:
    """Players by year."""
    rng = np.random.default_rng(1)
    rows = []
    for player in range(5155):
        years = min(int(rng.geometric(0.195)), 25)
        first = int(rng.integers(1985, 2017))
        rows += [(player, year) for year in range(first, min(first + years, 2017))]
    return _table(rows)


def engagement(units: int = 60_000) -> pa.Table:
    """Zipf-shaped articles; most members read little, a few very much."""
    rng = np.random.default_rng(2)
    shares = 1 / np.arange(1, 5001)
    edges = np.cumsum(shares / shares.sum())
    read = np.minimum(rng.pareto(1.2, units) + 1, 200).astype(int)
    who = np.repeat(np.arange(units), read)
    return pa.table({"who": who, "k": np.searchsorted(edges, rng.random(who.size))})


def few_labels(units: int = 20_000) -> pa.Table:
    """Twelve labels, of which each unit has one to six."""
    rng = np.random.default_rng(3)
    rows = [(u, k) for u in range(units) for k in rng.permutation(12)[: rng.integers(1, 7)]]
    return _table([(u, int(k)) for u, k in rows])


def _table(rows: Sequence[tuple[int, int]]) -> pa.Table:
    return pa.table({"who": [u for u, _ in rows], "k": [k for _, k in rows]})


def measured(name: str, table: pa.Table, question: Question) -> Row:
    """Each limit with its rung, and the choice."""
    pairs = set(zip(table["who"].to_pylist(), table["k"].to_pylist(), strict=True))
    truth = Counter(k for _, k in pairs)
    search = question.plan().details.searches[""]
    choices = search.automatic.choices
    fixed = {
        limit: float(np.mean([_error(one, truth) for one in _releases(question, choice.query)]))
        for limit, choice in choices.items()
    }
    equal = [n for n, choice in choices.items() if choice.price == choices[1].price]
    chosen = Counter(int(release.labels[0]) for release in drawn(search.first, DRAWS))
    automatic = sum(fixed[limit] * times for limit, times in chosen.items()) / DRAWS
    return Row(name, fixed, automatic, dict(sorted(chosen.items())), equal)


def _releases(question: Question, query: object) -> Iterator[dict[object, float]]:
    plan = Question(question.backend, query).plan()  # type: ignore[arg-type] # a query of a choice
    for release in drawn(plan.details, RELEASES):
        labels = plan.query.labels_in(release.labels)  # type: ignore[attr-defined] # of labels
        yield dict(zip(labels, release.counts or (), strict=True))


def drawn(prepared: Prepared, times: int) -> Iterator[Release]:
    """The statement once, the mechanism often: nothing is charged, this is a measurement."""
    step = prepared.steps[""]
    data = step.purchase.query.data(prepared.context.source.run(step.statement))
    for _ in range(times):
        yield step.mechanism.run(data)


def _error(released: dict[object, float], truth: Counter[object]) -> float:
    return sum(abs(released.get(k, 0) - truth.get(k, 0)) for k in {*released, *truth})


def rows() -> Iterator[Row]:
    """Every table."""
    certificate = ladder(epsilon=EPSILON, delta=DELTA)
    players, articles, few = salaries(), engagement(), few_labels()
    years = sorted(set(players["k"].to_pylist()))
    cases = [
        ("salaries, known years", players, {"categories": years}),
        ("salaries, unknown years", players, {}),
        ("engagement, unknown articles", articles, {}),
        ("few labels, known", few, {"categories": list(range(12))}),
    ]
    for name, table, more in cases:
        with (
            tempfile.TemporaryDirectory() as folder,
            fa.open(
                table,
                unit="who",
                ledger=Path(folder) / "b.db",
                tariff=certificate,
                farthings=certificate.tariff.farthings,
                dataset="measured",
            ) as data,
        ):
            asked = data.histogram("k", contribution_limit="auto", count="count", **more)
            yield measured(name, table, asked)


def measure() -> Findings:
    """Every table, and how far the automatic limit is from the best."""
    cells, goals = [], []
    for row in rows():
        fixed = ", ".join(f"{limit}: {error:,.0f}" for limit, error in row.fixed.items())
        chosen = ", ".join(f"{limit}: {times}" for limit, times in row.chosen.items())
        cells.append([row.table, fixed, f"{row.automatic:,.0f}", f"{row.ratio:.2f}", chosen])
        goals.append(Goal(f"automatic limit, {row.table}, beside the best", row.ratio, 1.15, "×"))
    header = ["table", "error at each fixed limit", "automatic", "beside the best", "chosen"]
    caption = (
        f"ε = {EPSILON:g}, δ = {DELTA:g} for everything that the ladder sells; one question on its "
        f"standard rung. Sum over labels of what is off, mean of {RELEASES} releases at each limit "
        f"and {DRAWS} draws of the limit."
    )
    return Findings("Automatic limits", (Table(caption, header, cells),), tuple(goals))
