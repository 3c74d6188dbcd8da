"""Numbers whose exponent is beyond what decimals can hold ended in errors of the decimal module: a
5xx at the service, which also broke the connection, and a traceback on the command line."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import farthing as fa
from farthing.cli.forms import value_of
from farthing.engine.filters import require_value
from farthing.errors import InvalidInput
from farthing.schema import DECIMAL, INTEGER

#: One that can be written but not compared, and one that cannot be written.
FAR = ["1e999999999999", "1e" + "9" * 30, "-1E+99999999999999999999", "1.5e1000000"]


@pytest.fixture
def session(tmp_path):
    rows = pa.table({"member": [1, 2], "age": [3, 4]})
    with fa.open(
        rows, ledger=tmp_path / "ledger.db", dataset="rows", unit="member", epsilon=1, delta=1e-6
    ) as opened:
        yield opened


@pytest.mark.parametrize("number", FAR)
def test_a_question_is_refused(session, number):
    with pytest.raises(InvalidInput):
        session.count(where=f"age == {number}").plan()
    with pytest.raises(InvalidInput):
        session.count(where=f"age in (1, {number})").plan()
    with pytest.raises(InvalidInput):
        session.sql(f"SELECT COUNT(DISTINCT member) FROM rows WHERE age > {number}").plan()
    with pytest.raises(InvalidInput):
        session.count(where={"age": {"decimal": number}}).plan()


@pytest.mark.parametrize("kind", [INTEGER, DECIMAL])
@pytest.mark.parametrize("number", FAR)
def test_an_option_is_refused(kind, number):
    with pytest.raises(InvalidInput):
        value_of(kind, "age", number)


@pytest.mark.parametrize(
    "number", ["9" * 18, "-" + "9" * 18, "1." + "0" * 200, "0e-2000000", "0e999"]
)
def test_what_a_column_can_hold_is_not_refused(number):
    assert require_value(Decimal(number)) == Decimal(number)
