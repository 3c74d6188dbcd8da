"""Labels that rows cannot tell apart: each would be measured, and one alone be paid for."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.sql.bounding import labels_of, text_of
from farthing.errors import InvalidInput
from farthing.mechanisms.combined import PerLabel
from farthing.mechanisms.counts.noisy_totals import NoisyTotals

LONG = "123456789012345678"


@pytest.fixture
def session(tmp_path):
    rows = pa.table(
        {
            "member": [1, 2],
            "code": pa.array([Decimal(LONG), Decimal(5)], pa.decimal128(18, 0)),
            "at": [datetime(2013, 1, 1, 5, 10), datetime(2013, 1, 1, 6)],
            "n": [5, 6],
            "x": [100, 1],
        }
    )
    columns = (
        fa.Column("member", "integer"),
        fa.Column("code", "decimal", places=0),
        fa.Column("at", "timestamp"),
        fa.Column("n", "integer"),
        fa.Column("x", "integer"),
    )
    with fa.open(
        rows,
        ledger=tmp_path / "ledger.db",
        dataset="rows",
        unit="member",
        epsilon=1,
        delta=1e-6,
        schema=fa.Schema(columns),
    ) as opened:
        yield opened


def asked(key, labels):
    return {
        "kind": "sum",
        "column": "x",
        "by": [key],
        "categories": labels,
        "lower": 0,
        "upper": 100,
        "contribution_limit": 1,
    }


class Text(str):
    """Another type, and the same text."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("key", "labels"),
    [
        ("hour(at)", [{"time": f"2013-01-01T05:00:00.00000{i}"} for i in range(3)]),
        ("code", [Decimal(5), Decimal("5.0")]),
        ("n", [5, Decimal(5)]),
        ("hour(at)", [date(2013, 1, 1)]),
        ("bins(x, 0, 200)", ["[0, 200)", Text("[0, 200)")]),
    ],
)
def test_every_label_is_another_one_for_the_rows(session, key, labels):
    with pytest.raises(InvalidInput, match=r"categor|label"):
        session.ask(asked(key, labels)).plan()


def test_long_exact_numbers_have_texts_of_their_own(session):
    labels = [{"decimal": LONG}, {"decimal": LONG + ".000000000000000001"}]
    steps = session.ask(asked("code", labels)).plan()._details.steps
    first, second = steps[""].mechanism.domain
    assert first != second
    longest = Decimal("899999999999999999.999999999999999999")
    assert labels_of([text_of(longest)], 1) == (longest,)


def test_a_filter_compares_exactly(session):
    """No row has a number with a fraction."""
    wanted = Decimal(LONG + ".000000000000000001")
    statement = session.count(where={"code": wanted}).plan()._details.steps[""].statement
    assert session.backend._context.source.run(statement).column("n")[0].as_py() == 0


def test_a_label_is_measured_once():
    totals = NoisyTotals(coordinate=fa.PureDP(1), limits=(1,))
    with pytest.raises(InvalidInput, match="distinct"):
        PerLabel(measure=totals, contribution_limit=1, domain=("a", "a"))


@pytest.mark.parametrize("zero", ["0E-99999999", "0E+99999999", "-0.0"])
def test_a_label_has_one_short_form(session, zero):
    query = session.ask(asked("code", [{"decimal": zero}])).query
    assert query.to_json()["categories"] == [{"decimal": "0"}]
