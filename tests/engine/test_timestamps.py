"""Times of a clock in the declared zone: the same on every engine, whatever they are stored as."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine import filters
from farthing.engine.keys import PERIODS, Period
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import labels_of, text_of, value_text
from farthing.engine.sql.conditions import condition, key_column
from farthing.engine.sql.statement import Texts
from farthing.errors import InvalidInput
from farthing.schema import TEXT, TIMESTAMP, Column, Schema

ZONE = "Europe/Oslo"
#: Clocks go forward on 31 March 2013 and back on 27 October, both at 01:00 UTC.
MOMENTS = [
    datetime(2013, 3, 31, 0, 59, 59, 999_999, tzinfo=UTC),
    datetime(2013, 3, 31, 1, 0, tzinfo=UTC),
    datetime(2013, 10, 27, 0, 30, 15, 250_000, tzinfo=UTC),
    datetime(2013, 10, 27, 1, 30, 15, 250_000, tzinfo=UTC),
    datetime(2013, 12, 31, 23, 30, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
    datetime(2999, 1, 1, tzinfo=UTC),
    None,
]
LOCAL = [None if m is None else m.replace(tzinfo=None) for m in MOMENTS]
#: Text, and what it means in the declared zone.
WORDS = {
    "2013-01-31": datetime(2013, 1, 31),
    " 2013-01-31T12:30": datetime(2013, 1, 31, 12, 30),
    "2013-01-31 12:30:01.5": datetime(2013, 1, 31, 12, 30, 1, 500_000),
    "2013-07-31T22:30:00Z": datetime(2013, 8, 1, 0, 30),
    "2013-01-31 12:30:00+00:00": datetime(2013, 1, 31, 13, 30),
    "2013-02-29": None,
    "2013-01-31 24:00": None,
    "2013-01-31 12:30:00+02:00": None,
    "0000-01-01": None,
    "yesterday": None,
}
ROWS = len(WORDS)
SCHEMA = Schema(
    (
        Column("moment", TIMESTAMP, time_zone=ZONE),
        Column("local", TIMESTAMP),
        Column("day", TIMESTAMP),
        Column("words", TIMESTAMP, time_zone=ZONE),
        Column("number", TIMESTAMP),
        Column("label", TEXT),
    )
)


def filled(values: list[Any]) -> list[Any]:
    return values + [None] * (ROWS - len(values))


def rows() -> pa.Table:
    days = [None if m is None else m.date() for m in LOCAL]
    return pa.table(
        {
            "moment": pa.array(filled(MOMENTS), pa.timestamp("us", "UTC")),
            "local": pa.array(filled(LOCAL), pa.timestamp("us")),
            "day": pa.array(filled(days), pa.date32()),
            "words": list(WORDS),
            "number": list(range(ROWS)),
            "label": list(map(str, range(ROWS))),
        }
    )


EXPECTED = {
    "moment": [m and m.astimezone(ZoneInfo(ZONE)).replace(tzinfo=None) for m in MOMENTS],
    "local": LOCAL,
    "day": [m and m.replace(hour=0, minute=0, second=0, microsecond=0) for m in LOCAL],
    "words": list(WORDS.values()),
    "number": [],
}


@pytest.fixture(scope="module")
def duckdb_times():
    source = open_source(rows())
    yield source
    source.shut()


@pytest.fixture(scope="module")
def object_times():
    frame = rows().to_pandas()
    source = open_source(frame.astype(object).where(frame.notna(), None))
    yield source
    source.shut()


@pytest.fixture(scope="module")
def spark_times(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("times") / "times.parquet"
    pq.write_table(rows(), path)
    return open_source(str(path), spark=spark)


@pytest.fixture(scope="module")
def postgres_times(postgres):
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE times (moment timestamptz, local timestamp, day date, words text, "
            "number bigint, label text)"
        )
        with connection.cursor().copy("COPY times FROM STDIN") as copy:
            for row in rows().to_pylist():
                copy.write_row(list(row.values()))
        connection.execute("INSERT INTO times (local) VALUES ('infinity'), ('-infinity')")
    source = open_source(postgres.url(), table="times")
    yield source
    source.shut()


@pytest.fixture(params=["duckdb", "object", "spark", "postgres"])
def times(request) -> Source:
    return request.getfixturevalue(f"{request.param}_times")


def found(source: Source, expression: Any, texts: Texts) -> list[str]:
    table = source.run(source.statement(expression, texts))
    return sorted(label for label in table.column("label").to_pylist() if label != "n")


def test_a_time_is_what_the_clock_shows(times) -> None:
    table = times.declared(SCHEMA)
    for name, expected in EXPECTED.items():
        labels = table.select(label=value_text(table[name], TIMESTAMP))
        assert found(times, labels, Texts()) == sorted(text_of(x) for x in expected if x), name


def test_periods_begin_where_the_clock_says(times) -> None:
    table, texts = times.declared(SCHEMA), Texts()
    for period in PERIODS:
        column, kind = key_column(table, Period("moment", period), SCHEMA.kinds, texts, {})
        expected = [first(m, period) for m in EXPECTED["moment"] if m]
        labels = found(times, table.select(label=value_text(column, kind)), texts)
        assert Counter(labels_of(labels, 1)) == Counter(expected), period


def first(moment: datetime, period: str) -> date:
    day = moment.date()
    return {
        "hour": moment.replace(minute=0, second=0, microsecond=0),
        "day": day,
        "week": day - timedelta(days=day.weekday()),
        "month": day.replace(day=1),
        "quarter": day.replace(month=day.month - (day.month - 1) % 3, day=1),
        "year": day.replace(month=1, day=1),
    }[period]


@pytest.mark.parametrize(
    "side", [datetime(2013, 3, 31, 1, 59, 59, 999_999), datetime(1970, 1, 1), date(2013, 10, 27)]
)
def test_filters_are_exact_to_the_microsecond(times, side) -> None:
    table = times.declared(SCHEMA)
    edge = side if isinstance(side, datetime) else datetime(side.year, side.month, side.day)
    for where, keeps in (
        ({"moment": side}, lambda x: x == edge),
        ({"moment": {"above": side}}, lambda x: x > edge),
        ({"moment": {"at_least": side}}, lambda x: x >= edge),
        ({"moment": [side, None]}, lambda x: x == edge),
    ):
        texts = Texts()
        wanted = filters.filter_from(where)
        assert filters.filter_from(filters.filter_to_json(wanted)) == wanted
        kept = table.filter(condition(table, wanted, SCHEMA.kinds, texts))
        labels = found(times, kept.select(label=value_text(kept.moment, TIMESTAMP)), texts)
        assert labels == sorted(text_of(x) for x in EXPECTED["moment"] if x and keeps(x))


def test_times_in_plain_data_have_no_zone_of_their_own() -> None:
    assert filters.filter_from({"at": {"time": "2013-01-31T12:30:00"}}) == filters.Equals(
        "at", datetime(2013, 1, 31, 12, 30)
    )
    with pytest.raises(InvalidInput, match="zone of the column"):
        filters.Equals("at", MOMENTS[0])
    with pytest.raises(InvalidInput, match="a time"):
        filters.filter_from({"at": {"time": "noon"}})
