"""A unit of several columns: a household's person, limited as one, on every engine."""

from __future__ import annotations

import random

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as fa
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import text_of
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import with_unit
from farthing.schema import INTEGER, REAL, TEXT, Column, Schema, schema_from_json
from tests.engine.engines import histogram
from tests.engine.rows import naive_histogram

PLAIN = Schema((Column("household", TEXT), Column("person", INTEGER), Column("city", TEXT)))
SCHEMA, UNIT = with_unit(PLAIN, ("household", "person"))
#: Names that would run together if nothing kept them apart.
HOUSES = ("a", "a|i1", "a~", "a~p", "", None)


def rows(seed: int = 1) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            "household": [draw.choice(HOUSES) for _ in range(400)],
            "person": [draw.choice([1, 11, -1, None]) for _ in range(400)],
            "city": [draw.choice(["Oslo", "Bergen", "Tromsø", None]) for _ in range(400)],
        }
    )


def with_owner(table: pa.Table) -> pa.Table:
    """Whose row it is, by the definition: nobody's where a part is missing."""
    pairs = [(row["household"], row["person"]) for row in table.to_pylist()]
    return table.append_column(
        UNIT, pa.array([None if None in pair else text_of(pair) for pair in pairs], pa.string())
    )


@pytest.fixture(params=["duckdb", "spark", "postgres"])
def people(request, tmp_path):
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS people")
            connection.execute("CREATE TABLE people (household text, person bigint, city text)")
            with connection.cursor().copy("COPY people FROM STDIN") as copy:
                for row in rows().to_pylist():
                    copy.write_row(list(row.values()))
        found = open_source(server.url(), table="people")
    elif request.param == "spark":
        pq.write_table(rows(), tmp_path / "people.parquet")
        path = str(tmp_path / "people.parquet")
        found = open_source(path, spark=request.getfixturevalue("spark"))
    else:
        found = open_source(rows())
    yield found
    found.shut()


def test_each_pair_is_limited_as_one_unit(people) -> None:
    for limit, per_key in ((None, 1), (1, 2), (2, 1)):
        found = histogram(people, SCHEMA, ("city",), unit=UNIT, limits=(limit, per_key))
        assert found == naive_histogram(
            with_owner(rows()), UNIT, ("city",), secret="key", limit=limit, per_key=per_key
        )


def test_one_unit_less_changes_at_most_its_limit() -> None:
    table = rows(2)
    whole = open_source(table)
    everybody = histogram(whole, SCHEMA, ("city",), unit=UNIT, limits=(2, 1))
    whole.shut()
    for house, person in (("a", 1), ("a|i1", 11), ("", -1)):
        others = [r["household"] != house or r["person"] != person for r in table.to_pylist()]
        less = open_source(table.filter(others))
        found = histogram(less, SCHEMA, ("city",), unit=UNIT, limits=(2, 1))
        less.shut()
        assert 0 < sum(everybody[key] - found.get(key, 0) for key in everybody) <= 2


def test_from_opening_to_the_statement_of_the_ledger(opened) -> None:
    data = opened(rows(), unit=("household", "person"), schema=PLAIN)
    assert data.count().run().value is not None
    assert data.schema[UNIT].parts == ("household", "person")
    assert schema_from_json(data.schema.to_json()) == data.schema
    with pytest.raises(InvalidInput, match="unit of privacy"):
        data.histogram(UNIT, contribution_limit=1).plan()


def test_what_a_unit_cannot_be() -> None:
    assert with_unit(PLAIN, "household,person") == (SCHEMA, UNIT)
    assert with_unit(SCHEMA, ("household", "person")) == (SCHEMA, UNIT)
    assert with_unit(PLAIN, ["person"]) == (PLAIN, "person")
    with pytest.raises(InvalidInput, match="no column"):
        with_unit(PLAIN, "household,nobody")
    with pytest.raises(fa.InvalidInput, match="different columns"):
        with_unit(PLAIN, ("person", "person"))
    with pytest.raises(InvalidInput, match="a part must be"):
        with_unit(Schema((Column("x", REAL), Column("y", TEXT))), ("x", "y"))
