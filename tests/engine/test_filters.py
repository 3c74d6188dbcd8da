"""Which rows a filter keeps, against SQL's three-valued logic written out in Python."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.engine import AllOf, AnyOf, Between, Equals, Not, OneOf, Present
from farthing.engine.sql.conditions import check_filter
from farthing.engine.where_text.writing import condition_in_sql
from tests.engine.engines import histogram, on_postgres, on_spark, proposed

VALUES: dict[str, list[Any]] = {
    "text": ["", "a", "A", "é", None],
    "whole": [-1, 0, 1, 2**63 - 1, None],
    "worth": [0.1, 1.5, -2.0, float("inf"), None],
    "exact": [Decimal("0.10"), Decimal("-3.00"), Decimal("7.25"), Decimal("0.00"), None],
    "flag": [True, False, True, False, None],
    "day": [date(2013, 1, 5), date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), None],
}
#: Every pair of columns meets every pair of values.
ROWS = [
    {"member": place, **{n: v[place // 5**i % 5] for i, (n, v) in enumerate(VALUES.items())}}
    for place in range(0, 5**6, 11)
]
SQL_TYPES = (
    "member bigint, text text, whole bigint, worth float8, exact numeric(9,2), flag bool, day date"
)
TABLE = pa.Table.from_pylist(
    ROWS,
    schema=pa.schema(
        {
            "member": pa.int64(),
            "text": pa.string(),
            "whole": pa.int64(),
            "worth": pa.float64(),
            "exact": pa.decimal128(9, 2),
            "flag": pa.bool_(),
            "day": pa.date32(),
        }
    ),
)


def truth(where: Any, row: dict[str, Any]) -> bool | None:
    """True, False, or None where a missing value decides."""
    match where:
        case AllOf(parts):
            found = [truth(part, row) for part in parts]
            return False if False in found else None if None in found else True
        case AnyOf(parts):
            found = [truth(part, row) for part in parts]
            return True if True in found else None if None in found else False
        case Not(part):
            inner = truth(part, row)
            return None if inner is None else not inner
        case Present(column):
            return row[column] is not None
        case Equals(column, None):
            return row[column] is None
        case OneOf(column, values) if None in values:
            return row[column] is None or plain(row[column]) in values
    value = plain(row[where.column])
    if value is None:
        return None
    match where:
        case Equals(_, wanted):
            return value == wanted
        case OneOf(_, values):
            return value in values
        case Between(_, at_least, above, at_most, below):
            return (
                (at_least is None or value >= at_least)
                and (above is None or value > above)
                and (at_most is None or value <= at_most)
                and (below is None or value < below)
            )
    raise AssertionError


def plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def wanted(column: str) -> st.SearchStrategy[Any]:
    odd = [0.5, 2**63, 10**18] if column in ("whole", "exact", "worth") else []
    known = [plain(v) for v in VALUES[column] if v is not None and v != float("inf")]
    return st.sampled_from(known + odd)


def leaf(column: str) -> st.SearchStrategy[Any]:
    value = wanted(column)
    kinds = [
        st.builds(Equals, st.just(column), st.one_of(value, st.none())),
        st.builds(OneOf, st.just(column), st.lists(st.one_of(value, st.none()), min_size=1)),
        st.just(Present(column)),
    ]
    if column != "flag":
        kinds.append(st.builds(Between, st.just(column), above=value))
        kinds.append(st.builds(Between, st.just(column), at_least=value, below=value))
    return st.one_of(kinds)


FILTERS = st.recursive(
    st.sampled_from(list(VALUES)).flatmap(leaf),
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Not, inner),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)


def kept(source: Any, where: Any) -> set[int]:
    schema = proposed(source)
    check_filter(where, schema.kinds)
    return {int(key[1:]) for key in histogram(source, schema, ["member"], where=where)}


def check(source: Any, where: Any) -> None:
    assert kept(source, where) == {row["member"] for row in ROWS if truth(where, row)}


@pytest.fixture(scope="module")
def duckdb_rows():
    from farthing.engine.sources.opening import open_source

    source = open_source(TABLE)
    yield source
    source.shut()


@settings(max_examples=120, deadline=None)
@given(where=FILTERS)
def test_three_values(duckdb_rows, where) -> None:
    check(duckdb_rows, where)


@settings(max_examples=120, deadline=None)
@given(where=FILTERS)
def test_sql_means_the_same_to_a_database(where) -> None:
    """The text that we write and read, run by DuckDB itself on the rows as they are."""
    with duckdb.connect() as connection:
        connection.register("rows", TABLE)
        text = f"SELECT member FROM rows WHERE {condition_in_sql(where)}"
        found = {row[0] for row in connection.execute(text).fetchall()}
    assert found == {row["member"] for row in ROWS if truth(where, row)}


SOME = [
    Not(AnyOf((Equals("text", "a"), OneOf("whole", (0, 1)), Not(Equals("flag", True))))),
    Not(AllOf((OneOf("text", ("a", "é")), Not(AnyOf((Equals("worth", 0.1), Present("day"))))))),
    AnyOf((Not(OneOf("text", ("A", None))), Not(OneOf("exact", (7.25, 0))))),
    OneOf("worth", (0.1, -2, None)),
    Not(Equals("whole", 0.5)),
    Not(Between("whole", above=2**63)),
    AnyOf((Equals("day", date(1, 1, 1)), Not(Between("day", at_least=date(1970, 1, 1))))),
    AllOf((Not(OneOf("whole", (2**63,))), Equals("exact", 0.1))),
]


@pytest.mark.server
def test_three_values_on_postgresql(postgres) -> None:
    source = on_postgres(postgres.url(), SQL_TYPES, [tuple(row.values()) for row in ROWS])
    for where in SOME:
        check(source, where)
    source.shut()


@pytest.mark.server
def test_three_values_on_spark(spark, tmp_path) -> None:
    source = on_spark(spark, TABLE, tmp_path)
    for where in SOME:
        check(source, where)
