"""One SELECT read into our questions, written back as the same, refused with the reason."""

from __future__ import annotations

import logging
from dataclasses import fields
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import farthing as fa
from farthing.engine import AllOf, AnyOf, Batch, Between, Equals, Not, OneOf, Present, Question
from farthing.engine.keys import Bins, Period
from farthing.engine.kinds import KINDS
from farthing.engine.kinds.base import Query
from farthing.engine.sql_questions.questions import queries_in
from farthing.engine.sql_questions.writing import query_in_sql
from farthing.errors import FarthingError, InvalidInput
from farthing.ledger.declared_data import Dataset, Limits
from farthing.schema import Column, Schema
from tests.engine.test_where_text import Loud

SCHEMA = Schema(
    (
        Column("playerID", "text"),
        Column("yearID", "integer"),
        Column("lgID", "text"),
        Column("salary", "integer", lower=0, upper=100),
        Column("score", "real"),
        Column("height", "decimal", places=2),
        Column("active", "boolean"),
        Column("day", "date"),
        Column("od\"d 'na`me; --", "text"),
        Column("select", "integer"),
    )
)
SALARIES = Dataset(
    "salaries", unit="playerID", owner="owner", schema=SCHEMA, limits=Limits(per_key_limit=9)
)


def read(text: str, **options: Any) -> dict[str, Query]:
    return queries_in(text, SALARIES, options)


def one(text: str, **options: Any) -> Query:
    (found,) = read(text, **options).values()
    return found


def made(kind: str, **values: Any) -> Query:
    return KINDS[kind].from_fields(values)


AL = {"lgID": "AL"}
BOUNDS = {"lower": 0, "upper": 100}
SAID = {
    "SELECT COUNT(DISTINCT playerID) FROM salaries": made("count"),
    "select count(distinct s.playerID) as n from salaries as s where s.lgID == 'AL';": made(
        "count", where=AL
    ),
    "SELECT COUNT(*) FROM salaries WHERE lgID = 'AL'": made("count", where=AL, per_key_limit=9),
    "SELECT COUNT(*) FROM salaries OPTIONS (per_key_limit = 3)": made("count", per_key_limit=3),
    "SELECT COUNT(DISTINCT lgID) FROM salaries OPTIONS (contribution_limit = 2)": made(
        "distinct", column="lgID", contribution_limit=2
    ),
    "SELECT yearID, COUNT(DISTINCT playerID) FROM salaries WHERE lgID = 'AL' "
    "GROUP BY yearID ORDER BY 2 DESC LIMIT 10": made("top_k", by="yearID", k=10, where=AL),
    "SELECT lgID AS league, COUNT(DISTINCT playerID) AS n FROM salaries "
    "GROUP BY league ORDER BY n DESC LIMIT 2": made("top_k", by="lgID", k=2),
    "SELECT lgID FROM salaries GROUP BY 1 ORDER BY COUNT(DISTINCT playerID) DESC LIMIT 2": made(
        "top_k", by="lgID", k=2, counts=False
    ),
    "SELECT lgID, COUNT(*) FROM salaries GROUP BY lgID ORDER BY COUNT(*) DESC LIMIT 2": made(
        "top_k", by="lgID", k=2, per_key_limit=9
    ),
    "SELECT COUNT(DISTINCT playerID), day, lgID FROM salaries WHERE active GROUP BY lgID, day "
    "OPTIONS (contribution_limit = 3)": made(
        "histogram", by=["lgID", "day"], where={"active": True}, contribution_limit=3
    ),
    "SELECT lgID, COUNT(DISTINCT playerID) FROM salaries WHERE lgID IN ('NL', 'AL') "
    "AND yearID > 2000 GROUP BY lgID OPTIONS (contribution_limit = 1)": made(
        "histogram",
        by="lgID",
        categories=["NL", "AL"],
        where={"yearID": {"above": 2000}},
        contribution_limit=1,
    ),
    "SELECT day, COUNT(DISTINCT playerID) FROM salaries WHERE (day IN ('2013-01-05')) "
    "GROUP BY day ORDER BY 2 DESC LIMIT 10": made(
        "top_k", by="day", k=1, categories=[date(2013, 1, 5)]
    ),
    "SELECT lgID, active, COUNT(DISTINCT playerID) FROM salaries WHERE active IN (TRUE, FALSE) "
    "AND lgID IN ('AL', 'NL') GROUP BY lgID, active OPTIONS (contribution_limit = 2)": made(
        "histogram",
        by=["lgID", "active"],
        categories=[("AL", True), ("AL", False), ("NL", True), ("NL", False)],
        contribution_limit=2,
    ),
    "SELECT lgID, COUNT(DISTINCT playerID) FROM salaries WHERE lgID IN ('AL', 'NL') "
    "GROUP BY lgID OPTIONS (categories = NULL, contribution_limit = 2)": made(
        "histogram", by="lgID", where={"lgID": ["AL", "NL"]}, contribution_limit=2
    ),
    "SELECT lgID, COUNT(DISTINCT yearID) FROM salaries GROUP BY lgID": made(
        "distinct", by="lgID", column="yearID"
    ),
    "SELECT lgID, active, COUNT(DISTINCT playerID) FROM salaries GROUP BY ROLLUP (lgID, active) "
    "OPTIONS (categories = (('AL', TRUE), ('NL', FALSE)), contribution_limit = 2)": made(
        "rollup",
        by=["lgID", "active"],
        categories=[("AL", True), ("NL", False)],
        contribution_limit=2,
    ),
    "SELECT SUM(salary) FROM salaries OPTIONS (lower = 0, upper = 1e2)": made(
        "sum", column="salary", **BOUNDS
    ),
    "SELECT MEDIAN(salary) FROM salaries WHERE day < '2013-02-01' OPTIONS (lower = 0, upper = 100)"
    "": made("quantile", column="salary", where={"day": {"below": date(2013, 2, 1)}}, **BOUNDS),
    "SELECT percentile_cont(0.25) within group (order by height) FROM salaries "
    "OPTIONS (lower = -1.5, upper = 2, places = 1)": made(
        "quantile", column="height", probability=0.25, lower=-1.5, upper=2, places=1
    ),
    "SELECT percentile_cont(array[0.25, 0.75]) within group (order by height) FROM salaries": made(
        "quantile", column="height", probability=[0.25, 0.75]
    ),
    "SELECT MAX(salary) FROM salaries OPTIONS (lower = 0, upper = 'auto')": made(
        "max", column="salary", lower=0, upper="auto"
    ),
    'SELECT COUNT(DISTINCT playerID) FROM salaries WHERE "select" = 1 AND '
    '"od""d \'na`me; --" <> \'x\'': made(
        "count",
        where=AllOf((Equals("select", 1), Not(Equals("od\"d 'na`me; --", "x")))),
    ),
}


@pytest.mark.parametrize("text", SAID, ids=lambda text: text[:60])
def test_what_sql_can_say(text) -> None:
    assert one(text) == SAID[text]
    assert one(query_in_sql(SAID[text], SALARIES)) == SAID[text]


def test_several_functions_are_several_questions() -> None:
    text = "SELECT COUNT(*), COUNT(DISTINCT playerID) AS units, SUM(salary) FROM salaries"
    assert read(text, per_key_limit=2, lower=0, upper=5) == {
        "COUNT(*)": made("count", per_key_limit=2),
        "units": made("count"),
        "SUM(salary)": one("SELECT SUM(salary) FROM salaries", per_key_limit=2, lower=0, upper=5)
        if "per_key_limit" in KINDS["sum"].field_names()
        else made("sum", column="salary", lower=0, upper=5),
    }
    with pytest.raises(InvalidInput, match="stands twice"):
        read("SELECT COUNT(*), COUNT(*) FROM salaries")


C = "SELECT COUNT(DISTINCT playerID) FROM salaries"
G = "SELECT lgID, COUNT(DISTINCT playerID) FROM salaries GROUP BY lgID"
REFUSED = {
    # the unit is nobody's to see
    "SELECT playerID FROM salaries": "playerID: a column by itself",
    "SELECT playerID, COUNT(*) FROM salaries GROUP BY playerID": "unit of privacy",
    "SELECT playerID, COUNT(*) FROM salaries GROUP BY 1 ORDER BY 2 DESC LIMIT 5": "unit of privacy",
    f"{C} WHERE playerID = 'x'": "unit of privacy",
    f"{C} WHERE NOT (lgID = 'x' OR playerID IN ('x'))": "unit of privacy",
    "SELECT SUM(playerID) FROM salaries OPTIONS (lower = 0, upper = 1)": "unit of privacy",
    # clauses that no question has
    f"{C} JOIN teams ON a = b": "teams: a question is about one table",
    f"{C} JOIN teams USING (playerID)": "teams: a question is about one table",
    f"{C} LEFT JOIN (SELECT 1) AS s USING (playerID)": "SELECT 1: a question is about one table",
    "SELECT COUNT(*) FROM (SELECT lgID FROM salaries GROUP BY lgID) AS s": "groups by playerID",
    "SELECT COUNT(*) FROM (SELECT playerID, salary AS s FROM salaries GROUP BY playerID) AS t": (
        "this needs an aggregate"
    ),
    "SELECT COUNT(*) FROM (SELECT playerID FROM salaries) AS t": "a sub-select groups by playerID",
    "SELECT AVG(n) FROM salaries JOIN (SELECT playerID, COUNT(*) AS n FROM salaries "
    "GROUP BY playerID) AS t USING (playerID)": "one value for each playerID",
    "SELECT COUNT(*) FROM (SELECT playerID, COUNT(*) AS n FROM salaries GROUP BY playerID) AS t "
    "WHERE lgID = 'AL'": "the sub-select has no column of this name",
    "SELECT COUNT(*) FROM salaries JOIN (SELECT playerID, MAX(salary) AS salary FROM salaries "
    "GROUP BY playerID) AS t USING (playerID) WHERE salary > 3": "several tables have this column",
    "SELECT COUNT(*) FROM salaries AS a JOIN (SELECT playerID, COUNT(*) AS n FROM salaries "
    "GROUP BY playerID) AS t ON a.playerID = a.playerID": "a join is an inner or a left one",
    "WITH f (a, b) AS (SELECT playerID, COUNT(*) AS n FROM salaries GROUP BY playerID) "
    "SELECT COUNT(*) FROM f": "this cannot be said",
    f"{C} WHERE EXISTS (SELECT COUNT(*) FROM salaries AS s WHERE s.playerID = salaries.playerID)": (
        "EXISTS takes rows"
    ),
    f"{C} WHERE lgID IN (SELECT lgID FROM salaries)": "only playerID can be IN",
    f"{C} WHERE playerID IN (SELECT playerID FROM teams)": "the table is salaries",
    f"{C} WHERE EXISTS (SELECT 1 FROM salaries AS s WHERE s.lgID = 'AL')": "EXISTS must compare",
    "SELECT COUNT(*) FROM salaries, teams": "a question is about one table",
    f"{C} HAVING COUNT(*) > 3": "HAVING COUNT(*) > 3: without GROUP BY there is one row",
    f"{G} HAVING COUNT(*) > (SELECT 1)": "SELECT 1: of released numbers",
    f"{G} HAVING lgID LIKE 'A%'": "HAVING compares released numbers",
    f"{G} HAVING yearID > 3": "yearID: of released numbers",
    "SELECT COUNT(*) - salary FROM salaries": "salary: of released numbers",
    "SELECT SQRT(COUNT(*)) FROM salaries": "SQRT(COUNT(*)): of released numbers",
    "SELECT CAST(COUNT(*) AS INT) FROM salaries": "of released numbers",
    "SELECT SUM(COUNT(*)) OVER (ORDER BY lgID) FROM salaries GROUP BY lgID": "this cannot be said",
    "SELECT COUNT(*) + n AS n FROM salaries": "not so deep",
    f"SELECT COUNT(*){' + 1' * 60} FROM salaries": "not so deep",
    f"SELECT COUNT(*) AS a0, {', '.join(f'COUNT(*) * a{i} * a{i} AS a{i + 1}' for i in range(20))} "
    "FROM salaries": "at most 400 numbers",
    "SELECT COUNT(*) + 1e300 FROM salaries": "too large to compute with",
    f"{C} UNION {C}": "one SELECT is one statement",
    "SELECT DISTINCT lgID FROM salaries": "DISTINCT: GROUP BY",
    "SELECT * FROM salaries": "*: rows are not told; ask COUNT(*)",
    "SELECT COUNT(*) FROM (SELECT 1) AS salaries": "a question is about one table",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')": "the table is salaries",
    "SELECT COUNT(*) FROM '/etc/passwd'": "the table is salaries",
    "SELECT COUNT(*) FROM other": "other: the table is salaries",
    "SELECT COUNT(*) FROM main.salaries": "main: this cannot be said",
    "SELECT COUNT(*)": "FROM must name the data",
    "SELECT COUNT(*) FROM salaries AS s (a, b)": "this cannot be said here",
    "SELECT COUNT(*) FROM salaries TABLESAMPLE (10 PERCENT)": "this cannot be said",
    "SELECT COUNT(*) OVER () FROM salaries": "COUNT(*) OVER (): there are no windows",
    "SELECT (SELECT 1) FROM salaries": "(SELECT 1): ask the sub-select first",
    "SELECT SOUNDEX(lgID), COUNT(*) FROM salaries GROUP BY 1": "SOUNDEX(lgID): a column must",
    "SELECT COUNT(DISTINCT lgID, yearID) FROM salaries": "COUNT(DISTINCT lgID, yearID): ",
    "SELECT SUM(DISTINCT salary) FROM salaries": "DISTINCT salary: a column must stand",
    "SELECT SUM(SQRT(salary)) FROM salaries": "SQRT(salary): a column must stand",
    "SELECT SUM(score * 2) FROM salaries": "score needs bounds",
    "SELECT COUNT(*) FROM salaries WHERE LEFT(playerID, 2) = 'ab'": "unit of privacy",
    "SELECT VAR_POP(salary) FROM salaries": "VAR_POP(salary): COUNT(DISTINCT",
    "SELECT lgID, COUNT(*) FROM salaries": "lgID: a column by itself",
    "SELECT lgID FROM salaries GROUP BY lgID": "SELECT must ask for something",
    "SELECT lgID, SUM(salary) FROM salaries GROUP BY ROLLUP (lgID)": "ROLLUP is for COUNT",
    "SELECT COUNT(*) FROM salaries GROUP BY yearID, ROLLUP (lgID)": "ROLLUP (lgID): a column must",
    "SELECT COUNT(*) FROM salaries GROUP BY ROLLUP (lgID) ORDER BY 1 DESC LIMIT 3": (
        "ROLLUP is for COUNT, without LIMIT"
    ),
    "SELECT lgID, COUNT(*) FROM salaries GROUP BY ALL": "GROUP BY ALL",
    "SELECT EXTRACT(CENTURY FROM day), COUNT(*) FROM salaries GROUP BY 1": "the parts of a date",
    "SELECT WIDTH_BUCKET(salary, 0, 9, 3), COUNT(*) FROM salaries GROUP BY 1": "a column must",
    "SELECT DATE_TRUNC('decade', day), COUNT(*) FROM salaries GROUP BY 1": "the periods are hour",
    "SELECT DATE_TRUNC('day', day, 'UTC'), COUNT(*) FROM salaries GROUP BY 1": "'UTC': this cannot",
    "SELECT DATE_TRUNC('day', lgID), COUNT(*) FROM salaries GROUP BY 1": "but lgID is text",
    "SELECT DATE_TRUNC('hour', playerID), COUNT(*) FROM salaries GROUP BY 1": "unit of privacy",
    "SELECT BINS(salary, 'a', 'b'), COUNT(*) FROM salaries GROUP BY 1": "edges of BINS are numbers",
    "SELECT BINS(salary, 3, 2), COUNT(*) FROM salaries GROUP BY 1": "must grow",
    "SELECT BINS(salary), COUNT(*) FROM salaries GROUP BY 1": "2 to 1001 edges",
    f"SELECT {'lgID, ' * 200}COUNT(*) FROM salaries GROUP BY lgID": "at most 100 entries",
    f"{C} ORDER BY 1": "without GROUP BY there is one row",
    f"{G} LIMIT 3": "LIMIT 3: which ones?",
    f"{G} ORDER BY 3 DESC LIMIT 3": "there are 2 entries after SELECT",
    f"{G} ORDER BY 2 DESC LIMIT 3 OFFSET 2": "OFFSET 2: a top k begins",
    f"{G} ORDER BY 2 DESC LIMIT 1.5": "a whole number",
    f"{G} ORDER BY 2 DESC LIMIT -1": "a whole number",
    f"{G} ORDER BY 2 DESC LIMIT 3 PERCENT": "this cannot be said",
    f"{G} ORDER BY 2 DESC FETCH FIRST 3 ROWS ONLY": "a whole number",
    f"{G} ORDER BY 2 DESC LIMIT 999999999": "k must be at most",
    f"{C} FOR UPDATE": "this cannot be said",
    "SELECT COUNT(*) INTO OUTFILE FROM salaries": "INTO",
    "WITH a AS (SELECT 1) SELECT COUNT(*) FROM a": "a question is about one table",
    "DROP TABLE salaries": "begins with SELECT",
    "EXPLAIN SELECT 1": "begins with SELECT",
    f"{C}; DROP TABLE salaries": "; is a second statement",
    f"{C} WHERE lgID = ?": "? is a parameter",
    "SELECT /*+ BROADCAST(x) */ COUNT(*) FROM salaries": "a hint to an engine",
    f"{C} WHERE nothing = 1": "no column nothing",
    f'{C} WHERE "{"a" * 9000}" = 1': "no column aaa",
    f'{C} WHERE "{"a" * 9000}".lgID = 1': "there is no table aaa",
    f"SELECT COUNT(*) AS {'a' * 9000}, COUNT(*) AS {'a' * 9000} FROM salaries": "stands twice",
    f"{C} OPTIONS ({'a' * 9000} = 1)": "has the option aaa",
    f"{C} WHERE lgID = '{'a' * 9000}' AND yearID = '{'b' * 9000}'": "cannot be compared with str",
    f"{C} WHERE yearID = {'9' * 9000}": "too many digits",
    f"{C} WHERE lgID = 3": "cannot be compared with int",
    f"{C} WHERE day = 'yesterday'": "day is date",
    f"{C} WHERE other.lgID = 'AL'": "there is no table other",
    # options
    f"{C} OPTIONS (where = 1)": "where is no option",
    f"{C} OPTIONS (k = 1)": "k is no option",
    f"{C} OPTIONS (nothing = 1)": "has the option nothing",
    f"{C} OPTIONS (per_key_limit = 5)": "has the option per_key_limit",
    f"{C} OPTIONS (repeats = 0)": "repeats must be",
    f"{C} OPTIONS (repeats = 2, repeats = 3)": "given twice",
    f"{C} OPTIONS (repeats)": "name = value",
    f"{C} OPTIONS (repeats = (SELECT 1))": "a value must stand",
    f"{C} OPTIONS ()": "name = value",
    f"{C} OPTIONS (repeats = 2) WHERE lgID = 'AL'": "cannot be read",
    "OPTIONS (repeats = 2)": "begins with SELECT",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:60])
def test_what_is_refused_and_why(text) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text)
    assert REFUSED[text] in str(refused.value)
    assert len(str(refused.value)) < 250


def test_what_cannot_be_asked_is_not_written() -> None:
    with pytest.raises(InvalidInput, match="unit of privacy"):
        query_in_sql(made("top_k", by="playerID"), SALARIES)
    with pytest.raises(InvalidInput, match="no column nothing"):
        query_in_sql(made("count", where={"nothing": 1}), SALARIES)


def test_options_beside_the_text() -> None:
    assert one(C, repeats=3) == made("count", repeats=3)
    with pytest.raises(InvalidInput, match="given twice"):
        one(f"{C} OPTIONS (repeats = 2)", repeats=3)
    with pytest.raises(InvalidInput, match="by is no option"):
        one(C, by="lgID")
    unlimited = Dataset("salaries", unit="playerID", owner="o", schema=SCHEMA)
    with pytest.raises(InvalidInput, match=r"COUNT\(\*\) counts rows and needs per_key_limit"):
        queries_in("SELECT COUNT(*) FROM salaries", unlimited, {})


# -- written and read again: every kind, every field ------------------------------------------

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "yearID": st.integers(-5, 2**63),
    "lgID": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4),
    "salary": st.one_of(st.integers(0, 10**6), st.floats(-1e3, 1e3)),
    "score": st.floats(allow_nan=False, allow_infinity=False),
    "height": st.floats(-100, 100),
    "active": st.booleans(),
    "day": st.dates(),
    "od\"d 'na`me; --": st.sampled_from(["", "'", "''; --", "a\nb", "\\"]),
    "select": st.integers(0, 9),
}
KEYS = ["yearID", "lgID", "active", "day", "od\"d 'na`me; --", "select"]

FUNCTIONS = [
    Period("day", "week"),
    Bins("salary", (-1, 0.5, 1e300)),
    Bins("select", (0, 1)),
]


def condition(name: str) -> st.SearchStrategy[Any]:
    value = VALUES[name]
    found = [
        st.builds(Equals, st.just(name), st.one_of(value, st.none())),
        st.builds(OneOf, st.just(name), st.lists(st.one_of(value, st.none()), min_size=1)),
        st.just(Present(name)),
    ]
    if name != "active":
        found.append(st.builds(Between, st.just(name), at_least=value, below=value))
        found.append(st.builds(Between, st.just(name), above=value))
    return st.one_of(found)


FILTERS = st.recursive(
    st.sampled_from(list(VALUES)).flatmap(condition),
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=4,
)
item = st.sampled_from([None, "fine", "it's", "select"])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "where": st.one_of(st.none(), FILTERS),
    "column": st.sampled_from(["salary", "score", "height"]),
    "probability": st.one_of(
        st.floats(0, 1, exclude_min=True, exclude_max=True),
        st.lists(st.integers(1, 99).map(lambda n: n / 100), min_size=1, max_size=4, unique=True),
    ),
    "k": st.integers(1, 4),
    "counts": st.booleans(),
    "mechanism": st.sampled_from(["gumbel", "noise", "truncated"]),
    "candidates": st.sampled_from([None, 50]),
    "contribution_limit": st.one_of(st.none(), st.integers(1, 9)),
    "per_key_limit": st.one_of(st.none(), st.integers(1, 9)),
    "use_order": st.booleans(),
    "repeats": st.integers(1, 3),
    "lower": st.one_of(st.none(), st.just("auto"), st.integers(-9, 0)),
    "upper": st.one_of(st.none(), st.just("auto"), st.integers(1, 10**6)),
    "places": st.one_of(st.none(), st.integers(0, 2)),
    "on_lower": st.one_of(st.none(), st.lists(st.integers(-9, 0), min_size=1, max_size=1)),
    "on_upper": st.one_of(st.none(), st.lists(st.floats(1, 9), min_size=1, max_size=1)),
    "per_upper": st.one_of(st.none(), st.integers(1, 9)),
    "epsilon": st.one_of(st.none(), st.floats(0.01, 1)),
    "measure_loss": st.booleans(),
    "simultaneous": st.booleans(),
    "select": item,
    "count": item,
    "leak": item,
}
#: Kinds that run beside a question and are asked by nobody.
UNSAID = {"bound", "limit", "loss"}


@st.composite
def queries(draw: Any, kind: str) -> Query:
    query = KINDS[kind]
    names = query.field_names()
    values = {name: draw(FIELDS[name]) for name in names if name in FIELDS and draw(st.booleans())}
    optional = {f.name for f in fields(query) if f.default is None}
    values = {n: v for n, v in values.items() if v is not None or n in optional}
    if "column" in names:
        of = st.sampled_from(KEYS) if kind == "distinct" else FIELDS["column"]
        values["column"] = draw(of)
    if "on" in names:
        values["on"] = [draw(FIELDS["column"])]
    if "per" in names:
        values["per"] = draw(FIELDS["column"])
    if "by" in names and (draw(st.booleans()) or "by" not in optional):
        keys = st.one_of(st.sampled_from(KEYS), st.sampled_from(FUNCTIONS))
        values["by"] = draw(st.lists(keys, min_size=1, max_size=2, unique=True))
        if set(values["by"]) <= set(VALUES) and draw(st.booleans()):
            parts = [st.one_of(VALUES[name], st.none()) for name in values["by"]]
            label = st.tuples(*parts) if len(parts) > 1 else parts[0]
            values["categories"] = draw(st.lists(label, min_size=1, max_size=4, unique=True))
    for name in ("lower", "upper"):
        if name in names and name not in optional:
            values.setdefault(name, 0 if name == "lower" else 5)
    try:
        return query.from_fields(values)
    except InvalidInput:
        assume(False)
        raise


@pytest.mark.parametrize("kind", sorted(set(KINDS) - UNSAID))
def test_written_and_read_again(kind) -> None:
    @settings(max_examples=60, deadline=None)
    @given(queries(kind))
    def check(query: Query) -> None:
        written = query_in_sql(query, SALARIES)
        assert one(written) == query
        assert ";" not in written or "'" in written or '"' in written

    check()


# -- whatever is thrown at it ----------------------------------------------------------------

WORDS = """SELECT FROM WHERE GROUP_BY ORDER_BY LIMIT HAVING DISTINCT COUNT ( ) * , . salaries
playerID lgID yearID 'AL' "x" 1 2 10 1e999 = <> AND OR NOT IN IS NULL DESC ASC AS OPTIONS OVER
UNION JOIN ON CASE WHEN END SUM AVG MEDIAN INTERVAL -- /* */ ; ? @ : { } [ ] :: OFFSET FETCH WITH
VALUES ALL TOP FOR_UPDATE PIVOT LATERAL UNNEST WINDOW PARTITION_BY QUALIFY IF CAST repeats
LEFT USING EXISTS FILTER NULLIF ILIKE DATE '2024-01-31' '3' DAY + - 3.5"""
words = st.sampled_from([word.replace("_", " ") for word in WORDS.split()])


@pytest.fixture(scope="module")
def quiet():
    loud = Loud()
    logging.getLogger("sqlglot").addHandler(loud)
    yield
    logging.getLogger("sqlglot").removeHandler(loud)


@st.composite
def broken(draw: Any) -> str:
    """A statement that is right, with words exchanged, dropped and added."""
    tokens = draw(st.sampled_from(list(SAID))).split(" ")
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(tokens)))
        tokens[place : place + draw(st.integers(0, 2))] = draw(st.lists(words, max_size=2))
    return " ".join(tokens)


@pytest.mark.usefixtures("quiet")
@settings(max_examples=1500, deadline=None)
@given(text=st.one_of(broken(), st.lists(words, max_size=15).map(" ".join), st.text(max_size=40)))
def test_nothing_else_escapes(text) -> None:
    """Any words at all: questions that can be written again, or an error of ours in a line."""
    try:
        found = read(text)
    except FarthingError as error:
        assert len(str(error)) < 400  # noqa: PT017 # most are refused
    else:
        for query in found.values():
            assert one(query_in_sql(query, SALARIES)) == query


# -- from the text to the answer --------------------------------------------------------------

ROWS = pa.table(
    {
        "playerID": [f"p{i % 500}" for i in range(2000)],
        "lgID": ["AL" if i % 3 else "NL" for i in range(2000)],
        "salary": [i % 90 for i in range(2000)],
    }
)


def test_from_the_text_to_the_answer(opened) -> None:
    data = opened(ROWS, unit="playerID", dataset="salaries")
    question = data.sql("SELECT COUNT(DISTINCT playerID) FROM salaries WHERE lgID = 'AL'")
    assert isinstance(question, Question)
    assert question.query == data.count(where={"lgID": "AL"}).query
    assert question.to_sql() == "SELECT COUNT(DISTINCT playerID) FROM salaries WHERE lgID = 'AL'"
    assert abs(question.run().value - 500) < 200
    assert data.sql(question.to_sql()).run().cached
    several = data.sql(
        "SELECT COUNT(DISTINCT playerID) AS n, SUM(salary) AS total FROM salaries",
        lower=0,
        upper=400,
    )
    assert isinstance(several, Batch)
    assert set(several.run()) == {"n", "total"}
    top = data.sql(
        "SELECT lgID, COUNT(DISTINCT playerID) FROM salaries GROUP BY lgID ORDER BY 2 DESC LIMIT 2"
    ).run()
    assert set(top.labels) <= {"AL", "NL"}
    before = data.remaining()
    with pytest.raises(InvalidInput):
        data.sql("SELECT playerID FROM salaries")
    assert data.remaining() == before


# -- what a database answers to the same text --------------------------------------------------

#: So much that there is next to no noise.
LAVISH = fa.Tariff(
    {
        "select": (fa.BoundedRange(20.0), 1),
        "count": (fa.PureDP(20.0), 1),
        "leak": (fa.ApproximateDP(0.0, 1e-6), 1),
    },
    farthings=20,
    delta_units=100,
    delta_unit=1e-6,
)
EVENTS = pa.table(
    {
        "member": [i % 211 for i in range(3000)],
        "k": [("a", "b", "c d", None)[(i * i) % 7 % 4] for i in range(3000)],
        "x": [i % 50 for i in range(3000)],
        "day": [date(2013, 1 + i % 5, 1 + i % 28) for i in range(3000)],
    }
)
SAME = [
    ("SELECT COUNT(DISTINCT member) FROM events WHERE x >= 40 AND k <> 'a'", {}),
    ("SELECT COUNT(*) FROM events WHERE NOT (k = 'a' OR x BETWEEN 3 AND 5)", {"per_key_limit": 20}),
    ("SELECT COUNT(DISTINCT k) FROM events", {"contribution_limit": 5}),
    (
        "SELECT k, COUNT(DISTINCT member) FROM events WHERE k IN ('a', 'c d') AND x < 9 GROUP BY k",
        {"contribution_limit": 5},
    ),
    (
        "SELECT DATE_TRUNC('month', day), COUNT(DISTINCT member) FROM events GROUP BY 1",
        {"contribution_limit": 5},
    ),
    ("SELECT k, COUNT(*) FROM events GROUP BY k ORDER BY 2 DESC LIMIT 2", {"per_key_limit": 20}),
    ("SELECT SUM(x) FROM events WHERE day < DATE '2013-02-01'", {"lower": 0, "upper": 250}),
    (
        "SELECT k, AVG(x) FROM events WHERE k IS NOT NULL GROUP BY k",
        {"lower": 0, "upper": 50, "contribution_limit": 4, "per_key_limit": 20},
    ),
    ("SELECT VAR_SAMP(x) FROM events", {"lower": 0, "upper": 50, "per_key_limit": 20}),
    ("SELECT STDDEV(x) FROM events WHERE x < 40", {"lower": 0, "upper": 40, "per_key_limit": 16}),
    (
        "SELECT PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY x) FROM events",
        {"lower": 0, "upper": 50, "per_key_limit": 20},
    ),
]


@pytest.fixture(scope="module")
def lavish_certificate():
    return LAVISH.certify(tolerance=0.5, deltas=(1e-3,), epsilons=(1.0,))


@pytest.fixture
def lavish(opened, lavish_certificate):
    return opened(EVENTS, tariff=lavish_certificate, farthings=20, delta_units=10)


@pytest.mark.parametrize(("text", "options"), SAME, ids=[text[:50] for text, _ in SAME])
def test_a_database_answers_the_same(lavish, text, options) -> None:
    answer = lavish.sql(text, **options).run()
    numbers = answer.labels if answer.counts is None else answer.counts
    with duckdb.connect() as connection:
        connection.register("events", EVENTS)
        rows = connection.execute(text).fetchall()
    if len(rows[0]) == 1:
        assert numbers[0] == pytest.approx(rows[0][0], rel=0.05)
        return
    keys = {str(key).removesuffix(" 00:00:00"): number for key, number in rows}
    found = dict(zip(map(str, answer.labels), numbers, strict=True))
    assert found == pytest.approx(keys, rel=0.05)
