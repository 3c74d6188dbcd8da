"""Cause: a statement that fails where nobody passes a filter tells whether somebody does.

PostgreSQL's types were inferred from its rows, and a column without rows had none. Every kind of
question is asked of tables in which nobody is, nobody passes, and nobody has a unit: it is
answered, and the rows that come back have the types that the statement says.
"""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.errors import EngineFailure
from farthing.engine.kinds import query_from
from farthing.engine.sql.statement import Statement
from farthing.schema import BOOLEAN, DATE, INTEGER, REAL, TEXT, TIMESTAMP, Column, Schema
from tests.engine.engines import measured, on_postgres, on_spark

SCHEMA = Schema(
    (
        Column("member", INTEGER),
        Column("diag", TEXT),
        Column("age", INTEGER),
        Column("worth", REAL),
        Column("day", DATE),
        Column("at", TIMESTAMP),
        Column("flag", BOOLEAN),
    )
)
TYPES = {
    "member": pa.int64(),
    "diag": pa.string(),
    "age": pa.int64(),
    "worth": pa.float64(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "flag": pa.bool_(),
}
COLUMNS = "member bigint, diag text, age bigint, worth float8, day date, at timestamp, flag boolean"
#: Rows of everybody, of nobody, and of nobody who has a unit.
TABLES = {
    "nobody": [],
    "without a unit": [(None, "hiv", 37, 1.5, None, None, True)] * 3,
    "without a value": [(1, None, None, None, None, None, None)],
    "somebody": [(1, "hiv", 37, 1.5, None, None, True)],
}
BY = [
    "diag",
    "day",
    "month(day)",
    "hour(at)",
    "flag",
    "bins(age, 0, 9, 99)",
    "bins(worth, 0, 1, 2)",
]
NOBODY = {"diag": "nobody", "age": {"at_most": -1}}
LIMITS = {"contribution_limit": 2}
BOUNDS = {"lower": 0, "upper": 100, "per_key_limit": 1}
MEASURES = ("sum", "mean", "variance", "standard_deviation", "quantile")


def questions() -> list[dict[str, Any]]:
    """Every kind, with every key that it can have, labels known and found."""
    asked: list[dict[str, Any]] = [{"kind": "count"}, {"kind": "count", "per_key_limit": 3}]
    asked += [{"kind": "distinct", "column": name, **LIMITS} for name in ("diag", "age", "day")]
    for by in (*([one] for one in BY), ["diag", "month(day)", "flag"]):
        asked.append({"kind": "histogram", "by": by, **LIMITS, "per_key_limit": 2})
        asked.append({"kind": "top_k", "by": by, "k": 2, "counts": True})
        asked.append({"kind": "loss", "by": by, "contribution_limit": 1, "most": 3})
        asked.append({"kind": "limit", "by": by, "limits": [1, 2], "noise": [0.4, 0.7]})
        asked += [
            {"kind": kind, "column": column, "by": by, **LIMITS, **BOUNDS}
            for kind, column in itertools.product(MEASURES, ("age", "worth"))
        ]
    known = {"by": ["diag"], "categories": ["hiv", None], **LIMITS}
    asked += [{"kind": kind, "column": "age", **BOUNDS} for kind in MEASURES]
    asked += [{"kind": kind, "column": "age", **known, **BOUNDS} for kind in MEASURES]
    asked.append({"kind": "histogram", **known})
    asked.append({"kind": "top_k", **known, "k": 1})
    return asked


def placed(engine: str, rows: list[Any], request: Any, tmp_path: Any) -> Any:
    table = pa.table(
        {name: [row[i] for row in rows] for i, name in enumerate(TYPES)}, schema=pa.schema(TYPES)
    )
    if engine == "duckdb":
        return fa.engine.open_source(table)
    if engine == "spark":
        return on_spark(request.getfixturevalue("spark"), table, tmp_path)
    return on_postgres(request.getfixturevalue("postgres").url(), COLUMNS, rows)


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_every_question_is_answered(engine, request, tmp_path) -> None:
    source = placed(engine, [], request, tmp_path)
    every_question(source, questions(), None)
    source.shut()


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
@pytest.mark.parametrize("rows", ["without a unit", "without a value", "somebody"])
def test_some_questions_are_answered_of_every_table(engine, rows, request, tmp_path) -> None:
    """Each statement takes a while to write, and on Spark to run."""
    source = placed(engine, TABLES[rows], request, tmp_path)
    every = 16 if engine == "spark" else 3
    every_question(source, questions()[len(rows) % every :: every], NOBODY)
    source.shut()


def every_question(source: Any, asked: list[dict[str, Any]], where: Any) -> None:
    for query in asked:
        whole, rows, _ = measured(source, SCHEMA, query_from({**query, "where": where}))
        assert all(not field.nullable for field in rows.schema), query
        assert all(column.null_count == 0 for column in rows.columns), query
        whole.data(rows)


@pytest.mark.parametrize("engine", ["duckdb", "spark", "postgres"])
def test_the_statement_says_the_types(engine, request, tmp_path) -> None:
    """A question's rows have the same types whether there are any or not."""
    query = query_from({"kind": "quantile", "column": "age", "by": "diag", **LIMITS, **BOUNDS})
    found = []
    for rows in ("nobody", "somebody"):
        source = placed(engine, TABLES[rows], request, tmp_path)
        found.append(measured(source, SCHEMA, query)[1].schema)
        source.shut()
    assert found[0] == found[1]
    assert found[0].field("value") == pa.field("value", pa.int64(), nullable=False)


@pytest.mark.parametrize("engine", ["duckdb", "spark", "postgres"])
def test_a_missing_value_where_the_statement_has_none_is_no_answer(
    engine, request, tmp_path
) -> None:
    """The last wall: no statement of a question can give one."""
    source = placed(engine, TABLES["somebody"], request, tmp_path)
    present = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    assert source.run(Statement("SELECT 1 AS n", present)).to_pylist() == [{"n": 1}]
    missing = "SELECT CAST(NULL AS BIGINT) AS n"
    with pytest.raises(EngineFailure):
        source.run(Statement(missing, present))
    assert source.run(Statement(missing, pa.schema({"n": pa.int64()}))).num_rows == 1
    source.shut()


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_the_age_of_one_person(engine, opened, request, tmp_path) -> None:
    """A farthing each: whether it failed told on which side of a value an age lies."""
    rows = [(i, "flu", i, 1.0, None, None, None) for i in range(20)]
    source = placed(engine, [*rows, (99, "hiv", 37, 1.0, None, None, None)], request, tmp_path)
    session = _session(opened, source)
    for most in (36, 37):
        for known in ({"categories": ["hiv"]}, {"contribution_limit": 1, "leak": "leak"}):
            where = {"diag": "hiv", "age": {"at_most": most}}
            answer = session.quantile("age", by="diag", where=where, **known, **BOUNDS).run()
            assert answer is not None


def _session(opened: Any, source: Any) -> Any:
    """A budget for a source that is open already."""
    from unittest import mock

    with mock.patch("farthing.engine.local.open_source", return_value=source):
        return opened("unused", schema=SCHEMA)
