"""Watches over quantiles through the statement that runs: ranks, and what one unit does to them."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from farthing import engine
from farthing.engine.context import statement_of
from farthing.engine.kinds.quantile import QuantileQuery
from farthing.ledger import Analyst
from tests.engine.conftest import Opened

Row = tuple[int | None, float | None]
LOWER, UPPER = -3, 3


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "member": pa.array([member for member, _ in rows], pa.int64()),
            "worth": pa.array([worth for _, worth in rows], pa.float64()),
        }
    )


def rows_of(rng: random.Random, member: int, most: int) -> list[Row]:
    """Missing, strange, out of bounds, repeated: whatever a table holds."""
    worths = [None, float("nan"), float("inf"), -1e300, 1e300, 0.49999, -2.0, 0.0, 1.0, 1.0, 2.5]
    return [(member, rng.choice(worths)) for _ in range(rng.randint(0, most))]


def ranks(session: engine.Session, query: QuantileQuery, v: int) -> tuple[int, int]:
    """The number of the statement, and the most that it says a unit can change it."""
    statement, limited = statement_of(session.backend._context, query, value=v)
    found = session.backend._context.source.run(statement).column("n")[0].as_py()
    assert limited.contribution_limit == 1
    assert limited.per_key_limit is not None
    return int(found), limited.per_key_limit


def in_bounds(worth: float) -> int:
    return min(max(math.floor(max(min(worth, 9), -9) + 0.5), LOWER), UPPER)


def naive(rows: list[Row], query: QuantileQuery, v: int, limit: int) -> int:
    """Unit by unit, in fractions."""
    a, b = Fraction(str(query.probability)).as_integer_ratio()
    total = 0
    for member in {member for member, _ in rows if member is not None}:
        worths = [x for m, x in rows if m == member and x is not None and not math.isnan(x)]
        reached = sum(in_bounds(x) >= v for x in worths)
        counted = min(len(worths), limit)
        if len(worths) > limit:
            reached = math.floor(Fraction(reached * limit, len(worths)) + Fraction(1, 2))
        total += a * reached - (b - a) * (counted - reached)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_through_the_statement(
    opened: Opened, seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more unit, above its limits or not, moves no rank by more than is charged."""
    monkeypatch.setattr(Analyst, "secret", lambda _: f"the same for both {seed}".replace(" ", ""))
    rng = random.Random(seed)
    others: list[Row] = [(None, 1.0), (None, None)]
    for member in range(5):
        others += rows_of(rng, member, 6)
    extra = [(99, -2.0), (99, 2.5), *rows_of(rng, 99, 12)]
    fewer = opened(table_of(others), ledger=tmp_path / "fewer.db")
    more = opened(table_of(others + extra), ledger=tmp_path / "more.db")
    moved = set()
    for probability, limit in ((0.5, 1), (0.9, 3)):
        query = QuantileQuery(
            "worth", probability, lower=LOWER, upper=UPPER, places=0, per_key_limit=limit
        )
        a, b = Fraction(str(probability)).as_integer_ratio()
        for v in (LOWER, 0, 1, UPPER):
            (before, most), (after, _) = (ranks(session, query, v) for session in (fewer, more))
            assert before == naive(others, query, v, limit)
            assert most == max(a, b - a) * limit
            assert -(b - a) * limit <= after - before <= a * limit
            moved.add(after - before)
    assert any(moved)


def test_of_no_rows_the_number_is_zero(opened: Opened) -> None:
    """Of no values every value is a quantile."""
    session = opened(table_of([(None, 1.0), (1, None)]))
    query = QuantileQuery("worth", 0.75, lower=0, upper=9, places=0, per_key_limit=1)
    assert ranks(session, query, 5) == (0, 3)
