"""The bounded histogram is its definition, and nothing a value holds can make it fail."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.bounding import Bounded, bounded_histogram, counted_rows, counts_of
from farthing.engine.sql.conditions import fixed_point
from farthing.engine.sql.statement import Texts
from farthing.errors import InvalidInput
from farthing.schema import INTEGER
from tests.engine.engines import clipped_sums, histogram, proposed
from tests.engine.rows import difficult, naive_histogram

KEYS = (("text",), ("whole",), ("day",), ("flag",), ("text", "whole", "day", "flag"))
LIMITS = ((None, 1), (1, 1), (3, 2), (50, 4))


def number(source: Source, bounded: Bounded) -> int:
    return int(counts_of(source.run(source.statement(bounded.expression, Texts())))[0])


@pytest.mark.parametrize("unit", ["member", "name"])
@pytest.mark.parametrize("by", KEYS)
def test_it_is_the_definition(unit, by) -> None:
    rows = difficult(800)
    source = open_source(rows)
    for limit, per_key in LIMITS:
        found = histogram(source, proposed(source), by, unit=unit, limits=(limit, per_key))
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


def test_no_key_is_preferred_and_units_keep_different_ones() -> None:
    """Everybody has 15 keys and keeps 5: each key is kept by a third, within five deviations."""
    rows = pa.table(
        {
            "member": [who for who in range(9000) for _ in range(15)],
            "whole": list(range(15)) * 9000,
        }
    )
    source = open_source(rows)
    found = histogram(source, proposed(source), ["whole"], limits=(5, 1))
    assert sum(found.values()) == 45_000
    assert all(abs(count - 3000) < 5 * (9000 * 2 / 9) ** 0.5 for count in found.values())
    source.shut()


def test_the_largest_counts_break_ties_by_code_points() -> None:
    rows = difficult(300, texts=("b", "a", "é", "Z", "zz", "日", "\U0001f600", "\uffee"))
    source = open_source(rows)
    ordered = sorted(
        naive_histogram(rows, "member", ["text"], secret="key", limit=1, per_key=1).items(),
        key=lambda pair: (-pair[1], pair[0]),
    )
    for size in range(1, len(ordered) + 1):
        found = histogram(source, proposed(source), ["text"], limits=(1, 1), candidates=size)
        assert sorted(found) == sorted(label for label, _ in ordered[:size])
    source.shut()


def test_an_expression_says_how_much_a_unit_can_change() -> None:
    source = open_source(difficult(10))
    table = source.declared(proposed(source))
    whose = (table.member, INTEGER)
    limits = {"contribution_limit": 3, "per_key_limit": 2}
    bounded = bounded_histogram(table, whose, [(table.whole, INTEGER)], secret="key", **limits)
    assert (bounded.contribution_limit, bounded.per_key_limit) == (3, 2)
    sums = clipped_sums(table, whose, table.whole, -4, 9)
    assert (sums.contribution_limit, sums.per_key_limit) == (1, 9)
    with pytest.raises(InvalidInput, match="letters and digits"):
        bounded_histogram(table, whose, [(table.whole, INTEGER)], secret="'", **limits)
    source.shut()


def test_counts_of_rows_are_limited_per_unit() -> None:
    rows = difficult(500)
    source = open_source(rows)
    table = source.declared(proposed(source))
    sizes = [rows.column("member").to_pylist().count(who) for who in range(40)]
    for per_key in (1, 3, 1000):
        bounded = counted_rows(table, (table.member, INTEGER), per_key)
        assert number(source, bounded) == sum(min(size, per_key) for size in sizes)
    source.shut()


def test_sums_cannot_overflow_and_unusual_numbers_have_a_meaning() -> None:
    rows = difficult(900)
    source = open_source(rows)
    schema = proposed(source)
    table = source.declared(schema)

    def total(column: str, places: int, lower: int, upper: int) -> int:
        worth = fixed_point(table[column], schema.kinds[column], places)
        return number(source, clipped_sums(table, (table.member, INTEGER), worth, lower, upper))

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
