"""The bounded histogram is its definition, and nothing a value holds can make it fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.engine.bounding import (
    bounded_histogram,
    clipped_sums,
    counted_rows,
    fixed_point,
    largest,
)
from farthing.engine.on_duckdb import open_frame
from farthing.engine.sources import Source, labels_and_counts
from tests.engine.rows import difficult, naive_histogram

KEYS = (("text",), ("whole",), ("day",), ("flag",), ("text", "whole", "day", "flag"))
LIMITS = ((None, 1), (1, 1), (3, 2), (50, 4))


def opened(rows) -> Source:
    return open_frame(rows, name="rows", version="1", memory="1GB")


def histogram(source: Source, unit: str, by: tuple[str, ...], limit, per_key):
    bounded = bounded_histogram(
        source.table,
        (source.table[unit], source.kinds[unit]),
        [(source.table[name], source.kinds[name]) for name in by],
        secret="key",
        contribution_limit=limit,
        per_key_limit=per_key,
    )
    assert (bounded.contribution_limit, bounded.per_key_limit) == (limit, per_key)
    labels, counts = labels_and_counts(source.run(source.sql(bounded.expression)))
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize("unit", ["member", "name"])
@pytest.mark.parametrize("by", KEYS)
def test_it_is_the_definition(unit, by) -> None:
    rows = difficult(800)
    source = opened(rows)
    for limit, per_key in LIMITS:
        found = histogram(source, unit, by, limit, per_key)
        assert found == naive_histogram(rows, unit, by, secret="key", limit=limit, per_key=per_key)
    source.shut()


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3))
def test_one_more_unit_raises_few_counts_a_little(seed, limit, per_key) -> None:
    rows = difficult(120, seed=seed, texts=("a", "b", "c", None))
    with_all = naive_histogram(rows, "member", ["text"], secret="key", limit=limit, per_key=per_key)
    for who in (0, 1, 2):
        others = rows.filter([row["member"] != who for row in rows.to_pylist()])
        less = naive_histogram(
            others, "member", ["text"], secret="key", limit=limit, per_key=per_key
        )
        change = {key: with_all[key] - less.get(key, 0) for key in with_all}
        assert all(0 <= by <= per_key for by in change.values())
        assert sum(by > 0 for by in change.values()) <= limit


def test_the_largest_counts_break_ties_by_code_points() -> None:
    rows = difficult(300, texts=("b", "a", "é", "Z", "zz", "日", "\U0001f600", "\uffee"))
    source = opened(rows)
    whole = bounded_histogram(
        source.table,
        (source.table.member, "integer"),
        [(source.table.text, "text")],
        secret="key",
        contribution_limit=1,
        per_key_limit=1,
    ).expression
    ordered = sorted(
        naive_histogram(rows, "member", ["text"], secret="key", limit=1, per_key=1).items(),
        key=lambda pair: (-pair[1], pair[0]),
    )
    for size in range(1, len(ordered) + 1):
        labels, _ = labels_and_counts(source.run(source.sql(largest(whole, size, source.order))))
        assert sorted(labels) == sorted(label for label, _ in ordered[:size])
    source.shut()


def test_counts_of_rows_are_limited_per_unit() -> None:
    rows = difficult(500)
    source = opened(rows)
    sizes = [rows.column("member").to_pylist().count(who) for who in range(40)]
    for per_key in (1, 3, 1000):
        bounded = counted_rows(source.table, (source.table.member, "integer"), per_key)
        found = source.run(source.sql(bounded.expression))
        assert int(found.column(0)[0].as_py()) == sum(min(size, per_key) for size in sizes)
    source.shut()


def test_sums_cannot_overflow_and_unusual_numbers_have_a_meaning() -> None:
    rows = difficult(900)
    source = opened(rows)
    table = source.table

    def total(column: str, places: int, lower: int, upper: int) -> int:
        worth = fixed_point(table[column], source.kinds[column], places, source.real)
        sums = clipped_sums(table, (table.member, "integer"), worth, lower, upper)
        found = source.run(source.sql(sums.expression))
        return int(found.column(0)[0].as_py())

    def naive(column: str, places: int, lower: int, upper: int) -> int:
        sums: dict[int, int] = {}
        for row in rows.to_pylist():
            who, value = row["member"], row[column]
            if who is not None and value is not None and value == value:
                sums[who] = sums.get(who, 0) + _whole(value, places)
        return sum(min(max(amount, lower), upper) for amount in sums.values())

    for column, places, lower, upper in (
        ("large", 0, -(10**12), 10**12),
        ("worth", 2, -500, 1000),
        ("worth", 0, 0, 10),
        ("whole", 0, -5, 5),
        ("whole", 1, -50, 50),
    ):
        assert total(column, places, lower, upper) == naive(column, places, lower, upper)
    source.shut()


def _whole(value: float, places: int) -> int:
    if isinstance(value, int) and places == 0:
        return value
    edge = float(1 << 52)
    inside = min(max(value * 10.0**places, -edge), edge)
    return int((inside + 0.5) // 1)
