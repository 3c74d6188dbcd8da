"""The first SELECTs of somebody who knows SQL: they mean what SQL means, or say what can be asked.

A statement that works is asked of the engine without noise, and the same text of DuckDB.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql_questions.questions import queries_in
from farthing.engine.sql_questions.writing import query_in_sql
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import Dataset, Limits
from farthing.schema import Column, Schema
from tests.engine.exact import asked, plain_sql, without_zeros

SCHEMA = Schema(
    (
        Column("member", "integer"),
        Column("country", "text", categories=("NO", "SE", "DK")),
        Column("price", "integer", lower=0, upper=100),
        Column("quantity", "integer", lower=1, upper=9),
        Column("active", "boolean"),
        Column("day", "date"),
        Column("paid", "date"),
        Column("seen", "timestamp"),
        Column("name", "text"),
        Column("Shop Name", "text"),
    )
)
LIMITS = Limits(contribution_limit=50, per_key_limit=50)
VISITS = Dataset("visits", "member", "owner", schema=SCHEMA, limits=LIMITS)


def visits() -> pa.Table:
    """Members with up to thirty rows; some values are missing."""
    draw = random.Random(8)
    rows = []
    for i in range(900):
        day = date(2024, 1, 1) + timedelta(draw.randrange(200))
        rows.append(
            {
                "member": draw.randrange(60),
                "country": draw.choice(["NO", "SE", "DK", None]),
                "price": draw.choice([None, *range(100)]),
                "quantity": draw.randint(1, 9),
                "active": draw.choice([True, False, None]),
                "day": day,
                "paid": draw.choice([None, day + timedelta(draw.randrange(40))]),
                "seen": datetime(2024, 3, 1 + i % 9, i % 24, i % 60),
                "name": draw.choice(["Anna", "anton", "Bo", "", "Åse", None]),
                "Shop Name": draw.choice(["a'b", "c d"]),
            }
        )
    types = {"member": pa.int64(), "country": pa.string(), "price": pa.int64()}
    types |= {"quantity": pa.int64(), "active": pa.bool_(), "day": pa.date32()}
    types |= {"paid": pa.date32(), "seen": pa.timestamp("us"), "name": pa.string()}
    return pa.Table.from_pylist(rows, pa.schema({**types, "Shop Name": pa.string()}))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    pq.write_table(visits(), path)
    return path


@pytest.fixture(scope="module")
def source(path: Path) -> Iterator[Source]:
    source = open_source(path)
    yield source
    source.shut()


#: What works, with how many of the columns are keys.
WORKS = {
    "SELECT COUNT(*) FROM visits": 0,
    "SELECT COUNT(1) FROM visits;": 0,
    "SELECT COUNT(price) FROM visits": 0,
    "SELECT COUNT(member) FROM visits WHERE price IS NOT NULL": 0,
    "SELECT COUNT(DISTINCT member) AS people FROM visits -- everybody": 0,
    "select count(distinct MEMBER) from Visits where Country = 'NO'": 0,
    "SELECT COUNT(DISTINCT country), COUNT(DISTINCT name) AS names FROM visits": 0,
    "SELECT COUNT(*) AS n, SUM(price) AS total, AVG(price) AS average FROM visits": 0,
    "SELECT MEDIAN(quantity) FROM visits": 0,
    "SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY price) FROM visits": 0,
    "SELECT country, COUNT(*) FROM visits WHERE country IS NOT NULL GROUP BY 1": 1,
    "SELECT country AS where_from, COUNT(DISTINCT member) AS n FROM visits WHERE country IN "
    "('NO', 'SE') GROUP BY where_from": 1,
    'SELECT "Shop Name", AVG(price) FROM visits GROUP BY "Shop Name"': 1,
    "SELECT v.country, SUM(v.price * v.quantity) FROM visits AS v WHERE v.country IN ('NO', 'SE', "
    "'DK') GROUP BY v.country": 1,
    "SELECT COUNT(*) FROM visits WHERE name LIKE 'A%'": 0,
    "SELECT COUNT(*) FROM visits WHERE name ILIKE 'a%' AND name NOT ILIKE '%N'": 0,
    "SELECT COUNT(*) FROM visits WHERE day >= DATE '2024-02-01' AND day < '2024-03-01'": 0,
    "SELECT COUNT(*) FROM visits WHERE day BETWEEN DATE '2024-02-29' - INTERVAL '1' YEAR AND "
    "DATE '2024-01-31' + INTERVAL '1' MONTH": 0,
    "SELECT COUNT(*) FROM visits WHERE seen >= TIMESTAMP '2024-03-04 12:00' + INTERVAL 6 HOUR": 0,
    "SELECT COUNT(*) FROM visits WHERE YEAR(day) = 2024 AND EXTRACT(MONTH FROM day) = 2": 0,
    "SELECT DATE_TRUNC('month', day) AS month, COUNT(DISTINCT member) FROM visits GROUP BY 1": 1,
    "SELECT CAST(seen AS DATE) AS on_day, COUNT(*) FROM visits GROUP BY 1": 1,
    "SELECT SUBSTRING(name, 1, 1) AS letter, COUNT(*) FROM visits WHERE name LIKE 'A%' "
    "GROUP BY letter": 1,
    "SELECT CASE WHEN price < 50 THEN 'low' ELSE 'high' END AS level, COUNT(*) FROM visits "
    "GROUP BY 1": 1,
    "SELECT COUNT(*) FILTER (WHERE active) AS used, COUNT_IF(price > 90) AS dear, "
    "AVG(price) FILTER (WHERE country = 'NO') AS norwegian FROM visits WHERE quantity > 2": 0,
    "SELECT AVG(CASE WHEN active THEN 1.0 ELSE 0.0 END) AS share FROM visits": 0,
    "SELECT SUM(price) / NULLIF(SUM(quantity), 0) FROM visits WHERE price IS NOT NULL": 0,
    "SELECT SUM(IF(active, price, 0)) FROM visits": 0,
    "SELECT SUM(COALESCE(price, 0) - quantity) FROM visits WHERE NOT active": 0,
    "SELECT COUNT(*) FROM visits WHERE country <> 'NO' OR country IS NULL": 0,
    "SELECT COUNT(*) FROM visits WHERE country NOT IN ('NO', 'SE')": 0,
    "SELECT COUNT(*) FROM visits WHERE price * quantity > 2 * 3 + 100 AND -quantity < -2": 0,
    "SELECT COUNT(*) FROM visits WHERE NULLIF(price, 0) IS NULL": 0,
    "SELECT COUNT(*) FROM visits WHERE days(paid, day) > 30 AND paid > day": 0,
    "SELECT COUNT(*) /* all of them */ FROM visits WHERE TRUE = active": 0,
}


@pytest.mark.parametrize("text", WORKS, ids=lambda text: text[:60])
def test_it_means_what_sql_means(source: Source, path: Path, text: str) -> None:
    options = {"lower": -500, "upper": 5000} if "COALESCE" in text else {}
    found = asked(source, VISITS, text, **options)
    with plain_sql({"visits": path}) as run:
        expected = run(text, WORKS[text])
    assert len(found) == len(expected)
    for (name, numbers), wanted in zip(found.items(), expected, strict=True):
        assert wanted
        assert without_zeros(numbers) == pytest.approx(without_zeros(wanted), rel=1e-5), name
    for query in queries_in(text, VISITS, {}).values():
        assert [*queries_in(query_in_sql(query, VISITS), VISITS, {}).values()] == [query]


#: What is refused: the part that is the reason, and the nearest thing that can be asked.
REFUSED = {
    "SELECT * FROM visits": "*: rows are not told; ask COUNT(*), AVG(column), …",
    "SELECT * FROM visits LIMIT 10": "*: rows are not told; ask COUNT(*), AVG(column), …",
    "SELECT name FROM visits": "name: a column by itself is not told; GROUP BY it and count",
    "SELECT DISTINCT country FROM visits": (
        "DISTINCT: GROUP BY the columns and count; labels alone are a top k"
    ),
    "SELECT country, COUNT(*) FROM visits GROUP BY country LIMIT 5": (
        "LIMIT 5: which ones? ORDER BY the count DESC"
    ),
    "SELECT TOP 5 country FROM visits": "TOP: a top k is written ORDER BY the count DESC LIMIT k",
    "SELECT member, COUNT(*) FROM visits GROUP BY member": (
        "member is the unit of privacy: it cannot be filtered, grouped or added up"
    ),
    "SELECT COUNT(*) FROM visits WHERE member = 7": (
        "member is the unit of privacy: it cannot be filtered, grouped or added up"
    ),
    "SELECT COUNT(*) FROM visit": "visit: the table is visits, and there is no other",
    "SELECT COUNT(*) FROM visits WHERE contry = 'NO'": "did you mean country",
    'SELECT COUNT(*) FROM visits WHERE country = "NO"': ("a text is written in single quotes"),
    "SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE - INTERVAL '30' DAY": (
        "CURRENT_DATE: a question means the same every day: write the date, DATE '2024-01-31'"
    ),
    "SELECT COUNT(*) FROM visits WHERE seen > NOW()": (
        "NOW(): a question means the same every day: write the time, TIMESTAMP '…'"
    ),
    "SELECT COUNT(*) FROM visits WHERE paid < day + INTERVAL '7' DAY": (
        "compare days(later, earlier) with a number"
    ),
    "SELECT COUNT(*) FROM visits WHERE DATEDIFF('day', day, paid) > 7": "paid: write days(later, e",
    "SELECT TO_CHAR(day, 'YYYY-MM'), COUNT(*) FROM visits GROUP BY 1": (
        "GROUP BY DATE_TRUNC('month', day), or compare EXTRACT(MONTH FROM day)"
    ),
    "SELECT STRFTIME(day, '%Y-%m'), COUNT(*) FROM visits GROUP BY 1": (
        "GROUP BY DATE_TRUNC('month', day), or compare EXTRACT(MONTH FROM day)"
    ),
    "SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('month', day) = DATE '2024-02-01'": (
        "this is for GROUP BY; in a condition write a range of dates"
    ),
    "SELECT COUNT(*) FROM visits WHERE EXTRACT(DOW FROM day) = 0": (
        "EXTRACT(DOW FROM day): the parts of a date are ISODOW, HOUR, DAY, MONTH, QUARTER, YEAR"
    ),
    "SELECT AVG(CAST(price AS DOUBLE)) FROM visits": (
        "CAST(price AS DOUBLE): a column is of the kind that its owner declared; there is no CAST"
    ),
    "SELECT SUBSTRING(name, 2, 3), COUNT(*) FROM visits GROUP BY 1": (
        "the beginning of a text is LEFT(column, 3)"
    ),
    "SELECT COUNT(*) FROM visits WHERE name ILIKE 'å%'": (
        "ILIKE is followed by a text of ASCII characters"
    ),
    "SELECT COUNT(*) FROM visits WHERE price > (SELECT AVG(price) FROM visits)": (
        "(SELECT AVG(price) FROM visits): ask the sub-select first and write its number here"
    ),
    "SELECT RANK() OVER (ORDER BY price) FROM visits": (
        "there are no windows; a sub-select that groups by the unit has its own aggregates"
    ),
    "SELECT COUNT(*) FROM visits JOIN members USING (member)": (
        "members: a question is about one table"
    ),
    "SELECT COUNT(*) FROM visits WHERE active IS TRUE": "IS is for NULL; compare truth values with",
    "SELECT COUNT(DISTINCT country, name) FROM visits": (
        "different values are counted in one column"
    ),
    "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits": "; is a second statement",
    "DELETE FROM visits": "a question begins with SELECT",
    "SELECT COUNT(*) FROM visits WHERE day > DATE '2024-01-31' + INTERVAL '1' CENTURY": (
        "an interval is a whole number of MONTH, QUARTER, YEAR, DAY, WEEK"
    ),
    "SELECT COUNT(*) FROM visits WHERE day > DATE '2024-01-31' + INTERVAL '9000' YEAR": (
        "dates are in the years 1 to 9999"
    ),
    "SELECT COUNT(*) FROM visits WHERE price > 'a' + 1": "numbers are added to numbers",
    "SELECT COUNT(*) FROM visits WHERE day > '2024-01-01' + INTERVAL '1' DAY": (
        "an interval is added to a date: DATE '2024-01-31' + INTERVAL '1' MONTH"
    ),
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:60])
def test_what_is_refused_says_what_can_be_asked(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        queries_in(text, VISITS, {})
    assert REFUSED[text] in str(refused.value)
    assert len(str(refused.value)) < 250


def test_rows_are_not_counted_without_a_limit() -> None:
    unlimited = Dataset("visits", "member", "owner", schema=SCHEMA)
    for counted in ("COUNT(*)", "COUNT(1)", "COUNT(price)", "COUNT_IF(active)"):
        with pytest.raises(InvalidInput, match=r"COUNT.* counts rows and needs per_key_limit"):
            queries_in(f"SELECT {counted} FROM visits", unlimited, {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.06 - 0.01", 0.05),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-2 * 0.1", -0.2),
        ("100 - 2", 98),
    ],
)
def test_values_are_computed_exactly(text: str, value: Any) -> None:
    (query,) = queries_in(f"SELECT COUNT(*) FROM visits WHERE price < {text}", VISITS, {}).values()
    (other,) = queries_in(f"SELECT COUNT(*) FROM visits WHERE price < {value}", VISITS, {}).values()
    assert query == other
