"""Cause: the text of a decimal key was a product that DuckDB has no room for.

A statement failed exactly if somebody's number was large: from 10^(18 − 2·places) on.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import labels_of
from farthing.schema import DIGITS, Column, Schema
from tests.engine.engines import histogram, on_postgres, on_spark


def extremes(places: int) -> list[Decimal]:
    """The largest and smallest numbers, and what lies around powers of ten."""
    largest = Decimal(10**DIGITS - 1).scaleb(-places)
    powers = [
        Decimal(sign * 10**digits).scaleb(-places) for digits in range(18) for sign in (1, -1)
    ]
    return sorted({largest, -largest, Decimal(0), *powers})


def found(source: Any, places: int) -> list[Any]:
    columns = (Column("member", "integer"), Column("price", "decimal", places=places))
    texts = histogram(source, Schema(columns), ["price"], limits=(2, 1))
    source.shut()
    return sorted(labels_of(list(texts), 1))


def rows(places: int) -> pa.Table:
    prices = extremes(places)
    return pa.table(
        {
            "member": list(range(len(prices))),
            "price": pa.array(prices, pa.decimal128(DIGITS, places)),
        }
    )


PLACES = (0, 1, 2, 6, 9, 17, 18)


@pytest.mark.parametrize("places", PLACES)
def test_every_decimal_is_a_label_on_duckdb(places):
    assert found(open_source(rows(places)), places) == extremes(places)


@pytest.mark.parametrize("places", PLACES)
def test_every_decimal_is_a_label_on_postgres(postgres, places):
    table = rows(places).to_pylist()
    columns = f"member bigint, price numeric({DIGITS}, {places})"
    source = on_postgres(postgres.url(), columns, [tuple(row.values()) for row in table])
    assert found(source, places) == extremes(places)


def test_every_decimal_is_a_label_on_spark(spark, tmp_path):
    for places in PLACES:
        assert found(on_spark(spark, rows(places), tmp_path), places) == extremes(places)
