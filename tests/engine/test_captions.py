"""Captions are sentences: what was counted, of which rows, and every bound and limit applied."""

from __future__ import annotations

import re

import pytest

from farthing.engine import query_from
from farthing.engine.filters import columns_of
from farthing.engine.kinds import KINDS
from farthing.schema import Column, DeclaredValues, Schema

YEARS = {"by": "yearID", "contribution_limit": 3}
DECLARED = DeclaredValues({"age": (18, None), "pay": (0, 8)}, {"lgID": 2, "team": 5})
PAY = {"column": "pay", "lower": 0, "upper": 9}
OTHERS = "and others count as missing"
LEFT_OUT = "and rows with others are left out"
CASES = [
    (
        {"kind": "histogram", **YEARS, "where": {"lgID": "AL"}},
        "The number of distinct `playerID` for each `yearID`, where `lgID` is AL (each `playerID` "
        "counts for at most 3 values of `yearID`)",
    ),
    (
        {"kind": "histogram", **YEARS, "categories": [2010, 2011]},  # no limit of 3
        "The number of distinct `playerID` for each `yearID` (2 values of `yearID` are listed, "
        f"{LEFT_OUT})",
    ),
    (
        {"kind": "histogram", "by": ["a", "b"], "contribution_limit": 2, "per_key_limit": 4},
        "The number of rows for each `a` and `b` (each `playerID` counts for at most 2 "
        "combinations of `a` and `b`, with at most 4 rows for each)",
    ),
    (
        {"kind": "top_k", "by": "team", "k": 5, "where": {"team": {"present": True}}},
        "The 5 values of `team` with the most distinct `playerID`, where `team` is not missing "
        f"(`team` has 5 declared values, {OTHERS})",
    ),
    (
        {"kind": "top_k", "by": "day", "k": 1},
        "The value of `day` with the most distinct `playerID`",
    ),
    ({"kind": "count"}, "The number of distinct `playerID`"),
    (
        {"kind": "count", "per_key_limit": 9},
        "The number of rows (each `playerID` counts with at most 9 rows)",
    ),
    (
        {"kind": "sum", "column": "pay", "lower": 0, "upper": 5, "where": {"pay": {"below": 9}}},
        "The sum of `pay`, where `pay` is below 9 (`pay` is clipped to the range 0 to 8; each "
        "`playerID` counts with a sum clipped to the range 0 to 5)",
    ),
    (
        {"kind": "distinct", "column": "team", "contribution_limit": 1},
        f"The number of distinct values of `team` (`team` has 5 declared values, {OTHERS}; "
        "each `playerID` counts with at most 1 value of `team`)",
    ),
    (
        {"kind": "quantile", **PAY, "per_key_limit": 2},
        "The median of `pay` (`pay` is clipped to the range 0 to 9; each `playerID` counts with "
        "at most 2 rows)",
    ),
    (
        {"kind": "quantile", **PAY, "probability": [0.25, 0.5, 0.75], "per_key_limit": 2},
        "The 0.25, 0.5 and 0.75 quantiles of `pay` (`pay` is clipped to the range 0 to 9; each "
        "`playerID` counts with at most 2 rows)",
    ),
    (
        {"kind": "max", **PAY, "per_key_limit": 2},
        "About the largest value of `pay`: a few rows lie above it, and it is not that of one "
        "`playerID` (`pay` is clipped to the range 0 to 9; each `playerID` counts with at most 2 "
        "rows)",
    ),
    (
        {"kind": "mean", "column": "pay", "lower": 1, "upper": "auto", "per_key_limit": 1},
        "The mean of `pay` (`pay` is clipped to the range 0 to 8; bounds are found first, beyond "
        "which a few rows are clipped; each `playerID` counts with at most 1 row)",
    ),
    (
        {"kind": "bound", "column": "pay", "sums": True},
        "A power of two that a few sums of `pay` lie above (`pay` is clipped to the range 0 to 8; "
        "each `playerID` counts with its sum)",
    ),
    (
        {"kind": "mean", "column": "pay", "lower": 1, "upper": 2.5, "per_key_limit": 1},
        "The mean of `pay` (`pay` is clipped to the range 1 to 2.5; each `playerID` counts with "
        "at most 1 row)",
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
        "The variance of `pay` for each `team` and `age` (`age` is clipped to at least 18; `pay` "
        "is clipped to the range 0 to 5; each `playerID` counts for at most 1 combination of "
        "`team` and `age`, with at most 3 rows for each; 1 combination of `team` and `age` and "
        f"missing values are listed, {LEFT_OUT})",
    ),
    (
        {"kind": "standard_deviation", "column": "x", "lower": 0, "upper": 1, "per_key_limit": 2},
        "The standard deviation of `x` (`x` is clipped to the range 0 to 1; each `playerID` "
        "counts with at most 2 rows)",
    ),
    (
        {
            "kind": "covariance",
            "column": "pay",
            "on": "age",
            "on_lower": [18],
            "on_upper": [90],
            "per_key_limit": 2,
        },
        "The covariance of `pay` and `age` (`age` is clipped to the range 18 to 90; `pay` is "
        "clipped to the range 0 to 8; each `playerID` counts with at most 2 rows)",
    ),
    (
        {"kind": "histogram", "by": "bins(pay, 0, 4, 8)", "contribution_limit": 1},
        "The number of distinct `playerID` for each range of `pay` between 0 and 8 (`pay` is "
        "clipped to the range 0 to 8; each `playerID` counts for at most 1 range of `pay` between "
        "0 and 8)",
    ),
    (
        {"kind": "count", "where": "lgID != 'AL'"},
        "The number of distinct `playerID`, where `lgID` is not AL (`lgID` has 2 declared values, "
        f"{OTHERS})",
    ),
    (
        {"kind": "count", "where": {"any_of": [{"team": None}, {"lgID": ["AL", "NL"]}]}},
        "The number of distinct `playerID`, where `team` is missing or `lgID` is AL or NL (`team` "
        f"has 5 declared values, {OTHERS})",
    ),
    (
        {"kind": "histogram", "by": ["team", "yearID"], "contribution_limit": "auto"},
        "The number of distinct `playerID` for each `team` and `yearID` (`team` has 5 declared "
        f"values, {OTHERS}; each `playerID` counts for a number of combinations of `team` and "
        "`yearID` that is chosen first)",
    ),
    (
        {"kind": "count", "where": "pay > 9"},
        "The number of distinct `playerID`, where `pay` is above 9",
    ),
    (
        {"kind": "loss", "by": "yearID", "contribution_limit": 2},
        "The number of (`playerID`, `yearID`) pairs above the limit of 2 values of `yearID` for "
        "each `playerID` (at most 8 values of `yearID` of each `playerID` are looked at)",
    ),
]


@pytest.mark.parametrize(("asked", "caption"), CASES)
def test_captions(asked: dict, caption: str) -> None:
    assert query_from(asked).caption("playerID", DECLARED) == caption


TITLED = Schema(
    (
        Column("member_id", "integer", title="member"),
        Column("art", "text", title="article", verb="read by"),
        Column("country", "text", title="country", plural="countries"),
        Column("at", "date", title="visit date"),
        Column("pay", "integer", title="salary", plural="salaries", lower=0, upper=9),
    )
)
SENTENCES = [
    (
        {"kind": "top_k", "by": "art", "k": 10, "where": {"country": "NO"}},
        "The 10 articles read by the most members, where country is NO",
    ),
    (
        {"kind": "top_k", "by": "art", "k": 1, "contribution_limit": 1},
        "The article read by the most members (each member counts for at most 1 article)",
    ),
    (
        {"kind": "top_k", "by": "country", "k": 2, "per_key_limit": 2},
        "The 2 countries with the most rows (each member counts with at most 2 rows for each "
        "country)",
    ),
    (
        {"kind": "histogram", "by": "month(at)", "contribution_limit": 2},
        "The number of members for each month of the visit date (each member counts for at most "
        "2 months of the visit date)",
    ),
    (
        {"kind": "histogram", "by": ["country", "art"], "contribution_limit": 1},
        "The number of members for each country and article (each member counts for at most 1 "
        "combination of country and article)",
    ),
    (
        {"kind": "histogram", "by": "country", "categories": ["NO"]},
        f"The number of members for each country (1 country is listed, {LEFT_OUT})",
    ),
    (
        {"kind": "histogram", "by": "country", "categories": ["NO", "SE", None]},
        "The number of members for each country (2 countries and missing values are listed, "
        f"{LEFT_OUT})",
    ),
    (
        {"kind": "distinct", "column": "country", "contribution_limit": 3},
        "The number of distinct countries (each member counts with at most 3 countries)",
    ),
    (
        {"kind": "distinct", "column": "art", "by": "country", "contribution_limit": 3},
        "The number of distinct articles for each country (each member counts with at most 3 "
        "combinations of country and article)",
    ),
    (
        {"kind": "rollup", "by": "country", "categories": ["NO", "SE", "DK"]}
        | {"contribution_limit": 2},
        "The number of pairs of a member and one of its countries, with the total (each member "
        "counts for at most 2 countries, in the total once for each of its countries; 3 countries "
        "are listed, "
        f"{LEFT_OUT})",
    ),
    (
        {"kind": "rollup", "by": ["country", "art"], "categories": [("NO", "x"), ("SE", "y")]}
        | {"contribution_limit": 1, "per_key_limit": 4},
        "The number of rows for each country and article, with sub-totals (each member counts for "
        "at most 1 combination of country and article, with at most 4 rows for each country and "
        f"article; 2 combinations of country and article are listed, {LEFT_OUT})",
    ),
    (
        {"kind": "mean", "column": "pay", "by": "country", "per_key_limit": 1}
        | {"contribution_limit": 1},
        "The mean of salary for each country (salary is clipped to the range 0 to 9; each member "
        "counts for at most 1 country, with at most 1 row for each)",
    ),
    (
        {"kind": "limit", "by": "art", "limits": [1, 2], "noise": [1, 2]},
        "The limit on articles for each member with about the least total error (at most 2 "
        "articles of each member are looked at)",
    ),
]


@pytest.mark.parametrize(("asked", "caption"), SENTENCES)
def test_titles_make_sentences(asked: dict, caption: str) -> None:
    assert query_from(asked).caption("member_id", TITLED.declared) == caption


@pytest.mark.parametrize("asked", [asked for asked, _ in (*CASES, *SENTENCES)])
def test_every_limit_and_every_name_is_told(asked: dict) -> None:
    """Whatever number limits a unit stands in the caption, and every name is marked."""
    query = query_from(asked)
    told = query.caption("who", DECLARED)
    size = len(asked["categories"]) if "categories" in asked else None
    limit = asked.get("contribution_limit")
    if isinstance(limit, int) and (size is None or limit < size):
        assert re.search(rf"\b{limit}\b", told)
    if asked.get("per_key_limit", 1) > 1:
        assert re.search(rf"\b{asked['per_key_limit']}\b", told)
    for bound in ("lower", "upper"):
        assert str(asked.get(bound, "")).replace("auto", "bounds are found first") in told
    for name in query.columns() | columns_of(query.filter):
        assert f"`{name}`" in told
    assert told.startswith(("The ", "A ", "About "))


def test_a_question_that_is_not_complete_has_a_caption() -> None:
    for kind in ("mean", "sum", "quantile", "variance", "distinct"):
        told = KINDS[kind].from_fields({"column": "pay"}).caption("who", DeclaredValues())
        assert told.startswith(("The ", "A ", "About "))
        assert told.endswith("`pay`")


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"a": None}, "`a` is missing"),
        ({"a": ["x", "y", None]}, "`a` is missing, x or y"),
        ({"a": list("abcdef")}, "`a` is one of 6 values"),
        ({"n": {"at_least": 1, "below": 2.5}}, "`n` is at least 1 and below 2.5"),
        ({"not": {"a": None}}, "not (`a` is missing)"),
        (
            {"a": "x", "any_of": [{"b": 1}, {"c": True, "d": 2}]},
            "`a` is x and (`b` is 1 or (`c` is True and `d` is 2))",
        ),
    ],
)
def test_filters_in_words(where: dict, words: str) -> None:
    query = query_from({"kind": "count", "where": where})
    told = query.caption("u", DeclaredValues())
    assert told == f"The number of distinct `u`, where {words}"
    assert all(name in words for name in columns_of(query.filter))
