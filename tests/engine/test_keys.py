"""Keys: text, plain data and forms say the same; what cannot be meant is refused."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import farthing as fa
from farthing.engine.keys import (
    MOST_BINS,
    PERIODS,
    Bins,
    Key,
    Named,
    Period,
    column_of,
    key_from,
    key_to_json,
)
from farthing.engine.kinds.counts import HistogramQuery
from farthing.engine.sources.opening import open_source
from farthing.errors import InvalidInput
from farthing.mechanisms import Release
from farthing.schema import DATE, INTEGER, Column, Schema
from tests.engine.engines import measured

NAMES = st.one_of(
    st.text(min_size=1, max_size=8).filter(lambda text: "\0" not in text),
    st.sampled_from(
        ["day", "a,b", "month(day)", "bins(x, 0, 1)", "bins(", ")", " x ", "week()", '"x"']
    ),
)
EDGES = st.lists(
    st.one_of(st.integers(-(2**63), 2**63), st.floats(allow_nan=False, allow_infinity=False)),
    min_size=2,
    max_size=6,
).map(lambda edges: tuple(sorted(set(edges))))
KEYS: st.SearchStrategy[Any] = st.one_of(
    NAMES.map(lambda name: {"column": name}),
    st.builds(Period, NAMES, st.sampled_from(PERIODS)),
    st.builds(lambda c, e: {"column": c, "bins": e}, NAMES, EDGES.filter(lambda e: len(e) > 1)),
)


@given(KEYS)
@example({"column": "bins(x)"})
@example({"column": "x", "bins": (2**53, 2**53 + 1)})
@example({"column": "x", "bins": (-1e-5, 1e300)})
def test_plain_data_is_read_back_as_the_same(given: Any) -> None:
    key = key_from(given)
    plain = json.loads(json.dumps(key_to_json(key)))
    assert key_from(plain) == key
    assert key_from(key) == key
    asked = HistogramQuery(by=(key,))
    assert asked.key == (key,)
    assert HistogramQuery.from_json(json.loads(json.dumps(asked.to_json()))) == asked


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("day", "day"),
        ("month(day)", Period("day", "month")),
        ("month( a b )", Period("a b", "month")),
        ("bins(x, 0, 1.5, 1e6)", Bins("x", (0, 1.5, 10**6))),
        ("bins(x,-1,+1)", Bins("x", (-1, 1))),
        ("bins(x, 9007199254740993, 1e300)", Bins("x", (2**53 + 1, 1e300))),
        ("MONTH(day)", "MONTH(day)"),
        ('year("Release Date")', Period("Release Date", "year")),
        ('"Release Date"', "Release Date"),
        ('bins("a, ""b""", 0, 1)', Bins('a, "b"', (0, 1))),
        ({"column": '"x"'}, Named('"x"')),
        ({"column": "month(day)"}, Named("month(day)")),
        ({"column": "day"}, "day"),
        ({"column": "a,b", "bins": [0, 1]}, Bins("a,b", (0, 1))),
    ],
)
def test_what_a_text_says(text: Any, key: Key) -> None:
    assert key_from(text) == key


def test_the_functions_say_what_the_texts_say() -> None:
    for period in PERIODS:
        made = getattr(fa, period)("day")
        assert made == key_from(f"{period}(day)")
        assert str(made) == f"{period}(day)"
    assert fa.bins("x", [0, 1]) == key_from("bins(x, 0, 1)")
    assert fa.bins("x", [0, 1, 2.5]).labels((0, 9)) == ("[0, 1)", "[1, 2.5)")
    assert fa.bins("x", [0, 1, 2.5]).labels((0, 2.5)) == ("[0, 1)", "[1, 2.5]")
    assert column_of(fa.bins("x", [0, 1])) == column_of(Named("x")) == "x"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "column"),
        ("month()", "column"),
        ("bins(x)", "2 to 1001 edges"),
        ("bins(x, 1)", "2 to 1001 edges"),
        ("bins(x, 1, one)", "bins are written"),
        ("bins(x, 1, nan)", "finite"),
        ("bins(x, 1, 1)", "must grow"),
        ("bins(x, 2, 1)", "must grow"),
        (f"bins(x, 1, 1{'0' * 400})", "finite"),
        ({"column": "x", "bins": "0, 1"}, "list of numbers"),
        ({"column": "x", "bins": [0, True]}, "finite"),
        ({"column": "x", "bins": 3}, "list of numbers"),
        ({"column": "x", "bins": list(range(MOST_BINS + 2))}, "2 to 1001 edges"),
        ({"column": "x", "period": "decade"}, "period"),
        ({"column": "x", "period": "day", "bins": [0, 1]}, "a key is a table"),
        ({"period": "day"}, "a key is a table"),
        (3, "column"),
        (None, "column"),
    ],
)
def test_what_is_no_key(given: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        key_from(given)


DAYS = [date(1, 1, 1), date(9999, 12, 31), *(date(2023, 12, 20) + timedelta(n) for n in range(30))]


@pytest.mark.parametrize("period", ["day", "week", "month", "quarter", "year"])
def test_a_label_is_the_first_day(period: str) -> None:
    """By its definition, in Python's own calendar."""
    first = {
        "day": lambda d: d,
        "week": lambda d: d - timedelta(d.weekday()),
        "month": lambda d: d.replace(day=1),
        "quarter": lambda d: d.replace(month=d.month - (d.month - 1) % 3, day=1),
        "year": lambda d: d.replace(month=1, day=1),
    }[period]
    schema = Schema((Column("member", INTEGER), Column("day", DATE)))
    source = open_source(pa.table({"member": list(range(len(DAYS) + 1)), "day": [*DAYS, None]}))
    query = HistogramQuery(f"{period}(day)", contribution_limit=1)
    whole, rows, _ = measured(source, schema, query)
    source.shut()
    found = whole.labels_in(Release(tuple(rows.column("label").to_pylist())))
    assert set(found) == {*map(first, DAYS), None}


def test_both_labels_of_a_truth_value_are_known(opened) -> None:
    """No label has to be found, so none is withheld and no leak is bought."""
    rows = pa.table({"member": range(60), "price": [1, 5, None] * 20, "paid": [True, None] * 30})
    prices = Schema(
        (Column("member", INTEGER), Column("price", INTEGER), Column("paid", "boolean"))
    )
    data = opened(rows, schema=prices)
    for key in ("paid", "price > 3"):
        plan = data.histogram(key, contribution_limit=1).plan()
        assert plan.query.categories == (False, True)
        assert plan.items == {"count": 1}
        told = plan.run()
        assert told.labels == (False, True)
        assert told.shown_from is None
        assert data.ask(plan.query.to_json()).plan().known is not None
    both = data.histogram(["paid", "price > 3"], contribution_limit=1).plan()
    assert len(both.query.categories or ()) == 4
    some = data.histogram("paid", categories=[True, None], contribution_limit=1)
    assert some.plan().query.categories == (True, None)
    assert data.histogram(["paid", "price"], contribution_limit=1).plan().query.categories is None
    asked = data.sql(
        "SELECT paid, COUNT(DISTINCT member) FROM events GROUP BY paid", contribution_limit=1
    )
    assert asked.plan().known is not None
