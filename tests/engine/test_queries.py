"""Queries and filters are frozen descriptions that round-trip through JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.canonical import digest
from farthing.engine import AllOf, AnyOf, Between, Equals, Not, OneOf, Present, query_from
from farthing.engine.filters import columns_of, filter_from, filter_to_json
from farthing.engine.kinds import KINDS
from farthing.engine.kinds.bound import BoundQuery
from farthing.engine.kinds.counts import CountQuery, HistogramQuery
from farthing.engine.kinds.quantile import MinQuery, QuantileQuery
from farthing.engine.kinds.top_k import TopKQuery
from farthing.engine.kinds.totals import SumQuery
from farthing.engine.sql.bounding import labels_of, text_of
from farthing.errors import InvalidInput

columns = st.sampled_from(["country", "age", "day", "é|~"])
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**62), 2**62), texts, st.dates(date(1, 1, 1))
)
ordered = st.one_of(st.integers(-(2**62), 2**62), texts, st.floats(-1e9, 1e9), st.dates())
leaves = st.one_of(
    st.builds(Equals, columns, values),
    st.builds(OneOf, columns, st.lists(values, min_size=1, max_size=3).map(tuple)),
    st.builds(Between, columns, at_least=ordered),
    st.builds(Between, columns, above=ordered, at_most=ordered),
    st.builds(Present, columns),
)
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)
labels = st.one_of(values, st.tuples(values, values))


@given(filters)
def test_filters_round_trip(where) -> None:
    assert filter_from(json.loads(json.dumps(filter_to_json(where)))) == filter_from(where)


@given(st.one_of(filters, st.none()), st.integers(1, 9), st.booleans())
def test_queries_round_trip(where, k, counts) -> None:
    for query in (
        CountQuery(where=where, per_key_limit=k),
        HistogramQuery(by=("a", "b"), where=where, contribution_limit=k),
        HistogramQuery(by="a", categories=["x", None, 3, True, date(2013, 1, 5)]),
        HistogramQuery(by=["a", "b"], categories=[("x", 1), (None, date(2013, 1, 5))]),
        TopKQuery(by=("a",), k=k, where=where, counts=counts),
        QuantileQuery(column="a", probability=0.25, lower=-1.5, upper=2, places=1, where=where),
        QuantileQuery(column="a", probability=[0.75, 0.25], per_key_limit=k),
        MinQuery("a", upper="auto"),
        BoundQuery("a", least=counts, sums=True, where=where),
        SumQuery(column="a", lower=0, upper=10, places=0, where=where, repeats=k),
    ):
        data = json.loads(json.dumps(query.to_json()))
        assert query_from(data) == query
        assert digest(query_from(data).to_json()) == digest(data)


@given(labels)
def test_labels_have_one_text(label) -> None:
    width = len(label) if isinstance(label, tuple) else 1
    (found,) = labels_of([text_of(label)], width)
    assert found == label
    assert type(found) is type(label)


@given(labels, labels)
def test_different_labels_have_different_texts(one, other) -> None:
    same = (type(one), one) == (type(other), other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        same = [(type(x), x) for x in one] == [(type(x), x) for x in other]
    if isinstance(one, tuple) == isinstance(other, tuple):
        assert (text_of(one) == text_of(other)) == same


def test_plain_tables_read_as_people_mean_them() -> None:
    where = filter_from(
        {"country": "NO", "age": {"at_least": 18, "below": 65}, "day": {"date": "2013-01-05"}}
    )
    assert where == AllOf(
        (
            Equals("country", "NO"),
            Between("age", at_least=18, below=65),
            Equals("day", date(2013, 1, 5)),
        )
    )
    assert filter_from({"x": None}) == Equals("x", None)
    assert filter_from({"x": {"present": True}}) == Present("x")
    assert filter_from({}) is None
    assert filter_from({"not": {"x": 1, "y": 2}}) == Not(AllOf((Equals("x", 1), Equals("y", 2))))
    assert filter_from({"any_of": [{"x": 1e6}]}) == Equals("x", 1000000)
    query = TopKQuery(by="a", k=1, where={"b": 1, "any_of": [{"c": 2}, {"d": [3]}]})
    assert query.columns() | columns_of(query.filter) == {"a", "b", "c", "d"}


def test_queries_are_frozen() -> None:
    for made in KINDS.values():
        assert made.__dataclass_params__.frozen
    with pytest.raises(FrozenInstanceError):
        CountQuery().repeats = 2


BAD_FILTERS = [
    ["country"],
    {"country": {"like": "N%"}},
    {"country": {}},
    {"country": []},
    {"any_of": []},
    {"any_of": [{}]},
    {"any_of": {"x": 1}},
    {"not": {}},
    {"not": [{"x": 1}]},
    {"not": 3},
    {"": 1},
    {1: 1},
    {"x": float("nan")},
    {"x": 2**70},
    {"x": b"bytes"},
    {"x": datetime(2013, 1, 5, tzinfo=UTC)},
    {"x": {"date": "yesterday"}},
    {"x": {"date": 5, "below": 3}},
    {"x": {"at_least": 1, "above": 2}},
    {"x": {"below": True}},
]


def test_a_filter_nested_beyond_reason_is_refused() -> None:
    nested: dict[str, object] = {"x": 1}
    for _ in range(5000):
        nested = {"any_of": [nested]}
    with pytest.raises(InvalidInput, match="nests at most"):
        filter_from(nested)
    made: Not | Equals = Equals("x", 1)
    for _ in range(23):
        made = Not(made)
    with pytest.raises(InvalidInput, match="nests at most 24 times"):
        Not(made)


@pytest.mark.parametrize("joint", ["all_of", "any_of"])
def test_a_filter_of_thousands_of_conditions_is_refused(joint) -> None:
    """Engines and our own code would run out of stack."""
    apart = [{"x": {"above": i}} for i in range(3000)]
    with pytest.raises(InvalidInput, match="at most 300 conditions, got 3000"):
        filter_from({joint: apart})
    by_halves = {joint: [{"any_of": apart[:200]}, {"not": {"all_of": apart[200:400]}}]}
    with pytest.raises(InvalidInput, match="at most 300 conditions, got 400"):
        filter_from(by_halves)
    assert filter_from({"x": list(range(3000))}) is not None


@pytest.mark.parametrize("where", BAD_FILTERS, ids=str)
def test_bad_filters_are_refused(where) -> None:
    with pytest.raises(InvalidInput):
        filter_from(where)


BAD_QUERIES = [
    {"kind": "sql", "text": "SELECT 1"},
    {"kind": "top_k"},
    {"kind": "top_k", "by": ["a"], "k": 0},
    {"kind": "top_k", "by": ["a"], "k": 10**9},
    {"kind": "top_k", "by": [], "k": 1},
    {"kind": "top_k", "by": ["a", "a"], "k": 1},
    {"kind": "top_k", "by": ["a"], "k": 3, "categories": ["x"]},
    {"kind": "top_k", "by": ["a"], "k": 3, "candidates": 2},
    {"kind": "top_k", "by": ["a"], "k": 3, "mechanism": "permute-and-flip"},
    {"kind": "top_k", "by": ["a"], "k": 3, "counts": False, "repeats": 2},
    {"kind": "top_k", "by": ["a"], "k": 3, "counts": "yes"},
    {"kind": "top_k", "by": ["a"], "k": 3, "select": ""},
    {"kind": "histogram", "by": ["a"], "contribution_limit": 0},
    {"kind": "histogram", "by": ["a"], "contribution_limit": "all"},
    {"kind": "histogram", "by": ["a"], "repeats": 2},
    {"kind": "histogram", "by": ["a"], "categories": []},
    {"kind": "histogram", "by": ["a"], "categories": ["x", "x"]},
    {"kind": "histogram", "by": ["a"], "categories": [1.5]},
    {"kind": "histogram", "by": ["a"], "categories": [["x", "y"]]},
    {"kind": "histogram", "by": ["a"], "categories": "xyz"},
    {"kind": "count", "per_key_limit": -1},
    {"kind": "count", "repeats": 1000},
    {"kind": "count", "limit": 3},
    {"kind": "quantile", "column": "a", "probability": 0, "lower": 0, "upper": 1},
    {"kind": "quantile", "column": "a", "probability": []},
    {"kind": "quantile", "column": "a", "probability": [0.5, 0.5]},
    {"kind": "quantile", "column": "a", "probability": [0.5, 1]},
    {"kind": "quantile", "column": "a", "probability": [0.123, 0.3333333]},
    {"kind": "quantile", "column": "a", "probability": "0.5"},
    {"kind": "quantile", "column": "a", "probability": {"0.5": 1}},
    {"kind": "min", "column": "a", "probability": 0.5},
    {"kind": "bound", "column": "a", "lower": 0},
    {"kind": "mean", "column": "a", "lower": "Auto"},
    {"kind": "quantile", "column": "a", "probability": 0.5, "lower": 2, "upper": 1},
    {"kind": "quantile", "column": "a", "probability": 0.5, "lower": 0.5, "upper": 1, "places": 0},
    {"kind": "sum", "column": "a", "lower": 0, "upper": 0},
    {"kind": "sum", "column": "a", "lower": 0, "upper": 2**50},
    {"kind": "sum", "column": "a", "lower": 0, "upper": 1, "places": 10},
    {"kind": "sum", "column": "a", "lower": float("-inf"), "upper": 1},
    "top 10",
]


@pytest.mark.parametrize("data", BAD_QUERIES, ids=str)
def test_bad_queries_are_refused(data) -> None:
    with pytest.raises(InvalidInput):
        query_from(data)
