"""Several quantiles in one question, and the least and the largest value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as fa
from farthing.errors import InvalidInput

SIZE = 6000
AGES = np.sort(np.random.default_rng(1).normal(45, 12, SIZE).astype(int))
ROWS = pa.table(
    {
        "member": range(SIZE),
        "age": AGES,
        "k": [("a", "b")[i % 2] for i in range(SIZE)],
        "area": [(9, 3, 5)[i % 3] for i in range(SIZE)],
    }
)
SCHEMA = fa.Schema(
    (
        fa.Column("member", "integer"),
        fa.Column("age", "integer", lower=0, upper=120),
        fa.Column("k", "text", categories=("a", "b")),
        fa.Column("area", "integer", lower=0, upper=10**6),
    )
)
QUARTERS = [0.25, 0.5, 0.75]


@pytest.fixture(scope="module")
def data(tmp_path_factory: Any) -> Any:
    with fa.open(
        ROWS,
        unit="member",
        ledger=tmp_path_factory.mktemp("book") / "b.db",
        epsilon=12,
        delta=1e-7,
        dataset="people",
        schema=SCHEMA,
    ) as session:
        yield session


def test_three_cost_two_selections(data: Any) -> None:
    one = data.quantile("age", 0.5, per_key_limit=1).plan()
    (item,) = one.items
    asked = data.quantile("age", [0.75, 0.25, 0.5], per_key_limit=1)
    plan = asked.plan()
    assert plan.items == {item: 2}
    assert plan.price.farthings == 2 * one.price.farthings
    answer = asked.run()
    assert answer.labels == (0.25, 0.5, 0.75)
    assert list(answer.counts) == sorted(answer.counts)
    assert np.abs(np.array(answer.counts) - np.quantile(AGES, QUARTERS)).max() <= 2
    assert "ranks" in str(answer)
    assert answer.to_pandas()["quantile"].tolist() == QUARTERS
    assert data.ask(answer.query.to_json()).run().cached
    assert (
        data.quantile("age", [0.5], per_key_limit=1).query
        == data.quantile("age", 0.5, per_key_limit=1).query
    )


def test_for_each_label(data: Any) -> None:
    asked = data.quantile("age", QUARTERS, by="k", contribution_limit=1, per_key_limit=1)
    answer = asked.run()
    assert answer.labels == tuple((k, q) for k in "ab" for q in QUARTERS)
    assert list(answer.counts[:3]) == sorted(answer.counts[:3])
    assert answer.to_arrow().column_names[:3] == ["k", "quantile", "value"]
    assert "▏" in str(answer) or "0.25" in str(answer)
    assert "svg" in answer._repr_html_()


def test_for_each_label_that_is_found_in_order(data: Any) -> None:
    """A label has several numbers, and the units that finding it paid for beside each."""
    found = {"by": "area", "contribution_limit": 1, "per_key_limit": 1}
    answer = data.quantile("age", QUARTERS, **found).run()
    assert answer.labels == tuple((area, q) for area in (3, 5, 9) for q in QUARTERS)
    assert len(answer.units) == 9
    assert answer.to_arrow().num_rows == 9
    line = data.regression("age", ["area"], **found).run()
    assert [label[0] for label in line.labels] == [3, 3, 5, 5, 9, 9]
    assert line.to_arrow().num_rows == 6


def test_extremes(data: Any) -> None:
    low, high = (ask("age", per_key_limit=1).run() for ask in (data.min, data.max))
    assert AGES[0] <= low.value < np.quantile(AGES, 0.2)
    assert np.quantile(AGES, 0.8) < high.value <= AGES[-1]
    for answer, beyond in ((low, (low.value > AGES).sum()), (high, (high.value < AGES).sum())):
        assert beyond <= 2 * answer.half_width
        assert "it is not that of one `member`" in answer.caption
    assert data.sql("SELECT MIN(age) FROM people OPTIONS (per_key_limit = 1)").run().cached


def test_the_statement_says_it(data: Any) -> None:
    asked = data.quantile("age", QUARTERS, per_key_limit=1)
    text = asked.to_sql()
    assert "PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY age)" in text
    assert data.sql(text).query == asked.query


def test_a_watch_is_about_one(data: Any) -> None:
    watch = data.watch(monotone=False).open()
    for asked in (data.quantile("age", QUARTERS, per_key_limit=1), data.bound("age", sums=True)):
        with pytest.raises(InvalidInput, match=r"one number|one value|not a value"):
            watch.exceeds(asked, 5)
    with pytest.raises(InvalidInput, match="must be a number here"):
        watch.exceeds(data.sum("age", lower=0, upper="auto"), 5)
    with pytest.raises(InvalidInput, match="not a value among others"):
        watch.exceeds(data.max("age", per_key_limit=1), 5)
