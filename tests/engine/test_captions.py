"""Titles say what was counted, of which rows, and every bound and limit that was applied."""

from __future__ import annotations

import pytest

from farthing.engine import query_from
from farthing.engine.filters import columns_of
from farthing.schema import DeclaredValues

YEARS = {"by": "yearID", "contribution_limit": 3}
DECLARED = DeclaredValues({"age": (18, None), "pay": (0, 8)}, {"lgID": 2, "team": 5})
CASES = [
    (
        {"kind": "histogram", **YEARS, "where": {"lgID": "AL"}},
        "playerID per yearID where lgID is AL, each playerID in at most 3 yearID",
    ),
    (
        {"kind": "histogram", **YEARS, "categories": [2010, 2011]},
        "playerID per yearID, 2 declared labels; rows with others are not counted",  # no limit of 3
    ),
    (
        {"kind": "histogram", "by": ["a", "b"], "contribution_limit": 2, "per_key_limit": 4},
        "rows per a and b, each playerID in at most 2 a and b with at most 4 rows for each",
    ),
    (
        {"kind": "top_k", "by": "team", "k": 5, "where": {"team": {"present": True}}},
        "top 5 team with the most playerID where team is not missing, "
        "team has 5 declared labels and others are missing",
    ),
    ({"kind": "count"}, "number of playerID"),
    ({"kind": "count", "per_key_limit": 9}, "number of rows, of each playerID at most 9"),
    (
        {"kind": "sum", "column": "pay", "lower": 0, "upper": 5, "where": {"pay": {"below": 9}}},
        "sum of pay where pay is below 9, pay moved into 0 to 8, "
        "of each playerID a sum moved into 0 to 5",
    ),
    (
        {"kind": "distinct", "column": "team", "contribution_limit": 1},
        "different values of team, team has 5 declared labels and others are missing, "
        "of each playerID at most 1 value",
    ),
    (
        {
            "kind": "quantile",
            "column": "pay",
            "lower": 0,
            "upper": 9,
            "per_key_limit": 2,
        },
        "median of pay, pay moved into 0 to 9, of each playerID at most 2 rows",
    ),
    (
        {"kind": "mean", "column": "pay", "lower": 1, "upper": 2.5, "per_key_limit": 1},
        "mean of pay, pay moved into 1 to 2.5, of each playerID at most 1 row",
    ),
    (
        {
            "kind": "variance",
            "column": "pay",
            "by": ["team", "age"],
            "categories": [["a", 1], ["b", None]],
            "lower": 0,
            "upper": 5,
            "contribution_limit": 1,
            "per_key_limit": 3,
        },
        "variance of pay by team, age, age moved to at least 18, pay moved into 0 to 5, of each "
        "playerID at most 1 label, with at most 3 rows each, 1 declared label and (missing); rows "
        "with others are not counted",
    ),
    (
        {"kind": "standard_deviation", "column": "x", "lower": 0, "upper": 1, "per_key_limit": 2},
        "standard deviation of x, x moved into 0 to 1, of each playerID at most 2 rows",
    ),
    (
        {"kind": "histogram", "by": "bins(pay, 0, 4, 8)", "contribution_limit": 1},
        "playerID per bins(pay, 0, 4, 8), pay moved into 0 to 8, "
        "each playerID in at most 1 bins(pay, 0, 4, 8)",
    ),
    (
        {"kind": "count", "where": "lgID != 'AL'"},
        "number of playerID where not (lgID is AL), lgID has 2 declared labels and others are "
        "missing",
    ),
    (
        {"kind": "count", "where": {"any_of": [{"team": None}, {"lgID": ["AL", "NL"]}]}},
        "number of playerID where team is missing or lgID is AL or NL, team has 5 declared labels "
        "and others are missing",
    ),
    (
        {"kind": "histogram", "by": ["team", "yearID"], "contribution_limit": 3},
        "playerID per team and yearID, team has 5 declared labels and others are missing, "
        "each playerID in at most 3 team and yearID",
    ),
    ({"kind": "count", "where": "pay > 9"}, "number of playerID where pay is above 9"),
]


@pytest.mark.parametrize(("asked", "caption"), CASES)
def test_captions(asked: dict, caption: str) -> None:
    assert query_from(asked).caption("playerID", DECLARED) == caption


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"a": None}, "a is missing"),
        ({"a": ["x", "y", None]}, "a is missing, x or y"),
        ({"a": list("abcdef")}, "a is one of 6 values"),
        ({"n": {"at_least": 1, "below": 2.5}}, "n is at least 1 and below 2.5"),
        (
            {"a": "x", "any_of": [{"b": 1}, {"c": True, "d": 2}]},
            "a is x and (b is 1 or (c is True and d is 2))",
        ),
    ],
)
def test_filters_in_words(where: dict, words: str) -> None:
    query = query_from({"kind": "count", "where": where})
    assert query.caption("u", DeclaredValues()) == f"number of u where {words}"
    assert all(name in words for name in columns_of(query.filter))
