"""Conditions as text: read into the closed form, written back, refused with the reason."""

from __future__ import annotations

import logging
from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.engine import AllOf, AnyOf, Between, Equals, Not, OneOf, Present, query_from
from farthing.engine.filters import as_declared, filter_from
from farthing.engine.kinds.counts import CountQuery
from farthing.engine.where_text.conditions import filter_in
from farthing.engine.where_text.writing import condition_in_sql
from farthing.errors import FarthingError, InvalidInput

SAID = {
    "age >= 18 and country == 'NO'": AllOf((Between("age", at_least=18), Equals("country", "NO"))),
    "country IN ('SE', 'NO')": OneOf("country", ("NO", "SE")),
    "country not in ['NO']": Not(OneOf("country", ("NO",))),
    "18 <= age < 65": Between("age", at_least=18, below=65),
    "age > 18 AND age <= 65": Between("age", above=18, at_most=65),
    "(age > 18) AND (age <= 65)": AllOf((Between("age", above=18), Between("age", at_most=65))),
    "65 > age": Between("age", below=65),
    "age between -1 and 1e6": Between("age", at_least=-1, at_most=1000000),
    "x is null or y is not null": AnyOf((Equals("x", None), Present("y"))),
    "x is None": Equals("x", None),
    "x is not None": Present("x"),
    "x is null or x in ('a', 'b')": OneOf("x", ("a", "b", None)),
    "not (active or day < date '2013-02-01')": Not(
        AnyOf((Equals("active", True), Between("day", below=date(2013, 2, 1))))
    ),
    "active = false": Equals("active", False),
    "x <> 'it''s' or x != 2.5": AnyOf((Not(Equals("x", "it's")), Not(Equals("x", 2.5)))),
    '"odd "" name" = \'\\\' ;': Equals('odd " name', "\\"),
    "x = 'a; DROP TABLE t --'": Equals("x", "a; DROP TABLE t --"),
    "at >= TIMESTAMP '2013-01-31 12:30:00'": Between("at", at_least=datetime(2013, 1, 31, 12, 30)),
    "Name LIKE 'a%'": Equals("Name like 'a%'", True),
    "name not like 'a%'": Not(Equals("name like 'a%'", True)),
    "a + b + c - d > 3": Between("a + b + c - d", above=3),
    "a + (b + c) > 3": Between("a + (b + c)", above=3),
    "per_unit(any(flag))": Equals("per_unit(count(*) filter (where flag = TRUE)) > 0", True),
    "lower(name) = 'a'": Equals("lower(name)", "a"),
    "age + 1 > 3": Between("age + 1", above=3),
    "3 < (age+1)": Between("age + 1", above=3),
    "age > height": Equals("age > height", True),
    "not age > height": Not(Equals("age > height", True)),
    "month(day) in (1, 2)": OneOf("month_of_year(day)", (1, 2)),
    "per_unit( COUNT(*) ) between 2 and 5": Between("per_unit(count(*))", at_least=2, at_most=5),
    "a = 1 or b = 2 and c = 3 -- as usual": AnyOf(
        (Equals("a", 1), AllOf((Equals("b", 2), Equals("c", 3))))
    ),
}


@pytest.mark.parametrize("text", SAID)
def test_what_people_write(text) -> None:
    assert filter_in(text) == SAID[text]
    assert CountQuery(where=text) == query_from({"kind": "count", "where": text})
    assert CountQuery(where=text).filter == SAID[text]


REFUSED = {
    "age = NULL": "write IS NULL",
    "age != None": "write IS NULL",
    "x in (1, NULL)": "write IS NULL",
    "x in (select 1)": "(select 1): this cannot be said",
    "sin(x) > 1": "sin(x): a column must stand here, by its name, or an expression",
    "per_unit(x) > 1": "per_unit takes",
    "round(x, 1, 1) > 1": "this cannot be said here",
    "datediff(a, b, month) > 1": "write days(later, earlier)",
    "split(x, '|', 2) = 'a'": "this cannot be said here",
    "per_unit(count(a, b)) > 1": "this cannot be said here",
    "count(*) > 1": "count(*): a column must",
    "x = (select 1)": "(select 1): ask the sub-select",
    "x in ()": "list of values",
    "exists (select 1)": "a condition compares",
    "1 = 1": "a column must stand",
    "true": "a condition compares",
    "x = 1 union select 2": "cannot be read at union",
    "x = 1; drop table t": "; is a second statement",
    "x = ?": "? is a parameter",
    "x = :name": "a parameter without",
    "x = @name": "@ is a parameter",
    "x = {{ name }}": "{ is a template",
    "x = $1": "$1: a column",
    "x = 1e999": "1e999: a value must be text",
    "x = 123456789012345678901": "whole number of at most 64 bits",
    "x = DATE 'yesterday'": "write DATE '2013-01-31'",
    "x = TIMESTAMP 'now'": "write TIMESTAMP '2013-01-31 12:30:00'",
    "x = TIMESTAMP '2013-01-31 12:30:00+01:00'": "no zone of its own",
    "x = cast(1 as int)": "a value must stand",
    "t.x = 1": "there is no table t",
    "x is true": "IS is for NULL",
    "x between symmetric 1 and 2": "cannot be said here",
    "1 < x > 2": "one lower and one upper",
    "x = 'a": "a quote that opens must close",
    "x =": "cannot be read",
    "x = 'a\0'": "without NUL",
    "x = '\ud800'": "lone surrogates",
    "": "says something",
    "-- nothing": "only comments",
    "all_of = 1": "cannot be called all_of",
    "x = 1 " * 10_000: "at most 20000 characters",
    " and ".join(["x=1"] * 2_000): "at most 5000 words",
    "(" * 30 + "x = 1" + ")" * 30: "nests at most",
    "not " * 3_000 + "x": "nests at most",
    "case when x then " * 600 + "1": "at most 8 words",
    "x = -" + " -" * 3_000 + "1": "nests at most",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
def test_what_is_refused_and_why(text) -> None:
    with pytest.raises(InvalidInput) as refused:
        filter_in(text)
    assert REFUSED[text] in str(refused.value)
    assert len(str(refused.value)) < 250


names = st.one_of(
    st.sampled_from(
        ["age", "Country", "date", "select", "None", "options", 'a"b', "é|~", " ", "x.y"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6).filter(
        lambda name: name not in ("all_of", "any_of", "not")
    ),
)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
ordered = st.one_of(numbers, texts, st.dates())
values = st.one_of(ordered, st.booleans())
leaves = st.one_of(
    st.builds(Equals, names, st.one_of(values, st.none())),
    st.builds(OneOf, names, st.lists(st.one_of(values, st.none()), min_size=1, max_size=3)),
    st.builds(Between, names, at_least=ordered),
    st.builds(Between, names, below=ordered),
    st.builds(Between, names, at_least=ordered, at_most=ordered),
    st.builds(Between, names, above=ordered, at_most=ordered),
    st.builds(Present, names),
)
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(filters)
def test_written_and_read_again(where) -> None:
    one_form = filter_from(where)
    assert filter_in(condition_in_sql(one_form)) == one_form


def test_neighbouring_ranges_stay_apart() -> None:
    apart = AllOf((Between("x", above=1), Between("x", below=5)))
    assert filter_in(condition_in_sql(apart)) == apart
    either = AnyOf((Equals("x", None), OneOf("x", (1,))))
    assert filter_in(condition_in_sql(either)) == either


WORDS = """x age 'NO' "q" 1 -2 1e9 and or not in is null between ( ) [ ] , = == <> < >= + - * /
. : ; ? @ { } case when then end cast as date interval select from where like exists any all if
union over filter distinct array struct $1 \\ % || -> :: ' " `"""
words = st.sampled_from(WORDS.split())


class Loud(logging.Handler):
    """Whatever the parser says to a log it would say to a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage())


@pytest.fixture(scope="module")
def quiet():
    loud = Loud()
    logging.getLogger("sqlglot").addHandler(loud)
    yield
    logging.getLogger("sqlglot").removeHandler(loud)


@pytest.mark.usefixtures("quiet")
@settings(max_examples=1500, deadline=None)
@given(text=st.one_of(st.lists(words, max_size=14).map(" ".join), st.text(max_size=30)))
def test_nothing_else_escapes(text) -> None:
    """Any words at all: a filter, or an error of ours in a line."""
    try:
        found = filter_in(text)
    except FarthingError as error:
        told = str(error)
    else:
        told = condition_in_sql(found)
        assert filter_in(told) == found
    assert len(told) < 400


def test_days_are_written_as_texts() -> None:
    kinds = {"day": "date", "name": "text"}
    where = filter_in("not (day >= '2013-01-05' and day in ('2013-02-01', '2013-02-02'))")
    assert as_declared(where, kinds) == Not(
        AllOf(
            (
                Between("day", at_least=date(2013, 1, 5)),
                OneOf("day", (date(2013, 2, 1), date(2013, 2, 2))),
            )
        )
    )
    assert as_declared(Equals("name", "2013-01-05"), kinds) == Equals("name", "2013-01-05")
    with pytest.raises(InvalidInput, match="day is date"):
        as_declared(Equals("day", "yesterday"), kinds)
