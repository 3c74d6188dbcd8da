"""A number in a text is the number that is written, as in a database, not the float near it."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import farthing as fa

CENTS = Decimal("1234567890123456.78")


@pytest.fixture
def session(tmp_path):
    rows = pa.table(
        {
            "member": [1, 2],
            "price": pa.array([CENTS, Decimal("1234567890123456.80")], pa.decimal128(18, 2)),
            "n": [10**17 + 1, 5],
            "x": [3.14159265358979323846, 1.0],
        }
    )
    with fa.open(
        rows, ledger=tmp_path / "ledger.db", dataset="rows", unit="member", epsilon=1, delta=1e-6
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    ("condition", "units"),
    [
        (f"price = {CENTS}", 1),
        (f"price <= {CENTS}", 1),
        ("n > 100000000000000000.5", 1),
        ("n = 100000000000000001.0", 1),
        ("n = 5.0", 1),
        ("n in (100000000000000001.0)", 1),
        ("n in (100000000000000001.5, 5.0, 1e300)", 1),
        ("not n in (100000000000000001.0)", 1),
        ("x = 3.14159265358979323846", 1),
        ("x = 3.141592653589793116", 1),
        ("x > 1e-400", 2),
    ],
)
def test_a_long_number_is_compared_as_it_is_written(session, condition, units):
    question = session.sql(f"SELECT COUNT(DISTINCT member) FROM rows WHERE {condition}")
    statement = question.plan().details.steps[""].statement
    assert session.backend.context.source.run(statement).column("n")[0].as_py() == units
    assert session.sql(question.to_sql()).query == question.query
