"""Real data: flights from New York in 2013, on DuckDB and on Spark; the unit is the aircraft."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

from farthing import engine
from farthing.engine.plan import ONLY
from farthing.engine.sql.measuring import WEIGHT
from farthing.mechanisms import Histogram

TRIALS = 150


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.server)])
def data(request, opened, flights) -> engine.Session:
    extra = {"spark": request.getfixturevalue("spark")} if request.param == "spark" else {}
    return opened(str(flights), unit="tailnum", version="2013", **extra)


def planes_by(flights, column: str) -> Counter[str]:
    rows = pq.read_table(flights, columns=["tailnum", column]).to_pandas().drop_duplicates()
    return Counter(rows[rows.tailnum.notna()][column])


def test_top_destinations(data, flights) -> None:
    truth = planes_by(flights, "dest")
    question = data.top_k("dest", k=5)
    release = question.run()
    assert len(release) == 5
    # each selection lies within the stated distance of the best that was left
    worst = sorted(truth.values(), reverse=True)[4]
    distance = question.plan().expectation.selection.half_width
    assert all(truth[label] >= worst - distance for label in release.labels)
    assert covered(question, truth) >= 0.95 - 0.02


def test_carriers_of_a_known_domain(data, flights) -> None:
    truth = planes_by(flights, "carrier")
    carriers = sorted(truth)
    question = data.histogram("carrier", categories=carriers, contribution_limit=16)
    release = question.run()
    assert release.labels == tuple(carriers)
    assert covered(question, truth) >= 0.95 - 0.02


def test_delays_by_quantile(data) -> None:
    question = data.quantile("dep_delay", 0.75, lower=-60, upper=600, per_key_limit=5)
    plan = question.plan()
    histogram = limited(plan)
    assert isinstance(histogram, Histogram)
    assert 0 <= plan.run().value <= 60
    allowed = plan.expectation.selection.half_width * WEIGHT  # what a row weighs
    inside = 0
    for _ in range(TRIALS):
        drawn = plan.details.steps[ONLY].mechanism.run(histogram).labels[0]
        below = int(histogram.counts[histogram.labels < drawn].sum())
        above = int(histogram.counts[histogram.labels > drawn].sum())
        at = int(histogram.counts.sum()) - below - above
        off = max(0.25 * below - 0.75 * (at + above), 0.75 * above - 0.25 * (below + at))
        inside += off <= allowed
    assert inside >= 0.95 * TRIALS


def limited(plan: engine.Plan) -> Histogram:
    """What the mechanism runs on, from the statement that runs."""
    return plan.query.data(plan.details.context.source.run(plan.details.steps[ONLY].statement))


def covered(question: engine.Question, truth: Counter[str]) -> float:
    """How many intervals of many releases hold the truth; a third narrower, fewer must."""
    plan = question.plan()
    histogram, half_width = limited(plan), plan.expectation.counts.half_width
    errors = []
    for _ in range(TRIALS):
        release = plan.details.steps[ONLY].mechanism.run(histogram)
        for text, count in zip(release.labels, release.counts, strict=True):
            errors.append(abs(count - truth[text[1:]]))
    assert np.mean(np.array(errors) <= 0.67 * half_width) < 0.95 - 0.02
    return float(np.mean(np.array(errors) <= half_width))
