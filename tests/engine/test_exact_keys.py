"""Decimals and UUIDs as keys and units: exact, and the same text on every engine."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from uuid import UUID

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engine.filters import value_from_json, value_to_json
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import labels_of, text_of
from farthing.errors import InvalidInput
from farthing.schema import DECIMAL, TEXT, Column, Schema
from tests.engine.engines import histogram
from tests.engine.rows import naive_histogram

PRICES = [Decimal(text) for text in ("1.50", "-0.07", "0.00", "99999999.99", "2.00")] + [None]
SMALL = [Decimal(text).scaleb(-9) for text in ("1", "-250", "0", "123456789")] + [None]
OWNERS = [str(UUID(int=i << 64 | 0xABCDEF)) for i in range(7)]
SCHEMA = Schema(
    (Column("price", DECIMAL, places=2), Column("small", DECIMAL, places=9), Column("owner", TEXT))
)


def rows() -> pa.Table:
    return pa.table(
        {
            "price": pa.array([PRICES[i % 6] for i in range(210)], pa.decimal128(10, 2)),
            "small": pa.array([SMALL[i % 5] for i in range(210)], pa.decimal128(12, 9)),
            "owner": [OWNERS[i % 7] for i in range(210)],
        }
    )


@pytest.fixture(params=["duckdb", "spark", "postgres"])
def rows_on(request, tmp_path):
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS exact")
            connection.execute(
                "CREATE TABLE exact (price numeric(10, 2), small numeric(12, 9), owner uuid)"
            )
            with connection.cursor().copy("COPY exact FROM STDIN") as copy:
                for row in rows().to_pylist():
                    copy.write_row(list(row.values()))
        found = open_source(server.url(), table="exact")
    elif request.param == "spark":
        pq.write_table(rows(), tmp_path / "exact.parquet")
        found = open_source(str(tmp_path / "exact.parquet"), spark=request.getfixturevalue("spark"))
    else:
        found = open_source(rows())
    yield found
    found.shut()


def test_exact_keys_and_units_on_every_engine(rows_on) -> None:
    for unit, by in (("owner", ("price",)), ("owner", ("small", "price")), ("price", ("small",))):
        for limit in (None, 2):
            found = histogram(rows_on, SCHEMA, by, unit=unit, limits=(limit, 3))
            table = rows()
            assert found == naive_histogram(
                table, unit, by, secret="key", limit=limit, per_key=3
            ), (unit, by, limit)


@pytest.mark.parametrize("value", [*PRICES, *SMALL, Decimal("-0"), Decimal("1e3")])
def test_a_decimal_label_comes_back_exactly(value) -> None:
    assert labels_of([text_of(value)], 1) == (value,)
    assert value_from_json(value_to_json(value)) == value
    (label,) = labels_of([text_of(value)], 1)
    assert str(label) == str(value_from_json(value_to_json(label)))


def test_uuids_of_every_origin_are_one_text() -> None:
    import pandas as pd

    objects = open_source(pd.DataFrame({"owner": [UUID(owner) for owner in OWNERS]}, dtype=object))
    schema = Schema((Column("owner", TEXT),))
    found = histogram(objects, schema, ("owner",), unit="owner")
    assert found == Counter(text_of(owner) for owner in OWNERS)
    objects.shut()


def test_a_label_of_a_decimal_column_is_exact(opened) -> None:
    data = opened(rows(), unit="owner", schema=SCHEMA)
    question = data.histogram("price", categories=[Decimal("1.5")], contribution_limit=1)
    assert question.run().labels == (Decimal("1.5"),)
    with pytest.raises(InvalidInput, match="exact"):
        data.histogram("price", categories=[1], contribution_limit=1).plan()
